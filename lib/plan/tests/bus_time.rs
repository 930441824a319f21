//! Clocks of a bus under MTS that follow a message: what the plan derives, counts with and refuses.

use diapason_abi::Nanos;
use diapason_plan::can::{CanClocks, CanOutcome};
use diapason_plan::{Plan, Verdict};
use diapason_system::parse;

const EXAMPLE: &str = include_str!("../../../examples/can-mts.toml");

fn planned(text: &str) -> Plan {
    let system = parse("f", text).unwrap_or_else(|found| panic!("{}", found.plain()));
    Plan::of(&system)
}

fn clocks(plan: &Plan) -> &CanClocks {
    plan.cans[0].clocks.as_ref().unwrap()
}

/// Returns title and remedy of the only problem, and its line.
#[track_caller]
fn only(plan: &Plan) -> (String, String, usize) {
    let items: Vec<_> = plan.findings.iter().flat_map(|found| found.items()).collect();
    assert_eq!((plan.verdict(), items.len()), (Verdict::DoesNotHold, 1));
    (items[0].title.to_owned(), items[0].help.to_owned(), items[0].line)
}

fn said(clocks: &str) -> String {
    EXAMPLE.replace("time =", &format!("clocks = \"{clocks}\"\ntime ="))
}

#[test]
fn clocks_follow_from_the_response_of_the_message() {
    let plan = planned(EXAMPLE);
    assert_eq!(plan.verdict(), Verdict::Holds);
    let CanClocks { counted, time: Some(terms) } = clocks(&plan) else { panic!("no time") };
    let place = parse("f", EXAMPLE).unwrap().cans[0].time.unwrap().message;
    let CanOutcome::Response(response) = plan.cans[0].messages[place].outcome else { panic!() };
    assert_eq!((terms.base().late, terms.base().interval), (response, Nanos(10_001_000)));
    // By hand: the age of the oldest instant, and what two clocks of 100 ppm make of it.
    let age = 4 * 10_001_000 + response.0;
    let by_hand = 5_000 + 200 + 1_000 + 2 * age / 10_000;
    assert!(terms.clocks().0.abs_diff(by_hand) < 10, "{} {by_hand}", terms.clocks());
    assert_eq!(counted.0, terms.clocks().0.div_ceil(1_000) * 1_000);
    // The plan is the one that these clocks would have if they were assumed.
    let assumed: String = EXAMPLE
        .lines()
        .filter(|line| !line.starts_with("time"))
        .fold(String::new(), |text, line| {
            text + &line.replace("\"mts\"", "\"mts\"\nclocks = \"COUNTED\"") + "\n"
        });
    let assumed = planned(&assumed.replace("COUNTED", &format!("{}ns", counted.0)));
    let outcomes = |plan: &Plan| -> Vec<CanOutcome> {
        plan.cans[0].messages.iter().map(|message| message.outcome.clone()).collect()
    };
    assert_eq!(outcomes(&assumed), outcomes(&plan));
}

/// Returns the example with errors on its bus.
fn with_errors(keys: &str) -> String {
    EXAMPLE.replacen("rate = 1_000_000", &format!("rate = 1_000_000\n{keys}"), 1)
}

#[test]
fn errors_need_nodes_that_renew_by_clocks_and_may_lose_frames_of_the_time() {
    let (title, help, _) = only(&planned(&with_errors("error_interval = \"100ms\"")));
    assert!(title.starts_with("frames may be destroyed, and some nodes may hear"), "{title}");
    assert!(help.contains("renewal"), "{help}");
    let one = with_errors("renewal = \"20us\"\nepoch = \"4ms\"\nerror_interval = \"100ms\"");
    let plan = planned(&one);
    let CanClocks { time: Some(_), .. } = clocks(&plan) else { panic!("no time: {:?}", plan.cans) };
    let many = one.replacen("error_interval", "error_burst = 2\nerror_interval", 1);
    let plan = planned(&many);
    let items: Vec<_> = plan.findings.iter().flat_map(|found| found.items()).collect();
    let found = items.iter().find(|item| item.title.contains("errors may spoil 2 frames"));
    let help = found.unwrap_or_else(|| panic!("{:?}", items[0].title)).help;
    assert!(help.contains("time_losses = 2"), "{help}");
    // The time comes each 10 ms.
    let always = planned(&one.replacen("\"100ms\"", "\"9ms\"", 1));
    let items: Vec<_> = always.findings.iter().flat_map(|found| found.items()).collect();
    let found = items.iter().find(|item| item.title.contains("spoil every frame of `time`"));
    let help = found.unwrap_or_else(|| panic!("{:?}", items[0].title)).help;
    assert!(help.contains("`period` of `time` shorter"), "{help}");
}

#[test]
fn each_term_of_the_bound_counts() {
    let follows = |from: &str, to: &str| {
        let text = EXAMPLE.replace(from, to);
        assert_ne!(text, EXAMPLE, "{from}");
        clocks(&planned(&text)).time.as_ref().unwrap().clocks().0
    };
    let own = clocks(&planned(EXAMPLE)).time.as_ref().unwrap().clocks().0;
    assert_eq!(follows("time_read = \"5us\"", "time_read = \"9us\"").abs_diff(own + 4_000) / 10, 0);
    assert!(follows("time_step =", "# time_step =") > own + 1_800, "the step is 1 us by itself");
    assert!(
        follows("time_losses =", "# time_losses =") < own - 3_900,
        "no frame is lost by itself"
    );
    assert!(follows("time_losses = 1", "time_losses = 1\ntime_drift = 50") < own - 4_000);
    let late =
        |text: &str| text.replace("period = \"10ms\"", "period = \"10ms\"\njitter = \"1ms\"");
    let jitter = planned(&late(EXAMPLE));
    let jitter = clocks(&jitter).time.as_ref().unwrap().clocks().0;
    assert!(jitter.abs_diff(own + 200) < 10, "{jitter} {own}");
}

#[test]
fn clocks_that_are_said_are_checked_and_the_remedy_holds() {
    let wide = planned(&said("20us"));
    assert_eq!(wide.verdict(), Verdict::Holds);
    assert_eq!(clocks(&wide).counted, Nanos::from_micros(20));
    let text = said("10us");
    let (title, help, line) = only(&planned(&text));
    assert!(title.starts_with("clocks that follow `time` are up to"), "{title}");
    assert!(title.ends_with("and `clocks` is 10.000 us"), "{title}");
    assert_eq!(line, text.lines().position(|line| line == "name = \"drive\"").unwrap() + 1);
    let value = help.split('"').nth(1).unwrap();
    assert_eq!(planned(&said(value)).verdict(), Verdict::Holds, "{help}");
    let less = value.trim_end_matches("us").parse::<u64>().unwrap() - 1;
    only(&planned(&said(&format!("{less}us"))));
}

#[test]
fn a_time_that_bounds_nothing_is_refused() {
    // A frame that may be through only when the next is due.
    let late = EXAMPLE
        .replace("period = \"10ms\"", "period = \"3ms\"\ndeadline = \"90ms\"\njitter = \"3ms\"");
    let (title, help, _) = only(&planned(&late));
    assert!(title.starts_with("`time` carries the time, may take"), "{title}");
    assert!(help.contains("make `period` of `time` longer"), "{help}");
    let far = EXAMPLE.replace("time_losses = 1", "time_losses = 999");
    let (title, help, _) = only(&planned(&far));
    assert!(title.ends_with("that is more than 1.000 ms"), "{title}");
    assert!(help.contains("`time_losses`"), "{help}");
    // The message itself is late: it is refused, and nothing is said of the clocks.
    let short = EXAMPLE.replace("period = \"10ms\"", "period = \"10ms\"\ndeadline = \"1ms\"");
    let plan = planned(&short);
    let mut items = plan.findings.iter().flat_map(|found| found.items());
    assert!(items.any(|item| item.title.starts_with("`time` may take")));
    assert_eq!(plan.verdict(), Verdict::DoesNotHold);
    assert!(clocks(&plan).time.is_none());
}
