//! The largest permitted cost of each operation, and that of the best protected peer.

/// Most bytes of the kernel's code and constants together.
pub const IMAGE_BYTES_MAX: u64 = 24 * 1024;
/// Most instructions of any kernel path, interrupts being off, where no list is long.
pub const PATH_INSTRUCTIONS_MAX: u64 = 3_000;
/// Most instructions of a path of a kernel that keeps the flight record.
pub const RECORDED_PATH_MAX: u64 = 3_300;

/// Where the threads of an operation live.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Placement {
    /// No thread has a VCPU.
    None,
    /// All threads share one VCPU.
    SameVcpu,
    /// Each side has a VCPU, and the one with the shorter period is the more urgent.
    TwoVcpus,
    /// Each side has a VCPU, and both are in one queue by earliest deadline.
    ByDeadline,
}

/// An upper limit for the median of an operation, or of several together.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Target {
    /// The operations whose medians are added.
    pub operations: &'static [&'static str],
    pub placement: Placement,
    pub at_most: u64,
    /// The cost for others.
    pub peer: &'static str,
}

const fn one(operations: &'static [&'static str], at_most: u64, peer: &'static str) -> Target {
    Target { operations, placement: Placement::None, at_most, peer }
}

const fn same(operation: &'static [&'static str], at_most: u64, peer: &'static str) -> Target {
    Target { placement: Placement::SameVcpu, ..one(operation, at_most, peer) }
}

const fn two(operation: &'static [&'static str], at_most: u64, peer: &'static str) -> Target {
    Target { placement: Placement::TwoVcpus, ..one(operation, at_most, peer) }
}

pub const TARGETS: &[Target] = &[
    one(&["null_syscall"], 70, "89 seL4"),
    one(&["yield_switch"], 137, "150 Zephyr user"),
    one(&["sem_lock_free", "sem_unlock_free"], 120, "340 Zephyr user, 37 Linux futex"),
    one(&["sem_lock_contended"], 182, "346 Zephyr user"),
    one(&["sem_unlock"], 202, "391 Zephyr user"),
    one(&["sem_signal_switch"], 199, "322 Zephyr user, 670 seL4"),
    one(&["cond_signal_switch"], 216, "922 Zephyr user"),
    one(&["mbox_send_switch_16"], 294, "503 Zephyr user, 700 seL4"),
    one(&["mbox_send_16"], 130, "366 Zephyr user"),
    one(&["mbox_receive_16"], 130, "364 Zephyr user"),
    one(&["mbox_round_trip_16"], 640, "1670 Zephyr user, 395 seL4 (registers only)"),
    one(&["mbox_call_round_trip_16"], 640, "395 seL4 (registers only), 1572 (10 words)"),
    one(&["state_write_8"], 10, ""),
    one(&["state_read_8"], 10, ""),
    one(&["thread_create_run_exit_join"], 2_500, "4641 Zephyr user"),
    one(&["fault_to_supervisor_round_trip"], 1_000, "1303 seL4"),
    one(&["irq_to_thread"], 342, "191 Zephyr kernel thread"),
    one(&["timer_to_thread"], 437, "358 Zephyr kernel thread, 3799 Linux"),
    same(&["yield_switch"], 160, "464 seL4 MCS"),
    same(&["sem_lock_contended"], 200, "346 Zephyr user, no budgets"),
    same(&["sem_unlock"], 225, "391 Zephyr user, no budgets"),
    same(&["sem_signal_switch"], 230, "688 seL4 MCS"),
    same(&["cond_signal_switch"], 260, "922 Zephyr user, no budgets"),
    same(&["mbox_send_switch_16"], 330, "853 seL4 MCS"),
    same(&["mbox_round_trip_16"], 700, "489 seL4 MCS (registers only), 2158"),
    same(&["mbox_call_round_trip_16"], 700, "489 seL4 MCS (registers only), 2158"),
    same(&["mbox_ask_round_trip_16"], 500, "489 seL4 MCS (registers only), 2158"),
    same(&["sem_create"], 250, ""),
    same(&["sem_delete"], 250, ""),
    same(&["state_read_slow_8"], 250, ""),
    same(&["shm_attach_existing"], 250, ""),
    two(&["sem_lock_contended"], 225, "346 Zephyr user, no budgets"),
    two(&["sem_unlock"], 225, "391 Zephyr user, no budgets"),
    two(&["sem_signal_switch"], 450, "688 seL4 MCS"),
    two(&["cond_signal_switch"], 500, "922 Zephyr user, no budgets"),
    two(&["mbox_send_switch_16"], 550, "853 seL4 MCS"),
    two(&["mbox_round_trip_16"], 1_000, "489 seL4 MCS (registers only), 2158"),
    two(&["mbox_call_round_trip_16"], 1_000, "489 seL4 MCS (registers only), 2158"),
    two(&["mbox_ask_round_trip_16"], 500, "489 seL4 MCS (registers only), 2158"),
    two(&["irq_to_thread"], 450, "191 Zephyr kernel thread"),
    two(&["timer_to_thread"], 550, "313 Zephyr kernel thread"),
    two(&["fault_to_supervisor_round_trip"], 1_300, "1932 seL4 MCS"),
];

/// Returns the target of an operation that is measured alone and whose threads have no VCPU.
#[must_use]
pub const fn at_most(operation: &str) -> Option<u64> {
    let mut place = 0;
    while place < TARGETS.len() {
        let target = &TARGETS[place];
        if let ([name], Placement::None) = (target.operations, target.placement)
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
        assert_eq!(at_most("irq_to_thread"), Some(342));
        assert_eq!(at_most("irq_to"), None);
        assert_eq!(at_most("sem_lock_free"), None, "only together with its unlock");
    }
}
