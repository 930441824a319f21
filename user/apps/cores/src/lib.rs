//! The agreement of the programs on both cores: the controller's values, and when it rings.

#![no_std]

use diapason_rt::memory::Segment;
use diapason_rt::{Errno, Nanos};
use diapason_state::depth::{ReaderTiming, WriterTiming, depth_any_schedule};
use diapason_state::{StateBuffer, StateReader, StateWriter, plain};

/// The controller has a job in every millisecond.
pub const PERIOD: Nanos = Nanos::from_millis(1);
/// The program rings in every job whose number is a multiple of this.
pub const RINGS_EVERY: u64 = 10;
/// The doorbell of the logger.
pub const READY: &str = "ready";

plain! {
    /// The controller's last action.
    #[derive(Debug)]
    pub struct Sample {
        /// Number of the job, from 1.
        pub job: u64,
        /// The time at which the job ended, in ns.
        pub time: u64,
        /// Both together: a reader sees whether the message is whole.
        pub check: u64,
    }
}

impl Sample {
    /// Returns the sample of a job that ended at `time`.
    #[must_use]
    pub fn new(job: u64, time: Nanos) -> Sample {
        Sample { job, time: time.0, check: job ^ time.0 }
    }

    /// Returns whether its parts belong together.
    #[must_use]
    pub fn is_whole(&self) -> bool {
        self.check == self.job ^ self.time
    }
}

const CONTROL: WriterTiming = WriterTiming::new(PERIOD, PERIOD);
/// All that the logger does with a message is reading it; others may keep it from that a while.
const READ: Nanos = Nanos::from_micros(2);
const LOGGER: ReaderTiming = ReaderTiming::new(Nanos::from_millis(10), READ, READ);
/// Slots of the message, whatever the schedules of both cores.
const DEPTH: usize = depth_any_schedule(CONTROL, &[LOGGER]);

type Cell = StateBuffer<Sample, DEPTH>;

/// Everything the programs share. Zeroed memory is its first state.
#[repr(C)]
pub struct Board {
    sample: Cell,
}

const _: () = assert!(size_of::<Board>() <= 4096);

impl Board {
    /// Returns the segment of this system, attached for the life of the process.
    ///
    /// # Errors
    /// None where the description grants it.
    pub fn attach() -> Result<&'static Board, Errno> {
        let segment = Segment::attach("board")?;
        let address = segment.address();
        core::mem::forget(segment);
        // SAFETY: the segment is at least this large, zeroed at first, aligned to a page, stays
        // attached, and everything in it is made of atomics.
        Ok(unsafe { &*address.cast::<Board>() })
    }

    /// Returns the writer of the samples; only the controller asks.
    #[must_use]
    pub fn writer(&'static self) -> StateWriter<'static, Cell> {
        // SAFETY: the one writer in the system, by the description: one process, one thread.
        unsafe { StateWriter::from_raw(&raw const self.sample) }
    }

    /// Returns a reader of the samples.
    #[must_use]
    pub fn reader(&'static self) -> StateReader<'static, Cell> {
        // SAFETY: the cell lives as long as the segment.
        unsafe { StateReader::from_raw(&raw const self.sample) }
    }
}
