//! The assumed costs of the kernel as times, at a clock rate.
//!
//! A decision passes at most one queue by deadline, and an entry decides at most three times.

use crate::counted::{PLAIN, RECORDING};
use crate::grace::{INTERRUPT_GRACE, SWITCH_GRACE};
use crate::limits::{Counts, KERNEL};
use crate::overheads::Prices;
use crate::section::Round;
use diapason_abi::Nanos;

// The tables were counted; what is assumed may not be less. `cargo xtask costs` asks the same
// before it writes, and names the constant to raise.
const _: () = assert!(PLAIN.objection(&KERNEL).is_none());
const _: () = assert!(RECORDING.objection(&KERNEL).is_none());

/// Most choices of a thread in one entry: one, and one after each alarm that rings.
const CHOICES: u64 = 3;

/// The counts of a kernel as times.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct KernelTimes {
    counts: Counts,
    clock_hz: u64,
    away: Nanos,
}

impl KernelTimes {
    /// At `clock_hz` instructions a second.
    #[must_use]
    pub const fn new(counts: Counts, clock_hz: u64) -> KernelTimes {
        KernelTimes { counts, clock_hz, away: Nanos::ZERO }
    }

    /// Returns them on a computer whose processor may be `away` before it comes to the kernel: an
    /// interrupt arrives late, or the firmware has the processor.
    #[must_use]
    pub const fn on_computer(self, away: Nanos) -> KernelTimes {
        KernelTimes { away, ..self }
    }

    /// Returns the instructions a second.
    #[must_use]
    pub const fn clock_hz(&self) -> u64 {
        self.clock_hz
    }

    /// Returns the time of so many instructions, rounded up.
    #[must_use]
    pub fn time(&self, count: u64) -> Nanos {
        let ns = u128::from(count) * 1_000_000_000;
        Nanos(u64::try_from(ns.div_ceil(u128::from(self.clock_hz.max(1)))).unwrap_or(u64::MAX))
    }

    /// Returns B, the longest path that nothing can preempt, and the time before it in which the
    /// processor is away.
    #[must_use]
    pub fn longest_path(&self) -> Nanos {
        self.time(self.counts.longest_path) + self.away
    }

    /// h: never less than what the kernel does not charge.
    #[must_use]
    pub fn top_half(&self) -> Nanos {
        self.time(self.counts.top_half).max(self.interrupt_grace())
    }

    /// Returns the instructions of B.
    #[must_use]
    pub const fn path_instructions(&self) -> u64 {
        self.counts.longest_path
    }

    /// κ with VCPUs in these queues by deadline, `None` for one that goes by period. No budget pays
    /// for it, so `plan` does.
    #[must_use]
    pub fn switch(&self, queues: impl Iterator<Item = Option<u8>>) -> Nanos {
        self.time(self.counts.switch_among(queues)).max(SWITCH_GRACE)
    }

    /// Time of an interrupt that switches to nobody, and that no budget pays.
    #[must_use]
    pub fn interrupt_grace(&self) -> Nanos {
        let counted = PLAIN.interrupting().max(RECORDING.interrupting());
        self.time(counted).max(INTERRUPT_GRACE)
    }

    /// Returns what the longest path takes of the budget of the VCPU that runs next: its time
    /// beyond a switch. See [`grace`](crate::grace).
    #[must_use]
    pub fn lost(&self) -> Nanos {
        self.longest_path() - self.switch(core::iter::empty())
    }

    /// Returns the longest that an interrupt waits for the kernel: [`Prices::late`] with what the
    /// kernel knows of its own times.
    #[must_use]
    pub fn late(&self, queues: impl Iterator<Item = Option<u8>>, sources: u64) -> Nanos {
        Prices { top_half: self.interrupt_grace(), ..self.prices(queues) }.late(sources)
    }

    /// Returns all of them, for [`Prices::section`] and its siblings.
    #[must_use]
    pub fn prices(&self, queues: impl Iterator<Item = Option<u8>>) -> Prices {
        let (path, top_half) = (self.longest_path(), self.top_half());
        Prices { path, top_half, switch: self.switch(queues) }
    }
}

impl Counts {
    /// Returns the instructions of a switch with VCPUs in these queues by deadline, `None` for one
    /// that goes by period: never less than the longest path that was counted.
    #[must_use]
    pub fn switch_among(&self, queues: impl Iterator<Item = Option<u8>>) -> u64 {
        let mut lengths = [0u64; 256];
        for queue in queues.flatten() {
            lengths[usize::from(queue)] += 1;
        }
        let longest = lengths.into_iter().max().unwrap_or(0);
        let counted = PLAIN.switching().max(RECORDING.switching());
        self.switch.max(counted) + CHOICES * Round::Compare.price() * longest
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
    fn what_is_free_covers_every_switch_and_interrupt() {
        for clock_hz in [500_000_000, 1_000_000_000, 5_000_000_000] {
            let costs = KernelTimes::new(KERNEL, clock_hz);
            for table in [&PLAIN, &RECORDING] {
                assert!(costs.interrupt_grace() >= costs.time(table.interrupting()));
                assert!(costs.switch(empty()) >= costs.time(table.switching()));
            }
            assert!(costs.top_half() >= costs.interrupt_grace(), "`plan` charges what is free");
        }
        let lost = |clock| KernelTimes::new(KERNEL, clock).lost();
        assert!(lost(1_000_000_000) > Nanos::ZERO);
        assert_eq!(lost(5_000_000_000), Nanos::ZERO);
    }

    #[test]
    fn times_are_rounded_up() {
        let costs = KernelTimes::new(KERNEL, 2_400_000_000);
        assert_eq!(costs.longest_path(), Nanos(1_375));
        assert_eq!(costs.top_half(), INTERRUPT_GRACE, "what the kernel does not charge");
        let switch = KERNEL.switch_among(empty());
        assert_eq!(KernelTimes::new(KERNEL, 25_000_000).switch(empty()), Nanos(40 * switch));
    }

    /// A wait for the kernel is one for the computer, too.
    #[test]
    fn a_processor_that_is_away_makes_the_kernel_late_and_takes_budget() {
        let usual = KernelTimes::new(KERNEL, 1_000_000_000);
        let away = Nanos(30_000);
        let there = usual.on_computer(away);
        assert_eq!(there.longest_path(), usual.longest_path() + away);
        assert_eq!(there.late(empty(), 3), usual.late(empty(), 3) + away);
        assert_eq!(there.lost(), usual.lost() + away);
        assert_eq!(there.prices(empty()).overrun(), usual.prices(empty()).overrun() + away);
        assert_eq!(there.switch(empty()), usual.switch(empty()), "a switch takes no longer");
    }

    #[test]
    fn long_queues_by_deadline_cost_more() {
        let costs = KernelTimes::new(KERNEL, 1_000_000_000);
        assert_eq!(costs.switch([None, None].into_iter()), costs.switch(empty()));
        let queues = [Some(0), Some(1), Some(1), None];
        let longer = costs.switch(queues.into_iter()) - costs.switch(empty());
        assert_eq!(longer, Nanos(2 * 3 * Round::Compare.price()));
    }
}
