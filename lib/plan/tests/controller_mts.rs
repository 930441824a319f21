//! Messages of this host under MTS: the plan of a bus whose driver renews by its clock.

use diapason_abi::Nanos;
use diapason_can::mts::Epochs;
use diapason_plan::can::CanOutcome;
use diapason_plan::{Plan, Verdict};
use diapason_system::parse;

const EXAMPLE: &str = include_str!("../../../examples/can-mts-host.toml");

fn planned(text: &str) -> Plan {
    let system = parse("f", text).unwrap_or_else(|found| panic!("{}", found.plain()));
    Plan::of(&system)
}

fn with(from: &str, to: &str) -> String {
    assert!(EXAMPLE.contains(from), "{from}");
    EXAMPLE.replace(from, to)
}

/// Returns the problems and their remedies, in their order.
fn wrong(text: &str) -> Vec<(String, String)> {
    let plan = planned(text);
    assert_eq!(plan.verdict(), Verdict::DoesNotHold);
    let items = plan.findings.iter().flat_map(|found| found.items());
    items.map(|item| (item.title.to_owned(), item.help.to_owned())).collect()
}

#[test]
fn the_driver_counts_with_the_epochs_of_the_plan() {
    let system = parse("f", EXAMPLE).unwrap();
    let plan = planned(EXAMPLE);
    assert_eq!(plan.verdict(), Verdict::Holds);
    let (epochs, terms) = (plan.cans[0].epochs.as_ref().unwrap(), system.cans[0].mts_terms());
    let terms = terms.unwrap();
    let told = Epochs::new(Nanos(terms.epoch_ns), Nanos(terms.reach_ns)).unwrap();
    assert_eq!((told.epoch(), told.region()), (epochs.epochs.epoch(), epochs.epochs.region()));
    // Twice the 45 us of the clocks, 600 us, the longest frame, and three that go twice.
    assert_eq!(epochs.cost, Nanos(90_000 + 600_000 + 4 * 133_000));
    let clocks = plan.cans[0].clocks.as_ref().unwrap();
    // The driver knows the deadline of the time and not the response of its message.
    assert_eq!(clocks.time.unwrap().base().late, Nanos::from_millis(10));
    assert!(matches!(plan.cans[0].messages[0].outcome, CanOutcome::StartBy(_)));
}

#[test]
fn a_driver_that_renews_too_late_is_refused() {
    let found = wrong(&with("renewal = \"600us\"", "renewal = \"500us\""));
    let [(title, help)] = &found[..] else { panic!("{found:?}") };
    assert!(title.starts_with("`driver` may take 5"), "{title}");
    assert!(title.ends_with("to renew identifiers, and `renewal` of its bus is 500.000 us"));
    let least = help.split('`').nth(1).unwrap();
    assert_eq!(planned(&with("renewal = \"600us\"", least)).verdict(), Verdict::Holds);
    // A renewal is work that other messages wait for.
    let long = wrong(&with(
        "name = \"cand.renew\"\nworst = \"8us\"",
        "name = \"cand.renew\"\nworst = \"90us\"",
    ));
    assert!(long.iter().any(|(title, _)| title.starts_with("`torque-left` may wait")), "{long:?}");
    let none = wrong(&with("name = \"cand.renew\"", "name = \"other\""));
    assert!(none[0].0.contains("`cand.renew`"), "{none:?}");
}

#[test]
fn clocks_that_are_said_closer_than_they_are_are_refused() {
    let found = wrong(&with("clocks = \"45us\"", "clocks = \"20us\""));
    assert!(found[0].0.starts_with("clocks that follow `time` are up to"), "{found:?}");
}
