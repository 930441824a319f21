//! The agreement of the experiment's programs: how far each has counted.

#![no_std]

use core::sync::atomic::{AtomicU64, Ordering::Relaxed};
use diapason_rt::memory::Segment;
use diapason_rt::{Errno, Nanos, time};

/// Most tasks that count.
pub const TASKS: usize = 8;
/// The processor time that one count stands for.
pub const UNIT: Nanos = Nanos::from_micros(10);

/// Everything the programs share. Zeroed memory is its first state.
#[repr(C)]
pub struct Progress {
    /// Units of work done by each task.
    counts: [AtomicU64; TASKS],
    /// Processor time of one unit of each task, in ns.
    units: [AtomicU64; TASKS],
    /// Interrupts seen by the bottom half.
    pub interrupts: AtomicU64,
    /// Interrupts whose data was processed.
    pub processed: AtomicU64,
}

const _: () = assert!(size_of::<Progress>() <= 4096);

impl Progress {
    /// Returns the segment of this system, attached for the life of the process.
    ///
    /// # Errors
    /// None where the description grants it.
    pub fn attach() -> Result<&'static Progress, Errno> {
        let segment = Segment::attach("progress")?;
        let address = segment.address();
        core::mem::forget(segment);
        // SAFETY: the segment is at least this large, zeroed at first, aligned to a page, stays
        // attached, and everything in it is made of atomics.
        Ok(unsafe { &*address.cast::<Progress>() })
    }

    /// Returns how far a task is, in units, and what its unit is in ns.
    #[must_use]
    pub fn of(&self, task: usize) -> (u64, u64) {
        let at = |slots: &[AtomicU64; TASKS]| slots.get(task).map_or(0, |slot| slot.load(Relaxed));
        (at(&self.counts), at(&self.units))
    }

    /// Works for ever on behalf of `task`, counting units.
    pub fn spin(&self, task: usize) -> ! {
        let (count, unit) = (&self.counts[task % TASKS], &self.units[task % TASKS]);
        // A unit is the work and the counting; what counting takes is measured, not guessed.
        let counting = fastest(|| work(count, UNIT)) - UNIT;
        let span = UNIT - counting;
        unit.store(fastest(|| work(count, span)).0, Relaxed);
        count.store(0, Relaxed);
        loop {
            work(count, span);
        }
    }
}

/// One unit: `span` of work, then counted.
#[inline(never)]
fn work(count: &AtomicU64, span: Nanos) {
    time::burn(span);
    count.store(count.load(Relaxed) + 1, Relaxed);
}

/// Returns how long `act` takes when nothing interrupts it.
fn fastest(act: impl Fn()) -> Nanos {
    const TRIALS: usize = 32;
    let timed = |act: &dyn Fn()| {
        let start = time::now();
        act();
        time::now() - start
    };
    let least = |act: &dyn Fn()| (0..TRIALS).map(|_| timed(act)).min().unwrap_or(Nanos::ZERO);
    least(&act) - least(&|| ())
}
