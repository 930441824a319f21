//! Several hosts, and the cores of one, under the options of `sim` that look closer: searches,
//! faults, explanations, captures and pictures.

use crate::tally::command;
use diapason::Workspace;
use diapason::failure::UNPROVED;
use diapason::formats::schema::wrong_output;
use diapason::metal::Built;
use diapason::qemu::RunFolder;
use serde_json::Value;
use std::path::Path;

const CORES: &str = "examples/two-cores.toml";
/// A list of hosts with pipes, which nothing joins.
const PIPES: &str = "examples/two-hosts.toml";
/// A list of hosts, which cables join.
const HOSTS: &str = "examples/ring.toml";

/// Checks all of it.
pub fn check(workspace: &Workspace, _: &Built) -> Result<(), String> {
    searched(workspace)?;
    let job = sim(workspace, CORES, &["--explain", "controller:7"], 0)?;
    says(&job, "core 0: job 7 of controller.thread0: released at")?;
    let worst = sim(workspace, CORES, &["--explain", "worst"], 0)?;
    says(&worst, "core 0: job ")?;
    let message = sim(workspace, PIPES, &["--explain", "right:brakes:worst"], 0)?;
    says(&message, "right: message ")?;
    let worst = sim(workspace, PIPES, &["--explain", "worst"], 0)?;
    says(&worst, "left: message ")?;
    let folder = RunFolder::create(&workspace.target()).map_err(|failure| failure.to_string())?;
    written(workspace, folder.path())
}

/// A search of cores and one of hosts find nothing, and name what broke, with its part.
fn searched(workspace: &Workspace) -> Result<(), String> {
    for list in [CORES, HOSTS] {
        let said = sim(workspace, list, &["--search", "3", "--traces"], 0)?;
        says(&said, "3 seeds, no promise broken\n")?;
        if said.matches("trace ").count() != 3 {
            return Err(format!("three seeds without three traces: {said}"));
        }
    }
    let crash = ["--search", "2", "--fault", "100ms crash logger"];
    let said = sim(workspace, CORES, &crash, 1)?;
    says(&said, "seed 0: core 1: process logger, which may not fault")?;
    says(&said, "--fault \"100ms crash logger\" --seed 0 --explain worst")
}

/// Captures and pictures of each part lie in a folder of its own. The JSON of each has its stages.
fn written(workspace: &Workspace, folder: &Path) -> Result<(), String> {
    let text = folder.display().to_string();
    let options = ["--svg", &text, "--pcap", &text, "--stages", "--json"];
    // Nothing is promised of the hosts.
    for (list, key, code) in [(CORES, "cores", 0), (HOSTS, "hosts", UNPROVED.into())] {
        let said = sim(workspace, list, &options, code)?;
        let (json, _) = said.split_once("\n}\n").ok_or("no object")?;
        let whole: Value =
            serde_json::from_str(&format!("{json}\n}}")).map_err(|e| e.to_string())?;
        if let Some(wrong) = wrong_output(&whole).first() {
            return Err(format!("the result and its schema: {wrong}"));
        }
        let parts = whole[key].as_array().ok_or("no parts")?;
        if parts.len() < 2 || parts.iter().any(|part| part["stages"].is_null()) {
            return Err(format!("parts of {list} without stages"));
        }
    }
    let drawn = ["core-0/responses-controller_thread0.svg", "core-1/responses.svg"];
    for file in drawn.into_iter().chain(["h0/usb0.pcap", "h0/responses.svg"]) {
        if !folder.join(file).is_file() {
            return Err(format!("{file} is not written"));
        }
    }
    Ok(())
}

fn says(said: &str, part: &str) -> Result<(), String> {
    if said.contains(part) { Ok(()) } else { Err(format!("it does not say `{part}`: {said}")) }
}

/// Returns what a simulation says, its results first, if it ends with this code.
fn sim(workspace: &Workspace, list: &str, options: &[&str], code: i32) -> Result<String, String> {
    let arguments = ["run", "--quiet", "--bin", "diapason", "--", "sim", list, "--for", "300ms"];
    let output = command(workspace, &arguments).args(options).output();
    let output = output.map_err(|error| error.to_string())?;
    let mut said = String::from_utf8_lossy(&output.stdout).into_owned();
    said += &String::from_utf8_lossy(&output.stderr);
    let ended = output.status.code();
    if ended == Some(code) { Ok(said) } else { Err(format!("{list}: {ended:?}: {said}")) }
}
