//! The kernel's own time in a watched run, and the table of it.
//!
//! Each entry is timed by the kernel, from its first instruction after `entry.s` saved the
//! registers to the last before it restores them, whether the path is short or long. So the sum is
//! what was measured, not a count of entries times what one should cost. Only watched runs have it:
//! reading the counter twice would make every frequent call longer.

use super::Outcome;
use crate::duration::human;
use crate::table::{Columns, share};
use diapason_abi::record::KernelCause;

/// Kernel paths of one cause.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct KernelRow {
    /// Why the kernel was entered.
    pub cause: KernelCause,
    pub entries: u64,
    pub instructions: u64,
    /// Longest path after which the interrupted or calling thread went on.
    pub longest_staying: u64,
    /// Longest path after which somebody else did.
    pub longest_leaving: u64,
}

impl KernelRow {
    /// Reads a record's words; returns nothing if the cause is none.
    pub(super) fn new(w: &[u64]) -> Option<KernelRow> {
        let causes =
            [KernelCause::Call, KernelCause::Fault, KernelCause::Timer, KernelCause::Interrupt];
        Some(KernelRow {
            cause: *causes.iter().find(|cause| **cause as u64 == w[0])?,
            entries: w[1],
            instructions: w[2],
            longest_staying: w[3],
            longest_leaving: w[4],
        })
    }

    /// Returns the words for tables.
    #[must_use]
    pub const fn what(&self) -> &'static str {
        match self.cause {
            KernelCause::Call => "calls",
            KernelCause::Fault => "faults",
            KernelCause::Timer => "timer",
            KernelCause::Interrupt => "interrupts",
        }
    }

    /// Returns the columns of a run of this length.
    pub(super) fn columns(time: u64) -> Columns<'static, KernelRow> {
        Columns::<KernelRow>::default()
            .left(("kernel", "cause"), KernelRow::what)
            .right(("entries", "entries"), |row| row.entries)
            .right(("time", "instructions"), |row| crate::table::time(row.instructions))
            .right("of the run", move |row| share(row.instructions, time))
            .right(("longest", "longest_staying"), |row| row.longest_staying)
            .right(("longest to another", "longest_leaving"), |row| row.longest_leaving)
    }
}

impl Outcome {
    /// Time in the kernel by cause, and the sum; nothing if the run was not watched.
    pub(super) fn kernel_table(&self) -> String {
        let time = self.end.map_or(0, |end| end.time_ns);
        let mut table = KernelRow::columns(time).table(&self.kernel);
        if !self.kernel.is_empty() {
            let (entries, instructions) = self.kernel_sum();
            let time = [human(instructions), share(instructions, time)];
            table.row([vec!["all".into(), entries.to_string()], time.into()].concat());
        }
        table.render()
    }

    /// Entries and instructions of all causes.
    #[must_use]
    pub fn kernel_sum(&self) -> (u64, u64) {
        self.kernel.iter().fold((0, 0), |(entries, instructions), row| {
            (entries.saturating_add(row.entries), instructions.saturating_add(row.instructions))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::super::sample;
    use crate::console::Line;

    #[test]
    fn a_watched_run_says_what_the_kernel_took() {
        let mut outcome = sample::outcome();
        assert_eq!(outcome.kernel_table(), "");
        for line in ["~1c 0 64 f4240 c8 190", "~1c 3 14 1e8480 fa 1f4", "~1c 7 1 1 1 1"] {
            outcome.note(&Line::parse(line.as_bytes()));
        }
        assert_eq!(outcome.kernel_sum(), (120, 3_000_000));
        let expected = "\
kernel      entries      time  of the run  longest  longest to another
----------  -------  --------  ----------  -------  ------------------
calls           100  1.000 ms      0.01 %      200                 400
interrupts       20  2.000 ms      0.02 %      250                 500
all             120  3.000 ms      0.03 %
";
        assert_eq!(outcome.kernel_table(), expected);
    }
}
