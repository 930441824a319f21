//! Looks for task sets that a test accepts and a schedule fails.
//!
//! Sets are small and loaded, so that tests have something to decide. A set is run from a
//! simultaneous release until the processor is first idle (what follows only repeats), then with
//! random phases for two hyperperiods or the horizon, then sporadically as long. A set that the
//! exact test refuses must miss after the simultaneous release, or the test is pessimistic.

use crate::simulate::{self, Phases, Releases, Span, Synchronous};
use crate::{
    Allocation, CsdTask, Random, SchedulabilityTest, TaskSet, Unschedulable, check, workload,
};
use alloc::vec::Vec;
use diapason_abi::Nanos;

/// The plan of an attack.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct AttackPlan {
    /// Sets with the same seed and index are the same.
    pub seed: u64,
    /// Most tasks in a set; at least 3.
    pub tasks_max: usize,
    /// Longest period in ticks.
    pub period_max: u64,
    /// Longest simulation with phases, in ticks.
    pub horizon: u64,
    /// Queues with tasks in them.
    pub queues: usize,
}

impl AttackPlan {
    /// Small sets in `queues` queues.
    #[must_use]
    pub const fn small(seed: u64, queues: usize) -> AttackPlan {
        AttackPlan { seed, tasks_max: 7, period_max: 30, horizon: 2_000, queues }
    }
}

/// The results, counted over sets.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct AttackTally {
    /// Sets that were drawn.
    pub sets: u64,
    /// Accepted by the exact test.
    pub exact: u64,
    /// Accepted by it, and a deadline was missed. Must stay 0.
    pub exact_missed: u64,
    /// Too close to a full load for it; refused.
    pub undecided: u64,
    /// Refused by it for a reason, though nothing was missed after a simultaneous release. Must
    /// stay 0.
    pub exact_pessimistic: u64,
    /// Accepted as the dissertation reads.
    pub printed: u64,
    /// Accepted as it reads, and a deadline was missed.
    pub printed_missed: u64,
    /// The hard ones of [`AttackTally::printed`]: a utilization of at least 0.9, and a lower DP
    /// queue with at least two tasks.
    pub hard: u64,
}

impl AttackTally {
    /// Returns the sum of both.
    #[must_use]
    pub fn plus(self, other: AttackTally) -> AttackTally {
        AttackTally {
            sets: self.sets + other.sets,
            exact: self.exact + other.exact,
            exact_missed: self.exact_missed + other.exact_missed,
            undecided: self.undecided + other.undecided,
            exact_pessimistic: self.exact_pessimistic + other.exact_pessimistic,
            printed: self.printed + other.printed,
            printed_missed: self.printed_missed + other.printed_missed,
            hard: self.hard + other.hard,
        }
    }
}

/// Returns the `index`-th set of a plan and its allocation.
#[must_use]
pub fn victim(plan: &AttackPlan, index: u64) -> (TaskSet, Allocation) {
    let mut random = Random::stream(plan.seed, index);
    let least = plan.queues.max(3) as u64;
    loop {
        let tasks = random.between(least, (plan.tasks_max as u64).max(least)) as usize;
        let load = random.between(88, 104);
        let Ok(set) = workload::small(tasks, plan.period_max, load, &mut random) else { continue };
        if set.utilization() <= 1.0 {
            let allocation = any_allocation(set.len(), plan.queues, &mut random);
            return (set, allocation);
        }
    }
}

/// Random lengths, every queue with a task but perhaps the FP queue.
fn any_allocation(tasks: usize, queues: usize, random: &mut Random) -> Allocation {
    let mut allocation = Allocation::rm(tasks);
    for left in (1..queues).rev() {
        let longest = allocation.fp() - (left - 1);
        allocation = allocation.split(random.between(1, longest.max(1) as u64) as usize);
    }
    allocation
}

/// Attacks both tests with the `index`-th set.
#[must_use]
pub fn one(plan: &AttackPlan, index: u64) -> AttackTally {
    let (set, allocation) = victim(plan, index);
    let tasks = set.tasks();
    let verdict = check(tasks, &allocation, SchedulabilityTest::Exact);
    let undecided = matches!(verdict, Err(Unschedulable::Undecided { .. }));
    let exact = verdict.is_ok();
    let printed = check(tasks, &allocation, SchedulabilityTest::Dissertation).is_ok();
    let together = together(tasks, &allocation);
    let mut random = Random::stream(!plan.seed, index);
    let missed = together == Some(true)
        || (exact || printed) && misses_apart(tasks, &allocation, plan.horizon, &mut random);
    AttackTally {
        sets: 1,
        exact: u64::from(exact),
        exact_missed: u64::from(exact && missed),
        undecided: u64::from(undecided),
        exact_pessimistic: u64::from(!exact && !undecided && together == Some(false)),
        printed: u64::from(printed),
        printed_missed: u64::from(printed && missed),
        hard: u64::from(printed && is_hard(&set, &allocation)),
    }
}

/// Returns whether the printed test can be wrong at all, as far as is known.
fn is_hard(set: &TaskSet, allocation: &Allocation) -> bool {
    let crowded = allocation.dp().iter().skip(1).any(|length| *length > 1);
    crowded && set.utilization() >= 0.9
}

/// Attacks with the sets of a range of indices.
#[must_use]
pub fn range(plan: &AttackPlan, indices: core::ops::Range<u64>) -> AttackTally {
    indices.fold(AttackTally::default(), |tally, index| tally.plus(one(plan, index)))
}

/// Longest simulation of a simultaneous release, for processors that never become idle.
const TOGETHER_MAX: u64 = 200_000;

/// Returns whether a deadline is missed if all tasks are released at once. `None` if that was not
/// seen to its end.
fn together(tasks: &[CsdTask], allocation: &Allocation) -> Option<bool> {
    let hyperperiod = hyperperiod(tasks);
    let horizon = Nanos(hyperperiod.min(TOGETHER_MAX));
    let span = Span { horizon, until_idle: true };
    let outcome = simulate::run(tasks, allocation, &mut Synchronous, span, |_| ());
    let seen = outcome.miss.is_some() || outcome.end < horizon || horizon.0 == hyperperiod;
    seen.then_some(outcome.miss.is_some())
}

/// Returns whether one is missed with random phases, or with random delays between releases.
fn misses_apart(
    tasks: &[CsdTask],
    allocation: &Allocation,
    most: u64,
    random: &mut Random,
) -> bool {
    let horizon = Nanos(hyperperiod(tasks).saturating_mul(2).min(most));
    let span = Span { horizon, until_idle: false };
    let phase = |task: &CsdTask| Nanos(random.between(0, task.period.0 - 1));
    let mut phases = Phases(tasks.iter().map(phase).collect());
    let misses = |outcome: simulate::SimulationResult| outcome.miss.is_some();
    if misses(simulate::run(tasks, allocation, &mut phases, span, |_| ())) {
        return true;
    }
    let mut sporadic = Sporadic { random: random.clone() };
    misses(simulate::run(tasks, allocation, &mut sporadic, span, |_| ()))
}

/// Releases that are now and then later than they could be.
struct Sporadic {
    random: Random,
}

impl Releases for Sporadic {
    fn first(&mut self, _task: usize) -> Nanos {
        Nanos(self.random.between(0, 8))
    }

    fn next(&mut self, _task: usize, previous: Nanos, period: Nanos) -> Nanos {
        let late = self.random.between(0, 11);
        previous + period + Nanos(if late < 4 { late } else { 0 })
    }
}

/// Least common multiple of the periods; saturates.
fn hyperperiod(tasks: &[CsdTask]) -> u64 {
    let periods: Vec<u64> = tasks.iter().map(|task| task.period.0).collect();
    periods.iter().fold(1, |all, period| {
        let (mut a, mut b) = (all, *period);
        while b != 0 {
            (a, b) = (b, a % b);
        }
        (all / a).saturating_mul(*period)
    })
}
