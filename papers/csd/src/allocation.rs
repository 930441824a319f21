//! The tasks of each queue: the shortest periods in the first queue, and so on.

use core::fmt;

/// Most queues of a scheduler, the FP queue included.
pub const QUEUES_MAX: usize = 8;

/// Lengths of the queues. Tasks are in rate-monotonic order, so lengths say it all.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Allocation {
    dp_queues: u8,
    lengths: [u16; QUEUES_MAX - 1],
    fp: u16,
}

/// A list of queue lengths that does not fit the tasks.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum BadAllocation {
    /// More DP queues than this.
    TooManyQueues(usize),
    /// The DP queues hold more tasks (first number) than there are (second).
    TooLong(usize, usize),
}

impl fmt::Display for BadAllocation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            BadAllocation::TooManyQueues(most) => write!(f, "at most {most} DP queues"),
            BadAllocation::TooLong(wanted, there) => {
                write!(f, "the DP queues want {wanted} tasks, there are {there}: shorten them")
            }
        }
    }
}

impl core::error::Error for BadAllocation {}

impl Allocation {
    /// DP queues of these lengths, and the rest of `tasks` in the FP queue. Empty queues are
    /// left out.
    ///
    /// # Errors
    /// If there are too many queues, or they want more tasks than there are.
    pub fn new(dp: &[usize], tasks: usize) -> Result<Allocation, BadAllocation> {
        let in_dp: usize = dp.iter().sum();
        if in_dp > tasks || tasks > usize::from(u16::MAX) {
            return Err(BadAllocation::TooLong(in_dp, tasks.min(usize::from(u16::MAX))));
        }
        let mut allocation =
            Allocation { dp_queues: 0, lengths: [0; QUEUES_MAX - 1], fp: (tasks - in_dp) as u16 };
        for length in dp.iter().filter(|length| **length > 0) {
            let place = usize::from(allocation.dp_queues);
            let slot = allocation.lengths.get_mut(place);
            *slot.ok_or(BadAllocation::TooManyQueues(QUEUES_MAX - 1))? = *length as u16;
            allocation.dp_queues += 1;
        }
        Ok(allocation)
    }

    /// Rate-monotonic: everything in the FP queue.
    #[must_use]
    pub const fn rm(tasks: usize) -> Allocation {
        Allocation { dp_queues: 0, lengths: [0; QUEUES_MAX - 1], fp: tasks as u16 }
    }

    /// EDF: everything in one DP queue.
    #[must_use]
    pub const fn edf(tasks: usize) -> Allocation {
        let mut lengths = [0; QUEUES_MAX - 1];
        lengths[0] = tasks as u16;
        Allocation { dp_queues: (tasks > 0) as u8, lengths, fp: 0 }
    }

    /// Lengths of the DP queues, the most urgent first.
    #[must_use]
    pub fn dp(&self) -> &[u16] {
        &self.lengths[..usize::from(self.dp_queues)]
    }

    /// Length of the FP queue.
    #[must_use]
    pub fn fp(&self) -> usize {
        usize::from(self.fp)
    }

    /// Tasks in all DP queues: the dissertation's *r*.
    #[must_use]
    pub fn in_dp(&self) -> usize {
        self.dp().iter().map(|length| usize::from(*length)).sum()
    }

    /// Queues that hold a task: the x of CSD-x.
    #[must_use]
    pub fn queues(&self) -> usize {
        usize::from(self.dp_queues) + usize::from(self.fp > 0)
    }

    /// Returns the number of tasks.
    #[must_use]
    pub fn tasks(&self) -> usize {
        self.in_dp() + self.fp()
    }

    /// Returns the queue of a task, DP queues counted from 0, the FP queue after them.
    #[must_use]
    pub fn queue_of(&self, task: usize) -> usize {
        let mut end = 0;
        let holds = |length: &u16| {
            end += usize::from(*length);
            task < end
        };
        self.dp().iter().position(holds).unwrap_or(self.dp().len())
    }

    /// One DP queue more, taken from the front of the FP queue.
    pub(super) fn split(mut self, length: usize) -> Allocation {
        debug_assert!(length > 0 && length <= self.fp());
        self.lengths[usize::from(self.dp_queues)] = length as u16;
        self.dp_queues += 1;
        self.fp -= length as u16;
        self
    }
}

impl fmt::Display for Allocation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for length in self.dp() {
            write!(f, "DP {length}, ")?;
        }
        write!(f, "FP {}", self.fp)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::string::ToString;

    #[test]
    fn lengths_say_who_is_where() {
        let allocation = Allocation::new(&[2, 0, 3], 9).unwrap();
        assert_eq!((allocation.queues(), allocation.in_dp(), allocation.fp()), (3, 5, 4));
        let queues: [usize; 9] = core::array::from_fn(|task| allocation.queue_of(task));
        assert_eq!(queues, [0, 0, 1, 1, 1, 2, 2, 2, 2]);
        assert_eq!(allocation.to_string(), "DP 2, DP 3, FP 4");
        assert_eq!(Allocation::rm(9).split(2).split(3), allocation);
    }

    #[test]
    fn the_ends_are_rm_and_edf() {
        assert_eq!(Allocation::new(&[], 5), Ok(Allocation::rm(5)));
        assert_eq!(Allocation::new(&[5], 5), Ok(Allocation::edf(5)));
        assert_eq!((Allocation::edf(5).queues(), Allocation::edf(0).queues()), (1, 0));
    }

    #[test]
    fn a_list_that_does_not_fit_is_refused() {
        assert_eq!(Allocation::new(&[4, 4], 7), Err(BadAllocation::TooLong(8, 7)));
        assert_eq!(Allocation::new(&[1; 8], 20), Err(BadAllocation::TooManyQueues(7)));
    }
}
