//! The descriptions of hosts that are joined by Ethernet, written as text: a ring of wires, and a
//! source with the sensor and a sink at a switch. The processor and the VCPUs of programs are those
//! of the hosts at USB (`hosts.rs`), and a thread that sends has what the debug target server has
//! there.

use super::hosts::{CABLE_NS, RING_BYTES, SENSOR_DEVICE, SENSOR_WORK, serving_sensors, works};

/// Works of single frames and messages. QEMU counted 1,871 instructions for a wake-up of the thread
/// that receives and 2,091 for a frame, 2,851 for one that is sent, and 3,202 for the layers of one
/// that is taken; 3,792 for a message that is passed on, 4,789 for a packet that the relay sends,
/// and 3,071 for one that the sink checks. An instruction takes a cycle.
const FRAMES: [(&str, &str); 7] = [
    ("netd.receive", "800ns"),
    ("netd.receive.frame", "900ns"),
    ("netd.send.frame", "1200ns"),
    ("socket.take", "1400ns"),
    ("ring.pass", "1600ns"),
    ("wire.relay", "2us"),
    ("wire.check", "1300ns"),
];
/// The time from the last bit of a frame until the switch has it in a queue.
pub const SWITCH_NS: u64 = 2_000;
/// By how many millionths the clock of the switch, which opens the gates, is fast.
pub const SWITCH_PPM: u64 = 50;
/// The priority of the sensor's frames.
const PRIORITY: u8 = 1;
/// Bytes of the heads of UDP and IP.
pub const HEADS: u64 = 28;
/// Bytes of a packet of the sensor.
pub const PACKET: u64 = 512;

/// Returns a Main VCPU with this budget and period in us.
fn vcpu(name: &str, (budget, period): (u64, u64)) -> String {
    format!(
        "[[vcpu]]\nname = \"{name}\"\nbudget = \"{budget}us\"\nperiod = \"{period}us\"\n\
         replenishments = 4\n"
    )
}

/// Returns an adapter of a host with its server: the VCPU of its thread that sends, that which its
/// thread that receives serves, with so many percent, and the least time between its interrupts.
fn adapter(
    [host, number]: [u64; 2],
    send: &str,
    (serves, share, interval): (&str, u32, &str),
) -> String {
    let (address, mac) = addresses([host, number]);
    format!(
        "[[adapter]]\ndevice = \"nic{number}\"\naddress = \"{address}\"\nmac = \"{mac}\"\n\
         [[device]]\nname = \"nic{number}\"\npci = \"020000\"\nvendor = \"8086:10d3\"\n\
         instance = {number}\nsize = \"128K\"\nirqs = 1\ninterval = \"{interval}\"\n\
         [[process]]\nname = \"net{number}\"\nprogram = \"netd\"\npriority = 40\n\
         vcpu = \"{send}\"\nstack = \"64K\"\nthreads = 2\nsemaphores = 1\nevents = 1\n\
         uses = [\"nic{number}\", \"nic{number}.receive\"]\n\
         [[vcpu]]\nname = \"nic{number}.receive\"\nkind = \"io\"\nutilization = \"{share}%\"\n\
         interval = \"{interval}\"\nserves = [\"{serves}\"]\n"
    )
}

/// Returns the addresses of an adapter of a host.
fn addresses([host, number]: [u64; 2]) -> (String, String) {
    (format!("10.0.{host}.{}", number + 1), format!("02:00:00:00:{host:02x}:{:02x}", number + 1))
}

/// Returns a socket of the program: its name, the adapter, the port, and the most bytes.
fn socket(name: &str, adapter: u64, (port, bytes): (u16, u64)) -> String {
    format!(
        "[[socket]]\nname = \"{name}\"\nadapter = \"nic{adapter}\"\nprocess = \"program\"\n\
         port = {port}\nbytes = {bytes}\n"
    )
}

/// Returns the peer of a socket: the adapter, at port 5000.
fn peer(of: [u64; 2]) -> String {
    let (address, mac) = addresses(of);
    format!("peer = \"{address}:5000\"\npeer_mac = \"{mac}\"\n")
}

/// Returns the process that runs this program, with its VCPU.
fn program(run: &str, uses: &str, arguments: [u64; 3]) -> String {
    let [a, b, c] = arguments;
    format!(
        "[[process]]\nname = \"program\"\nprogram = \"{run}\"\npriority = 30\nvcpu = \"work\"\n\
         stack = \"32K\"\nuses = [{uses}]\narguments = [{a}, {b}, {c}]\n"
    ) + &vcpu("work", (20, 125))
}

/// Returns a host of a ring of so many. It sends by its first adapter to the second one of the
/// next host. The origin has `own` messages under way, the others none.
pub fn ring([host, hosts, pause_us, own]: [u64; 4]) -> String {
    "[system]\nname = \"ring\"\nmemory = \"32M\"\n".to_owned()
        + &adapter([host, 0], "send", ("reports", 5, "1ms"))
        + &adapter([host, 1], "reports", ("work", 15, "50us"))
        + &vcpu("send", (20, 125))
        + &vcpu("reports", (100, 5_000))
        + &socket("behind", 0, (4000, RING_BYTES))
        + &peer([(host + 1) % hosts, 1])
        + &socket("before", 1, (5000, RING_BYTES))
        + &program("wire-ring", "", [RING_BYTES, pause_us, own])
        + &works(&FRAMES)
}

/// Returns the computer with the sensor, which sends by its adapter.
pub fn sender() -> String {
    let served = "\"sensor\", \"sensor.ready\"";
    serving_sensors("sender", served)
        + SENSOR_DEVICE
        + &adapter([0, 0], "send", ("usb-manage", 5, "1ms"))
        + &vcpu("send", (20, 125))
        + &socket("sensor", 0, (4000, PACKET))
        + &format!("priority = {PRIORITY}\n")
        + &peer([1, 0])
        + &program("wire-relay", served, [0; 3])
        + &works(&FRAMES)
        + &works(&[SENSOR_WORK])
}

/// Returns the computer that receives.
pub fn receiver() -> String {
    "[system]\nname = \"receiver\"\nmemory = \"32M\"\n".to_owned()
        + &adapter([1, 0], "reports", ("work", 15, "50us"))
        + &vcpu("reports", (100, 5_000))
        + &socket("sensor", 0, (5000, PACKET))
        + &program("wire-sink", "", [0; 3])
        + &works(&FRAMES)
}

/// Returns the list of the two computers at a switch. It sends packets to the sink in a window of
/// so many ns in each microframe, and by a clock of its own.
pub fn pair(window_ns: u64, cycle_ns: u64) -> String {
    let host = |name: &str, system: &str| {
        format!("[[host]]\nname = \"{name}\"\nsystem = \"{system}\"\nclock = \"2400MHz\"\n")
    };
    let wire = |name: &str, ends: [&str; 2]| {
        format!("[[ethernet]]\nname = \"{name}\"\nends = {ends:?}\ndelay = \"{CABLE_NS}ns\"\n")
    };
    host("sender", "sender")
        + &host("receiver", "receiver")
        + &wire("first", ["sender:nic0", "switch:1"])
        + &wire("second", ["switch:2", "receiver:nic0"])
        + &format!(
            "[[switch]]\nname = \"switch\"\nports = 2\nlatency = \"{SWITCH_NS}ns\"\n\
             drift = \"{SWITCH_PPM}ppm\"\n\
             [[switch.gates]]\nport = 2\nentries = [\"S {:x} {window_ns}ns\", \"S 1 {}ns\"]\n",
            1 << PRIORITY,
            cycle_ns - window_ns
        )
}
