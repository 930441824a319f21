//! Routers hold flows to their contracts. A program sends as much as its cable takes, beside one
//! that keeps to its flow. Both send by one router to one host. Another such router also serves
//! mailboxes, and the flows from and to them keep their bounds.

use super::pulled::{LENGTH, books, described};
use diapason::Workspace;
use diapason::metal::Built;
use serde_json::Value;

/// The same star with written hops, and with computed ones.
const STARS: [&str; 2] = ["examples/star.toml", "examples/ways.toml"];
const FLOODED: &str = "tests/systems/flooded.toml";
const MAILED: &str = "tests/systems/flooded-mail.toml";
/// Messages of one every 16 ms in a run of [`LENGTH`], and two for the jitter. A program that is
/// not held sends 18,000 in each second.
const MOST: u64 = 252;
/// The fewest messages that show that each flow went on after the start.
const LEAST: u64 = 80;

/// Simulates stars, and then one with a flood.
pub fn check(workspace: &Workspace, _: &Built) -> Result<(), String> {
    for star in STARS {
        let result = simulated(workspace, star, 0)?;
        whole(&result, "left-asks")?;
        whole(&result, "up-asks")?;
    }
    flooded(workspace, FLOODED, &["up-asks"])?;
    flooded(workspace, MAILED, &["questions", "answers"])
}

/// Checks that a flood is held to the contract of its flow, and that the other flows are whole.
fn flooded(workspace: &Workspace, list: &str, others: &[&str]) -> Result<(), String> {
    let result = simulated(workspace, list, 1)?;
    others.iter().try_for_each(|name| whole(&result, name))?;
    let flood = find(&result, "floods")?;
    let passed = number(flood, "messages")?;
    println!("{list}: {passed} messages of a flood passed, and the other flows are whole");
    match (LEAST..=MOST).contains(&passed) {
        true => Ok(()),
        false => Err(format!("the flood was not held: {flood:#}")),
    }
}

fn simulated(workspace: &Workspace, list: &str, code: i32) -> Result<Value, String> {
    let arguments = ["sim", list, "--for", LENGTH, "--stages", "--json"];
    let result = described(workspace, &arguments, &[code])?;
    books(&result)?;
    Ok(result)
}

fn find<'r>(result: &'r Value, name: &str) -> Result<&'r Value, String> {
    let mut flows = result["flows"].as_array().ok_or("no flows")?.iter();
    flows.find(|flow| flow["flow"] == name).ok_or(format!("no flow `{name}`"))
}

fn number(flow: &Value, key: &str) -> Result<u64, String> {
    flow[key].as_u64().ok_or(format!("no `{key}`: {flow:#}"))
}

/// Checks that a flow lost nothing, and that no stage of it ended later than planned.
fn whole(result: &Value, name: &str) -> Result<(), String> {
    let flow = find(result, name)?;
    let (longest, bound) = (number(flow, "longest_ns")?, number(flow, "bound_ns")?);
    let late = flow["stages"].as_array().ok_or("no stages")?.iter().find(|stage| {
        let ends = ["by_end_ns", "planned_by_end_ns"].map(|key| stage[key].as_u64());
        ends[0].is_none() || ends[0] > ends[1]
    });
    let books = &flow["books"];
    let [sent, came, way] = [&books["sent"], &books["delivered"], &books["under_way"]];
    let is_whole = sent.as_u64() == Some(came.as_u64().unwrap_or(0) + way.as_u64().unwrap_or(2))
        && way.as_u64() <= Some(1);
    println!("{name}: {longest} of {bound} ns at most");
    match longest > 0 && longest <= bound && late.is_none() && is_whole {
        true => Ok(()),
        false => Err(format!("a flow through a router does not hold: {flow:#}")),
    }
}
