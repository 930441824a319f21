//! A program that never waits gets its budget in every window of time, whatever its neighbour
//! calls.
//!
//! A job may be served early once and late the next time, so jobs alone do not show a budget that
//! is cut at the seam of two periods. Here windows slide: one begins wherever the program begins or
//! ceases to run, because the least of all windows is among these.

use super::{MODES, Mode, NOTHING, PART, Stage, budget, number, place, running, serve, watched};
use diapason::session::Session;
use diapason_abi::Nanos;
use diapason_core::{Decision, Kernel};
use diapason_random::Random;
use diapason_sim::{Moment, Observer};

/// Random systems, and the windows of each.
const SYSTEMS: u64 = 50;
const WINDOWS: usize = 2_000;
/// Periods of the program that never waits. Each has the begin and the end of a run at least.
const PERIODS: u64 = 1_050;
/// The system has begun by then.
const BEGIN: Nanos = Nanos::from_millis(50);
/// Budgets and periods are drawn from these ranges, in us.
const BUDGETS: (u64, u64) = (300, 2_000);
const PERIODS_US: (u64, u64) = (5_000, 12_000);

/// The times in which a process had the processor, in order.
struct Runs {
    process: u16,
    runs: u16,
    times: Vec<(u64, u64)>,
}

impl Observer for Runs {
    fn moment(&mut self, from: Nanos, to: Nanos, what: Moment) {
        if matches!(what, Moment::Runs(_)) && self.runs == self.process {
            match self.times.last_mut() {
                Some(last) if last.1 == from.0 => last.1 = to.0,
                _ => self.times.push((from.0, to.0)),
            }
        }
    }

    fn decided(&mut self, _: Nanos, _: Nanos, kernel: &Kernel<'_>, decision: &Decision) {
        self.runs = running(kernel, decision);
    }
}

/// The least that a process ran in windows of a length, and how many there were.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Supply {
    least: u64,
    windows: usize,
}

/// Looks at every window of this length that begins where a run begins or ends.
fn supply(times: &[(u64, u64)], length: u64, (begin, end): (u64, u64)) -> Supply {
    // The time that it has run until each begin, so that a window costs two searches.
    let mut before = Vec::with_capacity(times.len());
    let mut sum = 0;
    for (from, to) in times {
        before.push(sum);
        sum += to - from;
    }
    let until = |at: u64| {
        let after = times.partition_point(|(from, _)| *from < at);
        let Some(last) = after.checked_sub(1) else { return 0 };
        before[last] + (at.min(times[last].1) - times[last].0)
    };
    let mut supply = Supply { least: u64::MAX, windows: 0 };
    for at in times.iter().flat_map(|(from, to)| [*from, *to]) {
        if at < begin || at + length > end {
            continue;
        }
        supply.least = supply.least.min(until(at + length) - until(at));
        supply.windows += 1;
    }
    supply
}

/// One random system: budget and period of a program that never waits and of its neighbour, and
/// how the neighbour misbehaves.
#[derive(Clone, Copy)]
struct Drawn {
    own: (u64, u64),
    neighbour: (u64, u64),
    mode: usize,
}

impl Drawn {
    fn new(index: u64) -> Drawn {
        let mut random = Random::stream(0x5eed, index);
        let mut server = || {
            let budget = random.between(BUDGETS.0, BUDGETS.1) * 1_000;
            (budget, random.between(PERIODS_US.0, PERIODS_US.1) * 1_000)
        };
        let (own, neighbour) = (server(), server());
        // Every way to misbehave comes up.
        let mode = usize::try_from(index).unwrap_or(0) % MODES.len();
        Drawn { own, neighbour, mode }
    }

    /// Returns when the process that never waits ran beside this neighbour.
    fn runs(&self, stage: &Stage<'_>, mode: &Mode) -> Result<(Session, Runs), String> {
        let horizon_ns = BEGIN.0 + PERIODS * self.own.1;
        let session = stage.session_of(mode, self.neighbour, horizon_ns, BACKGROUND, |system| {
            let victim = place(system, "victim")?;
            let process = &mut system.processes[victim];
            (process.program, process.arguments) = ("rude".into(), NEVER_WAITS);
            serve(system, "victim", self.own)
        })?;
        let process = number(&session.system, "victim")?;
        let mut runs = Runs { process, runs: u16::MAX, times: Vec::new() };
        watched(&session, &mut runs)?;
        Ok((session, runs))
    }

    /// Checks the windows of the process that never waits beside one that does its worst.
    fn check(&self, stage: &Stage<'_>) -> Result<(u64, usize), String> {
        let (budget_ns, period) = self.own;
        let seen = |mode: &Mode| {
            let (session, Runs { times, .. }) = self.runs(stage, mode)?;
            let all = (BEGIN.0, session.options.horizon_ns);
            // A budget may come early in one period, and late in the next.
            let supply = supply(&times, 2 * period - budget_ns, all);
            Ok::<_, String>((budget(&session.system)? / PART, supply))
        };
        let mode = &MODES[self.mode];
        let (_, alone) = seen(&NOTHING)?;
        let (allowed, beside) = seen(mode)?;
        let about = format!("`{}` beside {self}", mode.name);
        if beside.windows < WINDOWS {
            return Err(format!("{about}: only {} windows", beside.windows));
        }
        if alone.least + allowed < budget_ns {
            return Err(format!("{about}: alone it gets {} ns", alone.least));
        }
        let taken = alone.least.saturating_sub(beside.least);
        if taken > allowed {
            return Err(format!("{about}: a window lacks {taken} ns, {allowed} ns are allowed"));
        }
        Ok((taken, beside.windows))
    }
}

impl std::fmt::Display for Drawn {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let us = |(budget, period): (u64, u64)| (budget / 1_000, period / 1_000);
        let ((own, of), (other, every)) = (us(self.own), us(self.neighbour));
        write!(f, "{own} us in {of} us, itself {other} us in {every} us")
    }
}

/// The arguments of `rude` by which it computes for ever.
const NEVER_WAITS: [u64; 4] = [0, 0, 0, 0];

/// A process that uses the rest of the time. Without it, a program would run in the background
/// instead, and hide that its budget was cut.
const BACKGROUND: &str =
    "\n[[process]]\nname = \"background\"\nprogram = \"rude\"\npriority = 60\n";

/// Tries all random systems.
pub(super) fn simulated(stage: &Stage<'_>) -> Result<(), String> {
    let (mut most, mut windows) = ((0, 0), 0);
    for index in 0..SYSTEMS {
        let drawn = Drawn::new(index);
        let (taken, seen) = drawn.check(stage)?;
        most = most.max((taken, index));
        windows += seen;
    }
    println!(
        "{windows} windows of {SYSTEMS} systems: at most {} ns are taken ({})",
        most.0,
        MODES[Drawn::new(most.1).mode].name
    );
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn windows_are_found_at_the_seams_of_runs() {
        // Early in one period of 10, and late in the next.
        let times = [(0, 3), (17, 20), (20, 23), (37, 40)];
        let seen = supply(&times, 10, (0, 40));
        assert_eq!((seen.least, seen.windows), (0, 6), "{seen:?}");
        let seen = supply(&times, 17, (0, 40));
        assert_eq!((seen.least, seen.windows), (3, 6), "{seen:?}");
        assert_eq!(supply(&times, 41, (0, 40)).windows, 0);
    }
}
