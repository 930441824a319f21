//! Counts the rounds of the kernel's loops, so that a simulation can charge them and tests can hold
//! them to the formula of the longest path (`diapason_costs::section`).
//!
//! The kernel on the metal does not count: there each function is empty.

use diapason_costs::Round;

#[cfg(any(test, feature = "host"))]
mod counted {
    use core::cell::Cell;

    std::thread_local! {
        /// Instructions of the rounds since they were last taken.
        pub static WALKED: Cell<u64> = const { Cell::new(0) };
    }
}

/// Counts rounds of this kind.
#[inline(always)]
pub(crate) fn walk(round: Round, times: usize) {
    #[cfg(any(test, feature = "host"))]
    counted::WALKED.with(|walked| walked.set(walked.get() + round.price() * times as u64));
    #[cfg(not(any(test, feature = "host")))]
    let _ = (round, times);
}

/// Returns the instructions of all rounds on this thread since the last call.
#[cfg(any(test, feature = "host"))]
#[must_use]
pub fn take_walked() -> u64 {
    counted::WALKED.with(core::cell::Cell::take)
}
