//! The trace that opens in Perfetto: what its importer would drop or draw wrongly is not in it, and
//! what the run did is.

use super::CONCENTRATOR;
use crate::tally::command;
use diapason::Workspace;
use diapason::metal::Built;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

/// The length of the simulated run.
const LENGTH: &str = "500ms";
const LENGTH_US: f64 = 500_000.0;
/// No VCPU of the system has more budget.
const BUDGET_MAX_US: f64 = 1_000.0;
/// The tracks of the core: the running thread, and the kernel. They never overlap.
const CORE: [(u64, u64); 2] = [(1, 0), (1, 1)];
/// Groups that must have slices: core, threads, interrupts, the first USB bus.
const DRAWN: [u64; 4] = [1, 2, 4, 100];

type Track = (u64, u64);

/// Checks the sheets of pictures.
pub fn check(workspace: &Workspace, _: &Built) -> Result<(), String> {
    let path = workspace.target().join("tmp").join("sheet.json");
    std::fs::create_dir_all(path.parent().unwrap_or(&path)).map_err(|bad| bad.to_string())?;
    let arguments = ["run", "--quiet", "-p", "diapason", "--", "sim", CONCENTRATOR];
    let mut run = command(workspace, &arguments);
    run.args(["--for", LENGTH, "--trace"]).arg(&path);
    let output = run.output().map_err(|bad| bad.to_string())?;
    if !output.status.success() {
        return Err(String::from_utf8_lossy(&output.stderr).into_owned());
    }
    let text = std::fs::read_to_string(&path).map_err(|bad| bad.to_string())?;
    std::fs::remove_file(&path).map_err(|bad| bad.to_string())?;
    let sheet: Value = serde_json::from_str(&text).map_err(|bad| bad.to_string())?;
    let events = sheet["traceEvents"].as_array().ok_or("no list of events")?;
    budgets(events)?;
    slices(events)
}

fn number(event: &Value, key: &str) -> u64 {
    event[key].as_u64().unwrap_or(u64::MAX)
}

fn track(event: &Value) -> Track {
    (number(event, "pid"), number(event, "tid"))
}

fn of_kind<'e>(events: &'e [Value], kind: &'e str) -> impl Iterator<Item = &'e Value> {
    events.iter().filter(move |event| event["ph"] == kind)
}

/// Each is one that a VCPU can have.
fn budgets(events: &[Value]) -> Result<(), String> {
    let mut values = of_kind(events, "C").filter_map(|event| event["args"]["us"].as_f64());
    let wrong = values.find(|value| !(0.0..=BUDGET_MAX_US).contains(value));
    wrong.map_or(Ok(()), |value| Err(format!("a VCPU has a budget of {value} us")))
}

/// In nanoseconds, as the importer counts, slices of a track do not overlap. All are named.
fn slices(events: &[Value]) -> Result<(), String> {
    let mut tracks: BTreeMap<Track, Vec<(u64, u64)>> = BTreeMap::new();
    for slice in of_kind(events, "X") {
        let nanos = |key: &str| (slice[key].as_f64().unwrap_or(-1.0) * 1_000.0).round() as u64;
        let (from, length) = (nanos("ts"), nanos("dur"));
        if length == 0 || (from + length) as f64 > LENGTH_US * 1_000.0 {
            return Err(format!("from {from} for {length} ns: {slice}"));
        }
        tracks.entry(track(slice)).or_default().push((from, from + length));
    }
    let named = of_kind(events, "M").filter(|event| event["name"] == "thread_name");
    let named: BTreeSet<Track> = named.map(track).collect();
    if let Some(nameless) = tracks.keys().find(|track| !named.contains(track)) {
        return Err(format!("the track {nameless:?} has no name"));
    }
    let groups: BTreeSet<u64> = tracks.keys().map(|track| track.0).collect();
    if let Some(empty) = DRAWN.iter().find(|group| !groups.contains(group)) {
        return Err(format!("nothing is drawn in group {empty}"));
    }
    let core = CORE.iter().filter_map(|track| tracks.get(track)).flatten().copied().collect();
    tracks.insert((u64::MAX, 0), core);
    for (track, slices) in &mut tracks {
        slices.sort_unstable();
        if let Some(pair) = slices.windows(2).find(|pair| pair[0].1 > pair[1].0) {
            return Err(format!("slices overlap in the track {track:?}: {pair:?}"));
        }
    }
    Ok(())
}
