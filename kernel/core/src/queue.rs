//! Lists of threads: ready at one priority, or waiting for one object.
//!
//! A thread is in at most one list at a time, so its links live in the thread.

use crate::pool::Pool;
use crate::thread::{Thread, ThreadId};

/// A doubly linked list of threads.
#[derive(Clone, Copy, Debug)]
pub struct ThreadQueue {
    /// First out.
    pub head: ThreadId,
    /// Last out.
    pub tail: ThreadId,
}

impl ThreadQueue {
    /// Nobody.
    pub const EMPTY: ThreadQueue = ThreadQueue { head: ThreadId::NONE, tail: ThreadId::NONE };

    /// Is nobody in it?
    #[inline(always)]
    pub fn is_empty(&self) -> bool {
        self.head.is_none()
    }

    /// Add behind `before` (in front of all if that is none).
    #[inline]
    fn insert_after(&mut self, threads: &mut Pool<'_, Thread>, before: ThreadId, thread: ThreadId) {
        let next = if before.is_some() { threads[before].next } else { self.head };
        threads[thread].previous = before;
        threads[thread].next = next;
        if before.is_some() {
            threads[before].next = thread;
        } else {
            self.head = thread;
        }
        if next.is_some() {
            threads[next].previous = thread;
        } else {
            self.tail = thread;
        }
    }

    /// Add behind everybody.
    #[inline]
    pub fn push_back(&mut self, threads: &mut Pool<'_, Thread>, thread: ThreadId) {
        self.insert_after(threads, self.tail, thread);
    }

    /// Add in front of everybody.
    #[inline]
    pub fn push_front(&mut self, threads: &mut Pool<'_, Thread>, thread: ThreadId) {
        self.insert_after(threads, ThreadId::NONE, thread);
    }

    /// Add behind the last thread that is at least as urgent. Walks from the less urgent end.
    #[inline]
    pub fn insert_by_priority(&mut self, threads: &mut Pool<'_, Thread>, thread: ThreadId) {
        let priority = threads[thread].vcpu.priority;
        let mut before = self.tail;
        while before.is_some() && threads[before].vcpu.priority < priority {
            before = threads[before].previous;
        }
        self.insert_after(threads, before, thread);
    }

    /// Take out a thread that is in this list.
    #[inline]
    pub fn remove(&mut self, threads: &mut Pool<'_, Thread>, thread: ThreadId) {
        let (previous, next) = (threads[thread].previous, threads[thread].next);
        if previous.is_some() {
            threads[previous].next = next;
        } else {
            self.head = next;
        }
        if next.is_some() {
            threads[next].previous = previous;
        } else {
            self.tail = previous;
        }
    }
}
