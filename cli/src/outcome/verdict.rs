//! The verdict of a run: whether it holds. Three answers: yes, no and why, or it was our own bug.

use super::{Outcome, RaisedAlarm, VcpuRow, confined};
use crate::duration;
use crate::names::{self, Names};
use crate::qemu::MachineEnding;
use crate::words;
use diapason_sim::Stray;
use std::fmt;

/// The judgement on a run.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum RunVerdict {
    /// Every promise was kept.
    Holds,
    Broken(Vec<Finding>),
    /// The kernel or the emulator failed: no promise of the description is to blame.
    Bug(String),
}

/// One thing that a run broke.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Finding {
    /// An assumption of the plan.
    Alarm(RaisedAlarm),
    /// A promise: a sentence.
    Promise(String),
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Finding::Alarm(alarm) => alarm.fmt(f),
            Finding::Promise(text) => f.write_str(text),
        }
    }
}

impl RunVerdict {
    /// Returns why it does not hold, as sentences.
    #[must_use]
    pub fn findings(&self) -> Vec<String> {
        match self {
            RunVerdict::Holds => Vec::new(),
            RunVerdict::Broken(findings) => findings.iter().map(Finding::to_string).collect(),
            RunVerdict::Bug(text) => vec![text.clone()],
        }
    }
}

/// Judges a run. `may_fault` says of each process whether the description provides for its faults.
#[must_use]
pub fn judge(
    ending: MachineEnding,
    outcome: &Outcome,
    names: &Names,
    may_fault: &[bool],
    alarms: &[RaisedAlarm],
) -> RunVerdict {
    let earlier = outcome.earlier.iter().find_map(|life| bug(MachineEnding::Halted, life));
    if let Some(bug) = bug(ending, outcome).or(earlier) {
        return RunVerdict::Bug(bug);
    }
    let mut findings = Vec::new();
    let ended = match ending {
        MachineEnding::SupervisorDied => Some("the process that supervises the others faulted"),
        MachineEnding::OtherCore => Some("another core ended the machine"),
        _ => None,
    };
    findings.extend(ended.map(|text| Finding::Promise(text.into())));
    findings.extend(alarms.iter().cloned().map(Finding::Alarm));
    let broken = outcome.lives().flat_map(|life| broken(life, names, may_fault));
    findings.extend(broken.map(Finding::Promise));
    if findings.is_empty() { RunVerdict::Holds } else { RunVerdict::Broken(findings) }
}

/// Returns the promises that one life of a host broke.
fn broken(outcome: &Outcome, names: &Names, may_fault: &[bool]) -> Vec<String> {
    let mut findings = lateness(outcome, names);
    findings.extend(faults(outcome, names, may_fault));
    for (process, reason) in &outcome.refused {
        let reason = words::refusal(*reason);
        findings.push(format!("process {} did not start: {reason}", names.process(*process)));
    }
    findings.extend(outcome.losses.iter().map(|loss| format!("the kernel lost {loss}")));
    findings.extend(outcome.lines_lost.iter().map(|(process, lines)| {
        let process = names.process(*process);
        format!("process {process} wrote more than its share of the console: {lines} lines lost")
    }));
    let stray = |(time, stray): &(u64, Stray)| {
        let device = names.device(stray.device.into());
        format!("{}, {} s", words::stray(&device, stray), duration::seconds(*time))
    };
    findings.extend(outcome.strays.iter().map(stray));
    findings.extend(confined::findings(&outcome.stopped, names));
    findings
}

fn bug(ending: MachineEnding, outcome: &Outcome) -> Option<String> {
    let said = outcome.panic.as_deref();
    match ending {
        MachineEnding::Panic => Some(said.unwrap_or("the kernel panicked without a record").into()),
        MachineEnding::NoArchive => {
            let said = said.unwrap_or("without a reason");
            Some(format!("the kernel starts nothing: {said}"))
        }
        MachineEnding::Hung => {
            Some("the system hangs: it neither ended nor logged anything".into())
        }
        MachineEnding::Emulator(status) => Some(format!(
            "the emulator ended with status {status}{}",
            said.map(|said| format!(" ({said})")).unwrap_or_default()
        )),
        // Its final table never came.
        MachineEnding::Interrupted | MachineEnding::OtherCore if outcome.end.is_none() => None,
        _ if outcome.end.is_none() => Some("the kernel ended without its final table".into()),
        _ => books(outcome),
    }
}

/// Time in is time out: every nanosecond of the run was idle or a thread's, and VCPUs paid for
/// threads only, but for what they paid because others were spared it. The tables come last and
/// whole, whatever was lost before them.
fn books(outcome: &Outcome) -> Option<String> {
    let end = outcome.end?;
    let sum = |times: &mut dyn Iterator<Item = u64>| times.map(u128::from).sum::<u128>();
    let threads = sum(&mut outcome.threads.iter().map(|row| row.cpu_ns));
    let vcpus = sum(&mut outcome.vcpus.iter().map(VcpuRow::cpu_ns).chain([end.retired_ns]));
    let (idle, time) = (u128::from(end.idle_ns), u128::from(end.time_ns));
    if threads + idle != time {
        return Some(format!(
            "the books do not balance: threads had {threads} ns and {idle} ns were idle, but the \
             run took {time} ns"
        ));
    }
    (vcpus > threads).then(|| {
        format!("the books do not balance: VCPUs paid {vcpus} ns, but threads had {threads} ns")
    })
}

fn lateness(outcome: &Outcome, names: &Names) -> Vec<String> {
    let late = outcome.threads.iter().filter(|thread| thread.misses > 0);
    late.map(|thread| {
        format!(
            "{} of {} missed {} of {} deadlines",
            names::thread(thread.name, thread.slot),
            names.process(thread.process),
            thread.misses,
            // A job under way may have missed its deadline, and is not among those done.
            thread.jobs.saturating_add(thread.skipped).max(thread.misses)
        )
    })
    .collect()
}

fn faults(outcome: &Outcome, names: &Names, may_fault: &[bool]) -> Vec<String> {
    let provided_for = |process: u64| {
        usize::try_from(process).ok().and_then(|i| may_fault.get(i)).copied().unwrap_or(false)
    };
    let unexpected = outcome.faults.iter().filter(|fault| !provided_for(fault.process));
    let said = unexpected.map(|event| {
        let cause = (event.thread, event.cause);
        let what = words::fault(cause, (event.address, event.instruction), names);
        format!("process {}, which may not fault: {what}", names.process(event.process))
    });
    // The table of processes has those, too, whose records were lost.
    let rows = outcome.processes.iter().filter(|row| !provided_for(row.process));
    let unsaid = rows.filter_map(|row| {
        let told = outcome.faults.iter().filter(|fault| fault.process == row.process).count();
        let faults = row.faults.checked_sub(told as u64).filter(|faults| *faults > 0)?;
        let process = names.process(row.process);
        Some(format!("process {process}, which may not fault: {faults} more without a record"))
    });
    said.chain(unsaid).collect()
}

#[cfg(test)]
mod tests {
    use super::super::sample;
    use super::*;

    fn judged(ending: MachineEnding, outcome: &Outcome, may_fault: &[bool]) -> RunVerdict {
        judge(ending, outcome, &sample::names(), may_fault, &[])
    }

    #[test]
    fn misses_break_a_run() {
        let verdict = judged(MachineEnding::Finished, &sample::outcome(), &[false, true]);
        let expected = "ctrl of engine missed 1 of 10002 deadlines";
        assert_eq!(verdict, RunVerdict::Broken(vec![Finding::Promise(expected.into())]));
    }

    #[test]
    fn no_more_deadlines_are_missed_than_there_were() {
        let mut outcome = sample::outcome();
        let thread = &mut outcome.threads[1];
        (thread.jobs, thread.skipped, thread.misses) = (275, 0, 276);
        let findings = judged(MachineEnding::Finished, &outcome, &[false, true]).findings();
        assert!(findings[0].ends_with("missed 276 of 276 deadlines"), "{}", findings[0]);
    }

    #[test]
    fn only_processes_with_a_restart_policy_may_fault() {
        let mut outcome = sample::outcome();
        outcome.threads[1].misses = 0;
        assert_eq!(judged(MachineEnding::Finished, &outcome, &[false, true]), RunVerdict::Holds);
        let RunVerdict::Broken(findings) = judged(MachineEnding::Halted, &outcome, &[false, false])
        else {
            panic!("a fault of a process without a policy must not pass");
        };
        assert!(
            findings[0]
                .to_string()
                .starts_with("process diag, which may not fault: thread 0 wrote")
        );
    }

    #[test]
    fn a_contradicted_assumption_breaks_a_run_by_its_name() {
        let mut outcome = sample::outcome();
        outcome.threads[1].misses = 0;
        outcome.vcpus[0].overrun_max_ns = 1_000_000;
        let names = sample::names();
        let alarms = sample::assumptions().against(&outcome, &names);
        let verdict = judge(MachineEnding::Finished, &outcome, &names, &[false, true], &alarms);
        let RunVerdict::Broken(findings) = verdict else { panic!("it must be broken") };
        assert!(
            findings[0]
                .to_string()
                .starts_with("alarm budget-overrun: VCPU control used 1.000 ms more")
        );
        assert_eq!(findings.len(), 1);
    }

    #[test]
    fn time_in_is_time_out() {
        let check = |change: fn(&mut Outcome)| {
            let mut outcome = sample::outcome();
            outcome.threads[1].misses = 0;
            change(&mut outcome);
            judged(MachineEnding::Finished, &outcome, &[false, true])
        };
        assert_eq!(check(|_| ()), RunVerdict::Holds);
        let unbalanced: [fn(&mut Outcome); 5] = [
            |o| o.threads[0].cpu_ns += 1,
            |o| o.threads[0].cpu_ns -= 1,
            |o| o.end.as_mut().unwrap().idle_ns += 1,
            |o| o.threads.truncate(2),
            |o| o.vcpus[0].background_ns = u64::MAX,
        ];
        for change in unbalanced {
            let RunVerdict::Bug(text) = check(change) else { panic!("it must be our bug") };
            assert!(text.starts_with("the books do not balance"), "{text}");
        }
        // All threads' time and no more may be a VCPU's.
        assert_eq!(check(|o| o.vcpus[0].used_ns = 1_100_001_000 - 102_000), RunVerdict::Holds);
        assert!(matches!(
            check(|o| o.vcpus[0].used_ns = 1_100_001_001 - 102_000),
            RunVerdict::Bug(_)
        ));
        // A record lost on the way is no excuse.
        let check = |change: fn(&mut Outcome)| matches!(check(change), RunVerdict::Bug(_));
        assert!(check(|o| {
            o.threads.pop();
            o.losses = vec!["a record".into()];
        }));
    }

    #[test]
    fn what_was_drowned_is_found_in_the_tables() {
        let mut outcome = sample::outcome();
        outcome.threads.iter_mut().for_each(|row| row.misses = 0);
        outcome.faults.clear();
        outcome.processes[0].faults = 2;
        outcome.lines_lost = vec![(1, 7)];
        let RunVerdict::Broken(found) = judged(MachineEnding::Finished, &outcome, &[false, true])
        else {
            panic!("two faults are no small thing");
        };
        let name = |at: u64| sample::names().process(at);
        let expected = [
            format!("process {}, which may not fault: 2 more without a record", name(0)),
            format!("process {} wrote more than its share of the console: 7 lines lost", name(1)),
        ];
        let found: Vec<String> = found.iter().map(Finding::to_string).collect();
        assert_eq!(found, expected);
    }

    #[test]
    fn a_run_without_its_end_is_our_bug() {
        let mut outcome = sample::outcome();
        outcome.end = None;
        assert!(matches!(judged(MachineEnding::Finished, &outcome, &[]), RunVerdict::Bug(_)));
        outcome.panic = Some("words".into());
        assert_eq!(judged(MachineEnding::Panic, &outcome, &[]), RunVerdict::Bug("words".into()));
        assert!(matches!(judged(MachineEnding::Hung, &sample::outcome(), &[]), RunVerdict::Bug(_)));
    }
}
