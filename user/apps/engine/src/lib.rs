//! The agreement of the engine's programs: timing, readings, and the command they share.
//!
//! Sensors publish readings as state messages; the controller turns the newest of them into a
//! command, which it hands to the actuators under a mutex; an operator changes the set-point by
//! mailbox. All of it lies in the segment `engine`.

#![no_std]

use core::sync::atomic::{AtomicU64, Ordering::Relaxed};
use diapason_rt::memory::Segment;
use diapason_rt::{Errno, Nanos};
use diapason_state::depth::{ReaderTiming, WriterTiming, depth_any_schedule};
use diapason_state::{StateBuffer, StateReader, StateWord, StateWriter, plain};

/// The crankshaft's sensor is read every 2 ms.
pub const CRANK_PERIOD: Nanos = Nanos::from_millis(2);
/// The throttle's, every 5 ms.
pub const THROTTLE_PERIOD: Nanos = Nanos::from_millis(5);
/// The temperature's, every 50 ms.
pub const TEMPERATURE_PERIOD: Nanos = Nanos::from_millis(50);
/// The controller computes a command every 5 ms.
pub const CONTROL_PERIOD: Nanos = Nanos::from_millis(5);

plain! {
    /// The observation of the crankshaft's sensor.
    #[derive(Debug)]
    pub struct Crank {
        /// Number of the reading.
        pub sequence: u64,
        /// Angle in thousandths of a degree.
        pub angle: u64,
        pub speed: u64,
    }
}

const CRANK_WRITER: WriterTiming = WriterTiming::new(CRANK_PERIOD, CRANK_PERIOD);
const CONTROL_READER: ReaderTiming =
    ReaderTiming::new(CONTROL_PERIOD, Nanos::from_millis(1), Nanos::from_micros(2));
/// Slots of the crank's state message, whatever the schedule.
pub const CRANK_DEPTH: usize = depth_any_schedule(CRANK_WRITER, &[CONTROL_READER]);

/// The crank's state message.
pub type CrankCell = StateBuffer<Crank, CRANK_DEPTH>;

/// Everything the programs share. Zeroed memory is its first state.
#[repr(C)]
pub struct Engine {
    crank: CrankCell,
    throttle: StateWord<u64>,
    temperature: StateWord<u64>,
    /// Fuel and spark: guarded by the mutex `injector`.
    pub command: [AtomicU64; 2],
}

impl Engine {
    /// Returns the segment of this system, attached for the life of the process.
    ///
    /// # Errors
    /// None where the description grants it.
    pub fn attach() -> Result<&'static Engine, Errno> {
        let segment = Segment::attach("engine")?;
        let address = segment.address();
        core::mem::forget(segment);
        // SAFETY: the segment is at least this large, zeroed at first, aligned to a page, stays
        // attached, and everything in it is made of atomics.
        Ok(unsafe { &*address.cast::<Engine>() })
    }

    /// Returns the writer of the crank's readings; only the sensors' crank thread asks.
    #[must_use]
    pub fn crank_writer(&'static self) -> StateWriter<'static, CrankCell> {
        // SAFETY: the one writer in the system, by the description: one process, one thread.
        unsafe { StateWriter::from_raw(&raw const self.crank) }
    }

    /// Returns a reader of the crank's readings.
    #[must_use]
    pub fn crank(&'static self) -> StateReader<'static, CrankCell> {
        // SAFETY: the cell lives as long as the segment.
        unsafe { StateReader::from_raw(&raw const self.crank) }
    }

    /// Returns the writer of the throttle's position; only the sensors' throttle thread asks.
    #[must_use]
    pub fn throttle_writer(&'static self) -> StateWriter<'static, StateWord<u64>> {
        // SAFETY: as for the crank.
        unsafe { StateWriter::from_raw(&raw const self.throttle) }
    }

    /// Returns a reader of the throttle's position.
    #[must_use]
    pub fn throttle(&'static self) -> StateReader<'static, StateWord<u64>> {
        // SAFETY: as for the crank.
        unsafe { StateReader::from_raw(&raw const self.throttle) }
    }

    /// Returns the writer of the temperature; only the sensors' temperature thread asks.
    #[must_use]
    pub fn temperature_writer(&'static self) -> StateWriter<'static, StateWord<u64>> {
        // SAFETY: as for the crank.
        unsafe { StateWriter::from_raw(&raw const self.temperature) }
    }

    /// Returns a reader of the temperature.
    #[must_use]
    pub fn temperature(&'static self) -> StateReader<'static, StateWord<u64>> {
        // SAFETY: as for the crank.
        unsafe { StateReader::from_raw(&raw const self.temperature) }
    }

    /// Sets the command; the caller holds `injector`.
    pub fn set_command(&self, fuel: u64, spark: u64) {
        self.command[0].store(fuel, Relaxed);
        self.command[1].store(spark, Relaxed);
    }

    /// Returns the command; the caller holds `injector`.
    #[must_use]
    pub fn command(&self) -> (u64, u64) {
        (self.command[0].load(Relaxed), self.command[1].load(Relaxed))
    }
}

const _: () = assert!(size_of::<Engine>() <= 4096);
