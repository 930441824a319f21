//! The systems that `papers/apps/semaphores` measures in, and what it says.
//!
//! Three tasks take part: `low` holds the mutex when the event comes, `high` waits for the event
//! and locks next, and the event is raised by `low` itself (figures 5.7 and 5.8) or while the
//! unrelated `middle` runs (figure 5.1). Behind them stand tasks that are always ready and never
//! get to run. Every number is a median of ten runs.

use crate::boot::{Bench, numbers};
use diapason::Failure;
use std::fmt::Write;

/// The scheduler under test.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Kind {
    /// One queue of VCPUs by earliest deadline.
    Dp,
    Fp,
    /// Threads without VCPUs, by priority.
    Priorities,
    /// `high` in the first of so many queues by deadline, `low` below all of them, by period.
    Lists(u8),
}

impl Kind {
    /// Returns its name in ids.
    #[must_use]
    pub const fn id(self) -> &'static str {
        match self {
            Kind::Dp => "dp",
            Kind::Fp => "fp",
            Kind::Priorities => "priorities",
            Kind::Lists(_) => "lists",
        }
    }
}

/// The quantity that the program measures.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum What {
    /// Pairs of lock and unlock.
    Pairs = 1,
    /// Waking and going to sleep.
    Decisions = 2,
}

/// A contended pair of lock and unlock, in instructions.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Cost {
    /// From the event to `high` holding the mutex.
    pub whole: u64,
    /// From `high`'s call of lock to its holding the mutex.
    pub lock: u64,
    /// Switches between tasks from the event to `high` holding the mutex.
    pub switches: u64,
}

/// The same pair with and without a hint.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Pair {
    pub tasks: u64,
    /// The event is raised by the holder itself.
    pub own: bool,
    pub standard: Cost,
    pub hinted: Cost,
}

impl Pair {
    /// Returns the cost of the standard pair, as §5.5.1 counts: t1.
    #[must_use]
    pub const fn old(&self) -> u64 {
        self.standard.lock
    }

    /// Returns the cost of the new pair, as §5.5.1 counts: t1 − (t2 − t3).
    #[must_use]
    pub const fn renewed(&self) -> u64 {
        (self.standard.lock + self.hinted.whole).saturating_sub(self.standard.whole)
    }

    /// Returns the saving of the pair, in percent.
    #[must_use]
    pub fn saving(&self) -> f64 {
        100.0 * (1.0 - self.renewed() as f64 / self.old().max(1) as f64)
    }

    /// Returns the saving from the event to holding the mutex, in percent.
    #[must_use]
    pub fn saving_of_whole(&self) -> f64 {
        100.0 * (1.0 - self.hinted.whole as f64 / self.standard.whole.max(1) as f64)
    }
}

/// The cost of a scheduling decision, kernel entry and switch included.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Decision {
    /// Ready VCPUs or threads, the one that wakes or goes included.
    pub tasks: u64,
    /// From the end of its sleep to the most urgent thread running: median, maximum.
    pub wake: (u64, u64),
    /// From its going to sleep to the next running: median, maximum.
    pub block: (u64, u64),
}

/// The program needs this long, and some.
const HORIZON_NS: u64 = 3_600_000_000;

/// Boots one system with `behind` tasks behind the three, and returns what it logged.
fn boot(bench: &Bench, kind: Kind, behind: u64, what: What) -> Result<Vec<String>, Failure> {
    let text = description(kind, behind, what);
    bench.lines(kind.id(), &text, HORIZON_NS)
}

/// Contended pairs with up to `behind` + 2 ready tasks.
pub fn pairs(bench: &Bench, kind: Kind, behind: u64) -> Result<Vec<Pair>, Failure> {
    let lines = boot(bench, kind, behind, What::Pairs)?;
    let read: Option<Vec<_>> = lines.iter().map(|l| cost(l)).collect();
    let read = read.ok_or_else(|| Failure::Ours(format!("{}: damaged lines", kind.id())))?;
    let both = read.chunks_exact(2).map(|two| match two {
        [(tasks, own, false, standard), (t, o, true, hinted)] if (tasks, own) == (t, o) => {
            Some(Pair { tasks: *tasks, own: *own, standard: *standard, hinted: *hinted })
        }
        _ => None,
    });
    let pairs: Option<Vec<Pair>> = both.collect();
    pairs.ok_or_else(|| Failure::Ours(format!("{}: a pair without its other half", kind.id())))
}

/// `PAIR n scenario case whole max lock max switches runs`.
fn cost(line: &str) -> Option<(u64, bool, bool, Cost)> {
    let words: Vec<&str> = line.split_ascii_whitespace().collect();
    let ["PAIR", tasks, scenario, case, whole, _, lock, _, switches, _] = words[..] else {
        return None;
    };
    let own = [("own", true), ("other", false)].into_iter().find(|s| s.0 == scenario)?.1;
    let hinted = [("hinted", true), ("standard", false)].into_iter().find(|c| c.0 == case)?.1;
    let number = |word: &str| word.parse().ok();
    let cost = Cost { whole: number(whole)?, lock: number(lock)?, switches: number(switches)? };
    Some((number(tasks)?, own, hinted, cost))
}

/// Decisions with 2 to `behind` + 2 ready tasks.
pub fn decisions(bench: &Bench, kind: Kind, behind: u64) -> Result<Vec<Decision>, Failure> {
    let lines = boot(bench, kind, behind, What::Decisions)?;
    let read: Option<Vec<Decision>> = lines.iter().map(|line| decision(line)).collect();
    read.ok_or_else(|| Failure::Ours(format!("{}: damaged lines", kind.id())))
}

/// `DECISION n wake max block max`.
fn decision(line: &str) -> Option<Decision> {
    let [tasks, wake, wake_max, block, block_max] = numbers(line, "DECISION")?[..] else {
        return None;
    };
    Some(Decision { tasks, wake: (wake, wake_max), block: (block, block_max) })
}

/// Returns the description: budgets are small, because the others never run, and long enough that
/// nobody who is measured runs out of them.
fn description(kind: Kind, behind: u64, what: What) -> String {
    let mut text = String::from("[system]\nname = \"contention\"\n");
    let names: Vec<String> = (1..=behind).map(|number| format!("behind-{number:02}")).collect();
    let reserved = kind != Kind::Priorities;
    // A task in a queue between the two must not get ready.
    let started = if let Kind::Lists(_) = kind { 0 } else { behind };
    if reserved {
        vcpus(&mut text, kind, &names);
    }
    let vcpu = |name: &str| if reserved { format!("vcpu = \"{name}\"\n") } else { String::new() };
    let own: String =
        names.iter().filter(|_| reserved).map(|name| format!(", \"{name}\"")).collect();
    let _ = write!(
        text,
        "[[process]]\nname = \"low\"\nprogram = \"semaphores-low\"\npriority = 20\n\
         counters = true\n{}\
         threads = {}\nuses = [\"marks\", \"event\", \"turn\", \"s\"{own}]\n\
         arguments = [{started}, {}, {}]\n",
        vcpu("low-vcpu"),
        behind + 1,
        u8::from(reserved),
        what as u8
    );
    for (name, priority) in [("middle", 30), ("high", 40)] {
        let _ = write!(
            text,
            "[[process]]\nname = \"{name}\"\nprogram = \"semaphores-{name}\"\ncounters = true\n\
             priority = {priority}\n{}uses = [\"marks\", \"event\", \"turn\", \"s\"]\n",
            vcpu(&format!("{name}-vcpu"))
        );
    }
    text + "[[semaphore]]\nname = \"event\"\nkind = \"counting\"\n\
            [[semaphore]]\nname = \"turn\"\nkind = \"counting\"\n\
            [[semaphore]]\nname = \"s\"\n\
            [[segment]]\nname = \"marks\"\nsize = \"4K\"\n"
}

fn vcpus(text: &mut String, kind: Kind, names: &[String]) {
    let dynamic = match kind {
        Kind::Dp => "dynamic = \"all\"\n".to_string(),
        Kind::Lists(count) => {
            let alone = ["high-vcpu", "middle-vcpu"].into_iter();
            let queues = alone.chain(names.iter().map(String::as_str)).take(count.into());
            let queues: Vec<String> = queues.map(|name| format!("[\"{name}\"]")).collect();
            format!("dynamic = [{}]\n", queues.join(", "))
        }
        Kind::Fp | Kind::Priorities => String::new(),
    };
    let _ = write!(text, "[scheduling]\n{dynamic}");
    // Each list takes every wake-up of a period, and no more: it is charged two switches for each.
    let mut one = |name: &str, budget: &str, period_ms: f64| {
        let period_us = (period_ms * 1_000.0) as u64;
        let _ = write!(
            text,
            "[[vcpu]]\nname = \"{name}\"\nbudget = \"{budget}\"\nperiod = \"{period_us}us\"\n\
             replenishments = 5\n"
        );
    };
    one("high-vcpu", "400us", 6.0);
    one("middle-vcpu", "350us", 6.4);
    one("low-vcpu", "4s", 10_000.0);
    for (number, name) in names.iter().enumerate() {
        one(name, "1ms", 20_000.0 + 100.0 * number as f64);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_description_makes_sense_and_can_be_promised() {
        for kind in [Kind::Dp, Kind::Fp, Kind::Priorities, Kind::Lists(7)] {
            for behind in [5, 29, 48] {
                let text = description(kind, behind, What::Pairs);
                let system = diapason_system::parse("contention", &text);
                let system = system.unwrap_or_else(|wrong| panic!("{kind:?}: {wrong}"));
                let plan = diapason::plan::Plan::of(&system);
                assert!(plan.holds(), "{kind:?} {behind}");
            }
        }
    }

    #[test]
    fn lines_become_costs() {
        let read = cost("PAIR 15 own hinted 2600 2603 77 78 1 100");
        assert_eq!(read, Some((15, true, true, Cost { whole: 2600, lock: 77, switches: 1 })));
        for bad in ["PAIR 15 own hinted 2600 2603 77 78 1", "PAIR 1 mine hinted 1 1 1 1 1 1", ""] {
            assert_eq!(cost(bad), None);
        }
        let read = decision("DECISION 5 963 966 853 858");
        assert_eq!(read, Some(Decision { tasks: 5, wake: (963, 966), block: (853, 858) }));
        assert_eq!(decision("DECISION 5 963 966 853"), None);
    }

    #[test]
    fn the_dissertation_s_arithmetic() {
        let cost = |whole, lock, switches| Cost { whole, lock, switches };
        let pair =
            Pair { tasks: 15, own: true, standard: cost(1_000, 400, 3), hinted: cost(900, 70, 1) };
        assert_eq!((pair.old(), pair.renewed()), (400, 300));
        assert!((pair.saving() - 25.0).abs() < 1e-9);
        assert!((pair.saving_of_whole() - 10.0).abs() < 1e-9);
    }
}
