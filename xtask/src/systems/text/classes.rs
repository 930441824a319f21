//! Devices beside the interface, each with its service and its client.

use super::{core, quoted, vcpu, work};
use crate::systems::drawn::{Budget, Commands, DiskPipe, DrawnSamples, FramePipe, Gadget, Sender};

/// Returns the word in the names of a class.
pub const fn word(class: Gadget) -> &'static str {
    match class {
        Gadget::Sensor | Gadget::Samples(_) => "sensor",
        Gadget::Endpoint(..) => "endpoint",
        Gadget::Sink(Commands { pair: true, .. }, _) => "pair",
        Gadget::Sink(..) => "sink",
        Gadget::Keyboard => "keyboard",
        Gadget::Disk(_) | Gadget::Blocks(..) => "disk",
        Gadget::Camera(_) | Gadget::Pictures(..) => "camera",
        Gadget::SecondPictures(..) => "camera1",
        Gadget::SecondSamples(_) => "sensor1",
        Gadget::SecondBlocks(..) => "disk1",
        Gadget::Network(_) | Gadget::Frames(..) => "network",
    }
}

/// The VCPU of the reader of a device that is written, too.
const WATCH: &str = "watch-pair";
/// The VCPU of the reader of a network device to which frames go, too.
const HEARS: &str = "watch-network";

/// Returns the VCPU of the reader of a device that has a pipe from it besides one to it.
pub const fn watches(class: Gadget) -> Option<&'static str> {
    match class {
        Gadget::Sink(Commands { pair: true, .. }, _) => Some(WATCH),
        Gadget::Frames(FramePipe { both: true, .. }, _) => Some(HEARS),
        _ => None,
    }
}

/// Returns the name of the device of a class. An adapter is called as `netd` knows it.
fn plugged(class: Gadget) -> String {
    match class {
        Gadget::Frames(FramePipe { datagrams: true, .. }, _) => String::from("nic0"),
        _ => format!("{}-device", word(class)),
    }
}

/// Returns the objects that the service shares with its client.
const fn shared(class: Gadget) -> &'static [&'static str] {
    match class {
        Gadget::Sensor => &["sensor", "sensor.ready"],
        // Those of a pipe follow from it.
        Gadget::Samples(_)
        | Gadget::SecondSamples(_)
        | Gadget::Endpoint(..)
        | Gadget::Sink(..)
        | Gadget::Pictures(..)
        | Gadget::SecondPictures(..)
        | Gadget::Blocks(..)
        | Gadget::SecondBlocks(..)
        | Gadget::Frames(..) => &[],
        Gadget::Keyboard => &["keyboard", "keyboard.ready"],
        Gadget::Disk(_) => &["disk.asks", "disk.answers", "disk.data", "disk.ask", "disk.ready"],
        Gadget::Camera(_) => &["camera", "camera.back", "camera.data", "camera.ready"],
        Gadget::Network(_) => &[
            "network.asks",
            "network.news",
            "network.data",
            "network.ready",
            "network-to.asks",
            "network-to.news",
            "network-to.data",
            "network-to.ready",
            "network.ask",
        ],
    }
}

/// Returns the names that the server is granted for a class.
pub fn granted(class: Gadget) -> String {
    let names: Vec<String> = shared(class).iter().map(|name| format!(", \"{name}\"")).collect();
    format!(", \"usb-{}\"{}", word(class), names.concat())
}

/// Returns the distance of the messages of a service.
pub const fn interval(class: Gadget) -> &'static str {
    match class {
        Gadget::Sensor
        | Gadget::Samples(_)
        | Gadget::SecondSamples(_)
        | Gadget::Endpoint(..)
        | Gadget::Keyboard => "990us",
        Gadget::Camera(_) | Gadget::Pictures(..) | Gadget::SecondPictures(..) => "490us",
        Gadget::Disk(_)
        | Gadget::Blocks(..)
        | Gadget::SecondBlocks(..)
        | Gadget::Network(_)
        | Gadget::Frames(..)
        | Gadget::Sink(..) => "120us",
    }
}

/// Returns the size of a segment, and whether it is for devices, too; of a semaphore nothing.
fn size(name: &str) -> Option<(&'static str, bool)> {
    Some(match name {
        "sensor" => ("36K", false),
        "disk.data" => ("128K", true),
        "camera" => ("12K", false),
        "camera.back" => ("8K", false),
        "camera.data" => ("256K", true),
        "network.data" | "network-to.data" => ("256K", true),
        "network.news" | "network-to.news" => ("16K", false),
        "keyboard" | "disk.asks" | "disk.answers" | "network.asks" | "network-to.asks" => {
            ("4K", false)
        }
        _ => return None,
    })
}

fn object(name: &str) -> String {
    match size(name) {
        Some((size, dma)) => {
            let dma = if dma { "dma = true\n" } else { "" };
            format!("\n[[segment]]\nname = \"{name}\"\nsize = \"{size}\"\n{dma}")
        }
        None => format!("\n[[semaphore]]\nname = \"{name}\"\nkind = \"counting\"\n"),
    }
}

/// Returns a device of a class at this port, the bottom half of its service, and its client.
pub fn client(class: Gadget, port: usize, stretch: u64) -> String {
    let name = word(class);
    let (share, every, (budget, period), program, arguments) = match class {
        Gadget::Samples(samples) | Gadget::SecondSamples(samples) => {
            return device(class, port) + &read(name, SAMPLES, samples);
        }
        Gadget::Endpoint(sender, samples) => {
            return device(class, port) + &read(name, packets(sender), samples);
        }
        Gadget::Sink(commands, samples) => {
            return device(class, port) + &written(commands, samples);
        }
        Gadget::Pictures(slow, samples) | Gadget::SecondPictures(slow, samples) => {
            return device(class, port) + &read(name, pictures(slow), samples);
        }
        Gadget::Blocks(pipe, samples) | Gadget::SecondBlocks(pipe, samples) => {
            let (way, at) = ((pipe.writes, ""), &*plugged(class));
            return device(class, port) + &ended((name, at), blocks(pipe), way, samples);
        }
        Gadget::Frames(pipe, samples) => {
            let [messages, program] = frames(pipe);
            let messages = (&messages[..], &program[..]);
            let (serves, reads) = match pipe.both {
                true => (format!(", \"{HEARS}\""), heard(pipe, samples)),
                false => (String::new(), String::new()),
            };
            let (way, at) = ((pipe.writes, &*serves), &*plugged(class));
            return device(class, port) + &ended((name, at), messages, way, samples) + &reads;
        }
        Gadget::Sensor => ("5%", "990us", (200_000, 5_000_000), "sensor-reader", "[0]"),
        Gadget::Keyboard => ("2%", "990us", (200_000, 20_000_000), "key-reader", "[0]"),
        Gadget::Disk(_) => ("10%", "60us", (1_300_000, 10_000_000), "disk-check", "[16]"),
        Gadget::Camera(_) => ("10%", "240us", (500_000, 2_000_000), "camera-check", "[0]"),
        Gadget::Network(_) => ("20%", "40us", (200_000, 500_000), "net-echo", "[0, 500]"),
    };
    let micros = match class {
        Gadget::Disk(micros) | Gadget::Camera(micros) | Gadget::Network(micros) => micros,
        Gadget::Sensor
        | Gadget::Samples(_)
        | Gadget::SecondSamples(_)
        | Gadget::Endpoint(..)
        | Gadget::Sink(..)
        | Gadget::Pictures(..)
        | Gadget::SecondPictures(..)
        | Gadget::Blocks(..)
        | Gadget::SecondBlocks(..)
        | Gadget::Frames(..)
        | Gadget::Keyboard => 20,
    };
    let uses = quoted(shared(class));
    let objects: String = shared(class).iter().map(|name| object(name)).collect();
    let half = work(&format!("usbd.{name}"), micros * 1_000);
    let device = device(class, port);
    let server = Budget { budget: budget * stretch, period: period * stretch };
    let seat = vcpu(&format!("use-{name}"), server, "replenishments = 4\n");
    format!(
        "{device}{half}\n[[vcpu]]\nname = \"usb-{name}\"\nkind = \"io\"\n\
         utilization = \"{share}\"\ninterval = \"{every}\"\nserves = [\"use-{name}\"]\n\
         \n[[process]]\nname = \"{name}-user\"\nprogram = \"{program}\"\npriority = 20\n\
         stack = \"40K\"\nvcpu = \"use-{name}\"\nuses = [{uses}]\narguments = {arguments}\n\
         {seat}{objects}"
    )
}

fn device(class: Gadget, port: usize) -> String {
    let (name, plug) = (word(class), plugged(class));
    let model = match class {
        Gadget::Endpoint(Sender::Keys, _) => "keyboard",
        Gadget::Endpoint(..) => "instrument",
        Gadget::Sink(Commands { pair: true, .. }, _) => "servo",
        Gadget::Sink(..) => "actuator",
        Gadget::Blocks(DiskPipe { fast, .. }, _)
        | Gadget::SecondBlocks(DiskPipe { fast, .. }, _) => {
            if fast {
                "superspeed-disk"
            } else {
                "disk"
            }
        }
        Gadget::SecondPictures(..) => "camera",
        Gadget::SecondSamples(_) => "sensor",
        _ => name,
    };
    let takes = match class {
        Gadget::Blocks(..) | Gadget::SecondBlocks(..) => String::from("takes = \"400us\"\n"),
        Gadget::Frames(FramePipe { both: true, .. }, _) => {
            String::from("takes = \"200us\"\ngap = \"1000us\"\n")
        }
        Gadget::Frames(FramePipe { writes: true, .. }, _) => String::from("takes = \"200us\"\n"),
        Gadget::Frames(FramePipe { every, .. }, _) => format!("gap = \"{every}us\"\n"),
        // The server could take an instrument for it, if it did not know its numbers.
        Gadget::Sink(Commands { busy, pair, .. }, _) => {
            let product = if pair { 4 } else { 3 };
            format!("vendor = 0x1209\nproduct = {product}\ntakes = \"{busy}us\"\n")
        }
        _ => String::new(),
    };
    format!(
        "\n[[usb]]\nname = \"{plug}\"\non = \"xhci\"\nport = {port}\nmodel = \"{model}\"\n{takes}"
    )
}

/// The words of a pipe about its messages, and its reader with the reader's arguments.
type Messages<'t> = (&'t str, &'t str);

/// The messages of a sensor.
const SAMPLES: Messages<'static> =
    ("period = \"2500us\"\nbytes = 512\nstamp = 16", "program = \"sensor-pipe\"\narguments = [0]");

/// Returns the messages of a camera that is asked for its slow pictures, or not.
const fn pictures(slow: bool) -> Messages<'static> {
    const READER: &str = "program = \"picture-pipe\"\narguments = [0]";
    match slow {
        true => ("period = \"33333us\"\nbytes = 614400", READER),
        false => ("period = \"20ms\"\nbytes = 614400", READER),
    }
}

/// Returns the messages of the pipe of a disk.
const fn blocks(pipe: DiskPipe) -> Messages<'static> {
    const FAST: &str = "period = \"8ms\"\nbytes = 65536";
    const SLOW: &str = "period = \"16ms\"\nbytes = 16384";
    match (pipe.fast, pipe.writes) {
        (true, false) => (FAST, "program = \"block-pipe\"\narguments = [0, 0, 65536, 8000]"),
        (false, false) => (SLOW, "program = \"block-pipe\"\narguments = [0, 0, 16384, 16000]"),
        (true, true) => (FAST, "program = \"block-writer\"\narguments = [0, 8000, 65536, 0]"),
        (false, true) => (SLOW, "program = \"block-writer\"\narguments = [0, 16000, 16384, 0]"),
    }
}

/// The process of `netd` at the end of a pipe.
const SERVER: &str = "program = \"netd\"\nstack = \"64K\"";

/// Returns the messages of the pipe of a network device.
fn frames(pipe: FramePipe) -> [String; 2] {
    let FramePipe { every, writes, datagrams, .. } = pipe;
    let [shape, program] = match writes {
        false if datagrams => ["bytes = 256\nstamp = 50", SERVER],
        false => ["bytes = 256\nstamp = 24", "program = \"frame-pipe\"\narguments = [0]"],
        true if datagrams => {
            return [format!("period = \"{every}us\"\nbytes = 256"), SERVER.to_owned()];
        }
        true => {
            return [
                format!("period = \"{every}us\"\nbytes = 1514"),
                format!("program = \"frame-writer\"\narguments = [0, {every}, 1514]"),
            ];
        }
    };
    [format!("period = \"{every}us\"\n{shape}"), program.to_owned()]
}

/// Returns the messages of an endpoint.
const fn packets(sender: Sender) -> Messages<'static> {
    match sender {
        Sender::Keys => (
            "period = \"50ms\"\nendpoint = 1\nbytes = 8",
            "program = \"packet-pipe\"\narguments = [0, 0, 8]",
        ),
        Sender::Interrupt => (
            "period = \"2ms\"\nendpoint = 1\nbytes = 64\nstamp = 16",
            "program = \"packet-pipe\"\narguments = [0, 0, 64]",
        ),
        Sender::Bulk => (
            "period = \"2ms\"\nendpoint = 2\nbytes = 512\nstamp = 16",
            "program = \"packet-pipe\"\narguments = [0, 0, 512]",
        ),
    }
}

/// The pipe from a device, its reader, and the bottom half between them.
fn read(name: &str, messages: Messages<'_>, samples: DrawnSamples) -> String {
    ended((name, &format!("{name}-device")), messages, (false, ""), samples)
}

/// The pipe from a device or to it, its reader or writer, and the bottom half between them, which
/// may serve other VCPUs, too.
fn ended(
    (name, device): (&str, &str),
    (messages, program): Messages<'_>,
    (writes, more): (bool, &str),
    samples: DrawnSamples,
) -> String {
    let (way, end) = if writes { ("to", "writer") } else { ("from", "reader") };
    let DrawnSamples { half, share, work: declared, takes, server, replenishments, core: on } =
        samples;
    let list = format!("replenishments = {replenishments}\n");
    let seat = format!("use-{name}");
    // A bottom half serves VCPUs of its own core.
    let served = if on > 0 { "usb-manage" } else { &*seat };
    // Both cameras have the works of the first one, and so have both sensors and both disks.
    let mut works = match name {
        "camera1" | "sensor1" | "disk1" => String::new(),
        _ => work(&format!("usbd.{name}"), half * 1_000) + &work(&format!("{name}.message"), takes),
    };
    // Several frames may be under way to a network device.
    let sends = name == "network" && writes;
    if sends {
        works += &work("usbd.network.message", 2_000);
    }
    // Some hear of an interrupt, and look after their pace. That of a disk hears asks besides.
    let every = match name {
        "camera" | "camera1" => "240us",
        "network" if sends => "30us",
        "disk" | "disk1" | "network" => "60us",
        _ => "990us",
    };
    format!(
        "\n[[pipe]]\nname = \"{name}-messages\"\n{way} = \"{device}\"\n\
         {end} = \"{name}-user\"\n{messages}\nwork = \"{declared}ns\"\n\
         \n[[process]]\nname = \"{name}-user\"\n{program}\npriority = 30\n\
         vcpu = \"{seat}\"\n{}\
         \n[[vcpu]]\nname = \"usb-{name}\"\nkind = \"io\"\nutilization = \"{share}%\"\n\
         interval = \"{every}\"\nserves = [\"{served}\"{more}]\n{}{works}",
        core(on),
        vcpu(&seat, server, &list),
    )
}

/// The pipe from a network device to which another one goes, and its reader.
fn heard(pipe: FramePipe, samples: DrawnSamples) -> String {
    let DrawnSamples { work: declared, server, replenishments, .. } = samples;
    let [messages, program] = frames(FramePipe { every: 1_000, writes: false, ..pipe });
    let device = plugged(Gadget::Frames(pipe, samples));
    let sockets = if pipe.datagrams { socket(samples) } else { String::new() };
    format!(
        "\n[[pipe]]\nname = \"network-heard\"\nfrom = \"{device}\"\n\
         reader = \"network-watch\"\n{messages}\nwork = \"{declared}ns\"\n\
         \n[[process]]\nname = \"network-watch\"\n{program}\npriority = 30\nvcpu = \"{HEARS}\"\n\
         {}{sockets}",
        vcpu(HEARS, server, &format!("replenishments = {replenishments}\n"))
    )
}

/// The adapter that is a network device, and the socket that its frames come to. The program sends
/// them back.
fn socket(samples: DrawnSamples) -> String {
    let DrawnSamples { work: declared, takes, server, replenishments, .. } = samples;
    format!(
        "\n[[adapter]]\ndevice = \"nic0\"\naddress = \"10.0.2.15\"\nmac = \"40:54:00:12:34:56\"\n\
         \n[[socket]]\nname = \"drive\"\nadapter = \"nic0\"\nprocess = \"drive\"\nport = 5000\n\
         period = \"1ms\"\nbytes = 214\nwork = \"{declared}ns\"\n\
         peer = \"10.0.2.2:4000\"\npeer_mac = \"52:55:0a:00:02:02\"\n\
         \n[[process]]\nname = \"drive\"\nprogram = \"udp-echo\"\npriority = 30\n\
         vcpu = \"use-socket\"\nstack = \"32K\"\n{}{}",
        vcpu("use-socket", server, &format!("replenishments = {replenishments}\n")),
        work("socket.take", takes)
    )
}

/// The pipe to an actuator or a servo drive, its writer, the bottom half between them, and the pipe
/// from a drive.
fn written(commands: Commands, samples: DrawnSamples) -> String {
    let Commands { pair, bulk, period, each, .. } = commands;
    let DrawnSamples { half, share, work: declared, takes, server, replenishments, core: on } =
        samples;
    let name = word(Gadget::Sink(commands, samples));
    let (endpoint, bytes) = if bulk { (2, 512) } else { (1, 64) };
    let list = format!("replenishments = {replenishments}\n");
    let (watch, serves) = match pair {
        true if on > 0 => (watched(bulk, samples), format!("\"use-{name}\"")),
        true => (watched(bulk, samples), format!("\"{WATCH}\", \"use-{name}\"")),
        false => (String::new(), format!("\"use-{name}\"")),
    };
    format!(
        "\n[[pipe]]\nname = \"{name}-messages\"\nto = \"{name}-device\"\n\
         writer = \"{name}-user\"\nendpoint = {endpoint}\nbytes = {bytes}\n\
         period = \"{period}us\"\nwork = \"{declared}ns\"\n\
         \n[[process]]\nname = \"{name}-user\"\nprogram = \"packet-writer\"\npriority = 30\n\
         vcpu = \"use-{name}\"\narguments = [0, {period}, {bytes}, {each}]\n\
         \n[[vcpu]]\nname = \"usb-{name}\"\nkind = \"io\"\nutilization = \"{share}%\"\n\
         interval = \"60us\"\nwakes = 2\nserves = [{serves}]\n{}{}{}{watch}",
        vcpu(&format!("use-{name}"), server, &list),
        work(&format!("usbd.{name}"), half * 1_000),
        work("sink.message", takes)
    )
}

/// The pipe from a servo drive, and its reader.
fn watched(bulk: bool, samples: DrawnSamples) -> String {
    let DrawnSamples { work: declared, takes, server, replenishments, core: on, .. } = samples;
    let (messages, reader) = packets(if bulk { Sender::Bulk } else { Sender::Interrupt });
    format!(
        "\n[[pipe]]\nname = \"pair-positions\"\nfrom = \"pair-device\"\nreader = \"pair-watch\"\n\
         {messages}\nwork = \"{declared}ns\"\n\
         \n[[process]]\nname = \"pair-watch\"\n{reader}\npriority = 30\nvcpu = \"{WATCH}\"\n{}{}{}",
        core(on),
        vcpu(WATCH, server, &format!("replenishments = {replenishments}\n")),
        work("endpoint.message", takes)
    )
}
