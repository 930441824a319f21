//! What each operation may cost at most, and what the best protected peer costs.

use super::Operation;

/// Most bytes of the kernel's code and constants together.
pub const IMAGE_BYTES_MAX: u64 = 24 * 1024;
/// Most instructions of any kernel path, interrupts being off.
pub const PATH_INSTRUCTIONS_MAX: u64 = 3_000;

/// An upper limit for the median of an operation, or of several together.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Target {
    /// The operations whose medians are added.
    pub operations: &'static [&'static str],
    /// Most instructions.
    pub at_most: u64,
    /// What others need for the same.
    pub peer: &'static str,
}

const fn one(operations: &'static [&'static str], at_most: u64, peer: &'static str) -> Target {
    Target { operations, at_most, peer }
}

/// Every target.
pub const TARGETS: &[Target] = &[
    one(&["null_syscall"], 70, "89 seL4"),
    one(&["yield_switch"], 140, "150 Zephyr user"),
    one(&["sem_lock_free", "sem_unlock_free"], 120, "340 Zephyr user, 37 Linux futex"),
    one(&["sem_lock_contended"], 300, "346 Zephyr user"),
    one(&["sem_unlock"], 300, "391 Zephyr user"),
    one(&["sem_signal_switch"], 280, "322 Zephyr user, 670 seL4"),
    one(&["cond_signal_switch"], 600, "922 Zephyr user"),
    one(&["mbox_send_16"], 130, "366 Zephyr user"),
    one(&["mbox_receive_16"], 130, "364 Zephyr user"),
    one(&["mbox_round_trip_16"], 700, "1670 Zephyr user, 395 seL4 (registers only)"),
    one(&["mbox_call_round_trip_16"], 700, "395 seL4 (registers only), 1572 (10 words)"),
    one(&["state_write_8"], 10, ""),
    one(&["state_read_8"], 10, ""),
    one(&["thread_create_run_exit_join"], 2_500, "4641 Zephyr user"),
    one(&["fault_to_supervisor_round_trip"], 1_000, "1303 seL4"),
    one(&["irq_to_thread"], 350, "191 Zephyr kernel thread"),
    one(&["timer_to_thread"], 450, "358 Zephyr kernel thread, 3799 Linux"),
];

impl Target {
    /// The medians of its operations added, or `None` if one was not measured.
    #[must_use]
    pub fn ours(&self, measured: &[Operation]) -> Option<u64> {
        let medians = self.operations.iter().map(|name| {
            measured.iter().find(|operation| operation.name == *name).map(|op| op.median)
        });
        medians.sum()
    }

    /// The operations' names, as in a sum.
    #[must_use]
    pub fn name(&self) -> String {
        self.operations.join(" + ")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn operation(name: &str, median: u64) -> Operation {
        Operation { name: name.into(), median, max: median, runs: 1, cr3: 0, msr: 0, mmio: 0 }
    }

    #[test]
    fn pairs_are_added_and_gaps_noticed() {
        let pair = &TARGETS[2];
        let measured = [operation("sem_lock_free", 50), operation("sem_unlock_free", 60)];
        assert_eq!(pair.ours(&measured), Some(110));
        assert_eq!(pair.ours(&measured[..1]), None);
        assert_eq!(pair.name(), "sem_lock_free + sem_unlock_free");
    }
}
