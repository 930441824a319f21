//! The agreement of the core that measures and those that work on memory meanwhile.
//!
//! The measuring core says when the others begin, and when they may stop. So they worked from its
//! first measurement to its last one, or the computer is never measured.

#![no_std]

use core::sync::atomic::AtomicU64;
use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use diapason_pipe::measured::{MachineReport, Measurement, Reported};
use diapason_rt::memory::Segment;
use diapason_rt::{Errno, Nanos, log, time};

/// The doorbell that another core answers.
pub const RUNG: &str = "rung";
/// Bytes of a cache line.
pub const LINE_BYTES: usize = 64;
/// How often programs look at the board that have nothing to do.
const LOOK: Nanos = Nanos::from_millis(1);
/// Lines that the cores wrest from each other.
const CONTESTED: usize = 8;

/// A word in a cache line of its own.
#[derive(Default)]
#[repr(C, align(64))]
struct Line(AtomicU64);

/// The segment that all cores have in common. Zeroed memory is its first state.
#[repr(C)]
pub struct StressBoard {
    phase: Line,
    begun: Line,
    ended: Line,
    asked: Line,
    answered: Line,
    contested: [Line; CONTESTED],
}

const _: () = assert!(size_of::<StressBoard>() <= 4096);

/// The phases of a measurement: before the others work, while they do, and after.
const WORK: u64 = 1;
const OVER: u64 = 2;

impl StressBoard {
    /// Returns the segment, attached for the life of the process.
    ///
    /// # Errors
    /// None where the description grants it.
    pub fn attach() -> Result<&'static StressBoard, Errno> {
        let segment = Segment::attach("board")?;
        let address = segment.address();
        core::mem::forget(segment);
        // SAFETY: the segment is at least this large, zeroed at first, aligned to a page, stays
        // attached, and everything in it is made of atomics.
        Ok(unsafe { &*address.cast::<StressBoard>() })
    }

    /// Lets so many other cores work, and waits until each does.
    pub fn begin(&self, others: u64) {
        self.phase.0.store(WORK, Release);
        wait_until(|| self.begun.0.load(Acquire) >= others);
    }

    /// Lets the other cores stop, and waits until each has.
    pub fn end(&self, others: u64) {
        self.phase.0.store(OVER, Release);
        wait_until(|| self.ended.0.load(Acquire) >= others);
    }

    /// Waits until this core may work.
    pub fn wait_for_begin(&self) {
        wait_until(|| self.phase.0.load(Acquire) >= WORK);
    }

    /// Notes that this core works.
    pub fn note_begin(&self) {
        self.begun.0.fetch_add(1, Release);
    }

    /// Notes that this core has stopped.
    pub fn note_end(&self) {
        self.ended.0.fetch_add(1, Release);
    }

    /// Returns whether everything is measured.
    #[must_use]
    pub fn is_over(&self) -> bool {
        self.phase.0.load(Relaxed) == OVER
    }

    /// Wrests each contested line from the cores that have it. Returns how many there are.
    #[must_use]
    pub fn wrest(&self) -> u64 {
        for line in &self.contested {
            line.0.fetch_add(1, Relaxed);
        }
        CONTESTED as u64
    }

    /// Asks for an answer with this number.
    pub fn ask(&self, number: u64) {
        self.asked.0.store(number, Release);
    }

    /// Answers what was asked last.
    pub fn answer(&self) {
        self.answered.0.store(self.asked.0.load(Acquire), Release);
    }

    /// Returns the number of the last answer.
    #[must_use]
    pub fn answered(&self) -> u64 {
        self.answered.0.load(Acquire)
    }
}

fn wait_until(is_so: impl Fn() -> bool) {
    while !is_so() {
        time::sleep(LOOK);
    }
}

/// Reports a measurement of the computer in a record, which no program can forge.
pub fn tell(report: MachineReport) {
    let said = Measurement::Machine(report);
    log::measured(&Reported { at: time::now(), said }.words());
}
