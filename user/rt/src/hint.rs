//! The mutex that a thread locks next: with it, a blocking call tells the kernel about its wake-up.
//!
//! With a hint the kernel does not wake a thread only to see it stopped by the mutex: the owner
//! inherits the priority at once, and the thread wakes up when the mutex is free. A hint changes
//! who runs first, never what a call returns. The attribute `#[hints]` of `diapason-hints` writes
//! them; by hand it is `f_then(…, mutex.hint())` for every blocking `f(…)`.

use crate::sys;

/// The mutex that the calling thread locks next, or none.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Hint(u64);

impl Hint {
    /// No mutex is locked next, or it is not known which.
    pub const NONE: Hint = Hint(u64::MAX);

    /// Returns the word that the kernel reads.
    #[must_use]
    #[inline(always)]
    pub const fn raw(self) -> u64 {
        self.0
    }

    #[inline(always)]
    pub(crate) fn handle(mutex: u64) -> Hint {
        sys::note_hints();
        Hint(mutex)
    }
}
