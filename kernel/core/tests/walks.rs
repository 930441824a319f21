//! No path goes through more rounds of its loops than the sizes of its system allow.

use crate::support::storm::with_storm;
use crate::support::*;
use diapason_abi::archive::ProcessRecord;
use diapason_costs::KERNEL;

/// The storm holds each of its paths to the formula; some come near enough to it that a formula
/// which forgets a loop would be found.
#[test]
fn a_storm_stays_within_the_longest_walk() {
    with_storm(7, false, |storm| {
        assert!(storm.shell.longest_walk < 200_000, "{}", storm.shell.longest_walk);
        storm.rage(200_000);
    });
}

fn large(threads: u16, semaphores: u16, messages: u16) -> Plan {
    let sizes = |p: &mut ProcessRecord| (p.threads, p.semaphores) = (threads, semaphores);
    Plan::new().process("main", 10).with(sizes).mailbox("box", messages)
}

#[test]
fn the_longest_path_grows_only_with_those_who_wait() {
    let path = |plan: Plan| plan.kernel().longest_path;
    let small = path(large(1, 0, 1));
    assert!(small < 2 * KERNEL.longest_path, "{small}");
    let crowd = path(large(64, 0, 1)) - small;
    assert!(crowd < 8_000, "all may wait for one box, but nobody for a mutex: {crowd}");
    assert!(path(large(1, 1_000, 1)) <= small + 2_000, "private places are not looked for");
    assert!(path(large(1, 0, 1_000)) < small + 1_000, "a message passes few others");
    assert!(path(large(64, 1_000, 1)) > small + 20_000, "all may wait for each other");
}
