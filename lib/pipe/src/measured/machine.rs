//! Reports about the computer itself, from a program that measures it.

use super::{Values, halves, pair};
use diapason_abi::Nanos;

/// Bytes of the name of a processor.
pub const PROCESSOR_BYTES: usize = 48;

/// A measurement of the computer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum MachineReport {
    /// The processor, as it calls itself.
    Processor {
        /// Its name, and zeros.
        name: [u8; PROCESSOR_BYTES],
        /// It says that a program runs it, such as an emulator.
        emulated: bool,
    },
    /// Times in which the processor was away from the only thread that could run.
    Gaps {
        /// How long they were looked for.
        measured: Nanos,
        count: u32,
        longest: Nanos,
        /// The least time from the beginning of one to that of the next. Of a single one, the time
        /// for which no other came.
        apart: Nanos,
    },
    /// How late threads ran that waited for a time.
    Timers {
        count: u32,
        /// The time of the latest of them, after it was due.
        late: Nanos,
    },
    /// How late threads ran that waited for a device, by the device's clock, and how long a read
    /// of its register took.
    Device {
        count: u32,
        /// The time of the latest of them, after the device's signal.
        late: Nanos,
        /// How long a read of a register takes at most.
        read: Nanos,
    },
}

/// The parts, as numbers.
const PROCESSOR: u8 = 0;
const GAPS: u8 = 1;
const TIMERS: u8 = 2;
const DEVICE: u8 = 3;

impl MachineReport {
    /// Returns the part and the values.
    pub(super) fn packed(&self) -> (u8, Values) {
        match *self {
            MachineReport::Processor { name, emulated } => {
                let mut values = [0; 8];
                for (word, bytes) in values.iter_mut().zip(name.as_chunks().0) {
                    *word = u64::from_le_bytes(*bytes);
                }
                values[PROCESSOR_BYTES / 8] = emulated.into();
                (PROCESSOR, values)
            }
            MachineReport::Gaps { measured, count, longest, apart } => {
                (GAPS, [measured.0, pair(0, count), longest.0, apart.0, 0, 0, 0, 0])
            }
            MachineReport::Timers { count, late } => {
                (TIMERS, [pair(0, count), late.0, 0, 0, 0, 0, 0, 0])
            }
            MachineReport::Device { count, late, read } => {
                (DEVICE, [pair(0, count), late.0, read.0, 0, 0, 0, 0, 0])
            }
        }
    }

    /// Reads a part; `None` if there is none of this number.
    pub(super) fn of(part: u8, values: Values) -> Option<MachineReport> {
        Some(match part {
            PROCESSOR => {
                let mut name = [0; PROCESSOR_BYTES];
                for (bytes, word) in name.as_chunks_mut().0.iter_mut().zip(&values) {
                    *bytes = word.to_le_bytes();
                }
                MachineReport::Processor { name, emulated: values[PROCESSOR_BYTES / 8] != 0 }
            }
            GAPS => {
                let [measured, longest, apart] = [0, 2, 3].map(|at: usize| Nanos(values[at]));
                MachineReport::Gaps { measured, count: halves(values[1]).1, longest, apart }
            }
            TIMERS => MachineReport::Timers { count: halves(values[0]).1, late: Nanos(values[1]) },
            DEVICE => {
                let [late, read] = [1, 2].map(|at: usize| Nanos(values[at]));
                MachineReport::Device { count: halves(values[0]).1, late, read }
            }
            _ => return None,
        })
    }
}
