//! The descriptions of the computers, written as text: a source with the sensor, a sink, and the
//! hosts of a ring. Their processor is the paper's (2.4 GHz), and programs have a VCPU with the
//! paper's period of a microframe.

/// The names that the two sides of a link share.
fn link(number: usize) -> String {
    format!("\"link{number}.asks\", \"link{number}.done\", \"link{number}.ask\"")
}

/// Returns a process that drives links, with its VCPU.
fn program(name: &str, links: usize, extra: &str, arguments: [u64; 3]) -> String {
    let uses: Vec<String> = (0..links).map(link).collect();
    let [a, b, c] = arguments;
    format!(
        "[[process]]\nname = \"{name}\"\npriority = 30\nvcpu = \"work\"\n\
         arguments = [{a}, {b}, {c}]\n\
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

/// Returns the USB server with one service besides management.
fn server(uses: &str, settings: &str, service: &str, interval: &str) -> String {
    format!(
        "[[process]]\nname = \"usbd\"\npriority = 40\nvcpu = \"usb-manage\"\nheap = \"384K\"\n\
         stack = \"40K\"\nthreads = 3\nsemaphores = 3\nevents = 2\n\
         uses = [\"xhci\", \"usb-rings\", \"usb-buffers\", \"{service}\", {uses}]\n\
         [process.settings]\n{settings}\n\
         [[vcpu]]\nname = \"usb-manage\"\nbudget = \"100us\"\nperiod = \"2500us\"\n\
         [[vcpu]]\nname = \"{service}\"\nkind = \"io\"\nutilization = \"15%\"\n\
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
    let text = match name.split('-').collect::<Vec<&str>>()[..] {
        ["source"] => source(),
        ["sink"] => sink(),
        ["give", bytes] => give(bytes.parse().map_err(|_| "no such length".to_owned())?),
        ["take", bytes] => take(bytes.parse().map_err(|_| "no such length".to_owned())?),
        ["ring", pause, own] => {
            let number = |text: &str| text.parse().map_err(|_| "no such ring".to_owned());
            ring(number(pause)?, number(own)?)
        }
        _ => return Err("no such description".to_owned()),
    };
    Ok((name.to_owned(), text))
}

/// Returns the computer with the sensor: a debug target of the sink.
fn source() -> String {
    let uses = "\"sensor\", \"sensor.ready\", \"debug.enable\"";
    system("source", "990us")
        + &server(uses, "serves = [\"sensors\"]", "usb-sensor", "990us")
        + &target(0)
        + &program("bridge-relay", 1, ", \"sensor\", \"sensor.ready\"", [0; 3])
        + &links(1)
        + "[[usb]]\nname = \"sensor\"\non = \"xhci\"\nport = 2\nmodel = \"sensor\"\n\
           [[segment]]\nname = \"sensor\"\nsize = \"36K\"\n\
           [[semaphore]]\nname = \"sensor.ready\"\nkind = \"counting\"\n"
}

/// Returns the computer that receives: the debug host.
fn sink() -> String {
    let uses = format!("{}, \"link.ready\", \"link.data\"", link(0));
    system("sink", "49us")
        + &server(&uses, "links = [16]", "usb-link0", "35us")
        + &program("bridge-sink", 1, "", [0; 3])
        + &links(1)
}

/// Returns the computers of [`PAIR`] without the sensor, which send each other as much as they can.
fn give(bytes: u64) -> String {
    let uses = "\"sensor\", \"sensor.ready\", \"debug.enable\"";
    system("give", "990us")
        + &server(uses, "serves = [\"sensors\"]", "usb-sensor", "990us")
        + &target(0)
        + &program("link-flood", 1, "", [1, bytes, 0])
        + &links(1)
        + "[[segment]]\nname = \"sensor\"\nsize = \"36K\"\n\
           [[semaphore]]\nname = \"sensor.ready\"\nkind = \"counting\"\n"
}

fn take(bytes: u64) -> String {
    let uses = format!("{}, \"link.ready\", \"link.data\"", link(0));
    system("take", "49us")
        + &server(&uses, "links = [16]", "usb-link0", "35us")
        + &program("link-flood", 1, "", [1, bytes, 0])
        + &links(1)
}

/// Returns a host of a ring. The origin has messages of its own.
fn ring(pause_us: u64, own: u64) -> String {
    let uses = format!("{}, \"link.ready\", \"link.data\", \"debug.enable\"", link(0));
    system("ring", "49us")
        + &server(&uses, "links = [16]", "usb-link0", "35us")
        + &target(1)
        + &program("bridge-ring", 2, "", [RING_BYTES, pause_us, own])
        + &links(2)
}

/// Bytes of a message round the ring.
pub const RING_BYTES: u64 = 1_024;

/// The list of the two computers.
pub const PAIR: &str = "[[host]]\nname = \"source\"\nsystem = \"source\"\nclock = \"2400MHz\"\n\
    [[host]]\nname = \"sink\"\nsystem = \"sink\"\nclock = \"2400MHz\"\n\
    [[cable]]\nname = \"debug\"\nends = [\"source:xhci:debug\", \"sink:xhci:1\"]\n\
    delay = \"1us\"\n";

/// Returns the list of two computers that send each other messages of this length.
pub fn two(bytes: u64) -> String {
    let source = PAIR.replace("system = \"source\"", &format!("system = \"give-{bytes}\""));
    source.replace("system = \"sink\"", &format!("system = \"take-{bytes}\""))
}

/// Returns the list of a ring of four, whose origin waits so long and has so many messages.
pub fn four(pause_us: u64, own: u64) -> String {
    let mut text = "[network]\nleader = \"h0\"\n".to_owned();
    for host in 0..4 {
        let system = if host == 0 { format!("ring-{pause_us}-{own}") } else { "ring-0-0".into() };
        text +=
            &format!("[[host]]\nname = \"h{host}\"\nsystem = \"{system}\"\nclock = \"2400MHz\"\n");
    }
    for host in 0..4 {
        let next = (host + 1) % 4;
        text += &format!(
            "[[cable]]\nname = \"c{host}\"\nends = [\"h{host}:xhci:debug\", \"h{next}:xhci:1\"]\n\
             delay = \"1us\"\n"
        );
    }
    text
}
