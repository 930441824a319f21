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
    Plan::of(&system)
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
    let names: Vec<&str> = plan.system().cans[0].messages.iter().map(|it| &*it.name).collect();
    let place = |message: &str| names.iter().position(|name| *name == message).unwrap();
    // The most urgent one that shares buffers waits for one frame of 133 bits more, at least.
    let pitch = place("pitch");
    assert!(here[pitch] >= there[pitch] + 133_000, "{here:?} {there:?}");
    assert!(here.iter().zip(&there).all(|(here, there)| here >= there));
    // Three have a buffer of their own, and wait for no frame more.
    for message in ["torque-left", "torque-right", "limits"] {
        assert_eq!(here[place(message)], there[place(message)], "{message}");
    }
    // Nothing is below the least urgent one.
    assert!(here[place("diagnosis")] < here[pitch] + 2_000_000);
}

#[test]
fn a_destroyed_frame_costs_its_time_and_a_message_without_a_buffer_more() {
    let text = EXAMPLE.replace("deadline = \"4ms\"", "deadline = \"5ms\"");
    let plan = planned(&text);
    let names: Vec<&str> = plan.system().cans[0].messages.iter().map(|it| &*it.name).collect();
    let place = |message: &str| names.iter().position(|name| *name == message).unwrap();
    let with = |keys: &str| {
        let text = text.replacen("rate = 1_000_000", &format!("rate = 1_000_000\n{keys}"), 1);
        responses(&planned(&text))
    };
    let (none, one) = (responses(&plan), with("error_interval = \"100ms\""));
    // A frame of 133 bits with its space, and 31 bits of flags, and no message comes meanwhile.
    assert_eq!(one[place("torque-left")], none[place("torque-left")] + 164_000);
    // The message may lose its buffer: two frames, the wait for the driver and what comes then.
    let Some(Ok(waits)) = plan.cans[0].queued else { panic!("nothing bounds the driver") };
    assert!(one[place("pitch")] >= none[place("pitch")] + 164_000 + waits.0 + 2 * 133_000);
    // Errors do not come closer, so it does not matter how far apart they are.
    assert_eq!(with("error_interval = \"1s\""), one);
    assert_eq!(with("error_interval = \"100ms\"\nerror_burst = 1"), one);
}

/// Returns how long messages of the example wait for the driver, with one change.
fn queued(from: &str, to: &str) -> Result<u64, [String; 2]> {
    assert!(EXAMPLE.contains(from), "{from}");
    let plan = planned(&EXAMPLE.replace(from, to));
    let found = plan.cans[0].queued.clone().expect("a controller");
    found.map(|queued| queued.0)
}

/// Returns the first sentence that is refused of the example with one change.
fn refused(from: &str, to: &str) -> String {
    assert!(EXAMPLE.contains(from), "{from}");
    let plan = planned(&EXAMPLE.replacen(from, to, 1));
    let first = plan.findings.first().map(|found| found.plain());
    first.unwrap_or_else(|| panic!("`{to}` holds"))
}

#[test]
fn messages_wait_for_the_work_that_may_come_before_theirs() {
    let usual = queued("cand", "cand").unwrap();
    // Twelve messages, each with a wake-up, and at least one interrupt, a look and a report.
    let work = 12 * 3_500 + 2 * 4_500 + 500;
    assert!(usual > work && usual < 900_000, "{usual}");
    let longer = [
        ("worst = \"3us\"", "worst = \"4us\""),
        ("worst = \"4us\"", "worst = \"6us\""),
        ("worst = \"500ns\"", "worst = \"1us\""),
        ("interval = \"40us\"", "interval = \"30us\""),
        ("budget = \"120us\"", "budget = \"90us\""),
        ("node = \"frame-unit\"", "process = \"control\"\njitter = \"1300us\""),
    ];
    for (from, to) in longer {
        let other = queued(from, to).unwrap();
        assert!(other > usual, "{to}: {other}, not more than {usual}");
    }
}

/// The job of the program.
const JOB: &str = "job = \"30us\" ";

/// Returns the example with this `jitter` of all messages of its program.
fn with_jitter(text: &str, micros: u64) -> Plan {
    planned(&text.replace("jitter = \"1300us\"", &format!("jitter = \"{micros}us\"")))
}

/// Returns the first sentence that is refused, and the jitter of its remedy.
fn remedy(plan: &Plan) -> (String, u64) {
    let text = plan.findings.first().map(|found| found.plain()).expect("the jitter is enough");
    let micros = text.split("write `jitter = \"").nth(1).and_then(|it| it.split('u').next());
    let micros = micros.and_then(|it| it.parse().ok()).unwrap_or_else(|| panic!("{text}"));
    (text, micros)
}

#[test]
fn a_jitter_that_the_driver_does_not_keep_is_refused() {
    // Without a job nothing bounds the program.
    let without = EXAMPLE.replacen(JOB, "# ", 1).replacen("interval = \"5ms\"", "#", 1);
    let (text, micros) = remedy(&with_jitter(&without, 700));
    assert!(text.contains("`torque-left` may wait 7"), "{text}");
    assert!(text.contains("for `driver` until it is in the queue of its controller"), "{text}");
    assert!(text.contains("and its `jitter` is 700.000 us"), "{text}");
    assert_eq!(with_jitter(&without, micros).verdict(), Verdict::Holds);
}

/// A message waits for a job of its program and then for the driver: `jitter` is for both.
#[test]
fn a_described_job_of_the_program_belongs_to_the_jitter() {
    let (text, micros) = remedy(&with_jitter(EXAMPLE, 900));
    let told = text.split("may wait ").nth(1).and_then(|it| it.split(' ').next());
    assert!(text.contains("for a job of `control` and 7"), "{text}");
    assert!(told.and_then(|it| it.parse::<f64>().ok()).is_some_and(|it| it > 30.0), "{text}");
    let late =
        |plan: &Plan| plan.findings.iter().filter(|it| it.plain().contains("for a job of")).count();
    let with = |jitter| late(&with_jitter(EXAMPLE, jitter));
    assert_eq!((with(micros - 1), with(micros)), (12, 0));
    // A longer job needs more.
    let longer = EXAMPLE.replacen(JOB, "job = \"60us\" ", 1);
    assert!(remedy(&with_jitter(&longer, 900)).1 > micros + 30);
}

#[test]
fn what_the_bound_needs_is_asked_for() {
    let cases = [
        ("name = \"cand.serve\"", "name = \"other\"", "how long `cand.serve` takes"),
        ("name = \"cand.find\"", "name = \"other\"", "how long `cand.find` takes"),
        ("name = \"cand.message\"", "name = \"other\"", "how long `cand.message` takes"),
        ("budget = \"120us\"", "budget = \"20us\"", "more than its VCPU gives"),
    ];
    for (from, to, wanted) in cases {
        let text = refused(from, to);
        assert!(text.contains("nothing bounds how long messages wait for `driver`"), "{text}");
        assert!(text.contains(wanted), "{text}");
    }
}

#[test]
fn a_deadline_that_two_frames_do_not_leave_is_refused() {
    let tight = EXAMPLE.replacen("deadline = \"2500us\"", "deadline = \"1400us\"", 1);
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
