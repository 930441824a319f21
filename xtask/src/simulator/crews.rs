//! A host with several cores in a list: nobody sees at which place of the list it is, or that it
//! has more cores than the one with its cable. Cores that hear nothing of other hosts do what they
//! do without them.

use crate::tally::command;
use diapason::Workspace;
use diapason::metal::Built;
use std::collections::BTreeMap;
use std::fs;

/// The hosts of `PLAIN`, one of which has three cores.
const LIST: &str = "tests/systems/flow-cores.toml";
const PLAIN: &str = "examples/flow.toml";
/// The host of the list with several cores.
const HOST: &str = "tests/systems/asker-cores.toml";
/// Its cores that hear nothing of others, in the list and alone.
const APART: [(&str, &str); 2] = [("asker core 0", "core 0"), ("asker core 2", "core 2")];
/// The first words of each host in the list.
const BEGINS: &str = "[[host]]\n";
/// The name of the sum of all traces.
const ALL: &str = "all";
const LENGTH: &str = "2s";

/// Compares runs of the list in both orders of its hosts, of the list with single cores, and of the
/// host alone.
pub fn check(workspace: &Workspace, _: &Built) -> Result<(), String> {
    let (holds, there) = traces(workspace, LIST)?;
    let turned = turned(workspace)?;
    let again = traces(workspace, &turned);
    fs::remove_file(&turned).map_err(|error| error.to_string())?;
    if !holds || again? != (true, there.clone()) {
        return Err(format!("in the other order of hosts they do not hold and do {there:?}"));
    }
    // Alone the host does not hold: nobody is at the other end of its cable.
    let ((_, plain), (_, alone)) = (traces(workspace, PLAIN)?, traces(workspace, HOST)?);
    let hosts = plain.iter().filter(|(name, _)| *name != ALL);
    let mut wanted: Vec<(&str, Option<&String>)> =
        hosts.map(|(name, trace)| (&**name, Some(trace))).collect();
    wanted.extend(APART.iter().map(|(name, core)| (*name, alone.get(*core))));
    let strange = wanted.iter().find(|(name, trace)| trace.is_none() || there.get(*name) != *trace);
    match strange {
        None if wanted.len() == 5 => Ok(()),
        _ => Err(format!("wanted: {wanted:?}; found: {there:?}")),
    }
}

/// Returns the path of the list with its hosts in the other order.
fn turned(workspace: &Workspace) -> Result<String, String> {
    let text = fs::read_to_string(workspace.root().join(LIST)).map_err(|bad| bad.to_string())?;
    let end = text.find("[[cable]]").ok_or("no cable")?;
    let (hosts, rest) = text.split_at(end);
    let mut hosts: Vec<&str> = hosts.split(BEGINS).skip(1).collect();
    hosts.reverse();
    let hosts: String = hosts.iter().map(|host| format!("{BEGINS}{host}")).collect();
    let name = LIST.replace(".toml", &format!("-{}.toml", std::process::id()));
    let path = workspace.root().join(name);
    fs::write(&path, hosts + rest).map_err(|bad| bad.to_string())?;
    Ok(path.display().to_string())
}

/// Simulates a description; whether it holds, and the traces of its parts, by name.
fn traces(workspace: &Workspace, file: &str) -> Result<(bool, BTreeMap<String, String>), String> {
    let arguments = ["run", "--quiet", "--bin", "diapason", "--", "sim", file, "--for", LENGTH];
    let output = command(workspace, &arguments).output().map_err(|error| error.to_string())?;
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    let lines = said.lines().filter_map(|line| line.strip_prefix("trace "));
    let traces = lines.filter_map(|line| line.split_once(" of "));
    let traces = traces.map(|(hash, part)| (part.to_owned(), hash.to_owned()));
    Ok((output.status.success(), traces.collect()))
}
