//! Reports of a benchmark: the costs of operations that it counted.

use super::{Values, halves, pair};

/// Most bytes of the name of an operation.
pub const NAME_BYTES: usize = 40;

/// The layout of a benchmark's probes. An emulator can see the stores to them: one begins an
/// operation, and another one counts an operation that has ended.
pub mod probe {
    /// The segment of the probes.
    pub const SEGMENT: &str = "probes";
    /// Bytes of a probe; the probes lie one after another, in the order of the reports.
    pub const BYTES: usize = 4_072;
    /// The word in which an operation begins.
    pub const BEGINS: usize = 0;
    /// The word in which an operation ends.
    pub const ENDS: usize = 16;
}

/// The cost of an operation, in instructions.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CostReport {
    /// The operation's name, and zeros.
    pub name: [u8; NAME_BYTES],
    /// The operation is a part of the operation that was reported last.
    pub is_part: bool,
    /// Median of the runs.
    pub median: u32,
    /// Largest of the runs.
    pub max: u32,
    /// The number of measurements.
    pub runs: u32,
    /// CR3 writes, MSR writes and device accesses in a thousand operations.
    pub expensive: [u32; 3],
}

impl CostReport {
    /// Returns the report of an operation without any number. Of `text`, the first [`NAME_BYTES`]
    /// are kept.
    #[must_use]
    pub fn named(text: &str) -> CostReport {
        let mut name = [0; NAME_BYTES];
        name.iter_mut().zip(text.bytes()).for_each(|(to, from)| *to = from);
        CostReport { name, is_part: false, median: 0, max: 0, runs: 0, expensive: [0; 3] }
    }

    pub(super) fn values(&self) -> Values {
        let [cr3, msr, mmio] = self.expensive;
        let mut values =
            [pair(self.median, self.max), pair(self.runs, cr3), pair(msr, mmio), 0, 0, 0, 0, 0];
        for (word, bytes) in values[3..].iter_mut().zip(self.name.as_chunks().0) {
            *word = u64::from_le_bytes(*bytes);
        }
        values
    }

    pub(super) fn of(is_part: bool, values: Values) -> CostReport {
        let [(median, max), (runs, cr3), (msr, mmio)] =
            [0, 1, 2].map(|at: usize| halves(values[at]));
        let mut name = [0; NAME_BYTES];
        for (bytes, word) in name.as_chunks_mut().0.iter_mut().zip(&values[3..]) {
            *bytes = word.to_le_bytes();
        }
        CostReport { name, is_part, median, max, runs, expensive: [cr3, msr, mmio] }
    }
}
