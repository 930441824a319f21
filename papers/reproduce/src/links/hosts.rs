//! The descriptions of the computers, written as text: a source with the sensor, a sink, and the
//! hosts of a ring. Their processor is the paper's (2.4 GHz), and programs have a VCPU with the
//! paper's period of a microframe.
//!
//! Programs have 20 us of it, where the paper's have 88 us, or 90 us of 150 us. So much is not
//! admitted here beside the VCPUs of servers on the same core.

use super::wires;

/// The work of the bottom half of a sensor.
pub const SENSOR_WORK: (&str, &str) = ("usbd.sensor", "5us");
/// A wake-up of a link's bottom half takes up to 3,240 instructions, and 792 more for each transfer
/// that is asked for or has ended.
const LINK: [(&str, &str); 2] = [("usbd.link", "1350ns"), ("usbd.link.message", "330ns")];
/// The other works of links. The bottom half of a sensor takes 11,498 instructions, as `diapason
/// measure` counts them.
const OTHERS: [(&str, &str); 6] = [
    SENSOR_WORK,
    ("dbcd.look", "4us"),
    ("link.check", "3us"),
    ("link.seal", "3us"),
    ("ring.drain", "3us"),
    ("link.flood", "3us"),
];

/// Returns the declarations of the works of hosts with links.
fn linked() -> String {
    works(&LINK) + &works(&OTHERS)
}

/// Returns the declarations of works.
pub fn works(all: &[(&str, &str)]) -> String {
    let work = |(name, worst)| format!("[[work]]\nname = \"{name}\"\nworst = \"{worst}\"\n");
    all.iter().copied().map(work).collect()
}

/// The names that the two sides of a link share.
fn link(number: usize) -> String {
    format!("\"link{number}.asks\", \"link{number}.done\", \"link{number}.ask\"")
}

/// Returns a process that drives links, with its VCPU.
fn program(name: &str, links: usize, extra: &str, arguments: [u64; 4]) -> String {
    let uses: Vec<String> = (0..links).map(link).collect();
    let [a, b, c, d] = arguments;
    format!(
        "[[process]]\nname = \"{name}\"\npriority = 30\nvcpu = \"work\"\n\
         arguments = [{a}, {b}, {c}, {d}]\n\
         uses = [{}, \"link.ready\", \"link.data\"{extra}]\n\
         [[vcpu]]\nname = \"work\"\nbudget = \"20us\"\nperiod = \"125us\"\nreplenishments = 4\n",
        uses.join(", ")
    )
}

/// Returns the segments and semaphores of links.
fn links(count: usize) -> String {
    let mut text = "[[segment]]\nname = \"link.data\"\nsize = \"1600K\"\ndma = true\n\
                    [[semaphore]]\nname = \"link.ready\"\nkind = \"counting\"\n"
        .to_owned();
    for number in 0..count {
        text += &format!(
            "[[segment]]\nname = \"link{number}.asks\"\nsize = \"4K\"\n\
             [[segment]]\nname = \"link{number}.done\"\nsize = \"4K\"\n\
             [[semaphore]]\nname = \"link{number}.ask\"\nkind = \"counting\"\n"
        );
    }
    text
}

/// Returns the USB server with one service besides management, which has so many percent of the
/// processor and may be woken once in an interval.
fn server(uses: &str, settings: &str, service: &str, (share, interval): (u32, &str)) -> String {
    format!(
        "[[process]]\nname = \"usbd\"\npriority = 40\nvcpu = \"usb-manage\"\nheap = \"384K\"\n\
         stack = \"40K\"\nthreads = 3\nsemaphores = 3\nevents = 2\n\
         uses = [\"xhci\", \"usb-rings\", \"usb-buffers\", \"{service}\", {uses}]\n\
         [process.settings]\n{settings}\n\
         [[vcpu]]\nname = \"usb-manage\"\nbudget = \"100us\"\nperiod = \"2500us\"\n\
         [[vcpu]]\nname = \"{service}\"\nkind = \"io\"\nutilization = \"{share}%\"\n\
         interval = \"{interval}\"\nserves = [\"work\"]\n\
         [[segment]]\nname = \"usb-rings\"\nsize = \"512K\"\ndma = true\n\
         [[segment]]\nname = \"usb-buffers\"\nsize = \"32K\"\ndma = true\n"
    )
}

/// Returns the debug target server with the link of this number.
fn target(number: usize) -> String {
    format!(
        "[[process]]\nname = \"dbcd\"\npriority = 40\nvcpu = \"dbc\"\nheap = \"4K\"\n\
         semaphores = 1\narguments = [{look}, 1, {number}]\n\
         uses = [\"xhci\", \"dbc-rings\", \"debug.enable\", {}, \"link.ready\", \"link.data\"]\n\
         [[vcpu]]\nname = \"dbc\"\nbudget = \"20us\"\nperiod = \"125us\"\nreplenishments = 4\n\
         [[semaphore]]\nname = \"debug.enable\"\nkind = \"counting\"\n\
         [[segment]]\nname = \"dbc-rings\"\nsize = \"8K\"\ndma = true\n",
        link(number),
        look = LOOK_US,
    )
}

fn system(name: &str, interval: &str) -> String {
    format!(
        "[system]\nname = \"{name}\"\nmemory = \"32M\"\n\
         [[device]]\nname = \"xhci\"\npci = \"0c0330\"\nsize = \"16K\"\nirqs = 2\n\
         interval = [\"1990us\", \"{interval}\"]\n"
    )
}

/// Time from one look of the debug target server to the next.
pub const LOOK_US: u64 = 125;
/// The period of the VCPUs of programs, and with it of bottom halves that serve them.
pub const PERIOD_NS: u64 = 125_000;
/// The time that a link's interrupts are apart.
pub const MODERATION_NS: u64 = 50_000;
/// The time that the signal takes from one computer to the next.
pub const CABLE_NS: u64 = 1_000;

/// Returns the description with this name, and its name again.
pub fn find(name: &str) -> Result<(String, String), String> {
    let mut words = name.split('-');
    let kind = words.next().unwrap_or_default();
    let numbers = words.map(|word| word.parse().map_err(|_| format!("`{word}` is no number")));
    let numbers = numbers.collect::<Result<Vec<u64>, String>>()?;
    let text = match (kind, &numbers[..]) {
        ("source", []) => source(),
        ("sink", []) => sink(),
        ("target", [bytes, sends, takes]) => flooding_target([*bytes, *sends, *takes]),
        ("host", [bytes, sends, takes]) => flooding_host([*bytes, *sends, *takes]),
        ("ring", [pause, own]) => ring(*pause, *own),
        ("sender", []) => wires::sender(),
        ("receiver", []) => wires::receiver(),
        ("wires", [host, pause, own]) => wires::ring([*host, RING, *pause, *own]),
        _ => return Err("no such description".to_owned()),
    };
    Ok((name.to_owned(), text))
}

/// Returns the computer with the sensor: a debug target of the sink.
fn source() -> String {
    target_with_sensor("source", ("bridge-relay", ", \"sensor\", \"sensor.ready\"", [0; 4]))
        + SENSOR_DEVICE
        + &linked()
}

/// The device that sends packets, at a port of the controller.
pub const SENSOR_DEVICE: &str =
    "[[usb]]\nname = \"sensor\"\non = \"xhci\"\nport = 2\nmodel = \"sensor\"\n";
/// The memory in which the server gives a program its packets.
const SENSOR_INLET: &str = "[[segment]]\nname = \"sensor\"\nsize = \"36K\"\n\
    [[semaphore]]\nname = \"sensor.ready\"\nkind = \"counting\"\n";

/// Returns the controller of a host with a sensor, with the server for that.
pub fn serving_sensors(name: &str, uses: &str) -> String {
    system(name, "990us")
        + &server(uses, "serves = [\"sensors\"]", "usb-sensor", (15, "990us"))
        + SENSOR_INLET
}

/// Returns a debug target whose USB server has room for a sensor.
fn target_with_sensor(name: &str, (run, uses, arguments): (&str, &str, [u64; 4])) -> String {
    serving_sensors(name, "\"sensor\", \"sensor.ready\", \"debug.enable\"")
        + &target(0)
        + &program(run, 1, uses, arguments)
        + &links(1)
}

/// Returns a debug host whose link has so many percent of the processor.
fn debug_host(name: &str, share: u32, (run, arguments): (&str, [u64; 4])) -> String {
    let uses = format!("{}, \"link.ready\", \"link.data\"", link(0));
    system(name, "49us")
        + &server(&uses, "links = [16]", "usb-link0", (share, "35us"))
        + &program(run, 1, "", arguments)
        + &links(1)
}

/// Returns the computer that receives: the debug host.
fn sink() -> String {
    debug_host("sink", 15, ("bridge-sink", [0; 4])) + &linked()
}

/// Returns a debug target that sends or takes as much as it can.
fn flooding_target([bytes, sends, takes]: [u64; 3]) -> String {
    let flood = ("link-flood", "", [1, bytes, sends, takes]);
    target_with_sensor("target", flood) + &linked()
}

/// Returns the debug host at the other end.
fn flooding_host([bytes, sends, takes]: [u64; 3]) -> String {
    debug_host("host", 30, ("link-flood", [1, bytes, sends, takes])) + &linked()
}

/// Returns a host of a ring. The origin has messages of its own.
fn ring(pause_us: u64, own: u64) -> String {
    let uses = format!("{}, \"link.ready\", \"link.data\", \"debug.enable\"", link(0));
    system("ring", "49us")
        + &server(&uses, "links = [16]", "usb-link0", (15, "35us"))
        + &target(1)
        + &program("bridge-ring", 2, "", [RING_BYTES, pause_us, own, 0])
        + &links(2)
        + &linked()
}

/// Bytes of a message round the ring.
pub const RING_BYTES: u64 = 1_024;

/// The list of the two computers.
pub const PAIR: &str = "[[host]]\nname = \"source\"\nsystem = \"source\"\nclock = \"2400MHz\"\n\
    [[host]]\nname = \"sink\"\nsystem = \"sink\"\nclock = \"2400MHz\"\n\
    [[cable]]\nname = \"debug\"\nends = [\"source:xhci:debug\", \"sink:xhci:1\"]\n\
    delay = \"1us\"\n";

/// Returns the list of two computers, of which one sends the other messages of this length as fast
/// as it can. So many of them are under way at once.
pub fn two(bytes: u64, from_target: bool, under_way: u64) -> String {
    let (sends, takes) = if from_target { (under_way, 0) } else { (0, under_way) };
    let target = format!("system = \"target-{bytes}-{sends}-{takes}\"");
    let host = format!("system = \"host-{bytes}-{takes}-{sends}\"");
    PAIR.replace("system = \"source\"", &target).replace("system = \"sink\"", &host)
}

/// Hosts of a ring.
pub const RING: u64 = 4;

/// Returns the list of a ring of debug cables or of Ethernet wires, whose origin waits so long and
/// has so many messages.
pub fn four(bus: RingBus, pause_us: u64, most: u64) -> String {
    let (mut hosts, mut cables) = (String::new(), String::new());
    for host in 0..RING {
        let (pause, own) = if host == 0 { (pause_us, most) } else { (0, 0) };
        let next = (host + 1) % RING;
        let (system, cable) = match bus {
            RingBus::Usb => (
                format!("ring-{pause}-{own}"),
                format!("[[cable]]\nends = [\"h{host}:xhci:debug\", \"h{next}:xhci:1\"]\n"),
            ),
            RingBus::Ethernet => (
                format!("wires-{host}-{pause}-{own}"),
                format!("[[ethernet]]\nends = [\"h{host}:nic0\", \"h{next}:nic1\"]\n"),
            ),
        };
        hosts +=
            &format!("[[host]]\nname = \"h{host}\"\nsystem = \"{system}\"\nclock = \"2400MHz\"\n");
        cables += &format!("{cable}name = \"c{host}\"\ndelay = \"{CABLE_NS}ns\"\n");
    }
    let leader = if bus == RingBus::Usb { "[network]\nleader = \"h0\"\n" } else { "" };
    format!("{leader}{hosts}{cables}")
}

/// The bus that joins the hosts of a ring.
#[derive(Clone, Copy, Eq, PartialEq)]
pub enum RingBus {
    Usb,
    Ethernet,
}
