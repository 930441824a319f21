//! A plan names everything that a description lacks at once, and each thing once.

use diapason_plan::Plan;
use diapason_system::parse;

/// Pipes in both directions, and places for tuned ones.
const TEXT: &str = include_str!("../../../examples/tuned-output.toml");

/// Returns the refusals of the example without its works.
fn refusals() -> Vec<String> {
    let parts = TEXT.split("\n[");
    let rest: Vec<&str> = parts.filter(|part| !part.starts_with("[work]]")).collect();
    let text = rest.join("\n[");
    assert!(text.len() < TEXT.len());
    let system = parse("missing.toml", &text).unwrap_or_else(|wrong| panic!("{wrong}"));
    let plan = Plan::of(&system, system.clock_hz);
    plan.findings.iter().map(|found| found.plain()).collect()
}

#[test]
fn missing_works_are_named_at_once_and_once() {
    let found = refusals();
    let all = "nothing says how long `usbd.receive` and `usbd.send` and `usbd.tune` and \
               `usbd.manage` take";
    assert!(found[0].contains(all), "{}", found[0]);
    assert_eq!(found.len(), 1, "{found:#?}");
}
