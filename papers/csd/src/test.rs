//! Tests whether every task meets every deadline: as the dissertation reads, and exactly.
//!
//! Both tests agree on the first DP queue (utilization at most 1) and on FP tasks (the first job
//! after all are released at once is done in time). They differ for a DP queue below others. The
//! dissertation asks whether the first job of each task is done in time; under EDF a later one can
//! be worse. The exact test asks it of every deadline D:
//!
//! > there is a t ≤ D with  Σ_above ⌈t/P⌉ C + Σ_queue ⌊D/P⌋ C ≤ t
//!
//! *Enough:* let a job miss its deadline, and go back to the last instant before it at which no
//! work of the queues above, nor of jobs of this queue with deadlines no later, was pending. From
//! there to the missed deadline, L, the processor did only such work. It is at most what stands
//! on the left for the largest deadline D ≤ L of a simultaneous release, so at t ≤ D ≤ L
//! everything would have been done. *Needed:* release all tasks at once. If all jobs due by D are
//! in time, the last ends at some t ≤ D with nothing pending above, so t is no less than the left
//! side at t. Hence a simultaneous release is the worst case here too, and simulating it until the
//! first idle instant must agree with the test.
//!
//! An L as above is no longer than Σ_above C / (1 − U); at or beyond that the left side fits. The
//! least t is a non-decreasing f(D), so one need not look between f(D) and D: the next deadline to
//! look at is the largest one not above f(D).

use crate::utilization::{Load, ONE, load, upper};
use crate::{Allocation, CsdTask, QueuePrices};
use alloc::vec::Vec;
use core::fmt;
use diapason_abi::Nanos;

/// A test of schedulability.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SchedulabilityTest {
    /// Sections 4.2.5 and 4.3.4 as printed. It accepts some sets that miss deadlines.
    Dissertation,
    /// Accepts exactly the sets that meet all deadlines whatever their phases.
    Exact,
}

/// Why a set is refused.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Unschedulable {
    /// The tasks of this queue and those above need the whole processor or more.
    Overload {
        /// DP queues from 0, then the FP queue.
        queue: usize,
    },
    /// A DP queue below others leaves so little of the processor idle that its deadlines are too
    /// many to be checked: more than [`DEADLINES_MAX`]. A little less load can be decided.
    Undecided { queue: usize },
    /// A job is not done by its deadline if all tasks are released at once.
    Late {
        /// The task; for a DP queue the one whose deadline it is.
        task: usize,
        /// The deadline, from the release of all.
        deadline: Nanos,
    },
}

impl fmt::Display for Unschedulable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Unschedulable::Overload { queue } => {
                write!(f, "queue {queue} and those above it need more than the processor has")
            }
            Unschedulable::Undecided { queue } => {
                write!(f, "queue {queue} is too close to a full load; leave a little more idle")
            }
            Unschedulable::Late { task, deadline } => {
                write!(f, "task {task} misses its deadline {} ns after all started", deadline.0)
            }
        }
    }
}

/// Most deadlines that are checked for one queue.
pub const DEADLINES_MAX: usize = 1_024;

/// Returns the tasks with what scheduling costs them added to their costs.
#[must_use]
pub fn inflate(tasks: &[CsdTask], allocation: &Allocation, prices: &QueuePrices) -> Vec<CsdTask> {
    let charges = prices.charges(allocation);
    charged(tasks, allocation, &charges)
}

/// The tasks with the charge of their queue added to their costs.
pub(super) fn charged(tasks: &[CsdTask], allocation: &Allocation, charges: &[u64]) -> Vec<CsdTask> {
    let lengths = allocation.dp().iter().map(|length| usize::from(*length));
    let mut inflated = Vec::with_capacity(tasks.len());
    let mut rest = tasks;
    for (length, charge) in lengths.chain([allocation.fp()]).zip(charges) {
        let (queue, after) = rest.split_at(length.min(rest.len()));
        let add = |task: &CsdTask| CsdTask { cost: task.cost + Nanos(*charge), ..*task };
        inflated.extend(queue.iter().map(add));
        rest = after;
    }
    inflated
}

/// Checks `tasks`, in rate-monotonic order and with all their costs, in the queues of
/// `allocation`.
///
/// # Errors
/// The first thing that does not hold.
///
/// # Panics
/// If the allocation is for another number of tasks.
pub fn check(
    tasks: &[CsdTask],
    allocation: &Allocation,
    test: SchedulabilityTest,
) -> Result<(), Unschedulable> {
    assert_eq!(tasks.len(), allocation.tasks(), "an allocation of these tasks");
    let mut start = 0;
    for (queue, length) in allocation.dp().iter().enumerate() {
        let end = start + usize::from(*length);
        dp_queue(&tasks[..end], start, queue, test)?;
        start = end;
    }
    fp_queue(tasks, start, allocation.dp().len())
}

/// Checks the DP queue that holds the tasks from `start` on, all others being above it.
pub(super) fn dp_queue(
    tasks: &[CsdTask],
    start: usize,
    queue: usize,
    test: SchedulabilityTest,
) -> Result<(), Unschedulable> {
    let load = load(tasks);
    match (load, test) {
        (Load::Above, _) => Err(Unschedulable::Overload { queue }),
        (_, _) if start == 0 => Ok(()),
        (_, SchedulabilityTest::Dissertation) => {
            let (above, own) = tasks.split_at(start);
            let late = own.iter().position(|task| {
                let deadline = task.period.0;
                first_fit(above, deadline, |t| first_jobs(own, t, deadline)).is_none()
            });
            late.map_or(Ok(()), |place| {
                Err(Unschedulable::Late { task: start + place, deadline: own[place].period })
            })
        }
        (Load::Full, SchedulabilityTest::Exact) => match busy_period(tasks) {
            Some(end) => demand(tasks, start, queue, end),
            None => Err(Unschedulable::Undecided { queue }),
        },
        (Load::Below(rest), SchedulabilityTest::Exact) => {
            let above: u128 = tasks[..start].iter().map(|task| u128::from(task.cost.0)).sum();
            // Costs are below 2^63 together, so this cannot overflow.
            match u64::try_from((above * ONE).div_ceil(rest)) {
                Ok(end) if end <= END_MAX => demand(tasks, start, queue, end),
                _ => Err(Unschedulable::Undecided { queue }),
            }
        }
    }
}

/// Work of the queue's first jobs that the dissertation counts up to `t`: ⌈t/P⌉* jobs of each.
fn first_jobs(own: &[CsdTask], t: u64, deadline: u64) -> u64 {
    let jobs = |task: &CsdTask| t.div_ceil(task.period.0).min(deadline / task.period.0);
    own.iter().map(|task| task.cost.0 * jobs(task)).sum()
}

/// Latest deadline that is looked at, so that sums of work cannot overflow.
const END_MAX: u64 = 1 << 60;

/// The exact test for all deadlines up to `end`, backwards.
fn demand(tasks: &[CsdTask], start: usize, queue: usize, end: u64) -> Result<(), Unschedulable> {
    let (above, own) = tasks.split_at(start);
    let idle_above = (ONE + above.len() as u128).saturating_sub(upper(above));
    let before = |limit: u64| {
        let last = |task: &CsdTask| limit - limit % task.period.0;
        own.iter().map(last).max().unwrap_or(0)
    };
    let mut deadline = before(end);
    for _ in 0..DEADLINES_MAX {
        if deadline == 0 {
            return Ok(());
        }
        let jobs = |task: &CsdTask| deadline / task.period.0 * task.cost.0;
        let due: u64 = own.iter().map(jobs).sum();
        let Some(done) = done_by(above, idle_above, due, deadline) else {
            let whose = own.iter().position(|task| deadline % task.period.0 == 0);
            let task = start + whose.unwrap_or(0);
            return Err(Unschedulable::Late { task, deadline: Nanos(deadline) });
        };
        deadline = before(done.min(deadline - 1));
    }
    Err(Unschedulable::Undecided { queue })
}

/// Returns when `due` is done below the tasks above, if that is no later than `limit`. `idle` is
/// what these leave of the processor, rounded up: before `due / idle` it cannot be.
fn done_by(above: &[CsdTask], idle: u128, due: u64, limit: u64) -> Option<u64> {
    let once: u64 = above.iter().map(|task| task.cost.0).sum();
    let earliest = (u128::from(due) << 62) / idle.max(1);
    let earliest = u64::try_from(earliest).unwrap_or(u64::MAX).max(once + due);
    least(above, earliest, limit, |_| due)
}

/// Checks the FP queue that holds the tasks from `start` on.
pub(super) fn fp_queue(tasks: &[CsdTask], start: usize, queue: usize) -> Result<(), Unschedulable> {
    if tasks.len() > start && upper(tasks) > ONE && load(tasks) == Load::Above {
        return Err(Unschedulable::Overload { queue });
    }
    // A task ends no sooner than the one above it, its own cost later.
    let mut response = 0;
    for task in start..tasks.len() {
        match fp_response(tasks, task, response) {
            Some(found) => response = found,
            None => return Err(Unschedulable::Late { task, deadline: tasks[task].period }),
        }
    }
    Ok(())
}

/// Returns the response time of FP task `task` if it is no longer than its period, known to be at
/// least `from` plus its cost.
pub(super) fn fp_response(tasks: &[CsdTask], task: usize, from: u64) -> Option<u64> {
    let CsdTask { period, cost } = tasks[task];
    least(&tasks[..task], from + cost.0, period.0, |_| cost.0)
}

/// Returns the least t ≤ `limit` at which the work of the tasks above released before t, and
/// `own(t)`, are at most t. `own` does not fall.
fn first_fit(above: &[CsdTask], limit: u64, own: impl Fn(u64) -> u64) -> Option<u64> {
    let once: u64 = above.iter().map(|task| task.cost.0).sum();
    least(above, (once + own(1)).max(1), limit, own)
}

/// Returns the least t as in [`first_fit`], from a `t` known to be no later. Sums saturate, and
/// what saturates does not fit.
fn least(above: &[CsdTask], mut t: u64, limit: u64, own: impl Fn(u64) -> u64) -> Option<u64> {
    while t <= limit {
        let next = above.iter().fold(own(t), |work, task| {
            work.saturating_add(task.cost.0.saturating_mul(t.div_ceil(task.period.0)))
        });
        if next <= t {
            return Some(t);
        }
        t = next;
    }
    None
}

/// Most rounds of the search for the end of a busy period of a fully used processor.
const ROUNDS_MAX: usize = 100_000;

/// Returns when a fully used processor is first idle after a simultaneous release, if ever.
fn busy_period(tasks: &[CsdTask]) -> Option<u64> {
    let mut t: u64 = tasks.iter().map(|task| task.cost.0).sum();
    for _ in 0..ROUNDS_MAX {
        let jobs = |task: &CsdTask| task.cost.0.checked_mul(t.div_ceil(task.period.0));
        let work = tasks.iter().try_fold(0u64, |sum, task| sum.checked_add(jobs(task)?))?;
        if work == t {
            return Some(t);
        }
        t = work;
    }
    None
}
