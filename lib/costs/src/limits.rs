//! The assumed costs of the kernel, in instructions.
//!
//! The counts are limits that other commands hold the kernel to, not the best that was ever seen:
//!
//! | count | held by |
//! |---|---|
//! | longest path | `cargo xtask bench` and `storm`: none is longer in systems of few objects |
//! | top half | every watched run with VCPUs: a longer one is an alarm; and `irq_to_thread` |
//! | switch, queues | `diapason reproduce decisions`: in, a decision among VCPUs, out |
//!
//! Long queues by deadline are counted apart ([`KernelTimes::switch`](crate::KernelTimes::switch)),
//! and so are the loops of the longest path: [`section`](crate::section).

use crate::section::Dimensions;
use crate::targets::{RECORDED_PATH_MAX, at_most};

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
}

pub const KERNEL: Counts = Counts { longest_path: RECORDED_PATH_MAX, top_half: 870, switch: 1_050 };

/// Instructions of `entry.s` around the part of an interrupt that a watched run times: registers
/// are saved and restored.
pub const TRAP_FRAME: u64 = 68;

// The benchmark measures threads without VCPUs. Those with one have more to account for, so its
// targets lie below what is assumed here.
const _: () = assert!(matches!(at_most("irq_to_thread"), Some(most) if most < KERNEL.top_half));
const _: () = assert!(matches!(at_most("timer_to_thread"), Some(most) if most < KERNEL.switch));

impl Counts {
    /// Returns the counts of a kernel with objects in these numbers.
    #[must_use]
    pub const fn among(self, sizes: &Dimensions) -> Counts {
        Counts { longest_path: sizes.longest_path(self.longest_path), ..self }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
        // Two words pushed and a jump, the trap, and the way back to the interrupted thread.
        let stub = 3;
        let all = stub + part("\ntrap:", "je 8b") + part("\n8:", "iretq");
        // All branches count as taken: a few more than are, and never fewer.
        assert!((all..=all + 8).contains(&TRAP_FRAME), "{all}");
    }
}
