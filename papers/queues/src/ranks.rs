//! The kernel's structure: tasks are ranked by period once, and the ready ones are the bits of a
//! word. Blocked ones are nowhere.

use crate::{NOBODY, TASKS_MAX, Task};

/// Ready tasks, by rank.
pub struct Ranks {
    ready: u64,
    /// The task of each rank, the most urgent last.
    by_rank: [Task; TASKS_MAX],
    rank: [u8; TASKS_MAX],
    deadline: [u64; TASKS_MAX],
}

impl Ranks {
    /// Tasks with these periods, all blocked.
    #[must_use]
    pub fn new(periods: &[u64]) -> Ranks {
        let mut ranks = Ranks {
            ready: 0,
            by_rank: [NOBODY; TASKS_MAX],
            rank: [0; TASKS_MAX],
            deadline: [u64::MAX; TASKS_MAX],
        };
        let periods = &periods[..periods.len().min(TASKS_MAX)];
        for (task, period) in periods.iter().enumerate() {
            let goes_before = |(other, theirs): (usize, &u64)| (*theirs, other) > (*period, task);
            let rank = periods.iter().enumerate().filter(|other| goes_before(*other)).count();
            ranks.rank[task] = rank as u8;
            ranks.by_rank[rank] = task as Task;
        }
        ranks
    }

    /// Marks a task as waiting.
    #[inline(never)]
    pub fn block(&mut self, task: Task) {
        if let Some(rank) = self.rank.get(task as usize) {
            self.ready &= !(1 << (rank % 64));
        }
    }

    /// A task is ready, with this deadline.
    #[inline(never)]
    pub fn unblock(&mut self, task: Task, deadline: u64) {
        if let Some(rank) = self.rank.get(task as usize) {
            self.ready |= 1 << (rank % 64);
            self.deadline[task as usize] = deadline;
        }
    }

    /// Returns the ready task with the shortest period.
    #[inline(never)]
    #[must_use]
    pub fn by_period(&self) -> Task {
        match self.ready.checked_ilog2() {
            Some(rank) => self.by_rank[rank as usize % TASKS_MAX],
            None => NOBODY,
        }
    }

    /// Returns the ready task with the earliest deadline.
    #[inline(never)]
    #[must_use]
    pub fn by_deadline(&self) -> Task {
        let (mut best, mut earliest) = (NOBODY, u64::MAX);
        let mut rest = self.ready;
        while let Some(rank) = rest.checked_ilog2() {
            rest &= !(1 << rank);
            let task = self.by_rank[rank as usize % TASKS_MAX];
            let deadline = self.deadline[task as usize % TASKS_MAX];
            if deadline < earliest {
                (best, earliest) = (task, deadline);
            }
        }
        best
    }
}
