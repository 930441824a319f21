//! The shared state of the hostile processes and their warden: the counters in the segment `tally`.

#![no_std]

use core::sync::atomic::{AtomicU64, Ordering::Relaxed};
use diapason_rt::memory::Segment;

pub const PROCESSES: usize = 16;

/// Counters, valid when zeroed.
#[repr(C)]
pub struct CallTally {
    /// Calls made by all.
    pub calls: AtomicU64,
    /// Lives each process has had.
    pub lives: [AtomicU64; PROCESSES],
    /// Calls each process has made.
    pub each: [AtomicU64; PROCESSES],
}

impl CallTally {
    /// Returns the counters in an attached segment, for as long as the process lives.
    #[must_use]
    pub fn open() -> &'static CallTally {
        let Ok(segment) = Segment::attach("tally") else { panic!("no tally") };
        let address = segment.address();
        // It stays attached.
        core::mem::forget(segment);
        // SAFETY: the segment is a page, larger than this, aligned, and valid when zeroed.
        unsafe { &*address.cast::<CallTally>() }
    }

    /// One more call of process `index`.
    pub fn count(&self, index: usize) {
        self.calls.fetch_add(1, Relaxed);
        self.each[index % PROCESSES].fetch_add(1, Relaxed);
    }
}
