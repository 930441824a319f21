//! The assumed costs of the kernel, in instructions, and in time at a clock rate.
//!
//! The counts are limits that other commands hold the kernel to, not the best that was ever seen:
//!
//! | count | held by |
//! |---|---|
//! | longest path | `cargo xtask bench` and `storm`: no path is longer |
//! | top half | every watched run with VCPUs: a longer one is an alarm; and `irq_to_thread` |
//! | switch, queues | `diapason reproduce decisions`: in, a decision among VCPUs, out |
//!
//! The decision inside a switch passes the list of queues and at most one queue by deadline; what
//! that adds for long ones is counted apart, as loops of so many instructions.

use crate::counted::{PLAIN, RECORDING, Table};
use crate::grace::{INTERRUPT_GRACE, SWITCH_GRACE};
use crate::overheads::Prices;
use crate::targets::{PATH_INSTRUCTIONS_MAX, at_most};
use diapason_abi::Nanos;

/// Instructions that the kernel takes from everybody.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Counts {
    /// The longest path that nothing can preempt (B).
    pub longest_path: u64,
    /// One interrupt, until the interrupted thread could go on (h).
    pub top_half: u64,
    /// One switch between threads (κ), when the queues are short. A wake-up and the switch back
    /// are two: the first takes somewhat more, the second less.
    pub switch: u64,
    /// More for each queue in the list.
    pub queue: u64,
    /// More for each VCPU in the longest queue by deadline.
    pub deadline: u64,
}

pub const KERNEL: Counts = Counts {
    longest_path: PATH_INSTRUCTIONS_MAX,
    top_half: 780,
    switch: 1_050,
    queue: 0,
    deadline: 18,
};

/// Instructions of `entry.s` around the part of an interrupt that a watched run times: registers
/// are saved and restored.
pub const TRAP_FRAME: u64 = 68;

// The benchmark measures threads without VCPUs. Those with one have more to account for, so its
// targets lie below what is assumed here.
const _: () = assert!(matches!(at_most("irq_to_thread"), Some(most) if most < KERNEL.top_half));
const _: () = assert!(matches!(at_most("timer_to_thread"), Some(most) if most < KERNEL.switch));

// The tables were counted; what is assumed may not be less. `cargo xtask costs` asks the same
// before it writes, and names the constant to raise.
const _: () = assert!(PLAIN.objection(&KERNEL).is_none());
const _: () = assert!(RECORDING.objection(&KERNEL).is_none());

/// What a budget loses to the kernel: the paths that are charged to whoever runs next, less what is
/// free. See [`grace`](crate::grace).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Lost {
    /// By a switch to a VCPU, or back to it.
    pub switch: Nanos,
    /// By an interrupt after which the same thread goes on.
    pub interrupt: Nanos,
    /// By the end of a process, after which another one's thread goes on: beyond a switch.
    pub ending: Nanos,
}

/// The counts of a kernel as times.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct KernelTimes {
    counts: Counts,
    clock_hz: u64,
}

impl KernelTimes {
    /// At `clock_hz` instructions a second.
    #[must_use]
    pub const fn new(counts: Counts, clock_hz: u64) -> KernelTimes {
        KernelTimes { counts, clock_hz }
    }

    /// Returns the instructions a second.
    #[must_use]
    pub const fn clock_hz(&self) -> u64 {
        self.clock_hz
    }

    fn time(&self, count: u64) -> Nanos {
        let ns = u128::from(count) * 1_000_000_000;
        Nanos(u64::try_from(ns.div_ceil(u128::from(self.clock_hz.max(1)))).unwrap_or(u64::MAX))
    }

    /// Returns B, the longest path that nothing can preempt.
    #[must_use]
    pub fn longest_path(&self) -> Nanos {
        self.time(self.counts.longest_path)
    }

    /// h: never less than what the kernel does not charge.
    #[must_use]
    pub fn top_half(&self) -> Nanos {
        self.time(self.counts.top_half).max(self.interrupt_grace())
    }

    /// κ with Main VCPUs in these queues by deadline, `None` for one that goes by period: never
    /// less than what the kernel does not charge.
    #[must_use]
    pub fn switch(&self, queues: impl Iterator<Item = Option<u8>>) -> Nanos {
        self.time(self.counts.switch_among(queues)).max(self.switch_grace())
    }

    /// Time of a switch that no budget pays.
    #[must_use]
    pub fn switch_grace(&self) -> Nanos {
        self.time(PLAIN.switching().max(RECORDING.switching())).max(SWITCH_GRACE)
    }

    /// Time of an interrupt that switches to nobody, and that no budget pays. A kernel that keeps
    /// the flight record takes a little more, which budgets pay.
    #[must_use]
    pub fn interrupt_grace(&self) -> Nanos {
        self.time(PLAIN.interrupting()).max(INTERRUPT_GRACE)
    }

    /// What budgets lose at this clock, by the longest counted paths.
    #[must_use]
    pub fn lost(&self) -> Lost {
        let longest = |of: fn(&Table) -> u64| self.time(of(&PLAIN).max(of(&RECORDING)));
        let switch = longest(Table::switching);
        Lost {
            switch: switch - self.switch_grace(),
            interrupt: longest(Table::interrupting) - self.interrupt_grace(),
            ending: longest(Table::ending) - switch.max(self.switch_grace()),
        }
    }

    /// All of them, for [`Prices::section`] and its siblings.
    #[must_use]
    pub fn prices(&self, queues: impl Iterator<Item = Option<u8>>) -> Prices {
        let (path, top_half) = (self.longest_path(), self.top_half());
        Prices { path, top_half, switch: self.switch(queues) }
    }
}

impl Counts {
    /// A switch with Main VCPUs in these queues by deadline, `None` for one that goes by period.
    #[must_use]
    pub fn switch_among(&self, queues: impl Iterator<Item = Option<u8>>) -> u64 {
        let mut lengths = [0u64; 256];
        for queue in queues.flatten() {
            lengths[usize::from(queue)] += 1;
        }
        let queues = lengths.iter().filter(|length| **length > 0).count() as u64;
        let longest = lengths.into_iter().max().unwrap_or(0);
        self.switch + self.queue * queues + self.deadline * longest
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use core::iter::empty;

    #[test]
    fn what_budgets_do_not_pay_is_promised_besides() {
        let costs = KernelTimes::new(KERNEL, 10_000_000_000);
        assert!(costs.switch(empty()) >= SWITCH_GRACE && costs.top_half() >= INTERRUPT_GRACE);
    }

    /// A budget pays for no switch and for no interrupt of a device.
    #[test]
    fn what_is_free_covers_every_switch() {
        let lost = |clock| KernelTimes::new(KERNEL, clock).lost();
        assert_eq!(lost(1_000_000_000).switch, Nanos::ZERO);
        assert!(lost(1_000_000_000).interrupt < Nanos(100));
        assert!(lost(1_000_000_000).ending > Nanos::ZERO);
        let slow = lost(500_000_000);
        assert!(slow.switch == Nanos::ZERO && slow.interrupt < Nanos(200));
        let fast = lost(5_000_000_000);
        assert_eq!(fast, Lost { switch: Nanos(0), interrupt: Nanos(0), ending: Nanos(0) });
    }

    #[test]
    fn times_are_rounded_up() {
        let costs = KernelTimes::new(KERNEL, 2_400_000_000);
        assert_eq!(costs.longest_path(), Nanos(1_250));
        assert_eq!(costs.top_half(), INTERRUPT_GRACE, "what the kernel does not charge");
        assert_eq!(
            KernelTimes::new(KERNEL, 25_000_000).switch(empty()),
            Nanos(42_000).max(KernelTimes::new(KERNEL, 25_000_000).switch_grace())
        );
        let prices = KernelTimes::new(KERNEL, 1_000_000_000).prices(empty());
        assert_eq!(prices.path, Prices::KERNEL.path, "the kernel counts 1 ns for an instruction");
    }

    #[test]
    fn long_queues_by_deadline_cost_more() {
        let costs = KernelTimes::new(KERNEL, 1_000_000_000);
        assert_eq!(costs.switch([None, None].into_iter()), costs.switch_grace());
        let queues = [Some(0), Some(1), Some(1), None];
        assert_eq!(costs.switch(queues.into_iter()), costs.switch_grace());
        assert_eq!(KERNEL.switch_among(queues.into_iter()), KERNEL.switch + 2 * 18);
    }

    #[test]
    fn a_trap_frame_is_what_the_assembly_does_around_a_trap() {
        let text = include_str!("../../../kernel/x86_64/src/entry.s");
        let part = |from: &str, to: &str| {
            let begin = text.find(from).expect("it is there") + from.len();
            let end = text[begin..].find(to).expect("it is there") + to.len();
            let lines = text[begin..begin + end].lines().map(str::trim);
            let is_code = |line: &&str| !line.is_empty() && !line.starts_with(['#', '.']);
            lines.filter(is_code).count() as u64
        };
        // Two words pushed and a jump, the trap, and the way back of who was interrupted.
        let stub = 3;
        let back = part("\nresume:", "jne continue_thread")
            + part("\ncontinue_thread:", "jne 2f")
            + part("\n2:  # It was interrupted", "iretq");
        let all = stub + part("\ntrap:", "call on_trap") + back;
        // Which of the branches are taken is not counted: a few more, and never fewer.
        assert!((all..=all + 8).contains(&TRAP_FRAME), "{all}");
    }
}
