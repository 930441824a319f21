//! A drawn system as a description.

pub mod board;
mod bus;
mod can;
mod classes;
mod rude;
mod servers;

use super::drawn::{Budget, Drawn, DrawnTask, Queues, STORM};

/// The memory of each of several cores, in MiB.
const CORE_MIB: u64 = 32;

/// Writes what every description has in common, and all parts after it.
#[must_use]
pub fn description(drawn: &Drawn, name: &str) -> String {
    let drawn = &drawn.packed();
    let mut text = format!(
        "[system]\nname = \"{name}\"\nmemory = \"{}M\"\nclock = \"{}MHz\"\n",
        CORE_MIB * drawn.cores().max(2),
        drawn.clock_mhz
    );
    if drawn.cores() > 1 {
        text += &format!("cores = {}\n", drawn.cores());
    }
    text += &scheduling(drawn);
    let locks = drawn.tasks.iter().any(|task| section_of(drawn, task) > 0);
    if locks || drawn.locker().is_some() || behaves(drawn, CLING) {
        text += "\n[[semaphore]]\nname = \"shared\"\n";
    }
    text += &rude::shared(drawn);
    for (number, one) in drawn.tasks.iter().enumerate() {
        text += &task(drawn, number, one);
    }
    text += &servers::servers(drawn);
    if let Some(one) = &drawn.can {
        text += &can::interface(one, name);
    }
    if let Some(one) = &drawn.bus {
        text += &bus::bus(one);
    }
    if let Some(one) = &drawn.board {
        text += &board::board(drawn, one);
    }
    for (number, one) in drawn.rude.iter().enumerate() {
        text += &rude::seat(drawn, number, one);
        if one.arguments[0] == CLING {
            text += &section(&format!("rude-{number}"), one.arguments[1], drawn);
        }
    }
    text
}

/// Behaviours of `rude` that need something declared.
const GREEDY: u64 = 3;
const POST: u64 = 5;
const FALL: u64 = 6;
const CHURN: u64 = 7;
const CLING: u64 = 9;
const REOPEN: u64 = 10;
const BEG: u64 = 11;
const CROWD: u64 = 12;
const IDLE: u64 = 13;
const ANNOUNCE: u64 = 14;
const ATTACH: u64 = 15;
const BREED: u64 = 16;
const BELL: u64 = 17;
const HIRE: u64 = 18;
const ASK: u64 = 19;
const RETUNE: u64 = 20;

fn behaves(drawn: &Drawn, how: u64) -> bool {
    drawn.rude.iter().any(|rude| rude.arguments[0] == how)
}

/// Returns whether a program faults, so that somebody must restart it.
fn faults(drawn: &Drawn) -> bool {
    [FALL, CROWD, STORM].into_iter().any(|how| behaves(drawn, how))
}

/// The names of all Main VCPUs, in the order of the text.
fn mains(drawn: &Drawn) -> Vec<String> {
    let mut names = Vec::new();
    if faults(drawn) {
        names.push(String::from("watch"));
    }
    let tasks = drawn.tasks.iter().enumerate().filter(|(_, task)| !task.background);
    names.extend(tasks.map(|(number, _)| format!("run-{number}")));
    names.extend(drawn.can.iter().flat_map(can::mains));
    names.extend(drawn.bus.iter().flat_map(bus::mains));
    names.extend(board::mains(drawn));
    names.extend(rude::mains(drawn));
    names
}

fn scheduling(drawn: &Drawn) -> String {
    let queues = match drawn.queues {
        Queues::Periods => String::new(),
        Queues::Deadlines => String::from("dynamic = \"all\"\n"),
        Queues::First(count) => {
            let names: Vec<String> = mains(drawn).into_iter().take(count).collect();
            format!("dynamic = [[{}]]\n", quoted(&names))
        }
    };
    let test = if drawn.closed { "admission = \"closed\"\n" } else { "" };
    if queues.is_empty() && test.is_empty() {
        return String::new();
    }
    format!("\n[scheduling]\n{queues}{test}")
}

/// Returns the names as the elements of a list.
fn quoted<S: AsRef<str>>(names: &[S]) -> String {
    let names: Vec<String> = names.iter().map(|name| format!("\"{}\"", name.as_ref())).collect();
    names.join(", ")
}

fn vcpu(name: &str, server: Budget, rest: &str) -> String {
    format!(
        "\n[[vcpu]]\nname = \"{name}\"\nbudget = \"{}ns\"\nperiod = \"{}ns\"\n{rest}",
        server.budget, server.period
    )
}

/// Returns how long a task works under the mutex in each job. One that asks servers leaves it out:
/// they may lock the mutex, and a process declares one section for each.
fn section_of(drawn: &Drawn, task: &DrawnTask) -> u64 {
    if drawn.asked(task).is_empty() { task.section } else { 0 }
}

fn task(drawn: &Drawn, number: usize, task: &DrawnTask) -> String {
    let DrawnTask { period, often, phase, work, spare, replenishments, .. } = task;
    let name = format!("task-{number}");
    let (section, asked) = (section_of(drawn, task), drawn.asked(task));
    let (program, argument, objects) = if !asked.is_empty() {
        let objects = (servers::uses(drawn, &asked), servers::sections(&name, drawn, &asked));
        ("caller", servers::asks(drawn, task), objects)
    } else if section > 0 {
        let uses = String::from("uses = [\"shared\"]\n");
        ("task", section, (uses, self::section(&name, section, drawn)))
    } else {
        ("task", 0, Default::default())
    };
    let (uses, sections) = objects;
    let served = servers::served(drawn, task);
    // A task with a mutex, or with a server, leaves most of it for others.
    let shares = section > 0 || served > 0;
    let job = work + served + spare - spare / if shares { 2 } else { 4 };
    let budget = (work + served + spare).min(*period) * often * 1_000;
    let server = Budget { budget, period: period * often * 1_000 };
    let every = if *often > 1 { format!("interval = \"{period}us\"\n") } else { String::new() };
    let rest = format!("job = \"{job}us\"\n{every}replenishments = {replenishments}\n");
    let (seat, vcpu) = match task.background {
        true => Default::default(),
        false => {
            (format!("vcpu = \"run-{number}\"\n"), vcpu(&format!("run-{number}"), server, &rest))
        }
    };
    format!(
        "\n[[process]]\nname = \"{name}\"\nprogram = \"{program}\"\npriority = 30\n\
         {seat}arguments = [{phase}, {period}, {work}, {argument}]\n{uses}{}{vcpu}{sections}",
        core(task.core)
    )
}

/// Microseconds that the calls of a section take at most at 1 GHz.
const CALLS: u64 = 4;

impl Drawn {
    /// Returns how long calls take that take so many microseconds at 1 GHz.
    fn calls(&self, micros: u64) -> u64 {
        micros * (1_000 / self.clock_mhz).max(1)
    }
}

/// Returns how long a process holds the mutex at most if it works for so many microseconds
/// meanwhile.
fn section(process: &str, work: u64, drawn: &Drawn) -> String {
    let longest = work + drawn.calls(CALLS);
    format!(
        "\n[[section]]\nprocess = \"{process}\"\nmutex = \"shared\"\nlongest = \"{longest}us\"\n"
    )
}

/// Returns the key of a process on another core than the first.
fn core(core: u64) -> String {
    if core > 0 { format!("core = {core}\n") } else { String::new() }
}

fn work(name: &str, nanos: u64) -> String {
    format!("\n[[work]]\nname = \"{name}\"\nworst = \"{nanos}ns\"\n")
}
