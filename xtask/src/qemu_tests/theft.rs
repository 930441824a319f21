//! A program takes at most half a per cent of a neighbour's budget in any period, whatever it
//! calls, how often, and how urgent it is.
//!
//! That holds for the end of a process, too: the process pays for it itself.

mod windows;

use super::Observed;
use super::observed::strict;
use crate::tally::Tally;
use diapason::describe::{describe_changed, text_of};
use diapason::metal::Built;
use diapason::outcome::Outcome;
use diapason::session::Session;
use diapason::simulate::Simulation;
use diapason::{Failure, Workspace};
use diapason_abi::recorder::{Entry, EntryKind};
use diapason_abi::{CallNumber, Nanos};
use diapason_core::{Decision, Kernel};
use diapason_sim::{Observer, Options};
use diapason_system::{RunOptions, ServerSpec, System};
use std::collections::BTreeSet;

const SYSTEM: &str = "tests/systems/theft.toml";
const HORIZON_NS: u64 = 500_000_000;
/// One part of a budget in so many is what a neighbour may take.
const PART: u64 = 200;
/// No behaviour of `rude`: it ends at once.
const NOTHING: Mode = mode("nothing", [u64::MAX, 0, 0, 0]);
/// The process that the neighbour starts makes what it may, and faults.
const FALLS: [u64; 4] = [6, 32, 0, 0];

/// A way to misbehave.
struct Mode {
    name: &'static str,
    /// The arguments of `rude`.
    arguments: [u64; 4],
    /// The program ends by faults, and is restarted; or the process that it starts does.
    ends: bool,
    /// The process that it starts faults at once.
    falls: bool,
    /// The program is tried in QEMU, too: no other behaviour of its kind took more there.
    sampled: bool,
}

const fn mode(name: &'static str, arguments: [u64; 4]) -> Mode {
    Mode { name, arguments, ends: false, falls: false, sampled: false }
}

const fn sampled(name: &'static str, arguments: [u64; 4]) -> Mode {
    Mode { sampled: true, ..mode(name, arguments) }
}

const fn ending(name: &'static str, arguments: [u64; 4]) -> Mode {
    Mode { ends: true, ..sampled(name, arguments) }
}

const MODES: [Mode; 23] = [
    mode("hog", [0, 0, 0, 0]),
    mode("rearm", [1, 64, 650, 1_500]),
    sampled("rearm, more often", [1, 64, 300, 100]),
    mode("ring", [2, 64, 4_000, 2]),
    mode("greedy", [3, 20_000, 4, 1_000]),
    mode("talk", [4, 100, 0, 0]),
    mode("post", [5, 256, 100, 0]),
    ending("fall", [6, 32, 3_000, 0]),
    mode("churn", [7, 32, 500, 0]),
    mode("nap", [8, 100, 20, 0]),
    mode("cling", [9, 20, 100, 0]),
    sampled("reopen", [10, 50, 0, 0]),
    mode("beg", [11, 50, 0, 0]),
    ending("crowd", [12, 32, 2_000, 4]),
    mode("idle", [13, 20, 0, 0]),
    mode("announce", [14, 32, 200, 0]),
    mode("attach", [15, 4_000, 100, 0]),
    mode("breed", [16, 500, 100, 0]),
    Mode { falls: true, ends: true, ..mode("breed, and it falls", [16, 60, 0, 0]) },
    mode("bell", [17, 50, 0, 0]),
    mode("hire", [18, 32, 200, 0]),
    mode("ask", [19, 50, 0, 0]),
    mode("retune", [20, 100, 0, 0]),
];

/// The budget and the period of the neighbour's VCPU, above or below that of the victim.
const RANKS: [(&str, u64, u64); 2] =
    [("more urgent", 1_000_000, 5_000_000), ("less urgent", 3_000_000, 30_000_000)];

type Test = fn(&Stage<'_>) -> Result<(), String>;

const TESTS: [(&str, Test); 3] = [
    ("simulator: no call takes a neighbour's budget", simulated),
    ("QEMU: no call takes a neighbour's budget", booted),
    ("simulator: in no window a call takes a neighbour's budget", windows::simulated),
];

/// Runs the tests, if their names contain `part`.
pub fn run(workspace: &Workspace, built: &Built, part: &str, tally: &mut Tally) {
    let stage = Stage { workspace, built };
    for (name, test) in TESTS.into_iter().filter(|(name, _)| name.contains(part)) {
        tally.step(name, || test(&stage));
    }
}

/// The parts that a run needs.
struct Stage<'a> {
    workspace: &'a Workspace,
    built: &'a Built,
}

/// The calls that the neighbour made.
#[derive(Default)]
struct Calls {
    thief: u16,
    runs: u16,
    made: BTreeSet<u64>,
}

impl Observer for Calls {
    fn entry(&mut self, entry: &Entry) {
        let is_call = matches!(entry.kind, EntryKind::Quick | EntryKind::Syscall);
        if is_call && self.runs == self.thief {
            self.made.insert(entry.detail.into());
        }
    }

    fn decided(&mut self, _: Nanos, _: Nanos, kernel: &Kernel<'_>, decision: &Decision) {
        self.runs = running(kernel, decision);
    }
}

/// Returns the process that runs now; `u16::MAX` if none does.
fn running(kernel: &Kernel<'_>, decision: &Decision) -> u16 {
    if decision.run.is_some() { kernel.process().index() } else { u16::MAX }
}

/// Simulates a system, and shows it to an observer.
fn watched(session: &Session, observer: &mut impl Observer) -> Result<Outcome, String> {
    // Keeping programs apart takes most of the time, and shows nothing here.
    let how = Options { check: false, isolate: false, ..strict() };
    let run = Simulation::new(session, &how).run(observer);
    Ok(run.map_err(|failure| failure.to_string())?.run.outcome)
}

/// Gives the VCPU of a process this budget and period.
fn serve(system: &mut System, process: &str, (budget, period): (u64, u64)) -> Result<(), String> {
    let own = system.processes[place(system, process)?].vcpu;
    let own = own.ok_or_else(|| format!("{process} has no VCPU"))?;
    let ServerSpec::Main { budget_ns, period_ns, .. } = &mut system.vcpus[usize::from(own)].server
    else {
        return Err(format!("the VCPU of {process} serves others"));
    };
    (*budget_ns, *period_ns) = (budget, period);
    Ok(())
}

impl Stage<'_> {
    /// Returns the system with the neighbour in this mode, at this rank.
    fn session(&self, mode: &Mode, rank: (u64, u64)) -> Result<Session, String> {
        self.session_of(mode, rank, HORIZON_NS, "", |_| Ok(()))
    }

    /// Returns what [`Stage::session`] returns, of another length, with more in the description and
    /// with a change.
    fn session_of(
        &self,
        mode: &Mode,
        rank: (u64, u64),
        horizon_ns: u64,
        more: &str,
        change: impl FnOnce(&mut System) -> Result<(), String>,
    ) -> Result<Session, String> {
        let file = self.workspace.root().join(SYSTEM);
        let said = |failure: Failure| failure.to_string();
        let text = text_of(&file).map_err(said)? + more;
        let mut system = describe_changed(&file, &text).map_err(said)?;
        let (thief, pawn) = (place(&system, "thief")?, place(&system, "rude.pawn")?);
        if mode.falls {
            system.processes[pawn].arguments = FALLS;
        }
        let thief = &mut system.processes[thief];
        thief.arguments = mode.arguments;
        serve(&mut system, "thief", rank)?;
        change(&mut system)?;
        let options = RunOptions { horizon_ns, record_bytes: 0, watch: false };
        Session::assemble(system, self.built.clone(), options).map_err(|why| why.to_string())
    }

    fn simulate(&self, session: &Session) -> Result<(u64, BTreeSet<u64>), String> {
        let thief = number(&session.system, "thief")?;
        let mut calls = Calls { thief, runs: u16::MAX, ..Calls::default() };
        let outcome = watched(session, &mut calls)?;
        Ok((cost(session, &outcome.threads)?, calls.made))
    }

    fn boot(&self, session: &Session) -> Result<u64, String> {
        let boot = Observed::boot(self.workspace, session)?;
        cost(session, &boot.run.outcome.threads)
    }
}

fn place(system: &System, process: &str) -> Result<usize, String> {
    let mut all = system.processes.iter();
    all.position(|it| it.name == process).ok_or_else(|| format!("no process {process}"))
}

fn number(system: &System, process: &str) -> Result<u16, String> {
    u16::try_from(place(system, process)?).map_err(|wrong| wrong.to_string())
}

/// Returns the most budget that one job of the victim used.
fn cost(session: &Session, threads: &[diapason::outcome::ThreadRow]) -> Result<u64, String> {
    let victim = place(&session.system, "victim")? as u64;
    let jobs = threads.iter().find(|row| row.process == victim).filter(|row| row.jobs > 60);
    let jobs = jobs.ok_or("the victim did too few jobs")?;
    Ok(jobs.cost.ok_or("nobody counted what the victim's jobs cost")?.most_ns)
}

/// The most that was taken, by neighbours that live on and by those that end.
#[derive(Default)]
struct Most {
    living: (u64, String),
    ending: (u64, String),
}

impl Most {
    /// Notes what a mode took, and checks it.
    fn note(
        &mut self,
        session: &Session,
        mode: &Mode,
        rank: &str,
        taken: u64,
    ) -> Result<(), String> {
        let name = format!("{}, {rank}", mode.name);
        let allowed = budget(&session.system)? / PART;
        let most = if mode.ends { &mut self.ending } else { &mut self.living };
        if taken >= most.0 {
            *most = (taken, name.clone());
        }
        if taken <= allowed {
            return Ok(());
        }
        Err(format!("`{name}` takes {taken} ns of a job's budget, {allowed} ns are allowed"))
    }

    fn say(&self) {
        let Most { living, ending } = self;
        println!(
            "at most {} ns are taken ({}), by the end of a process {} ns ({})",
            living.0, living.1, ending.0, ending.1
        );
    }
}

fn budget(system: &System) -> Result<u64, String> {
    let victim = &system.processes[place(system, "victim")?];
    let vcpu = victim.vcpu.ok_or("the victim has no VCPU")?;
    match system.vcpus[usize::from(vcpu)].server {
        ServerSpec::Main { budget_ns, .. } => Ok(budget_ns),
        ServerSpec::Io { .. } => Err("the victim's VCPU serves others".into()),
    }
}

fn simulated(stage: &Stage<'_>) -> Result<(), String> {
    let (mut most, mut made) = (Most::default(), BTreeSet::new());
    for (rank, own, period) in RANKS {
        let (alone, _) = stage.simulate(&stage.session(&NOTHING, (own, period))?)?;
        for mode in &MODES {
            let session = stage.session(mode, (own, period))?;
            let (with, calls) = stage.simulate(&session)?;
            made.extend(calls);
            most.note(&session, mode, rank, with.saturating_sub(alone))?;
        }
    }
    most.say();
    let missing = CallNumber::ALL.iter().filter(|call| !made.contains(&(**call as u64)));
    let missing: Vec<&str> = missing.map(|call| call.name()).collect();
    if missing.is_empty() { Ok(()) } else { Err(format!("no mode calls {}", missing.join(", "))) }
}

fn booted(stage: &Stage<'_>) -> Result<(), String> {
    let mut most = Most::default();
    let (rank, own, period) = RANKS[0];
    let alone = stage.boot(&stage.session(&NOTHING, (own, period))?)?;
    for mode in MODES.iter().filter(|mode| mode.sampled) {
        let session = stage.session(mode, (own, period))?;
        let with = stage.boot(&session)?;
        most.note(&session, mode, rank, with.saturating_sub(alone))?;
    }
    most.say();
    Ok(())
}
