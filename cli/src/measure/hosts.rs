//! The hosts of a list: they run together in QEMU, and each is counted.
//!
//! Proposals for a host go into its own description. Hosts with one description get what the
//! busiest of them needs.

use super::propose::{self, Chosen, UsageCounts};
use super::{MeasureRequest, Measured, counted, options, render, written};
use crate::describe::{describe_list, refused};
use crate::failure::{BROKEN, Failure, HOLDS};
use crate::formats::named;
use crate::input::Input;
use crate::interrupt;
use crate::output::{note, write};
use crate::plan::{NetworkPlan, Plan, Unproved};
use crate::several::Several;
use crate::together;
use crate::tools::QEMU;
use crate::workspace::Workspace;
use diapason_system::{Hosts, HostsPlace, Revision, revised};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Runs the hosts, counts, and proposes. The exit code says whether the plan of all of them and of
/// their network holds with what is proposed.
///
/// # Errors
/// If there was no whole run to count, or a description cannot be written.
pub(super) fn measure(request: &MeasureRequest, mut list: Hosts) -> Result<u8, Failure> {
    let crewed = list.hosts.iter().position(|host| !host.others.is_empty());
    if let Some(host) = crewed {
        let title = format!("`{}` has several cores", list.hosts[host].name);
        let note = "`measure` takes lists of hosts with one core each";
        let help = format!("measure that host alone: {}", list.hosts[host].file);
        return Err(refused(&list.problem(HostsPlace::Host(host), [&title, note, &help])));
    }
    let network = together::instruct(&mut list)?;
    let slice = together::slice(&list);
    let folder = request.system.parent().unwrap_or(Path::new(""));
    let files: Vec<PathBuf> = list.hosts.iter().map(|host| folder.join(&host.file)).collect();
    let workspace = Workspace::find()?;
    QEMU.require(request.missing)?;
    let several = Several::hosts(list, &network).marked();
    let (mut sessions, joined) =
        several.assemble(&workspace, &request.system, options(request), Some(Unproved))?;
    sessions.iter_mut().for_each(|(_, session)| session.slice = slice);
    interrupt::await_signals()?;
    note("running the hosts in QEMU");
    let parts: Vec<_> = sessions.iter().map(|(_, session)| session).collect();
    let ran = together::boot(&workspace, &parts, joined.joints(), &mut |_, _| {})?;
    let mut counts = Vec::new();
    for ((session, run), file) in parts.iter().zip(&ran.runs).zip(&files) {
        counts.push(counted(session, run, file, request.margin)?);
    }
    let chosen = Proposals::of(&request.system, &files, &counts)?;
    if request.write {
        chosen.texts.iter().try_for_each(|(file, text)| written(file, text))?;
    }
    let about =
        sessions.iter().zip(&counts).zip(&files).map(|(((host, session), counts), file)| {
            let name = &session.system.name;
            (host, Measured { name, file, request, counts }, &chosen.by_file[file])
        });
    if request.json {
        let objects = about.zip(&ran.runs).map(|((host, about, chosen), run)| {
            named("host", host, render::as_json(&about, run, chosen))
        });
        let objects: Value = objects.collect();
        let (format, holds) = (render::FORMAT, chosen.holds);
        let all =
            json!({ "format": format, "result": "measure", "holds": holds, "hosts": objects });
        write(&format!("{all:#}\n"));
    } else {
        let tables = about.map(|(host, about, chosen)| {
            format!("host {host}\n\n{}", render::as_tables(&about, chosen))
        });
        let verdict = if chosen.holds { "hold" } else { "do not hold" };
        let tables = tables.collect::<Vec<String>>().join("\n");
        write(&format!("{tables}\nall hosts and their network: {verdict}\n"));
    }
    Ok(if chosen.holds { HOLDS } else { BROKEN })
}

/// The changes of all descriptions of a list.
struct Proposals {
    by_file: BTreeMap<PathBuf, Chosen>,
    /// The new text of each description that changes.
    texts: BTreeMap<PathBuf, String>,
    /// The list holds with all changes.
    holds: bool,
}

impl Proposals {
    /// Chooses changes, one description after the other. The list is judged as a whole each time.
    fn of(list: &Path, files: &[PathBuf], counts: &[UsageCounts]) -> Result<Proposals, Failure> {
        let mut together: BTreeMap<&PathBuf, UsageCounts> = BTreeMap::new();
        for (file, counts) in files.iter().zip(counts) {
            match together.get_mut(file) {
                Some(others) => others.join(counts),
                None => drop(together.insert(file, counts.clone())),
            }
        }
        let (mut by_file, mut texts) = (BTreeMap::new(), BTreeMap::new());
        for (file, counts) in together {
            let text = Input::Description.text(file).map_err(|error| {
                Failure::Input(format!("error: cannot read {}: {error}", file.display()))
            })?;
            let judge = |changes: &[Revision]| {
                let mut changed = texts.clone();
                changed.insert(file.clone(), revised(&text, changes));
                wrong(list, &changed).ok()
            };
            let chosen = propose::choose(&counts, judge);
            if !chosen.changes.is_empty() {
                texts.insert(file.clone(), revised(&text, &chosen.changes));
            }
            by_file.insert(file.clone(), chosen);
        }
        let holds = wrong(list, &texts)? == 0;
        Ok(Proposals { by_file, texts, holds })
    }
}

/// Returns how much the plan of a list finds wrong if some of its files were changed.
fn wrong(list: &Path, changed: &BTreeMap<PathBuf, String>) -> Result<usize, Failure> {
    let mut hosts = describe_list(list, changed)?;
    let network = NetworkPlan::of(&hosts);
    network.instruct(&mut hosts);
    let of_host = |system: &diapason_system::System| Plan::of(system).findings.len();
    let of_hosts: usize = hosts.hosts.iter().map(|host| of_host(&host.system)).sum();
    Ok(of_hosts + network.wrong().count())
}
