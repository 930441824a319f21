//! EMERALDS §4.2: blocked and ready tasks stand in one list, and only a mark tells them apart.

use crate::{NOBODY, TASKS_MAX, Task};

#[derive(Clone, Copy)]
struct Node {
    next: Task,
    ready: bool,
    /// The period, or the deadline.
    key: u64,
}

const FREE: Node = Node { next: NOBODY, ready: false, key: u64::MAX };

/// The queue by earliest deadline: not sorted, and looked through at each selection.
pub struct DeadlineList {
    nodes: [Node; TASKS_MAX],
    first: Task,
}

impl DeadlineList {
    /// Returns a list of `count` tasks, all blocked.
    #[must_use]
    pub fn new(count: usize) -> DeadlineList {
        let mut list = DeadlineList { nodes: [FREE; TASKS_MAX], first: NOBODY };
        for task in (0..count.min(TASKS_MAX)).rev() {
            list.nodes[task].next = list.first;
            list.first = task as Task;
        }
        list
    }

    /// Marks a task as waiting.
    #[inline(never)]
    pub fn block(&mut self, task: Task) {
        if let Some(node) = self.nodes.get_mut(task as usize) {
            node.ready = false;
        }
    }

    /// A task is ready, with this deadline.
    #[inline(never)]
    pub fn unblock(&mut self, task: Task, deadline: u64) {
        if let Some(node) = self.nodes.get_mut(task as usize) {
            node.ready = true;
            node.key = deadline;
        }
    }

    /// Returns the ready task with the earliest deadline.
    #[inline(never)]
    #[must_use]
    pub fn select(&self) -> Task {
        let (mut best, mut earliest) = (NOBODY, u64::MAX);
        let mut at = self.first;
        while let Some(node) = self.nodes.get(at as usize) {
            if node.ready && node.key < earliest {
                (best, earliest) = (at, node.key);
            }
            at = node.next;
        }
        best
    }
}

/// The queue by period: sorted once, and `highestP` is the first ready task of it.
pub struct PeriodList {
    nodes: [Node; TASKS_MAX],
    highest: Task,
}

impl PeriodList {
    /// Returns a list of tasks with these periods, all blocked.
    #[must_use]
    pub fn new(periods: &[u64]) -> PeriodList {
        let mut list = PeriodList { nodes: [FREE; TASKS_MAX], highest: NOBODY };
        let mut first = NOBODY;
        for (task, period) in periods.iter().enumerate().take(TASKS_MAX) {
            list.nodes[task].key = *period;
            // Behind all with a shorter period, and behind equals.
            let (mut before, mut at) = (NOBODY, first);
            while let Some(node) = list.nodes.get(at as usize).filter(|node| node.key <= *period) {
                (before, at) = (at, node.next);
            }
            list.nodes[task].next = at;
            match list.nodes.get_mut(before as usize) {
                Some(node) => node.next = task as Task,
                None => first = task as Task,
            }
        }
        list
    }

    /// A task waits: if it was the first ready one, the next is looked for.
    #[inline(never)]
    pub fn block(&mut self, task: Task) {
        let Some(node) = self.nodes.get_mut(task as usize) else { return };
        node.ready = false;
        if task != self.highest {
            return;
        }
        let mut at = node.next;
        while let Some(node) = self.nodes.get(at as usize) {
            if node.ready {
                break;
            }
            at = node.next;
        }
        self.highest = at;
    }

    /// A task is ready.
    #[inline(never)]
    pub fn unblock(&mut self, task: Task) {
        let Some(node) = self.nodes.get_mut(task as usize) else { return };
        node.ready = true;
        let key = (node.key, task);
        let first = self.nodes.get(self.highest as usize);
        if first.is_none_or(|first| key < (first.key, self.highest)) {
            self.highest = task;
        }
    }

    /// Returns the ready task with the shortest period.
    #[inline(never)]
    #[must_use]
    pub fn select(&self) -> Task {
        self.highest
    }
}
