//! The largest permitted cost of each operation, and that of the best protected peer.

/// Most bytes of the kernel's code and constants together.
pub const IMAGE_BYTES_MAX: u64 = 24 * 1024;
/// Most instructions of any kernel path, interrupts being off, where no list is long.
pub const PATH_INSTRUCTIONS_MAX: u64 = 3_000;
/// Most instructions of a path of a kernel that keeps the flight record.
pub const RECORDED_PATH_MAX: u64 = 3_300;

/// An upper limit for the median of an operation, or of several together.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Target {
    /// The operations whose medians are added.
    pub operations: &'static [&'static str],
    pub at_most: u64,
    /// The cost for others.
    pub peer: &'static str,
}

const fn one(operations: &'static [&'static str], at_most: u64, peer: &'static str) -> Target {
    Target { operations, at_most, peer }
}

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
    one(&["mbox_round_trip_16"], 710, "1670 Zephyr user, 395 seL4 (registers only)"),
    one(&["mbox_call_round_trip_16"], 700, "395 seL4 (registers only), 1572 (10 words)"),
    one(&["state_write_8"], 10, ""),
    one(&["state_read_8"], 10, ""),
    one(&["thread_create_run_exit_join"], 2_500, "4641 Zephyr user"),
    one(&["fault_to_supervisor_round_trip"], 1_010, "1303 seL4"),
    one(&["irq_to_thread"], 350, "191 Zephyr kernel thread"),
    one(&["timer_to_thread"], 450, "358 Zephyr kernel thread, 3799 Linux"),
];

/// The target of an operation that is measured alone.
#[must_use]
pub const fn at_most(operation: &str) -> Option<u64> {
    let mut place = 0;
    while place < TARGETS.len() {
        let target = &TARGETS[place];
        if let [name] = target.operations
            && equal(name.as_bytes(), operation.as_bytes())
        {
            return Some(target.at_most);
        }
        place += 1;
    }
    None
}

const fn equal(one: &[u8], other: &[u8]) -> bool {
    let mut place = 0;
    while place < one.len() && place < other.len() {
        if one[place] != other[place] {
            return false;
        }
        place += 1;
    }
    one.len() == other.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_target_is_found_by_its_whole_name() {
        assert_eq!(at_most("irq_to_thread"), Some(350));
        assert_eq!(at_most("irq_to"), None);
        assert_eq!(at_most("sem_lock_free"), None, "only together with its unlock");
    }
}
