//! `diapason measure`: what the works of programs take, counted in QEMU, and the times and budgets
//! that follow from it.
//!
//! A run with the flight record says when each thread ran, and marks in the programs say which
//! work it was. One instruction is one nanosecond there. The count is the longest that this run has
//! seen, and no bound: the margin is for what another input would take.

mod account;
mod apart;
mod hosts;
mod names;
mod propose;
mod render;

use crate::describe::{cores_changed, describe_any, describe_united, text_of};
use crate::failure::{BROKEN, Failure, HOLDS};
use crate::outcome::RunVerdict;
use crate::output::{note, tell, write};
use crate::plan::{Plan, Unproved};
use crate::qemu::MachineEnding;
use crate::session::{FinishedRun, RECORD_BYTES, Session};
use crate::tools::{Missing, QEMU};
use crate::workspace::Workspace;
use crate::{duration, flight, interrupt, project};
use account::Accounts;
use diapason_abi::Key;
use diapason_system::works::apart_of_servers;
use diapason_system::{Description, Revision, RunOptions, System, revised};
use propose::UsageCounts;
use std::path::{Path, PathBuf};

/// The request to `measure`.
#[derive(Clone, Debug, clap::Args)]
pub struct MeasureRequest {
    #[arg(default_value = "system.toml")]
    pub system: PathBuf,
    /// How long the system runs, in its own time.
    #[arg(long = "for", value_name = "TIME", default_value = "3s", value_parser = duration::parse,
        allow_hyphen_values = true)]
    pub horizon_ns: u64,
    /// The margin on top of the longest that was seen, in per cent.
    #[arg(long, value_name = "PERCENT", default_value_t = 50,
        value_parser = clap::value_parser!(u32).range(0..=1000))]
    pub margin: u32,
    /// Write what is proposed into the description.
    #[arg(long)]
    pub write: bool,
    /// Print what was measured as JSON.
    #[arg(long)]
    pub json: bool,
    /// The reaction to a missing emulator.
    #[arg(skip = Missing::Say)]
    pub missing: Missing,
}

/// Runs a system in QEMU, or the hosts of a list together, counts, and proposes. The exit code says
/// whether the plan holds with what is proposed. A system of several cores runs on one, where its
/// works take the same instructions, and is planned core by core.
///
/// # Errors
/// If there was no whole run to count, or a description cannot be written.
pub fn measure(request: &MeasureRequest) -> Result<u8, Failure> {
    let system = match describe_any(&request.system)? {
        Description::Several(list) => return hosts::measure(request, list),
        Description::One(system) => *system,
        Description::Cores(_) => {
            note("the processes of all cores run on one");
            describe_united(&request.system)?
        }
    };
    let text = text_of(&request.system)?;
    let (session, run) = watched(request, system)?;
    let measured = counted(&session, &run, &request.system, request.margin)?;
    let judge = |changes: &[Revision]| {
        let cores = cores_changed(&request.system, &revised(&text, changes)).ok()?;
        Some(Plan::of_cores(&cores).iter().map(|plan| plan.findings.len()).sum())
    };
    let chosen = propose::choose(&measured, judge);
    if request.write && !chosen.changes.is_empty() {
        let path = &request.system;
        cores_changed(path, &revised(&text, &chosen.changes))?;
        written(path, &revised(&text, &chosen.changes))?;
    }
    let name = &session.system.name;
    let about = Measured { name, file: &request.system, request, counts: &measured };
    write(&if request.json {
        format!("{:#}\n", render::as_json(&about, &run, &chosen))
    } else {
        render::as_tables(&about, &chosen)
    });
    Ok(if chosen.holds { HOLDS } else { BROKEN })
}

/// The measurements of one system.
struct Measured<'a> {
    name: &'a str,
    /// The file of its description.
    file: &'a Path,
    request: &'a MeasureRequest,
    counts: &'a UsageCounts,
}

fn written(path: &Path, text: &str) -> Result<(), Failure> {
    std::fs::write(path, text)
        .map_err(|error| Failure::io(format!("write {}", path.display()), &error))
}

/// Returns the options of a run that is counted.
const fn options(request: &MeasureRequest) -> RunOptions {
    RunOptions { horizon_ns: request.horizon_ns, record_bytes: RECORD_BYTES, watch: false }
}

/// Runs the system with the flight record and marks in its programs. Its plan need not hold: the
/// times that it lacks are what is to be counted.
fn watched(request: &MeasureRequest, system: System) -> Result<(Session, FinishedRun), Failure> {
    let workspace = Workspace::find()?;
    QEMU.require(request.missing)?;
    note("building the kernel and the programs");
    let mut built = project::build(&workspace, &request.system, &[&system])?;
    built.marked = true;
    let plan = Plan::of(&system);
    let session = Session::planned(plan, built, options(request), Some(Unproved))?;
    interrupt::await_signals()?;
    note("running the system in QEMU");
    let run = session.run(&workspace, &mut |_| {})?;
    Ok((session, run))
}

/// Returns the counts of a run whose description is in `file`.
fn counted(
    session: &Session,
    run: &FinishedRun,
    file: &Path,
    margin: u32,
) -> Result<UsageCounts, Failure> {
    usable(session, run)?;
    let parts = apart_of_servers().map(|(part, whole)| (Key::new(part).0, Key::new(whole).0));
    let accounts = Accounts::of(&record(run)?, &parts.collect());
    let names = names::known(&session.system, file);
    Ok(UsageCounts::of(session, run, &accounts, &names, margin))
}

/// Checks that a run can be counted, and says if it broke promises.
fn usable(session: &Session, run: &FinishedRun) -> Result<(), Failure> {
    match session.judge(run) {
        RunVerdict::Bug(text) => Err(Failure::Ours(text)),
        _ if !matches!(run.ending, MachineEnding::Finished | MachineEnding::Halted) => {
            Err(Failure::Input(format!(
                "error: the run was cut short: {:?}\nhelp: `diapason run` says more",
                run.ending
            )))
        }
        RunVerdict::Broken(_) => {
            tell("note: the run broke promises, and what was late may be missing in the counts:");
            session.judge(run).findings().iter().for_each(|finding| tell(&format!("  {finding}")));
            Ok(())
        }
        RunVerdict::Holds => Ok(()),
    }
}

/// Returns the flight record, which must be whole.
fn record(run: &FinishedRun) -> Result<Vec<diapason_abi::recorder::Entry>, Failure> {
    let bytes = run.flight.as_deref().unwrap_or_default();
    let entries = flight::entries(bytes).map_err(|damage| Failure::Ours(damage.to_string()))?;
    let is_whole = run.outcome.recorded == Some(entries.len() as u64);
    let lost = run.outcome.losses.iter().any(|loss| loss.contains("flight recorder"));
    if lost {
        let last = entries.last().map_or(0, |entry| entry.now);
        return Err(Failure::Input(format!(
            "error: the flight record was full after {} of the run\n\
             help: measure a shorter time, for example `--for {}ms`",
            duration::human(last),
            (last / 1_000_000).max(1),
        )));
    }
    if is_whole { Ok(entries) } else { Err(Failure::Ours("the flight record is not whole".into())) }
}
