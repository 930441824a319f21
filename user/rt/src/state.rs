//! State messages between processes: the newest value of one writer, in a shared segment.
//!
//! `diapason build` writes a module with both ends of each `[[state]]` of a description. Programs
//! that agree on a segment by hand use [`writer`] and [`reader`].

use crate::memory::Segment;
use crate::{log, time};
use diapason_abi::layout::SLOT;
use diapason_abi::{Errno, Nanos};
use diapason_pipe::measured::{Measurement, Reported, StateReport};
use diapason_pipe::meter::Meter;
use diapason_pipe::size::Bucket;
pub use diapason_state::{Overtaken, Plain, StateBuffer, StateReader, StateWriter, plain};

/// Returns the state message in a segment, attached for the life of the process.
fn cell<T: Plain, const N: usize>(segment: &str) -> Result<*const StateBuffer<T, N>, Errno> {
    const { assert!(size_of::<StateBuffer<T, N>>() as u64 <= SLOT, "larger than any segment") };
    let segment = Segment::attach(segment)?;
    let address = segment.address();
    core::mem::forget(segment);
    Ok(address.cast())
}

/// Returns the writer of the state message in the segment of this name, of which there is one. A
/// segment that is too small for it is found out by a fault: nothing else lies behind a segment.
///
/// # Errors
/// None for a segment the description grants; without the grant the process ends.
pub fn writer<T: Plain, const N: usize>(
    segment: &str,
) -> Result<StateWriter<'static, StateBuffer<T, N>>, Errno> {
    let cell = cell(segment)?;
    // SAFETY: zeroed at first, aligned to a page, attached for ever, in a slot of addresses of its
    // own that is large enough; it is made of atomics, so even a second writer does no harm.
    Ok(unsafe { StateWriter::from_raw(cell) })
}

/// Returns a reader of the state message in the segment of this name.
///
/// # Errors
/// As of [`writer`].
pub fn reader<T: Plain, const N: usize>(
    segment: &str,
) -> Result<StateReader<'static, StateBuffer<T, N>>, Errno> {
    let cell = cell(segment)?;
    // SAFETY: as for the writer.
    Ok(unsafe { StateReader::from_raw(cell) })
}

/// Says what an end saw. An end says it whenever the number of what it saw has doubled, so that one
/// that sees it for ever does not fill the console.
fn say(report: StateReport) {
    log::measured(&Reported { at: time::now(), said: Measurement::State(report) }.words());
}

/// The writer of a `[[state]]`. It reports writes that come sooner than the number of slots is for.
pub struct StateSource<T: Plain, const N: usize> {
    writer: StateWriter<'static, StateBuffer<T, N>>,
    meter: Meter,
    report: StateReport,
}

impl<T: Plain, const N: usize> StateSource<T, N> {
    /// Returns the writer of the state message with this number in the description. Its writes are
    /// apart by `period`, and each may be late by as much: so the theorem of the slots has it.
    ///
    /// # Errors
    /// As of [`writer`].
    pub fn attach(segment: &str, number: u8, period: Nanos) -> Result<Self, Errno> {
        let report = StateReport { number, ..StateReport::default() };
        let meter = Meter::new(Bucket::periodic(period).with_jitter(period));
        Ok(StateSource { writer: writer(segment)?, meter, report })
    }

    /// Publishes a value. Never waits. One that comes too soon is published, too, and the run has
    /// an alarm.
    pub fn write(&mut self, value: T) {
        if !self.meter.admits(time::now()) {
            self.report.early += 1;
            if self.report.early.is_power_of_two() {
                say(self.report);
            }
        }
        self.writer.write(value);
    }
}

/// A reader of a `[[state]]` that reports what contradicts the number of its slots.
pub struct StateWatch<T: Plain, const N: usize> {
    reader: StateReader<'static, StateBuffer<T, N>>,
    report: StateReport,
}

impl<T: Plain, const N: usize> StateWatch<T, N> {
    /// Returns a reader of the state message with this number in the description.
    ///
    /// # Errors
    /// As of [`writer`].
    pub fn attach(segment: &str, number: u8) -> Result<Self, Errno> {
        let report = StateReport { number, ..StateReport::default() };
        Ok(StateWatch { reader: reader(segment)?, report })
    }

    /// Returns the current value. Before the first write all its bytes are zero. Never waits.
    ///
    /// # Errors
    /// [`Overtaken`]: the writer wrote more often than the description says, or this thread did
    /// not get its budget. The value is withheld, and the run has an alarm.
    pub fn read(&mut self) -> Result<T, Overtaken> {
        let read = self.reader.read_checked();
        if let Err(Overtaken { writes }) = read {
            self.report.overtaken += 1;
            self.report.writes = self.report.writes.max(writes);
            if self.report.overtaken.is_power_of_two() {
                say(self.report);
            }
        }
        read
    }

    /// Returns the number of writes up to now: 0 before the first one.
    #[must_use]
    pub fn writes(&self) -> u64 {
        self.reader.published()
    }
}
