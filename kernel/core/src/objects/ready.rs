//! Ready threads by priority.

use crate::ids::ThreadId;
use crate::objects::thread::{Thread, ThreadQueue};
use crate::pool::Pool;
use diapason_abi::PRIORITIES;

/// Ready threads by priority, first come first served among equals. The one that runs stays at the
/// head of its list, so choosing is one bit scan, and a preempted thread keeps its place.
#[repr(C)]
pub struct Ready {
    /// Bit p is set if `levels[p]` is not empty.
    bits: u64,
    levels: [ThreadQueue; PRIORITIES],
}

impl Ready {
    pub const EMPTY: Ready = Ready { bits: 0, levels: [ThreadQueue::EMPTY; PRIORITIES] };

    /// Returns whether no thread is ready.
    #[inline(always)]
    pub fn is_empty(&self) -> bool {
        self.bits == 0
    }

    #[inline(always)]
    fn level(&mut self, priority: u8) -> &mut ThreadQueue {
        &mut self.levels[priority as usize % PRIORITIES]
    }

    /// A thread became ready: it goes behind its equals.
    #[inline(always)]
    pub fn insert_back(&mut self, threads: &mut Pool<'_, Thread>, thread: ThreadId) {
        let priority = threads[thread].priority;
        self.bits |= 1 << (priority as usize % PRIORITIES);
        self.level(priority).push_back(threads, thread);
    }

    /// A thread is no longer ready.
    #[inline(always)]
    pub fn remove(&mut self, threads: &mut Pool<'_, Thread>, thread: ThreadId) {
        let Thread { priority, next, .. } = threads[thread];
        if next == thread {
            self.go(priority);
        } else {
            self.level(priority).remove(threads, thread);
        }
    }

    /// The first thread of this priority goes behind its equals.
    #[inline(always)]
    pub fn rotate(&mut self, threads: &Pool<'_, Thread>, priority: u8) {
        self.level(priority).rotate(threads);
    }

    /// The only thread of priority `gone` goes and `first` comes, if it is the first then;
    /// otherwise nothing happens.
    #[inline(always)]
    pub fn replace(&mut self, gone: u8, priority: u8, first: ThreadId) -> bool {
        let rest = self.bits & !(1 << (gone as usize % PRIORITIES));
        if rest >> (priority as usize % PRIORITIES) != 0 {
            return false;
        }
        self.bits = rest | 1 << (priority as usize % PRIORITIES);
        self.level(gone).head = ThreadId::NONE;
        self.level(priority).head = first;
        true
    }

    /// Returns whether `priority` is above the priorities of all threads here.
    #[inline(always)]
    pub fn is_above_all(&self, priority: u8) -> bool {
        self.bits >> (priority as usize % PRIORITIES) == 0
    }

    /// Returns whether all threads here have this priority.
    #[inline(always)]
    pub fn has_only(&self, priority: u8) -> bool {
        self.bits == 1 << (priority as usize % PRIORITIES)
    }

    /// `first` becomes ready, and is alone at its priority.
    #[inline(always)]
    pub fn come(&mut self, priority: u8, first: ThreadId) {
        self.bits |= 1 << (priority as usize % PRIORITIES);
        self.level(priority).head = first;
    }

    /// The only thread of a priority is no longer ready.
    #[inline(always)]
    pub fn go(&mut self, priority: u8) {
        self.bits &= !(1 << (priority as usize % PRIORITIES));
        self.level(priority).head = ThreadId::NONE;
    }

    /// Puts `next` first among the ready threads of its priority.
    #[inline(always)]
    pub fn lead(&mut self, priority: u8, next: ThreadId) {
        self.level(priority).head = next;
    }

    /// The most urgent one without those of a priority.
    #[inline(always)]
    pub fn first_without(&self, priority: u8) -> ThreadId {
        let rest = self.bits & !(1 << (priority as usize % PRIORITIES));
        match rest.checked_ilog2() {
            Some(level) => self.levels[level as usize % PRIORITIES].head,
            None => ThreadId::NONE,
        }
    }

    /// The most urgent one.
    #[inline(always)]
    pub fn first(&self) -> ThreadId {
        match self.bits.checked_ilog2() {
            Some(level) => self.levels[level as usize % PRIORITIES].head,
            None => ThreadId::NONE,
        }
    }

    /// The list of a priority, for the invariants.
    #[must_use]
    pub fn list(&self, priority: usize) -> (ThreadQueue, bool) {
        (self.levels[priority], self.bits >> priority & 1 == 1)
    }
}
