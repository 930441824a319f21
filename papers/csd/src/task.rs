//! Periodic tasks whose deadlines are their periods, in rate-monotonic order.

use alloc::vec::Vec;
use core::fmt;
use diapason_abi::Nanos;

/// A task: released every `period` at the earliest, it computes for at most `cost` and must be
/// done before it can be released again.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CsdTask {
    /// Least time between two releases, and the deadline of each.
    pub period: Nanos,
    /// Most computation of one job, scheduling not included.
    pub cost: Nanos,
}

/// A task that makes no sense, by its place in the list that was given.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum BadTask {
    /// Too many tasks; the most that fit.
    TooMany(usize),
    /// The period is zero.
    NoPeriod(usize),
    /// The period is longer than [`TaskSet::PERIOD_MAX`].
    LongPeriod(usize),
    /// The cost is more than the period, which is given too.
    Overloaded(usize, Nanos),
}

impl fmt::Display for BadTask {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            BadTask::TooMany(most) => write!(f, "too many tasks: at most {most} fit"),
            BadTask::NoPeriod(i) => write!(f, "task {i}: the period is zero; give at least 1 ns"),
            BadTask::LongPeriod(i) => {
                write!(f, "task {i}: the period is too long; at most {} ns", TaskSet::PERIOD_MAX.0)
            }
            BadTask::Overloaded(i, period) => {
                write!(f, "task {i}: it computes longer than its period; at most {} ns", period.0)
            }
        }
    }
}

impl core::error::Error for BadTask {}

/// Tasks by rising period; equal periods keep the order they were given in.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TaskSet {
    tasks: Vec<CsdTask>,
}

/// The analysis covers everything that can be described.
const _: () = assert!(diapason_abi::archive::PERIOD_MAX.0 <= TaskSet::PERIOD_MAX.0);

impl TaskSet {
    /// Most tasks of a set.
    pub const TASKS_MAX: usize = 4096;
    /// Longest period: about 13 days, so that sums over all tasks cannot overflow.
    pub const PERIOD_MAX: Nanos = Nanos(1 << 50);

    /// Sorts and checks tasks.
    ///
    /// # Errors
    /// The first task that makes no sense.
    pub fn new(mut tasks: Vec<CsdTask>) -> Result<TaskSet, BadTask> {
        if tasks.len() > TaskSet::TASKS_MAX {
            return Err(BadTask::TooMany(TaskSet::TASKS_MAX));
        }
        for (i, task) in tasks.iter().enumerate() {
            if task.period == Nanos::ZERO {
                return Err(BadTask::NoPeriod(i));
            } else if task.period > TaskSet::PERIOD_MAX {
                return Err(BadTask::LongPeriod(i));
            } else if task.cost > task.period {
                return Err(BadTask::Overloaded(i, task.period));
            }
        }
        tasks.sort_by_key(|task| task.period);
        Ok(TaskSet { tasks })
    }

    /// Returns the tasks, shortest period first.
    #[must_use]
    pub fn tasks(&self) -> &[CsdTask] {
        &self.tasks
    }

    /// Returns how many there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.tasks.len()
    }

    /// Returns whether there is no task.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.tasks.is_empty()
    }

    /// Returns the share of the processor they compute, for people.
    #[must_use]
    pub fn utilization(&self) -> f64 {
        self.tasks.iter().map(|task| task.cost.0 as f64 / task.period.0 as f64).sum()
    }

    /// Returns the same periods, every cost times `numerator / denominator`, rounded down.
    #[must_use]
    pub fn scaled(&self, numerator: u64, denominator: u64) -> Vec<CsdTask> {
        let scale = |cost: Nanos| {
            let scaled = u128::from(cost.0) * u128::from(numerator) / u128::from(denominator);
            Nanos(u64::try_from(scaled).unwrap_or(u64::MAX).min(TaskSet::PERIOD_MAX.0 * 2))
        };
        self.tasks.iter().map(|task| CsdTask { cost: scale(task.cost), ..*task }).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::string::ToString;
    use alloc::vec;

    fn task(period: u64, cost: u64) -> CsdTask {
        CsdTask { period: Nanos(period), cost: Nanos(cost) }
    }

    #[test]
    fn tasks_are_sorted_and_equals_keep_their_order() {
        let set = TaskSet::new(vec![task(9, 1), task(4, 2), task(9, 3)]).unwrap();
        assert_eq!(set.tasks(), [task(4, 2), task(9, 1), task(9, 3)]);
        assert_eq!(set.scaled(1, 2)[2], task(9, 1));
    }

    #[test]
    fn nonsense_is_refused_with_the_number_that_fits() {
        let refused = |task| TaskSet::new(vec![self::task(5, 1), task]).unwrap_err().to_string();
        assert!(refused(task(0, 0)).contains("task 1: the period is zero; give at least 1 ns"));
        assert!(refused(task(7, 8)).ends_with("at most 7 ns"));
        assert!(refused(task(u64::MAX, 8)).contains("at most 1125899906842624 ns"));
        let crowd = vec![task(5, 1); TaskSet::TASKS_MAX + 1];
        assert_eq!(TaskSet::new(crowd), Err(BadTask::TooMany(TaskSet::TASKS_MAX)));
    }
}
