//! Lists of threads: ready at one priority, or waiting for one object.
//!
//! A thread is in at most one list at a time, so its links live in the thread. The lists are
//! circular: the last is the one before the first, and sending the first to the back is one step.

use crate::pool::Pool;
use crate::thread::{Thread, ThreadId};
use crate::walks::walk;
use diapason_costs::Round;

/// A circular, doubly linked list of threads.
#[derive(Clone, Copy, Debug)]
pub struct ThreadQueue {
    pub head: ThreadId,
}

impl ThreadQueue {
    pub const EMPTY: ThreadQueue = ThreadQueue { head: ThreadId::NONE };

    /// Returns whether the queue has no threads.
    #[inline(always)]
    pub fn is_empty(&self) -> bool {
        self.head.is_none()
    }

    /// Adds a thread behind all others.
    #[inline(always)]
    pub fn push_back(&mut self, threads: &mut Pool<'_, Thread>, thread: ThreadId) {
        if self.head.is_none() {
            self.head = thread;
            let t = &mut threads[thread];
            (t.previous, t.next) = (thread, thread);
        } else {
            insert_before(threads, self.head, thread);
        }
    }

    /// Adds behind the last thread that is at least as urgent. Walks from the less urgent end.
    #[inline(never)]
    pub fn insert_by_urgency(&mut self, threads: &mut Pool<'_, Thread>, thread: ThreadId) {
        if self.head.is_none() {
            return self.push_back(threads, thread);
        }
        let urgency = threads[thread].urgency;
        let mut behind = self.head;
        loop {
            walk(Round::Pass, 1);
            let before = threads[behind].previous;
            if threads[before].urgency >= urgency {
                return insert_before(threads, behind, thread);
            }
            behind = before;
            if behind == self.head {
                insert_before(threads, behind, thread);
                self.head = thread;
                return;
            }
        }
    }

    /// Sends the first behind everybody.
    #[inline(always)]
    pub fn rotate(&mut self, threads: &Pool<'_, Thread>) {
        self.head = threads[self.head].next;
    }

    /// Takes out a thread that is in this list.
    #[inline(never)]
    pub fn remove(&mut self, threads: &mut Pool<'_, Thread>, thread: ThreadId) {
        let (previous, next) = (threads[thread].previous, threads[thread].next);
        if next == thread {
            self.head = ThreadId::NONE;
            return;
        }
        threads[previous].next = next;
        threads[next].previous = previous;
        if self.head == thread {
            self.head = next;
        }
    }
}

/// Links `thread` in between `behind` and the one before it.
fn insert_before(threads: &mut Pool<'_, Thread>, behind: ThreadId, thread: ThreadId) {
    let b = &mut threads[behind];
    let before = b.previous;
    b.previous = thread;
    let t = &mut threads[thread];
    (t.previous, t.next) = (before, behind);
    threads[before].next = thread;
}
