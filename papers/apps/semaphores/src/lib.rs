//! The shared state of the three tasks: which case is measured, when things happened, and the
//! samples.
//!
//! All of it lies in the segment `marks`. One task writes at a time, because the others wait or are
//! less urgent.

#![no_std]

use core::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};
use diapason_abi::call::Counter;
use diapason_rt::memory::Segment;
use diapason_rt::sys::count;
use diapason_rt::{Errno, Nanos};

/// Measurements of one case.
pub const RUNS: usize = 10;
/// Time between two measurements: every VCPU has all its budget again after a few of them.
pub const PACE: Nanos = Nanos::from_millis(2);

/// The action of `high` when it is woken.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Case {
    /// Lock; it said nothing about that when it waited.
    Standard = 0,
    /// Lock, as it announced when it waited.
    Hinted = 1,
    /// Sleep again and again.
    Sleep = 2,
}

impl Case {
    /// Both kinds of semaphores.
    pub const PAIRS: [Case; 2] = [Case::Standard, Case::Hinted];

    /// Returns its name in what is logged.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Case::Standard => "standard",
            Case::Hinted => "hinted",
            Case::Sleep => "sleep",
        }
    }
}

/// Measurements of one thing.
#[repr(C)]
pub struct Samples {
    count: AtomicU64,
    values: [AtomicU32; RUNS],
}

impl Samples {
    /// Forgets the samples so far.
    pub fn clear(&self) {
        self.count.store(0, Relaxed);
    }

    /// Returns how many there are.
    pub fn count(&self) -> usize {
        self.count.load(Relaxed) as usize
    }

    /// One more, unless there are enough.
    pub fn push(&self, value: u64) {
        if let Some(slot) = self.values.get(self.count()) {
            slot.store(u32::try_from(value).unwrap_or(u32::MAX), Relaxed);
            self.count.store(self.count() as u64 + 1, Relaxed);
        }
    }

    /// Returns the median and the maximum.
    pub fn middle_and_most(&self) -> (u32, u32) {
        let mut sorted = [0; RUNS];
        for (to, from) in sorted.iter_mut().zip(&self.values) {
            *to = from.load(Relaxed);
        }
        let sorted = &mut sorted[..self.count().min(RUNS)];
        sorted.sort_unstable();
        let middle = sorted.get(sorted.len() / 2).copied().unwrap_or(0);
        (middle, sorted.last().copied().unwrap_or(0))
    }
}

/// Everything shared. Zeroed memory is its first state.
#[repr(C)]
pub struct Marks {
    case: AtomicU64,
    /// Switches of address spaces when the event came.
    spaces: AtomicU64,
    pub event: AtomicU64,
    /// `high` left the processor.
    pub left: AtomicU64,
    /// From the event to `high` holding the mutex.
    pub whole: Samples,
    /// From the call of lock to `high` holding the mutex.
    pub lock: Samples,
    /// Switches of address spaces from the event to `high` holding the mutex.
    pub switches: Samples,
    /// From the end of a sleep to `high` running.
    pub wake: Samples,
    /// From `high` going to sleep to `low` running.
    pub block: Samples,
}

const _: () = assert!(size_of::<Marks>() <= 4096);

impl Marks {
    /// Returns the segment, attached for the life of the process.
    ///
    /// # Errors
    /// None where the description grants it.
    pub fn attach() -> Result<&'static Marks, Errno> {
        let segment = Segment::attach("marks")?;
        let address = segment.address();
        core::mem::forget(segment);
        // SAFETY: the segment is at least this large, zeroed at first, aligned to a page, stays
        // attached, and everything in it is made of atomics.
        Ok(unsafe { &*address.cast::<Marks>() })
    }

    /// Returns the case that is measured now.
    pub fn case(&self) -> Case {
        match self.case.load(Relaxed) {
            0 => Case::Standard,
            1 => Case::Hinted,
            _ => Case::Sleep,
        }
    }

    /// From now on this is measured.
    pub fn set_case(&self, case: Case) {
        self.case.store(case as u64, Relaxed);
        let all = [&self.whole, &self.lock, &self.switches, &self.wake, &self.block];
        all.into_iter().for_each(Samples::clear);
    }

    /// The event comes now.
    #[inline(always)]
    pub fn begin(&self) {
        self.spaces.store(count(Counter::Cr3), Relaxed);
        self.event.store(stamp(), Relaxed);
    }

    /// `high` called lock at `called` and holds the mutex since `held`.
    #[inline(never)]
    pub fn finish(&self, called: u64, held: u64) {
        self.whole.push(held - self.event.load(Relaxed));
        self.lock.push(held - called);
        self.switches.push(count(Counter::Cr3) - self.spaces.load(Relaxed));
    }
}

/// Returns the processor's counter: instructions, under QEMU's `-icount shift=0`.
#[inline(always)]
#[must_use]
pub fn stamp() -> u64 {
    // SAFETY: reading the counter has no effect.
    unsafe { core::arch::x86_64::_rdtsc() }
}
