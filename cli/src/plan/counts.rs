//! What the kernel costs, in instructions, and what that is in time at a clock rate.
//!
//! The counts are limits that other commands hold the kernel to, not the best that was ever seen:
//!
//! | count | held by |
//! |---|---|
//! | longest path | `cargo xtask bench` and `storm`: no path is longer |
//! | top half | `irq_to_thread`, which contains it |
//! | switch | `timer_to_thread`: into the kernel, a decision, out in another thread |
//!
//! The decision inside a switch passes the list of queues and at most one queue by deadline; what
//! that adds for long ones is counted apart, as loops of so many instructions.

use crate::bench::targets::PATH_INSTRUCTIONS_MAX;
use diapason_abi::Nanos;
use diapason_analysis::server::{MainVcpu, Queue};

/// Instructions that the kernel takes from everybody.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Counts {
    /// The longest path that nothing can preempt (B).
    pub longest_path: u64,
    /// One interrupt, until the interrupted thread could go on (h).
    pub top_half: u64,
    /// One switch between threads (κ), when the queues are short.
    pub switch: u64,
    /// More for each queue in the list.
    pub queue: u64,
    /// More for each VCPU in the longest queue by deadline.
    pub deadline: u64,
}

/// This kernel.
pub const KERNEL: Counts = Counts {
    longest_path: PATH_INSTRUCTIONS_MAX,
    top_half: 350,
    switch: 450,
    queue: 10,
    deadline: 12,
};

/// The same as times.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Costs {
    counts: Counts,
    clock_hz: u64,
}

impl Costs {
    /// At `clock_hz` instructions a second.
    #[must_use]
    pub const fn new(counts: Counts, clock_hz: u64) -> Costs {
        Costs { counts, clock_hz }
    }

    /// Instructions a second.
    #[must_use]
    pub const fn clock_hz(&self) -> u64 {
        self.clock_hz
    }

    fn time(&self, count: u64) -> Nanos {
        let ns = u128::from(count) * 1_000_000_000;
        Nanos(u64::try_from(ns.div_ceil(u128::from(self.clock_hz.max(1)))).unwrap_or(u64::MAX))
    }

    /// B.
    #[must_use]
    pub fn longest_path(&self) -> Nanos {
        self.time(self.counts.longest_path)
    }

    /// h.
    #[must_use]
    pub fn top_half(&self) -> Nanos {
        self.time(self.counts.top_half)
    }

    /// κ with these VCPUs in their queues.
    #[must_use]
    pub fn switch(&self, mains: &[MainVcpu]) -> Nanos {
        let mut lengths = [0u64; 256];
        for main in mains {
            if let Queue::Dp(queue) = main.queue {
                lengths[usize::from(queue)] += 1;
            }
        }
        let queues = lengths.iter().filter(|length| **length > 0).count() as u64;
        let longest = lengths.into_iter().max().unwrap_or(0);
        let counts = &self.counts;
        self.time(counts.switch + counts.queue * queues + counts.deadline * longest)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::targets::TARGETS;

    #[test]
    fn what_is_assumed_is_what_the_benchmark_holds_the_kernel_to() {
        let limit = |name: &str| {
            let target = TARGETS.iter().find(|target| target.operations == [name]);
            target.map(|target| target.at_most)
        };
        assert_eq!(limit("irq_to_thread"), Some(KERNEL.top_half));
        assert_eq!(limit("timer_to_thread"), Some(KERNEL.switch));
    }

    #[test]
    fn times_are_rounded_up() {
        let costs = Costs::new(KERNEL, 2_400_000_000);
        assert_eq!(costs.longest_path(), Nanos(1_250));
        assert_eq!(costs.top_half(), Nanos(146));
        assert_eq!(Costs::new(KERNEL, 25_000_000).switch(&[]), Nanos(18_000));
    }

    #[test]
    fn long_queues_by_deadline_cost_more() {
        let costs = Costs::new(KERNEL, 1_000_000_000);
        let main = MainVcpu::new(Nanos(1), Nanos(2));
        let dp = |queue| main.in_queue(Queue::Dp(queue));
        assert_eq!(costs.switch(&[main, main]), Nanos(450));
        assert_eq!(costs.switch(&[dp(0), dp(1), dp(1), main]), Nanos(450 + 2 * 10 + 2 * 12));
    }
}
