//! A bottom half whose wake-ups never wait for a grant delays a message and its reader by its work,
//! and by its share of the processor where they may wait.

use diapason_abi::Nanos;
use diapason_pipe::bill::What;
use diapason_plan::Plan;
use diapason_system::parse;

const CONCENTRATOR: &str = include_str!("../../../examples/can-concentrator.toml");

/// Returns the times in the bottom half and in the thread of `brakes`, after a change.
fn times(from: &str, to: &str) -> (Nanos, Nanos) {
    assert!(CONCENTRATOR.contains(from), "{from}");
    let text = CONCENTRATOR.replacen(from, to, 1);
    let system = parse("known.toml", &text).unwrap_or_else(|wrong| panic!("{wrong}"));
    let plan = Plan::of(&system);
    let brakes = system.pipes.iter().position(|pipe| pipe.name == "brakes").unwrap();
    let bill = plan.pipes[brakes].bill.as_ref().expect("it has a bill");
    (bill.value(What::BottomHalf), bill.value(What::User))
}

#[test]
fn wake_ups_that_find_a_grant_count_by_their_work() {
    let (half, user) = times("", "");
    assert!(half < Nanos::from_micros(175) && user < Nanos::from_micros(750), "{half} {user}");
    let changes = [
        ("interval = \"990us\"\nserves", "interval = \"990us\"\nwakes = 2\nserves"),
        // More than 218 us of a share of 22 % come back after more than 990 us.
        ("worst = \"60us\"", "worst = \"110us\""),
        ("uses = [\"progress\"]", "uses = [\"progress\", \"usb-receive\"]"),
    ];
    for (from, to) in changes {
        let (longer, later) = times(from, to);
        assert!(half + half < longer && user < later, "{to}: {longer} {later}");
    }
}

#[test]
fn in_a_queue_by_deadline_the_latest_use_decides_and_not_the_period() {
    let all = "\n[scheduling]\ndynamic = \"all\"\n[[pipe]]\nname = \"engine\"";
    let (half, user) = times("\n[[pipe]]\nname = \"engine\"", all);
    assert!(half < Nanos::from_micros(1_150), "{half}");
    assert!(user < Nanos::from_micros(3_650), "{user}: one period more, and 1 ms");
}
