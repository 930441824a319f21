//! A bill in words: where the time of one job went. And what `--explain` may ask for.

use super::messages::{self, Called, Choice, Life};
use crate::names::{self, Names};
use crate::table::{Align, TextTable};
use diapason_abi::{CallNumber, Nanos};
use diapason_core::{Cause, Kernel, Standing, ThreadId, Wait};
use diapason_sim::{BilledJob, Doing, HistorySpan, JobBill};
use diapason_system::System;

/// Threads by number: process, slot, name as packed characters.
#[derive(Clone, Default, Debug)]
pub(crate) struct Cast(pub Vec<(u16, u16, u64)>);

impl Cast {
    /// Takes over what the kernel has now.
    pub fn refresh(&mut self, kernel: &Kernel<'_>) {
        self.0.clear();
        self.0.extend(kernel.threads.ids().map(|id| {
            let t = &kernel.threads[id];
            (t.process.index(), t.slot, t.name)
        }));
    }

    /// Returns a thread as `process.thread`.
    #[must_use]
    pub fn name(&self, thread: ThreadId, names: &Names) -> String {
        match self.0.get(usize::from(thread.index())) {
            Some((process, slot, name)) => {
                let thread = names::thread(*name, u64::from(*slot));
                format!("{}.{thread}", names.process(u64::from(*process)))
            }
            None => format!("#{}", thread.index()),
        }
    }
}

/// The job or message to explain.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(crate) struct Asked {
    pub job: Option<BilledJob>,
    pub message: Option<Choice>,
}

/// Reads the argument of `--explain` for each core of a host: `worst` of all jobs and messages,
/// `PROCESS.SLOT:JOB`, `PIPE:MESSAGE` or `PIPE:worst`.
///
/// # Errors
/// Returns the forms that would be understood.
pub fn wanted(text: &str, cores: &[&System]) -> Result<Vec<Asked>, String> {
    let asked: Vec<Option<Asked>> = cores.iter().map(|system| of_core(text, system)).collect();
    if asked.iter().any(Option::is_some) {
        return Ok(asked.into_iter().map(Option::unwrap_or_default).collect());
    }
    // Hosts may have the same names.
    let list = |names: Vec<&str>| {
        let first = names.iter().enumerate().filter(|(at, name)| !names[..*at].contains(name));
        first.map(|(_, name)| *name).collect::<Vec<&str>>().join(", ")
    };
    let processes = || cores.iter().flat_map(|system| &system.processes);
    let pipes = cores.iter().flat_map(|system| &system.pipes);
    let (pipes, all) = (list(pipes.map(|it| &*it.name).collect()), processes());
    let of_pipes = if pipes.is_empty() { String::new() } else { format!("; pipes: {pipes}") };
    Err(format!(
        "`{text}` names no job and no message: write `worst`, PROCESS.SLOT:JOB as in `{}.0:1`, \
         or PIPE:MESSAGE with a number or `worst`; processes: {}{of_pipes}",
        processes().next().map_or("name", |process| &*process.name),
        list(all.map(|process| &*process.name).collect()),
    ))
}

fn of_core(text: &str, system: &System) -> Option<Asked> {
    if text == "worst" {
        let message = (!system.pipes.is_empty()).then_some(Choice::WorstOfAll);
        return Some(Asked { job: Some(BilledJob::Worst), message });
    }
    let (name, number) = text.rsplit_once(':')?;
    if let Some(pipe) = system.pipes.iter().position(|pipe| pipe.name == name) {
        let choice = match number {
            "worst" => Choice::Worst(pipe),
            _ => Choice::This(pipe, number.parse().ok()?),
        };
        return Some(Asked { job: None, message: Some(choice) });
    }
    let (process, slot) = name.rsplit_once('.').unwrap_or((name, "0"));
    let process = system.processes.iter().position(|known| known.name == process)?;
    let process = u16::try_from(process).ok()?;
    let job = BilledJob::Job(process, slot.parse().ok()?, number.parse().ok()?);
    Some(Asked { job: Some(job), message: None })
}

/// The answer if nothing such was there.
pub const NOTHING: &str = "there was no such job or message";

/// The job or message that is explained.
#[derive(Clone, Copy)]
pub enum Explained<'a> {
    Job(&'a JobBill),
    Message(&'a Life),
}

impl Explained<'_> {
    /// Returns how long it took, and how long it may take.
    fn part(self) -> (Nanos, Option<Nanos>) {
        match self {
            Explained::Job(bill) => (bill.response(), Some(bill.deadline)),
            Explained::Message(life) => (life.latency(), life.bound),
        }
    }

    /// Returns whether it took a larger part of its bound than another.
    pub fn is_worse(self, other: Explained<'_>) -> bool {
        messages::is_worse(self.part(), other.part())
    }

    /// Returns the result in words. `called` has the names on a part of the run, or on its own.
    pub fn render<'a>(
        self,
        system: &System,
        called: impl Fn(Option<usize>) -> Called<'a>,
    ) -> String {
        match self {
            Explained::Job(bill) => render(bill, called(None)),
            Explained::Message(life) => {
                messages::render(life, &system.pipes[life.pipe].name, called)
            }
        }
    }
}

/// Returns the bill as a table: items in order of time, then their sums by kind.
#[must_use]
pub fn render(bill: &JobBill, (cast, names): Called<'_>) -> String {
    const SHOWN: usize = 40;
    let mut text = format!(
        "job {} of {}: released at {}, ended {} later (deadline {})\n\n",
        bill.job,
        cast.name(bill.thread, names),
        shown(bill.release),
        shown(bill.response()),
        shown(bill.deadline),
    );
    let mut rows = TextTable::new(&[
        ("at", Align::Right),
        ("for", Align::Right),
        ("the processor", Align::Left),
        ("the job", Align::Left),
    ]);
    for item in bill.items.iter().take(SHOWN) {
        let doing = doing(item, cast, names);
        let standing = standing(item, bill.thread, cast, names);
        rows.row(vec![
            shown(item.from - bill.release),
            shown(item.to - item.from),
            doing,
            standing,
        ]);
    }
    text += &rows.render();
    if bill.items.len() > SHOWN {
        text += &format!("and {} more\n", bill.items.len() - SHOWN);
    }
    let items = bill.items.iter().map(|item| {
        let (what, why) = (doing(item, cast, names), standing(item, bill.thread, cast, names));
        let kind = if why == RUNS { String::from(RUNS) } else { format!("{why}: {what}") };
        (kind, item.to - item.from)
    });
    text + "\n" + &sums(items)
}

/// Returns the sums of items by their kinds, largest first, and in all.
pub(super) fn sums(items: impl Iterator<Item = (String, Nanos)>) -> String {
    let mut kinds: Vec<(String, Nanos)> = Vec::new();
    for (kind, time) in items {
        match kinds.iter_mut().find(|(known, _)| *known == kind) {
            Some((_, sum)) => *sum += time,
            None => kinds.push((kind, time)),
        }
    }
    kinds.sort_by_key(|(_, time)| std::cmp::Reverse(*time));
    let total = kinds.iter().fold(Nanos::ZERO, |sum, (_, time)| sum + *time);
    let mut rows = TextTable::new(&[("sum", Align::Right), ("what", Align::Left)]);
    for (kind, time) in kinds {
        rows.row(vec![shown(time), kind]);
    }
    rows.row(vec![shown(total), String::from("in all")]);
    rows.render()
}

const RUNS: &str = "runs";

/// Returns the processor's action in words.
pub(super) fn doing(item: &HistorySpan, cast: &Cast, names: &Names) -> String {
    match item.doing {
        Doing::Idle => String::from("idle"),
        Doing::Thread(thread) => cast.name(thread, names),
        Doing::Kernel(reason) => cause(reason, names),
    }
}

/// Returns why the kernel ran.
pub(super) fn cause(cause: Cause, names: &Names) -> String {
    match cause {
        Cause::Boot => String::from("kernel: boot"),
        Cause::Timer => String::from("kernel: timer"),
        Cause::Irq(device) => format!("kernel: interrupt of {}", names.device(device.into())),
        Cause::Stray(device, ..) => {
            format!("kernel: stray access of {}", names.device(device.into()))
        }
        Cause::Fault(_) => String::from("kernel: fault"),
        Cause::Syscall(number, _) => {
            let name = CallNumber::decode(number).map_or("unknown", CallNumber::name);
            format!("kernel: call {name}")
        }
    }
}

/// Returns where a thread stood.
pub(super) fn standing(item: &HistorySpan, thread: ThreadId, cast: &Cast, names: &Names) -> String {
    if item.doing == Doing::Thread(thread) {
        return String::from(RUNS);
    }
    stands(item.standing, cast, names)
}

/// Returns in words where a thread stands that does not run.
pub(super) fn stands(standing: Standing, cast: &Cast, names: &Names) -> String {
    String::from(match standing {
        Standing::Absent => "not started",
        Standing::Ready => "ready",
        Standing::WithoutBudget => "without budget",
        Standing::BehindOwner(owner) => {
            return format!("behind a mutex of {}", cast.name(owner, names));
        }
        Standing::Waiting(wait) => match wait {
            // Its release has come: the timer is being handled, or late.
            Wait::Time | Wait::Nothing | Wait::Hint(_) | Wait::Mutex(_) => "not woken yet",
            Wait::Semaphore(_) => "waits for a semaphore",
            Wait::Condition(..) => "waits for a condition",
            Wait::Receive(_) => "waits for a message",
            Wait::Send(_) => "waits for room",
            Wait::Event(_) => "waits for an event",
            Wait::Join(_) => "waits for a thread's end",
        },
    })
}

/// Returns a time as a person reads it.
pub(super) fn shown(time: Nanos) -> String {
    match time.0 {
        ns if ns < 10_000 => format!("{ns} ns"),
        ns if ns < 10_000_000 => format!("{}.{:03} us", ns / 1_000, ns % 1_000),
        ns => format!("{}.{:06} ms", ns / 1_000_000, ns % 1_000_000),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SYSTEM: &str = include_str!("../../../examples/can-concentrator.toml");

    #[test]
    fn jobs_and_messages_are_named_alike() {
        let system = diapason_system::parse("f", SYSTEM).unwrap();
        let wanted = |text: &str| wanted(text, &[&system]).map(|asked| asked[0]);
        let message = |choice| Ok(Asked { job: None, message: Some(choice) });
        assert_eq!(wanted("brakes:17"), message(Choice::This(4, 17)));
        assert_eq!(wanted("engine:worst"), message(Choice::Worst(0)));
        let job = |job| Ok(Asked { job: Some(job), message: None });
        assert_eq!(wanted("usbd.1:3"), job(BilledJob::Job(0, 1, 3)));
        assert_eq!(wanted("usbd:3"), job(BilledJob::Job(0, 0, 3)));
        let (all, any) = (Choice::WorstOfAll, BilledJob::Worst);
        assert_eq!(wanted("worst"), Ok(Asked { job: Some(any), message: Some(all) }));
        for nonsense in ["brake:1", "brakes", "brakes:last", "usbd.x:1", ":", ""] {
            assert!(
                wanted(nonsense).is_err_and(|why| why.contains("pipes: engine, ")),
                "{nonsense}"
            );
        }
    }

    #[test]
    fn sums_are_largest_first_and_end_with_all() {
        let items = [("a", 2), ("b", 7), ("a", 6)];
        let text = sums(items.iter().map(|(kind, time)| (String::from(*kind), Nanos(*time))));
        let rows: Vec<&str> = text.lines().skip(2).map(str::trim).collect();
        assert_eq!(rows, ["8 ns  a", "7 ns  b", "15 ns  in all"]);
    }
}
