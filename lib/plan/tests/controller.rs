//! Buses to which a controller with message buffers connects this host.

use diapason_can::toucan::{CLOCK_HZ, LIMITS};
use diapason_can::{BitRate, BitTiming};
use diapason_contract::toucan::has_rate;
use diapason_plan::can::CanOutcome;
use diapason_plan::{Plan, Verdict};
use diapason_system::parse;

const EXAMPLE: &str = include_str!("../../../examples/can-controller.toml");

fn planned(text: &str) -> Plan {
    let system = parse("f", text).unwrap_or_else(|found| panic!("{}", found.plain()));
    Plan::of(&system, system.clock_hz)
}

fn responses(plan: &Plan) -> Vec<u64> {
    let response = |outcome: &CanOutcome| match outcome {
        CanOutcome::Response(response) => response.0,
        other => panic!("{other:?}"),
    };
    plan.cans[0].messages.iter().map(|message| response(&message.outcome)).collect()
}

#[test]
fn a_message_of_this_host_may_wait_for_two_less_urgent_frames() {
    let plan = planned(EXAMPLE);
    assert_eq!(plan.verdict(), Verdict::Holds);
    let outside = EXAMPLE
        .replace("process = \"control\"\n", "node = \"control\"\n")
        .replace("controller = \"toucan0\"\nown_buffers = 3\n", "");
    let (here, there) = (responses(&plan), responses(&planned(&outside)));
    // The most urgent one of this host waits for one frame of 133 bits more, at least.
    let names: Vec<&str> = plan.system().cans[0].messages.iter().map(|it| &*it.name).collect();
    let torque = names.iter().position(|name| *name == "torque-left").unwrap();
    assert!(here[torque] >= there[torque] + 133_000, "{here:?} {there:?}");
    assert!(here.iter().zip(&there).all(|(here, there)| here >= there));
    // Nothing is below the least urgent one.
    let last = names.iter().position(|name| *name == "diagnosis").unwrap();
    assert!(here[last] < here[torque] + 2_000_000);
}

#[test]
fn a_deadline_that_two_frames_do_not_leave_is_refused() {
    let tight = EXAMPLE.replacen("deadline = \"2ms\"", "deadline = \"650us\"", 1);
    assert_eq!(planned(&tight).verdict(), Verdict::DoesNotHold);
}

#[test]
fn descriptions_and_the_controller_have_the_same_bit_rates() {
    for hertz in (10_000..=1_000_000).step_by(500) {
        let rate = BitRate::new(hertz).unwrap();
        let found = BitTiming::find(CLOCK_HZ, rate, 750, &LIMITS).is_ok();
        assert_eq!(has_rate(hertz.into()), found, "{hertz}");
    }
}
