//! The memory budget: everything a system may ever need is reserved before it starts.
//!
//! The sum is deliberately simple enough to redo by hand; `docs/description.md` has the table.

use crate::diagnostics::{Problem, Report};
use crate::limits::{MEMORY_MAX, PAGE_BYTES};
use crate::system::{ProcessSpec, System};
use crate::units::show_size;
use diapason_abi::elf::{Program, WRITE};
use diapason_abi::layout;

/// The kernel with its own data and stacks, and the first megabyte of a PC.
const KERNEL_BYTES: u64 = 8 << 20;
/// Kernel memory of one thread: control block and saved registers.
const THREAD_BYTES: u64 = 2048;
/// Kernel memory of one semaphore, condition, event or mailbox.
const OBJECT_BYTES: u64 = 128;
/// Kernel memory of one message in a mailbox.
const MESSAGE_BYTES: u64 = 128;
/// Kernel memory of one VCPU with its replenishment list, declared or made by a process.
const VCPU_BYTES: u64 = 512;
/// Tables above those that map pages, and the information page with its own: 5 pages a process.
const TABLES_FIXED: u64 = 5;

/// The users of memory, and their needs in whole pages.
pub(crate) struct Budget(Vec<(&'static str, u64)>);

impl Budget {
    /// Returns the memory needed, as far as it is known without the programs.
    pub fn of(system: &System) -> Budget {
        let processes = &system.processes;
        let sum = |of: fn(&ProcessSpec) -> u64| processes.iter().map(of).sum::<u64>();
        Budget(vec![
            ("kernel", KERNEL_BYTES),
            ("kernel objects", pages(objects(system)) * PAGE_BYTES),
            ("page tables", page_tables(system) * PAGE_BYTES),
            ("heaps", sum(|process| process.heap)),
            ("stacks", sum(|process| process.stack * u64::from(process.threads))),
            ("segments", system.segments.iter().map(|segment| segment.size).sum()),
        ])
    }

    /// Adds `bytes`, in whole pages, for `what`.
    pub fn add(&mut self, what: &'static str, bytes: u64) {
        self.0.push((what, pages(bytes) * PAGE_BYTES));
    }

    fn total(&self) -> u64 {
        self.0.iter().map(|(_, bytes)| bytes).fold(0, |sum, bytes| sum.saturating_add(*bytes))
    }

    /// Returns the problem, if this is more than the machine has.
    pub fn problem(&self, system: &System) -> Option<Problem> {
        let (need, have) = (self.total(), system.memory);
        if need <= have {
            return None;
        }
        let (need_shown, have_shown) = (show_size(need), show_size(have));
        let title =
            format!("the system needs {need_shown} of memory, the machine has {have_shown}");
        let round = need.checked_next_multiple_of(1 << 20).unwrap_or(need);
        let help = if round <= MEMORY_MAX {
            format!("write `memory = \"{}\"`, or reserve less", show_size(round))
        } else {
            format!("reserve less: `memory` can be at most `\"{}\"`", show_size(MEMORY_MAX))
        };
        let short = format!("{} too little", show_size(need - have));
        let problem = Problem::new(&system.origin.memory, title, help);
        Some(problem.label(short).note(self.rows(&system.processes)))
    }

    /// Returns the sum, row by row, and the largest process.
    fn rows(&self, processes: &[ProcessSpec]) -> String {
        let rows: Vec<String> = self
            .0
            .iter()
            .filter(|(_, bytes)| *bytes > 0)
            .map(|(what, bytes)| format!("{what} {}", show_size(*bytes)))
            .collect();
        let reserve = |p: &ProcessSpec| p.heap + p.stack * u64::from(p.threads);
        let largest = processes.iter().max_by_key(|process| reserve(process));
        let most = largest.map_or(String::new(), |process| {
            let bytes = show_size(reserve(process));
            format!("\nlargest heap and stacks: {bytes} of `{}`", process.name)
        });
        format!("{}{most}", rows.join(" + "))
    }
}

/// Refuses what cannot fit whatever the programs are.
pub(crate) fn check_without_programs(system: &System, report: &mut Report) {
    if let Some(problem) = Budget::of(system).problem(system) {
        report.push(problem);
    }
}

/// Bytes of memory one running copy of `program` needs: its pages, the pristine contents of those
/// it writes, and a page table per started 2 MiB of either.
pub(crate) fn loaded(program: &Program<'_>) -> u64 {
    let of_segment = |segment: diapason_abi::elf::Segment| {
        let pristine = segment.file_end_page() - segment.first_page();
        let copies = if segment.flags & WRITE != 0 { pristine } else { 0 };
        segment.end_page() - segment.first_page() + copies
    };
    let end = program.segments().map(|segment| segment.end_page()).max().unwrap_or(0);
    let tables = 2 * end.div_ceil(layout::SLOT_PAGES);
    (program.segments().map(of_segment).sum::<u64>() + tables) * PAGE_BYTES
}

fn pages(bytes: u64) -> u64 {
    bytes.div_ceil(PAGE_BYTES)
}

fn objects(system: &System) -> u64 {
    let private = |p: &ProcessSpec| {
        let objects = [p.semaphores, p.conditions, p.events].map(u64::from);
        u64::from(p.threads) * THREAD_BYTES + objects.iter().sum::<u64>() * OBJECT_BYTES
    };
    let shared = system.semaphores.len() + system.conditions.len() + system.mailboxes.len();
    let messages: u64 = system.mailboxes.iter().map(|mailbox| u64::from(mailbox.messages)).sum();
    system.processes.iter().map(private).sum::<u64>()
        + shared as u64 * OBJECT_BYTES
        + messages * MESSAGE_BYTES
        + system.vcpus_at_most() * VCPU_BYTES
}

/// Pages of page tables: one table per started 2 MiB of stacks and of heap, and one per segment
/// and device used. Those of the program are counted with it.
fn page_tables(system: &System) -> u64 {
    let of_process = |process: &ProcessSpec| {
        let stacks = u64::from(process.threads) * layout::STACK_STRIDE;
        TABLES_FIXED
            + stacks.div_ceil(layout::SLOT)
            + process.heap.div_ceil(layout::SLOT)
            + process.uses.len() as u64
    };
    system.processes.iter().map(of_process).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_budget_is_the_documented_sum() {
        let text = "[system]\nname = \"s\"\n[[process]]\nname = \"p\"\npriority = 1\n\
                    heap = \"3M\"\nvcpus = 3\nstack = \"8K\"\nthreads = 9\nuses = [\"m\", \"g\"]\n\
                    [[mailbox]]\nname = \"m\"\nmessages = 40\n\
                    [[segment]]\nname = \"g\"\nsize = \"12K\"\n\
                    [[vcpu]]\nname = \"v\"\nbudget = \"1ms\"\nperiod = \"5ms\"\n";
        let system = crate::parse("f", text).unwrap();
        let rows = Budget::of(&system).0;
        let bytes: Vec<u64> = rows.iter().map(|(_, bytes)| *bytes).collect();
        let objects = 9 * 2048 + 128 + 40 * 128 + 4 * 512;
        // 5, and 2 for the slots of 9 stacks, 2 for 3M of heap, 2 used.
        let tables = 11 * 4096;
        let expected = [8 << 20, pages(objects) * 4096, tables, 3 << 20, 72 << 10, 12 << 10];
        assert_eq!(bytes, expected);
    }
}
