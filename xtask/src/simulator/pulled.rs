//! Cables that are pulled, and hosts that lose their power, at any time. The hosts at the cable
//! find it within 100 ms; a bridge shows a dead host by a message that is not taken. Every message
//! of every flow is delivered, lost at a place that has a name, or under way. The network comes
//! back.
//!
//! `DIAPASON_PULLS` is how many runs there are; else a few dozen.

use crate::tally::command;
use diapason::Workspace;
use diapason::formats::schema::wrong_output;
use diapason::metal::Built;
use diapason_random::Random;
use serde_json::Value;

const RUNS: u64 = 24;
pub(super) const LENGTH: &str = "4s";
/// Links have formed by then, and messages have passed.
const FIRST_NS: u64 = 900_000_000;
const LAST_NS: u64 = 1_800_000_000;
/// The longest time without a cable or power; behind it is time for the network to come back.
const AWAY_NS: u64 = 400_000_000;
/// The time in which the other side has to notice. Both ends of the bridge send every 16 ms at
/// most, so a host without power is found in that time, too.
const FOUND_NS: u64 = 100_000_000;
/// Messages that each flow sends at least.
const LEAST: u64 = 60;

/// A list, the cables with the hosts at their ends, and the hosts with their neighbours.
struct List {
    file: &'static str,
    cables: &'static [(&'static str, &'static [&'static str])],
    hosts: &'static [(&'static str, &'static [&'static str])],
}

const LISTS: [List; 2] = [
    List {
        file: "examples/flow.toml",
        cables: &[("asks", &["asker", "hub"]), ("answers", &["hub", "answerer"])],
        hosts: &[("asker", &["hub"]), ("hub", &["asker", "answerer"]), ("answerer", &["hub"])],
    },
    List {
        file: "examples/bridge-flow.toml",
        cables: &[("bridge", &["left", "right"])],
        hosts: &[("left", &["right"]), ("right", &["left"])],
    },
];

/// Pulls something in each of many runs.
pub fn check(workspace: &Workspace, _: &Built) -> Result<(), String> {
    let (mut lost, mut latest) = (0, 0);
    for seed in 0..runs() {
        let (more, found) = one(workspace, seed)?;
        (lost, latest) = (lost + more, latest.max(found));
    }
    println!("{lost} messages were lost and named; found {latest} ns after it happened at most");
    Ok(())
}

/// Returns how many runs there are.
pub(super) fn runs() -> u64 {
    let runs = std::env::var("DIAPASON_PULLS").ok().and_then(|runs| runs.parse().ok());
    runs.unwrap_or(RUNS)
}

/// Returns how many messages a run lost, and how late something was noticed.
fn one(workspace: &Workspace, seed: u64) -> Result<(u64, u64), String> {
    let mut random = Random::new(seed);
    let list = &LISTS[random.index(LISTS.len())];
    let pulls = random.below(3) > 0;
    let (kind, all) = if pulls { ("unplug", list.cables) } else { ("reboot", list.hosts) };
    let (what, noticing) = all[random.index(all.len())];
    let at_ns = random.between(FIRST_NS, LAST_NS);
    let away = random.between(1_000_000, AWAY_NS);
    let fault = format!("{at_ns}ns {kind} {what} {away}ns");
    let wrong =
        |text: String| format!("sim {} --for {LENGTH} --fault \"{fault}\": {text}", list.file);
    let result = simulated(workspace, list.file, &fault, &[1]).map_err(wrong)?;
    let lost = books(&result).map_err(wrong)?;
    let mut latest = 0;
    // A bridge says nothing of its other side: a host that is back sooner was never gone.
    let is_silent = !pulls && list.file.contains("bridge");
    for host in noticing.iter().filter(|_| !is_silent || away > FOUND_NS) {
        latest = latest.max(noticed(&result, host, (at_ns, FOUND_NS)).map_err(wrong)?);
    }
    restored(&result, true).map_err(wrong)?;
    Ok((lost, latest))
}

/// Returns how many messages were lost. Every one that was sent is somewhere.
pub(super) fn books(result: &Value) -> Result<u64, String> {
    let flows = result["flows"].as_array().ok_or("no flows")?;
    let mut all = 0;
    for flow in flows {
        let number = |key: &str| flow["books"][key].as_u64().ok_or(format!("no {key}: {flow:#}"));
        let places = flow["books"]["lost"].as_array().ok_or(format!("no books: {flow:#}"))?;
        let named = places.iter().filter(|it| it["where"].as_str().is_some_and(|it| it.len() > 5));
        let lost: u64 = named.filter_map(|it| it["messages"].as_u64()).sum();
        let (sent, delivered) = (number("sent")?, number("delivered")?);
        let elsewhere = lost + number("late")? + number("under_way")?;
        if sent != delivered + elsewhere || sent < LEAST {
            return Err(format!("messages are missing: {flow:#}"));
        }
        all += lost;
    }
    Ok(all)
}

/// Returns how long after it happened a host noticed that a link was away.
fn noticed(result: &Value, host: &str, (at_ns, within): (u64, u64)) -> Result<u64, String> {
    let hosts = result["hosts"].as_array().ok_or("no hosts")?;
    let found = hosts.iter().find(|it| it["host"] == host).ok_or(format!("no host {host}"))?;
    let links = found["links"].as_array().ok_or(format!("no links of {host}"))?;
    let gone = links.iter().filter_map(|link| link["gone_ns"].as_u64()).min();
    let gone = gone.ok_or(format!("{host} noticed nothing: {links:#?}"))?;
    let findings = format!("{}", found["findings"]);
    if !(at_ns..=at_ns + within).contains(&gone) || !findings.contains("link-gone") {
        return Err(format!("{host} noticed it at {gone} ns; {findings}"));
    }
    Ok(gone - at_ns)
}

/// Checks that all links are there at the end, and that messages came over each if all are `used`.
pub(super) fn restored(result: &Value, used: bool) -> Result<(), String> {
    for host in result["hosts"].as_array().ok_or("no hosts")? {
        let links = host["links"].as_array().ok_or("no links")?;
        let is_away = |link: &&Value| link["here"] != true || used && link["came"] == 0;
        if let Some(away) = links.iter().find(is_away) {
            return Err(format!("a link of {} never came back: {away:#}", host["host"]));
        }
    }
    Ok(())
}

/// Returns the result of a run with a fault, which ends with one of these exit codes.
pub(super) fn simulated(
    workspace: &Workspace,
    list: &str,
    fault: &str,
    codes: &[i32],
) -> Result<Value, String> {
    let arguments = ["sim", list, "--json", "--for", LENGTH, "--fault", fault];
    described(workspace, &arguments, codes)
}

/// Returns the result of a command about a description.
pub(super) fn described(
    workspace: &Workspace,
    arguments: &[&str],
    codes: &[i32],
) -> Result<Value, String> {
    let mut run = command(workspace, &["run", "--quiet", "--bin", "diapason", "--"]);
    let output = run.args(arguments).output().map_err(|error| error.to_string())?;
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    if output.status.code().is_none_or(|code| !codes.contains(&code)) {
        return Err(format!("it ended with {:?}:\n{said}", output.status.code()));
    }
    let result: Value = serde_json::from_slice(&output.stdout).map_err(|bad| bad.to_string())?;
    match wrong_output(&result).first() {
        Some(wrong) => Err(format!("the result and its schema: {wrong}")),
        None => Ok(result),
    }
}
