//! Messages that wait in buffers: a pipe or a chain is refused exactly if its bill has more of them
//! than there are places.

use diapason_abi::pipe::{OUT_SLOTS, SLOTS};
use diapason_plan::Plan;
use diapason_system::parse;

const PIPES: &str = include_str!("../../../examples/can-concentrator.toml");
const CHAINS: &str = include_str!("../../../examples/can-gateway.toml");

fn planned(text: &str) -> Plan {
    let system = parse("f", text).unwrap_or_else(|found| panic!("{}", found.plain()));
    Plan::of(&system)
}

/// Returns whether the plan says this of anything.
fn says(plan: &Plan, words: &str) -> bool {
    plan.findings.iter().flat_map(|found| found.items()).any(|item| item.title.contains(words))
}

#[test]
fn a_pipe_with_more_messages_than_its_buffer_has_places_is_refused() {
    let (mut fit, mut just_not) = (0, 0);
    for burst in (4..600).step_by(40) {
        let text = PIPES.replace("rate = 470\nburst = 4", &format!("rate = 470\nburst = {burst}"));
        let plan = planned(&text);
        let Ok(bill) = &plan.pipes[0].bill else { continue };
        let full = bill.slots > SLOTS as u64;
        assert_eq!(says(&plan, "`engine` may have"), full, "{burst}: {}", bill.slots);
        fit += u32::from(!full);
        just_not += u32::from(full && bill.slots <= 2 * SLOTS as u64);
    }
    assert!(fit > 0 && just_not > 0, "{fit} {just_not}");
}

#[test]
fn a_chain_with_more_messages_than_its_ring_has_places_is_refused() {
    let (mut fit, mut just_not) = (0, 0);
    let wide =
        CHAINS.replace("messages = 32", "messages = 200").replace("burst = 32", "burst = 64");
    for burst in 4..40 {
        let text = wide.replace("rate = 1400\nburst = 4", &format!("rate = 1400\nburst = {burst}"));
        let plan = planned(&text);
        let Ok(bill) = &plan.chains[0].bill else { panic!("{burst}: no bill") };
        let ring = bill.ring.expect("it ends with a pipe");
        let full = ring > OUT_SLOTS as u64;
        if !says(&plan, "messages may wait") {
            assert_eq!(says(&plan, "`gateway` may have"), full, "{burst}: {ring}");
            fit += u32::from(!full);
            just_not += u32::from(full && ring / 2 <= OUT_SLOTS as u64);
        }
    }
    assert!(fit > 0 && just_not > 0, "{fit} {just_not}");
}
