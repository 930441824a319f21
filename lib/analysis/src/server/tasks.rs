//! The same theory for plain tasks: exact response times under fixed priorities, and processor
//! demand under EDF. A task is periodic or sporadic; deadlines may be longer than periods.

use super::arith;
use super::demand::{self, Overfull};
use super::level::{Interference, Late};
use super::model::PERIOD_MAX;
use alloc::vec::Vec;
use diapason_abi::Nanos;

/// Jobs of one busy period that are looked at before giving up.
const JOBS_MAX: u64 = 100_000;

/// A task: at most `cost` of work, at most once in every `period`, done `deadline` after it begins.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
pub struct SporadicTask {
    pub cost: Nanos,
    pub period: Nanos,
    /// D, relative to the release.
    pub deadline: Nanos,
}

/// How fixed priorities are given; of equals the smaller index goes first.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PriorityOrder {
    RateMonotonic,
    DeadlineMonotonic,
}

/// Why tasks do not meet their deadlines.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Miss {
    /// Makes no sense: a task with cost, period or deadline zero, or an absurd period.
    Nonsense(usize),
    /// The task responds only then (at the earliest), or never.
    Late(usize, Option<Nanos>),
    /// In a window so long, so much is due.
    Overfull(Nanos, Nanos),
    /// More work than processor in the long run.
    Overload,
    /// The search gave up; counts as a miss.
    Undecided,
}

impl SporadicTask {
    /// Returns a task whose deadline is its period.
    #[must_use]
    pub const fn new(cost: Nanos, period: Nanos) -> SporadicTask {
        SporadicTask { cost, period, deadline: period }
    }
}

fn check(tasks: &[SporadicTask]) -> Result<(), Miss> {
    let silly = |task: &SporadicTask| {
        task.cost == Nanos::ZERO
            || task.period == Nanos::ZERO
            || task.deadline == Nanos::ZERO
            || task.period > PERIOD_MAX
            || task.deadline > PERIOD_MAX
    };
    tasks.iter().position(silly).map_or(Ok(()), |index| Err(Miss::Nonsense(index)))
}

/// Returns the worst response time of every task under fixed priorities, if all meet their
/// deadlines. Each may in addition be delayed once by a section of length `blocking` that cannot be
/// preempted.
///
/// # Errors
/// The first task, in the order of priority, that is late.
pub fn response_times(
    tasks: &[SporadicTask],
    order: PriorityOrder,
    blocking: Nanos,
) -> Result<Vec<Nanos>, Miss> {
    check(tasks)?;
    let mut ranks: Vec<usize> = (0..tasks.len()).collect();
    ranks.sort_by_key(|index| match order {
        PriorityOrder::RateMonotonic => (tasks[*index].period, *index),
        PriorityOrder::DeadlineMonotonic => (tasks[*index].deadline, *index),
    });
    let mut responses = Vec::new();
    responses.resize(tasks.len(), Nanos::ZERO);
    let mut above = Interference::new(blocking);
    for index in ranks {
        let task = &tasks[index];
        responses[index] = response(&above, task).map_err(|late| match late {
            Late::After(at_least) => Miss::Late(index, Some(Nanos(at_least))),
            Late::Never => Miss::Late(index, None),
            Late::Undecided => Miss::Undecided,
        })?;
        above.add(task.period, task.cost);
    }
    Ok(responses)
}

/// Returns the longest of the responses of all jobs in the busy period: with a deadline longer than
/// the period, the first need not be the worst.
fn response(above: &Interference, task: &SporadicTask) -> Result<Nanos, Late> {
    let (cost, period) = (task.cost.0, task.period.0);
    let (mut longest, mut end) = (0, 0);
    for job in 0..JOBS_MAX {
        let (work, release) = (cost.saturating_mul(job + 1), period.saturating_mul(job));
        let limit = release.saturating_add(task.deadline.0);
        end = above.response_from(work, end, limit).map_err(|late| match late {
            Late::After(end) => Late::After(end - release),
            other => other,
        })?;
        longest = longest.max(end - release);
        if end <= release.saturating_add(period) {
            return Ok(Nanos(longest));
        }
    }
    Err(Late::Undecided)
}

/// Checks whether EDF meets every deadline, exactly (for tasks that may all be released together).
/// A section of length `blocking` that cannot be preempted may delay once; then it is sufficient.
///
/// # Errors
/// A window in which more is due than fits, or too much work in the long run.
pub fn edf(tasks: &[SporadicTask], blocking: Nanos) -> Result<(), Miss> {
    check(tasks)?;
    let Some(least) = tasks.iter().map(|task| task.deadline.0).min() else { return Ok(()) };
    let parts: Vec<(u64, u64)> = tasks.iter().map(|task| (task.cost.0, task.period.0)).collect();
    if !arith::fits_exactly(&parts) {
        return Err(Miss::Overload);
    }
    if blocking == Nanos::ZERO && tasks.iter().all(|task| task.deadline >= task.period) {
        return Ok(());
    }
    let Some(horizon) = horizon(tasks, blocking) else { return Err(Miss::Undecided) };
    let demand = |window| due(tasks, window).saturating_add(blocking.0);
    demand::fits(least, horizon, demand).map_err(|full| match full {
        Overfull::Window(window, wanted) => Miss::Overfull(Nanos(window), Nanos(wanted)),
        Overfull::Rate => Miss::Overload,
        Overfull::Undecided => Miss::Undecided,
    })
}

/// Work that is released and due within `window`.
fn due(tasks: &[SporadicTask], window: u64) -> u64 {
    tasks.iter().fold(0u64, |sum, task| match window.checked_sub(task.deadline.0) {
        Some(rest) => sum.saturating_add((rest / task.period.0 + 1).saturating_mul(task.cost.0)),
        None => sum,
    })
}

/// No longer window can be too full: the synchronous busy period, or, where that is not found
/// quickly, what is due early divided by what the tasks leave of the processor.
fn horizon(tasks: &[SporadicTask], blocking: Nanos) -> Option<u64> {
    let mut all = Interference::new(blocking);
    tasks.iter().for_each(|task| all.add(task.period, task.cost));
    let longest = tasks.iter().map(|task| task.deadline.0).max()?;
    let busy = all.busy().map(|busy| busy.max(longest));
    let (mut early, mut rate) = (u128::from(blocking.0), 0u64);
    for task in tasks {
        let before = task.period.0.saturating_sub(task.deadline.0);
        early += (u128::from(before) * u128::from(task.cost.0)).div_ceil(task.period.0.into());
        rate = rate.saturating_add(arith::rate_up(task.cost.0, task.period.0));
    }
    let early = u64::try_from(early).unwrap_or(u64::MAX);
    let sparse = arith::stretched_up(early, rate).map(|sparse| sparse.max(longest));
    match (busy, sparse) {
        (Some(busy), Some(sparse)) => Some(busy.min(sparse)),
        (one, other) => one.or(other),
    }
}
