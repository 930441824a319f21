//! A drawn system as a description.

use super::drawn::{
    Budget, Drawn, DrawnPipe, DrawnTask, Gadget, Interface, Perch, Queues, Rude, TRAFFIC,
};
use std::fmt::Write;

/// Writes what every description has in common, and all parts after it.
#[must_use]
pub fn description(drawn: &Drawn, name: &str) -> String {
    let mut text = format!(
        "[system]\nname = \"{name}\"\nmemory = \"64M\"\nclock = \"{}MHz\"\n",
        drawn.clock_mhz
    );
    text += &scheduling(drawn);
    if drawn.tasks.iter().any(|task| task.section > 0) || behaves(drawn, CLING) {
        text += "\n[[semaphore]]\nname = \"shared\"\n";
    }
    if behaves(drawn, POST) {
        text += "\n[[mailbox]]\nname = \"rude.box\"\nmessages = 1024\n";
    }
    if behaves(drawn, CHURN) {
        text += "\n[[semaphore]]\nname = \"rude.gate\"\nkind = \"counting\"\n";
    }
    if behaves(drawn, FALL) {
        text += "\n[[process]]\nname = \"supervisor\"\npriority = 63\nvcpu = \"watch\"\n";
        text += "\n[[vcpu]]\nname = \"watch\"\nbudget = \"100us\"\nperiod = \"20ms\"\n";
    }
    for (number, one) in drawn.tasks.iter().enumerate() {
        text += &task(number, one);
    }
    if let Some(one) = &drawn.can {
        text += &can(one);
    }
    for (number, one) in drawn.rude.iter().enumerate() {
        text += &rude(drawn, number, one);
    }
    text
}

/// Behaviours of `rude` that need something declared.
pub const GREEDY: u64 = 3;
const POST: u64 = 5;
const FALL: u64 = 6;
const CHURN: u64 = 7;
const CLING: u64 = 9;

fn behaves(drawn: &Drawn, how: u64) -> bool {
    drawn.rude.iter().any(|rude| rude.arguments[0] == how)
}

/// The names of all Main VCPUs, in the order of the text.
fn mains(drawn: &Drawn) -> Vec<String> {
    let mut names = Vec::new();
    if behaves(drawn, FALL) {
        names.push(String::from("watch"));
    }
    names.extend((0..drawn.tasks.len()).map(|number| format!("run-{number}")));
    if let Some(can) = &drawn.can {
        names.push(String::from("usb-manage"));
        let mut seats: Vec<String> = can.pipes.iter().map(|pipe| seat(can, pipe)).collect();
        seats.dedup();
        names.extend(seats);
        names.extend(can.classes.iter().map(|class| format!("use-{}", word(*class))));
        if can.tuned {
            names.extend(["usb-tune", "hostile-main"].map(String::from));
        }
    }
    let own = drawn.rude.iter().enumerate().filter(|(_, it)| matches!(it.seat, Perch::Own(..)));
    names.extend(own.map(|(number, _)| format!("rude-{number}-own")));
    names
}

fn scheduling(drawn: &Drawn) -> String {
    match drawn.queues {
        Queues::Periods => String::new(),
        Queues::Deadlines => String::from("\n[scheduling]\ndynamic = \"all\"\n"),
        Queues::First(count) => {
            let names: Vec<String> =
                mains(drawn).into_iter().take(count).map(|name| format!("\"{name}\"")).collect();
            format!("\n[scheduling]\ndynamic = [[{}]]\n", names.join(", "))
        }
    }
}

fn vcpu(name: &str, server: Budget, rest: &str) -> String {
    format!(
        "\n[[vcpu]]\nname = \"{name}\"\nbudget = \"{}ns\"\nperiod = \"{}ns\"\n{rest}",
        server.budget, server.period
    )
}

fn task(number: usize, task: &DrawnTask) -> String {
    let DrawnTask { period, phase, work, section, spare, replenishments } = task;
    let uses = if *section > 0 { "uses = [\"shared\"]\n" } else { "" };
    let server = Budget { budget: (work + spare) * 1_000, period: period * 1_000 };
    let job = work + spare - spare / 4;
    let rest = format!("job = \"{job}us\"\nreplenishments = {replenishments}\n");
    format!(
        "\n[[process]]\nname = \"task-{number}\"\nprogram = \"task\"\npriority = 30\n\
         vcpu = \"run-{number}\"\narguments = [{phase}, {period}, {work}, {section}]\n{uses}{}",
        vcpu(&format!("run-{number}"), server, &rest)
    )
}

const fn word(class: Gadget) -> &'static str {
    match class {
        Gadget::Sensor => "sensor",
        Gadget::Keyboard => "keyboard",
        Gadget::Disk(_) => "disk",
    }
}

fn can(can: &Interface) -> String {
    let messages = 2 + can.classes.len();
    let threads = messages + 2 * usize::from(can.tuned) + 1;
    let locks = messages + 1;
    let mut text = format!(
        "\n[[process]]\nname = \"usbd\"\npriority = 40\nvcpu = \"usb-manage\"\nheap = \"512K\"\n\
         stack = \"56K\"\nthreads = {threads}\nsemaphores = {locks}\nevents = {messages}\n\
         uses = [\"xhci\", \"usb-rings\", \"usb-buffers\", \"usb-receive\"{}]\n",
        granted(can)
    );
    if !can.classes.is_empty() || can.behind_hub {
        text += &settings(can);
    }
    text += &vcpu("usb-manage", can.manage, "");
    let readers: Vec<String> = can.pipes.iter().map(|pipe| seat(can, pipe)).collect();
    let served = served(&readers, can.tuned);
    let _ = write!(
        text,
        "\n[[vcpu]]\nname = \"usb-receive\"\nkind = \"io\"\nutilization = \"{}%\"\n\
         interval = \"990us\"\nserves = [{served}]\n",
        can.share
    );
    let intervals: Vec<&str> = can.classes.iter().map(|class| interval(*class)).collect();
    let intervals: String = intervals.iter().map(|it| format!(", \"{it}\"")).collect();
    let _ = write!(
        text,
        "\n[[device]]\nname = \"xhci\"\npci = \"0c0330\"\nsize = \"16K\"\nirqs = {messages}\n\
         interval = [\"1990us\", \"990us\"{intervals}]\n"
    );
    for (name, micros) in [("usbd.receive", can.works), ("usbd.manage", can.works)] {
        text += &work(name, micros * 1_000);
    }
    let takes = can.pipes.iter().map(|pipe| pipe.takes).max().unwrap_or_default();
    text += &if takes > 0 { work("can.message", takes) } else { String::new() };
    text += "\n[[segment]]\nname = \"usb-rings\"\nsize = \"512K\"\ndma = true\n";
    text += "\n[[segment]]\nname = \"usb-buffers\"\nsize = \"32K\"\ndma = true\n";
    text += if can.behind_hub {
        "\n[[usb]]\nname = \"hub\"\non = \"xhci\"\nport = 1\nmodel = \"hub\"\n\
         \n[[usb]]\nname = \"interface\"\nbehind = \"hub\"\nport = 1\nmodel = \"usb-can\"\n"
    } else {
        "\n[[usb]]\nname = \"interface\"\non = \"xhci\"\nport = 1\nmodel = \"usb-can\"\n"
    };
    can.pipes.iter().for_each(|pipe| text += &reader(can, pipe));
    for (number, class) in can.classes.iter().enumerate() {
        text += &client(*class, number + 2);
    }
    text + if can.tuned { TUNED } else { "" }
}

/// Returns the VCPUs that the bottom half works for.
fn served(readers: &[String], tuned: bool) -> String {
    let mut all: Vec<&str> = readers.iter().map(String::as_str).collect();
    if tuned || all.is_empty() {
        all.push("usb-manage");
    }
    all.sort_unstable();
    all.dedup();
    let quoted: Vec<String> = all.iter().map(|name| format!("\"{name}\"")).collect();
    quoted.join(", ")
}

fn settings(can: &Interface) -> String {
    let classes = can.classes.iter().map(|class| format!("{}s", word(*class)));
    let hubs = can.behind_hub.then(|| String::from("hubs"));
    let all = [String::from("can")].into_iter().chain(classes).chain(hubs);
    let quoted: Vec<String> = all.map(|name| format!("\"{name}\"")).collect();
    format!("\n[process.settings]\nserves = [{}]\n", quoted.join(", "))
}

/// Returns what the server is granted for its classes and for tuned pipes.
fn granted(can: &Interface) -> String {
    let of = |class: &Gadget| match class {
        Gadget::Disk(_) => {
            ", \"usb-disk\", \"disk.asks\", \"disk.answers\", \"disk.data\", \"disk.ask\", \
             \"disk.ready\""
        }
        Gadget::Sensor => ", \"usb-sensor\", \"sensor\", \"sensor.ready\"",
        Gadget::Keyboard => ", \"usb-keyboard\", \"keyboard\", \"keyboard.ready\"",
    };
    let tuned = if can.tuned { ", \"usb-tune\"" } else { "" };
    can.classes.iter().map(of).chain([tuned]).collect()
}

const fn interval(class: Gadget) -> &'static str {
    match class {
        Gadget::Sensor | Gadget::Keyboard => "990us",
        Gadget::Disk(_) => "120us",
    }
}

fn work(name: &str, nanos: u64) -> String {
    format!("\n[[work]]\nname = \"{name}\"\nworst = \"{nanos}ns\"\n")
}

/// The VCPU of a pipe's reader.
fn seat(can: &Interface, pipe: &DrawnPipe) -> String {
    let before = can.pipes.iter().take_while(|other| *other != pipe);
    let owner = if pipe.shares { before.filter(|other| !other.shares).last() } else { None };
    format!("read-{}", owner.unwrap_or(pipe).channel)
}

fn reader(can: &Interface, pipe: &DrawnPipe) -> String {
    let DrawnPipe { channel, work, .. } = pipe;
    let rate = (TRAFFIC[*channel as usize] * pipe.rate / 100).max(1);
    let seat = seat(can, pipe);
    let mut text = format!(
        "\n[[pipe]]\nname = \"pipe-{channel}\"\nfrom = \"interface\"\nchannel = {channel}\n\
         reader = \"reader-{channel}\"\nrate = {rate}\nburst = 4\nwork = \"{work}ns\"\n\
         \n[[process]]\nname = \"reader-{channel}\"\nprogram = \"can-reader\"\npriority = 30\n\
         vcpu = \"{seat}\"\narguments = [{channel}, 0]\n"
    );
    if seat == format!("read-{channel}") {
        let rest = format!("replenishments = {}\n", pipe.replenishments);
        text += &vcpu(&seat, pipe.server, &rest);
    }
    text
}

/// A device of a class at this port, the bottom half of its service, and its client.
fn client(class: Gadget, port: usize) -> String {
    let name = word(class);
    let (share, every, budget, program, arguments) = match class {
        Gadget::Sensor => ("5%", "990us", (200_000, 5_000_000), "sensor-reader", "[0]"),
        Gadget::Keyboard => ("2%", "990us", (200_000, 20_000_000), "key-reader", "[0]"),
        Gadget::Disk(_) => ("10%", "60us", (1_300_000, 10_000_000), "disk-check", "[16]"),
    };
    let server = Budget { budget: budget.0, period: budget.1 };
    let (uses, shared) = match class {
        Gadget::Disk(_) => (
            "\"disk.asks\", \"disk.answers\", \"disk.data\", \"disk.ask\", \"disk.ready\"",
            "\n[[segment]]\nname = \"disk.asks\"\nsize = \"4K\"\n\
             \n[[segment]]\nname = \"disk.answers\"\nsize = \"4K\"\n\
             \n[[segment]]\nname = \"disk.data\"\nsize = \"128K\"\ndma = true\n\
             \n[[semaphore]]\nname = \"disk.ask\"\nkind = \"counting\"\n\
             \n[[semaphore]]\nname = \"disk.ready\"\nkind = \"counting\"\n",
        ),
        Gadget::Sensor => (
            "\"sensor\", \"sensor.ready\"",
            "\n[[segment]]\nname = \"sensor\"\nsize = \"36K\"\n\
             \n[[semaphore]]\nname = \"sensor.ready\"\nkind = \"counting\"\n",
        ),
        Gadget::Keyboard => (
            "\"keyboard\", \"keyboard.ready\"",
            "\n[[segment]]\nname = \"keyboard\"\nsize = \"4K\"\n\
             \n[[semaphore]]\nname = \"keyboard.ready\"\nkind = \"counting\"\n",
        ),
    };
    let micros = if let Gadget::Disk(micros) = class { micros } else { 20 };
    format!(
        "\n[[usb]]\nname = \"{name}-device\"\non = \"xhci\"\nport = {port}\nmodel = \"{name}\"\n\
         {}\n[[vcpu]]\nname = \"usb-{name}\"\nkind = \"io\"\nutilization = \"{share}\"\n\
         interval = \"{every}\"\nserves = [\"use-{name}\"]\n\
         \n[[process]]\nname = \"{name}-user\"\nprogram = \"{program}\"\npriority = 20\n\
         vcpu = \"use-{name}\"\nuses = [{uses}]\narguments = {arguments}\n{}{shared}",
        work(&format!("usbd.{name}"), micros * 1_000),
        vcpu(&format!("use-{name}"), server, "")
    )
}

fn rude(drawn: &Drawn, number: usize, rude: &Rude) -> String {
    let [how, a, b, c] = rude.arguments;
    let (mut keys, mut after) = (String::new(), String::new());
    match rude.seat {
        Perch::Background => {}
        Perch::Own(server, list) => {
            let _ = writeln!(keys, "vcpu = \"rude-{number}-own\"");
            after =
                vcpu(&format!("rude-{number}-own"), server, &format!("replenishments = {list}\n"));
        }
        Perch::Beside => {
            let _ = writeln!(keys, "vcpu = \"{}\"", beside(drawn));
        }
    }
    keys += match how {
        GREEDY => "vcpus = 4\nthreads = 5\n",
        POST => "uses = [\"rude.box\"]\n",
        CHURN => "threads = 32\nuses = [\"rude.gate\"]\n",
        CLING => "uses = [\"shared\"]\n",
        FALL => "threads = 16\nsemaphores = 64\nconditions = 64\nrestart = \"always\"\n",
        _ => "",
    };
    format!(
        "\n[[process]]\nname = \"rude-{number}\"\nprogram = \"rude\"\npriority = {}\n\
         stack = \"64K\"\nevents = 64\narguments = [{how}, {a}, {b}, {c}]\n{keys}{after}",
        rude.priority
    )
}

/// The VCPU that a rude program shares.
fn beside(drawn: &Drawn) -> String {
    let reader = drawn.can.as_ref().and_then(|can| can.pipes.first());
    reader.map_or_else(|| String::from("run-0"), |pipe| format!("read-{}", pipe.channel))
}

/// A place for a pipe, and a program that asks nonsense of the server without end.
const TUNED: &str = r#"
[[vcpu]]
name = "usb-tune"
budget = "500us"
period = "10ms"

[[work]]
name = "usbd.tune"
worst = "40us"

[[work]]
name = "tuned.message"
worst = "3us"

[[tpipe]]
name = "hostile-pipe"
from = "interface"
reader = "hostile"
channels = [0, 1, 2, 3, 4]
rate = 400
burst = 4
budget = "200us"
period = "10ms"

[[process]]
name = "hostile"
program = "tuned-hostile"
priority = 30
vcpu = "hostile-main"
threads = 2
stack = "32K"
arguments = [0, 1]

[[vcpu]]
name = "hostile-main"
budget = "50us"
period = "10ms"
"#;
