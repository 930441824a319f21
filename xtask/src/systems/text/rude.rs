//! Programs that misbehave, in their seats.

use super::{
    ANNOUNCE, ASK, ATTACH, BEG, BELL, BREED, CHURN, CLING, CROWD, FALL, GREEDY, HIRE, IDLE, POST,
    REOPEN, RETUNE, behaves, core, faults, quoted, vcpu,
};
use crate::systems::drawn::{Drawn, Perch, Rude, STORM};
use std::fmt::Write;

/// The objects that the program `hostile` may use.
const STORMED: [&str; 11] = [
    "tally", "mutex-0", "mutex-1", "count", "news-0", "news-1", "box-0", "box-1", "memory-0",
    "memory-1", "screen",
];

/// Returns what programs that misbehave share with others, or among themselves.
pub fn shared(drawn: &Drawn) -> String {
    let mut text = String::new();
    let any = |all: &[u64]| all.iter().any(|how| behaves(drawn, *how));
    if any(&[POST, REOPEN, ASK]) {
        text += "\n[[mailbox]]\nname = \"rude.box\"\nmessages = 1024\n";
    }
    if behaves(drawn, ASK) {
        text += "\n[[mailbox]]\nname = \"rude.answers\"\nmessages = 1\n";
    }
    if any(&[IDLE, ANNOUNCE]) {
        text += "\n[[semaphore]]\nname = \"rude.lock\"\n";
    }
    if behaves(drawn, ANNOUNCE) {
        text += "\n[[condition]]\nname = \"rude.news\"\n";
    }
    if behaves(drawn, CHURN) {
        text += "\n[[semaphore]]\nname = \"rude.gate\"\nkind = \"counting\"\n";
    }
    if faults(drawn) {
        text += "\n[[process]]\nname = \"supervisor\"\npriority = 63\nvcpu = \"watch\"\n";
        text += &vcpu("watch", drawn.watch, "");
    }
    if behaves(drawn, STORM) {
        text += STORM_OBJECTS;
    }
    if behaves(drawn, ATTACH) {
        text += ATTACHED;
    }
    if any(&[STORM, ATTACH]) {
        text += SCREEN;
    }
    let bell = drawn.rude.iter().position(|rude| rude.arguments[0] == BELL);
    if let Some(number) = bell {
        let _ = write!(
            text,
            "\n[[doorbell]]\nname = \"rude.bell\"\nwakes = \"rude-{number}\"\ninterval = \"1ms\"\n"
        );
    }
    text
}

/// The names of the VCPUs of programs that misbehave.
pub fn mains(drawn: &Drawn) -> impl Iterator<Item = String> {
    let own = drawn.rude.iter().enumerate().filter(|(_, it)| matches!(it.seat, Perch::Own(..)));
    own.map(|(number, _)| format!("rude-{number}-own"))
}

/// Writes the process number `number` of those that misbehave.
pub fn seat(drawn: &Drawn, number: usize, rude: &Rude) -> String {
    let [how, a, b, c] = rude.arguments;
    let (mut keys, mut after) = (String::new(), String::new());
    match rude.seat {
        Perch::Background => {}
        Perch::Own(server, list) => {
            let name = format!("rude-{number}-own");
            let _ = writeln!(keys, "vcpu = \"{name}\"");
            after = vcpu(&name, server, &format!("replenishments = {list}\n"));
        }
        Perch::Beside => {
            let _ = writeln!(keys, "vcpu = \"{}\"", beside(drawn));
        }
    }
    keys += &core(rude.core);
    let uses = |names: &[&str]| format!("uses = [{}]\n", quoted(names));
    let again = "restart = \"always\"\n";
    keys += &match how {
        GREEDY => String::from("vcpus = 4\nthreads = 5\n"),
        POST | REOPEN => uses(&["rude.box"]),
        CHURN => String::from("threads = 32\n") + &uses(&["rude.gate"]),
        CLING => uses(&["shared"]),
        IDLE => uses(&["rude.lock"]),
        ANNOUNCE => String::from("threads = 32\n") + &uses(&["rude.lock", "rude.news"]),
        HIRE => String::from("threads = 32\n"),
        ATTACH => {
            let names = ["rude.segment", "rude.dma", "rude.state", "screen"];
            String::from("heap = \"1M\"\n") + &uses(&names)
        }
        BELL => uses(&["rude.bell"]),
        ASK => String::from("threads = 2\n") + &uses(&["rude.box", "rude.answers"]),
        RETUNE => String::from("vcpus = 4\n"),
        FALL => format!("threads = 16\nsemaphores = 64\nconditions = 64\n{again}"),
        BEG => String::from("semaphores = 256\n"),
        CROWD => format!("threads = 32\nvcpus = 4\n{again}"),
        STORM => {
            let own = "threads = 4\nvcpus = 2\nsemaphores = 6\nconditions = 3\nheap = \"64K\"\n";
            format!("{own}{again}backoff = \"100us\"\n") + &uses(&STORMED)
        }
        _ => String::new(),
    };
    let (program, arguments) = match how {
        STORM => ("hostile", [a, number as u64, rude.priority, 0]),
        _ => ("rude", [how, a, b, c]),
    };
    if how == BREED {
        after += &pawn(number, &keys);
    }
    format!(
        "\n[[process]]\nname = \"rude-{number}\"\nprogram = \"{program}\"\npriority = {}\n\
         stack = \"64K\"\nevents = 64\narguments = {arguments:?}\n{keys}{after}",
        rude.priority
    )
}

/// Returns the process that the program `number` starts and ends, in its place: it makes all that
/// it may.
fn pawn(number: usize, place: &str) -> String {
    format!(
        "\n[[process]]\nname = \"rude.pawn\"\nprogram = \"rude\"\npriority = 30\n\
         start = \"manual\"\nsupervisor = \"rude-{number}\"\nthreads = 16\nsemaphores = 64\n\
         conditions = 64\nevents = 64\nstack = \"64K\"\narguments = [6, 16, 100000000, 0]\n{place}"
    )
}

/// Returns the VCPU that a program that misbehaves shares.
fn beside(drawn: &Drawn) -> String {
    let reader = drawn.can.as_ref().and_then(|can| can.pipes.first());
    reader.map_or_else(|| String::from("run-0"), |pipe| format!("read-{}", pipe.channel))
}

const STORM_OBJECTS: &str = r#"
[[semaphore]]
name = "mutex-0"

[[semaphore]]
name = "mutex-1"

[[semaphore]]
name = "count"
kind = "counting"
initial = 1

[[condition]]
name = "news-0"

[[condition]]
name = "news-1"

[[mailbox]]
name = "box-0"
messages = 2

[[mailbox]]
name = "box-1"
messages = 8

[[segment]]
name = "tally"
size = "4K"

[[segment]]
name = "memory-0"
size = "4K"

[[segment]]
name = "memory-1"
size = "32K"
dma = true
"#;

const ATTACHED: &str = r#"
[[segment]]
name = "rude.segment"
size = "64K"

[[segment]]
name = "rude.dma"
size = "16K"
dma = true

[[segment]]
name = "rude.state"
size = "4K"
"#;

const SCREEN: &str = r#"
[[device]]
name = "screen"
address = 0xa0000
size = "4K"
irq = 5
interval = "1ms"
"#;
