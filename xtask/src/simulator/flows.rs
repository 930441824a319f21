//! The messages of a flow, followed over the links of all hosts: all that the last program counts,
//! no shorter than it measures, and no stage ends later than planned. Following changes nothing.

use crate::tally::command;
use diapason::Workspace;
use diapason::formats::schema::wrong_output;
use diapason::metal::Built;
use serde_json::Value;

/// Its messages go there and back, so its last program measures by the clock of the first.
const SYSTEM: (&str, &str) = ("examples/flow.toml", "3s");
/// The list on clocks that run apart, until they differ by more than the period of the flow.
const APART: (&str, &str) = ("tests/systems/drift.toml", "22s");
/// The last program measures from before it seals a message; a message is followed from the request
/// to send it.
const APART_NS: u64 = 20_000;

/// Checks the messages of a flow.
pub fn check(workspace: &Workspace, _: &Built) -> Result<(), String> {
    is_followed(workspace, SYSTEM)
}

/// Checks the messages of a flow between hosts whose clocks run apart.
pub fn apart(workspace: &Workspace, _: &Built) -> Result<(), String> {
    is_followed(workspace, APART)
}

fn is_followed(workspace: &Workspace, list: (&str, &str)) -> Result<(), String> {
    let (plain, traces) = simulated(workspace, list, &[])?;
    let (followed, same) = simulated(workspace, list, &["--stages", "--explain", "ping:worst"])?;
    if traces.is_empty() || !same.starts_with(&traces) {
        return Err(format!("following changes the run:\n{same}\nnot\n{traces}"));
    }
    if !plain["flows"].is_null() {
        return Err("flows without `--stages`".into());
    }
    let flow = &followed["flows"][0];
    let end = &followed["hosts"][0]["chains"][0];
    let number = |of: &Value, key: &str| of[key].as_u64().ok_or(format!("no {key}: {of:#}"));
    // Its last report is from before the end of the run.
    let (seen, counted) = (number(flow, "messages")?, number(end, "messages")?);
    if counted < 100 || seen < counted {
        return Err(format!("{seen} messages were followed, and {counted} counted"));
    }
    let (longest, measured) = (number(flow, "longest_ns")?, number(end, "longest_ns")?);
    if longest + APART_NS < measured || longest > number(flow, "bound_ns")? {
        return Err(format!("the longest took {longest} ns, and {measured} ns were measured"));
    }
    let stages = flow["stages"].as_array().ok_or("no stages")?;
    let mut within = 0;
    for stage in stages {
        within += number(stage, "longest_ns")?;
        if number(stage, "by_end_ns")? > number(stage, "planned_by_end_ns")? {
            return Err(format!("a stage ends later than planned: {stage:#}"));
        }
    }
    if stages.len() != 12 || within < longest {
        return Err(format!("{} stages, which take {within} ns together", stages.len()));
    }
    let life = ["of ping: given to its link at ", "asks to hub:usbd", "hub:router"];
    match life.iter().find(|part| !same.contains(**part)) {
        None => Ok(()),
        Some(part) => Err(format!("the life of the worst message lacks `{part}`:\n{same}")),
    }
}

/// Simulates the list; returns its result, and its traces with all that is said after them.
fn simulated(
    workspace: &Workspace,
    (list, length): (&str, &str),
    options: &[&str],
) -> Result<(Value, String), String> {
    let arguments = ["run", "--quiet", "--bin", "diapason", "--", "sim", list, "--json"];
    let mut run = command(workspace, &arguments);
    let output = run.args(["--for", length]).args(options).output();
    let output = output.map_err(|error| error.to_string())?;
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    if !output.status.success() {
        return Err(said);
    }
    let result: Value = serde_json::from_slice(&output.stdout).map_err(|bad| bad.to_string())?;
    if let Some(wrong) = wrong_output(&result).first() {
        return Err(format!("the result and its schema: {wrong}"));
    }
    let lines = said.lines().skip_while(|line| !line.starts_with("trace "));
    Ok((result, lines.map(|line| format!("{line}\n")).collect()))
}
