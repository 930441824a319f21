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
        /// It says that its cores are not all of one kind.
        hybrid: bool,
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
    /// Memory and doorbells while other cores worked on memory as hard as they could.
    Beside {
        /// The cores that worked, the one that measured among them.
        cores: u32,
        /// Rings that another core answered; none if it did not answer one.
        rings: u32,
        /// The longest time from a ring until its answer was seen.
        ring: Nanos,
        /// The shortest walk through memory before the others began.
        alone: Nanos,
        /// The longest such walk beside them.
        beside: Nanos,
    },
    /// The work of another core meanwhile: cache lines that it read, that it read and wrote, and
    /// that it wrested from other cores.
    Stress { read: u64, updated: u64, wrested: u64 },
}

/// The parts, as numbers.
const PROCESSOR: u8 = 0;
const GAPS: u8 = 1;
const TIMERS: u8 = 2;
const DEVICE: u8 = 3;
const BESIDE: u8 = 4;
const STRESS: u8 = 5;

impl MachineReport {
    /// Returns the part and the values.
    pub(super) fn packed(&self) -> (u8, Values) {
        match *self {
            MachineReport::Processor { name, emulated, hybrid } => {
                let mut values = [0; 8];
                for (word, bytes) in values.iter_mut().zip(name.as_chunks().0) {
                    *word = u64::from_le_bytes(*bytes);
                }
                values[PROCESSOR_BYTES / 8] = pair(hybrid.into(), emulated.into());
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
            MachineReport::Beside { cores, rings, ring, alone, beside } => {
                (BESIDE, [pair(cores, rings), ring.0, alone.0, beside.0, 0, 0, 0, 0])
            }
            MachineReport::Stress { read, updated, wrested } => {
                (STRESS, [read, updated, wrested, 0, 0, 0, 0, 0])
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
                let (hybrid, emulated) = halves(values[PROCESSOR_BYTES / 8]);
                MachineReport::Processor { name, emulated: emulated != 0, hybrid: hybrid != 0 }
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
            BESIDE => {
                let (cores, rings) = halves(values[0]);
                let [ring, alone, beside] = [1, 2, 3].map(|at: usize| Nanos(values[at]));
                MachineReport::Beside { cores, rings, ring, alone, beside }
            }
            STRESS => {
                let [read, updated, wrested, ..] = values;
                MachineReport::Stress { read, updated, wrested }
            }
            _ => return None,
        })
    }
}
