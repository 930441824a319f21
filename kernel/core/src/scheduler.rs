//! Who runs: the most urgent ready thread, first come first served among equals.
//!
//! One per core. The running thread stays at the head of its list, so choosing is one bit scan, and
//! a preempted thread keeps its place. Virtual CPUs with budgets and CSD queues take the place of
//! the levels behind these same few operations.

use crate::pool::Pool;
use crate::queue::ThreadQueue;
use crate::thread::{Thread, ThreadId};
use diapason_abi::{Nanos, PRIORITIES};

/// The ready threads of a core.
pub struct Scheduler {
    /// Bit p is set if `levels[p]` is not empty.
    ready: u64,
    levels: [ThreadQueue; PRIORITIES],
    /// Who runs now.
    pub running: ThreadId,
    /// Since when.
    pub since: Nanos,
    /// Time nobody ran.
    pub idle: Nanos,
}

impl Scheduler {
    /// Nobody is ready.
    #[must_use]
    pub const fn new() -> Scheduler {
        Scheduler {
            ready: 0,
            levels: [ThreadQueue::EMPTY; PRIORITIES],
            running: ThreadId::NONE,
            since: Nanos::ZERO,
            idle: Nanos::ZERO,
        }
    }

    #[inline(always)]
    fn level(&mut self, priority: u8) -> &mut ThreadQueue {
        &mut self.levels[priority as usize % PRIORITIES]
    }

    /// A thread became ready: it goes behind its equals.
    pub fn insert_back(&mut self, threads: &mut Pool<'_, Thread>, thread: ThreadId) {
        let priority = threads[thread].vcpu.priority;
        self.ready |= 1 << (priority as usize % PRIORITIES);
        self.level(priority).push_back(threads, thread);
    }

    /// A ready thread's priority changes. It goes in front of its new equals: one that inherits
    /// takes the place of the thread that waits for it, one that gives back had not used up its
    /// turn.
    pub fn change_priority(
        &mut self,
        threads: &mut Pool<'_, Thread>,
        thread: ThreadId,
        priority: u8,
    ) {
        self.remove(threads, thread);
        threads[thread].vcpu.priority = priority;
        self.ready |= 1 << (priority as usize % PRIORITIES);
        self.level(priority).push_front(threads, thread);
    }

    /// A thread is no longer ready.
    pub fn remove(&mut self, threads: &mut Pool<'_, Thread>, thread: ThreadId) {
        let priority = threads[thread].vcpu.priority;
        let level = self.level(priority);
        level.remove(threads, thread);
        if level.is_empty() {
            self.ready &= !(1 << (priority as usize % PRIORITIES));
        }
    }

    /// Is the running thread alone at its priority?
    #[inline(always)]
    pub fn alone(&self, threads: &Pool<'_, Thread>) -> bool {
        threads[self.running].next == self.running
    }

    /// The running thread goes behind its equals.
    #[inline(always)]
    pub fn rotate(&mut self, threads: &Pool<'_, Thread>) {
        let priority = threads[self.running].vcpu.priority;
        self.level(priority).rotate(threads);
    }

    /// The thread that should run.
    #[inline(always)]
    pub fn pick(&self) -> ThreadId {
        match self.ready.checked_ilog2() {
            Some(level) => self.levels[level as usize % PRIORITIES].head,
            None => ThreadId::NONE,
        }
    }

    /// Charge the time since the last change to whoever ran, and let `next` run.
    #[inline(always)]
    pub fn switch(&mut self, threads: &mut Pool<'_, Thread>, next: ThreadId, now: Nanos) {
        // The clock does not run backwards, and no run lasts five centuries.
        let elapsed = now.0.wrapping_sub(self.since.0);
        let used = if self.running.is_some() {
            &mut threads[self.running].vcpu.used
        } else {
            &mut self.idle
        };
        used.0 = used.0.wrapping_add(elapsed);
        self.running = next;
        self.since = now;
    }

    /// The ready list of a priority, for the invariants.
    #[must_use]
    pub fn list(&self, priority: usize) -> (ThreadQueue, bool) {
        (self.levels[priority], self.ready >> priority & 1 == 1)
    }
}
