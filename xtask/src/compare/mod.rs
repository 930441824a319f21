//! The two machines held against each other: random task sets, in QEMU and in the simulator, and
//! scripts of USB traffic (`scripts`).
//!
//! Three things must hold for every task set. QEMU's record replays through the core to the last
//! decision. Every thread does the same things in the same order on both machines. No job ends
//! earlier in the simulator than on the metal, because its costs are maxima. But for two things.
//!
//! A budget that lies in more pieces on one machine (start-up takes another time there) rings the
//! timer more often: where the metal was entered more often during a job, that job may take that
//! much longer.
//!
//! And where threads lock a mutex, a microsecond decides who is first, so an entry that takes
//! longer can make a job end earlier: the old anomaly of sections that nothing preempts. That is
//! all that it can do: as long as threads have the mutex in the same order on both machines, from
//! an instant at which both are idle until a job has ended on both, that job does not end earlier.
//! In whatever order: without budgets, what the simulator has done when it has nothing left to do,
//! the metal has done, too.

mod events;
mod order;
pub(crate) mod scripts;
mod sets;

use crate::qemu_tests::observed::Observed;
use diapason::metal::Built;
use diapason::session::{RECORD_BYTES, Session};
use diapason::simulate::Simulation;
use diapason::tools::{Missing, QEMU};
use diapason::{Failure, Workspace, metal};
use diapason_abi::recorder::Entry;
use diapason_random::Random;
use diapason_sim::{Costs, Observer, Options};
use diapason_system::{RunOptions, System};
pub(crate) use events::lives;
use events::{Life, entered};
use order::{Course, same_order};
use std::collections::BTreeMap;

/// Scripts of USB traffic, and what they are about.
const SCRIPTS_SYSTEM: &str = "tests/systems/usb-scripts.toml";
/// QEMU's clock: an instruction is a nanosecond.
const CLOCK_HZ: u64 = 1_000_000_000;
/// When the programs' first releases begin, as `user/apps/tasks` has it.
const START_NS: u64 = 100_000_000;
/// Longest timer entry, with what is around it.
const ENTRY_MAX: i64 = 1_800;
/// How long each set runs.
const HORIZON_NS: u64 = 300_000_000;

/// How much later jobs ended in the simulator, in ns.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Spread {
    jobs: u64,
    earlier: u64,
    /// In sets with a mutex; of these, those before which another thread had it first.
    locking: u64,
    parted: u64,
    /// Times that nothing was left to do.
    rests: u64,
    least: i64,
    most: i64,
    sum: i64,
}

impl Spread {
    const EMPTY: Spread = Spread {
        jobs: 0,
        earlier: 0,
        locking: 0,
        parted: 0,
        rests: 0,
        least: i64::MAX,
        most: i64::MIN,
        sum: 0,
    };

    fn note(&mut self, later: i64) {
        self.jobs += 1;
        self.earlier += u64::from(later < 0);
        self.sum += later;
        (self.least, self.most) = (self.least.min(later), self.most.max(later));
    }

    fn add(&mut self, other: &Spread) {
        self.jobs += other.jobs;
        self.earlier += other.earlier;
        self.locking += other.locking;
        self.parted += other.parted;
        self.rests += other.rests;
        self.sum += other.sum;
        (self.least, self.most) = (self.least.min(other.least), self.most.max(other.most));
    }
}

impl std::fmt::Display for Spread {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mean = self.sum / i64::try_from(self.jobs.max(1)).unwrap_or(1);
        let Spread { jobs, earlier, locking, parted, rests, least, most, .. } = self;
        write!(
            f,
            "{jobs} jobs ended {least} to {most} ns later in the simulator, {mean} on average; \
             {earlier} ended earlier, with more entries on the metal or another order of locks; \
             {locking} jobs were of sets with a mutex, {parted} of them after another order; \
             {rests} times everything was done, first on the metal"
        )
    }
}

/// Keeps the entries of a simulated run.
#[derive(Default)]
pub(crate) struct Recording(pub Vec<Entry>);

impl Observer for Recording {
    fn entry(&mut self, entry: &Entry) {
        self.0.push(*entry);
    }
}

/// The first sets of the campaign that are always the same.
pub fn systems(count: u64) -> Result<Vec<System>, Failure> {
    let mut random = Random::new(0);
    let system = |number| {
        let text = sets::description(&mut random, number);
        diapason_system::parse("set", &text).map_err(|bad| Failure::Ours(bad.plain()))
    };
    (0..count).map(system).collect()
}

/// Compares `count` sets; `from` seeds them.
pub fn sets(workspace: &Workspace, built: &Built, count: u64, from: u64) -> Result<Spread, String> {
    let (mut random, mut all) = (Random::new(from), Spread::EMPTY);
    for number in 0..count {
        let text = sets::description(&mut random, number);
        match one(workspace, built, &text) {
            Ok(Some(spread)) => all.add(&spread),
            // The set asks for more than there is; its refusal is tested elsewhere.
            Ok(None) => {}
            Err(wrong) => return Err(format!("{wrong}\nin set {number} of seed {from}:\n{text}")),
        }
    }
    Ok(all)
}

/// Compares one set; `None` if its description cannot hold.
fn one(workspace: &Workspace, built: &Built, text: &str) -> Result<Option<Spread>, String> {
    let system = diapason_system::parse("set", text).map_err(|bad| bad.plain())?;
    let options = RunOptions { horizon_ns: HORIZON_NS, record_bytes: RECORD_BYTES, watch: false };
    let session = match Session::assemble(system, built.clone(), options) {
        Ok(session) => session,
        Err(Failure::NotAdmitted(_)) => return Ok(None),
        Err(failure) => return Err(failure.to_string()),
    };
    let metal = Observed::boot(workspace, &session)?;
    metal.replays_equal()?;
    let mut recording = Recording::default();
    // QEMU keeps the flight record, which takes its time.
    let how = Options { costs: Costs::recording(CLOCK_HZ), ..Options::default() };
    let simulation = Simulation::new(&session, &how);
    simulation.run(&mut recording).map_err(|failure| failure.to_string())?;
    let flight = metal.flight()?;
    let (metal, sim) = (lives(&flight), lives(&recording.0));
    let mut spread = Spread::EMPTY;
    let courses = [Course::of(&flight), Course::of(&recording.0)];
    if session.system.vcpus.is_empty() {
        spread.rests = done_first([&metal, &sim], &courses[1])?;
    }
    for (thread, life) in &metal {
        let other = sim.get(thread).ok_or(format!("thread {thread} never ran in the simulator"))?;
        let task = Task::of(&session, *thread);
        let flights = [&flight[..], &recording.0[..]];
        compare(task, flights, &courses, [life, other], &mut spread).map_err(|(at, wrong)| {
            let (metal, sim) = (around(&flight, at), around(&recording.0, at));
            format!("thread {thread}: {wrong}\non the metal:\n{metal}in the simulator:\n{sim}")
        })?;
    }
    Ok(Some(spread))
}

/// When the jobs of a thread are released. Every process has one thread.
#[derive(Clone, Copy)]
struct Task {
    thread: u16,
    first: u64,
    period: u64,
    /// Some thread of the set locks a mutex.
    locks: bool,
}

impl Task {
    fn of(session: &Session, thread: u16) -> Task {
        let [phase, period, ..] = session.system.processes[usize::from(thread)].arguments;
        let locks = session.system.processes.iter().any(|process| process.arguments[3] > 0);
        Task { thread, first: START_NS + phase * 1_000, period: period * 1_000, locks }
    }

    fn release(self, job: u64) -> u64 {
        self.first + job * self.period
    }
}

/// Returns the entries up to an instant, as they were decided.
fn around(entries: &[Entry], at: u64) -> String {
    const SHOWN: usize = 12;
    let end = entries.iter().rposition(|entry| entry.now != 0 && entry.now <= at).unwrap_or(0);
    let shown = &entries[end.saturating_sub(SHOWN)..=end.min(entries.len() - 1)];
    let line = |e: &Entry| {
        format!("  {} {:?} {} -> {}, alarm {}\n", e.now, e.kind, e.detail, e.run, e.alarm)
    };
    shown.iter().map(line).collect()
}

/// One thread's two lives. The metal boots later, so its run may end a few events earlier.
fn compare(
    task: Task,
    flights: [&[Entry]; 2],
    [course, other]: &[Course; 2],
    [metal, sim]: [&Life; 2],
    spread: &mut Spread,
) -> Result<(), (u64, String)> {
    for (index, (a, b)) in metal.deeds.iter().zip(&sim.deeds).enumerate() {
        if a != b {
            let wrong = format!("event {index}: {a:?} on the metal, {b:?} in the simulator");
            return Err((u64::MAX, wrong));
        }
    }
    if metal.ends.is_empty() || metal.ends.len().abs_diff(sim.ends.len()) > 1 {
        let (metal, sim) = (metal.ends.len(), sim.ends.len());
        return Err((u64::MAX, format!("{metal} jobs on the metal, {sim} in the simulator")));
    }
    for (job, (a, b)) in metal.ends.iter().zip(&sim.ends).enumerate() {
        let later = *b as i64 - *a as i64;
        let release = task.release(job as u64);
        let promised = !task.locks || same_order([course, other], task.thread, job, release);
        spread.locking += u64::from(task.locks);
        spread.parted += u64::from(!promised);
        if later < 0 && promised {
            let more = entered(flights[0], release, *a) - entered(flights[1], release, *b);
            if -later > more.max(0) * ENTRY_MAX {
                let wrong =
                    format!("job {job} ended {} ns earlier, with {more} entries less", -later);
                return Err((*a, wrong));
            }
        }
        spread.note(later);
    }
    Ok(())
}

/// Whenever everything is done in the simulator, the metal has done it, too: so often.
fn done_first([metal, sim]: [&BTreeMap<u16, Life>; 2], course: &Course) -> Result<u64, String> {
    let mut rests = 0;
    let by = |life: &Life, time: u64| life.ends.iter().filter(|end| **end <= time).count();
    for rest in course.rests() {
        rests += 1;
        for (thread, life) in metal {
            let other = sim.get(thread).map_or(0, |life| by(life, rest));
            // The metal's record may end before the run does.
            if by(life, rest) < other.min(life.ends.len()) {
                return Err(format!("all is done at {rest} ns, but thread {thread} on the metal"));
            }
        }
    }
    Ok(rests)
}

/// The random task sets or scripts that somebody asked for, and their seed.
#[derive(clap::Args)]
pub(crate) struct Asked {
    /// Random task sets, job by job.
    #[arg(long, value_name = "N", default_value_t = 100)]
    sets: u64,
    /// Scripts of USB traffic, in place of task sets.
    #[arg(long, value_name = "N", conflicts_with = "sets")]
    scripts: Option<u64>,
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
}

/// Returns the campaign as a command.
pub fn command(workspace: &Workspace, asked: &Asked) -> Result<u8, Failure> {
    QEMU.require(Missing::Install)?;
    let built = metal::build(workspace)?;
    let Asked { sets: count, scripts, seed } = *asked;
    let said = match scripts {
        Some(count) => {
            scripts::compare(workspace, &built, count, seed).map(|equal| equal.to_string())
        }
        None => sets(workspace, &built, count, seed).map(|spread| {
            format!("{count} sets: replayed exactly, same order of events; {spread}")
        }),
    };
    let (text, code) = match said {
        Ok(text) => (text, diapason::failure::HOLDS),
        Err(wrong) => (wrong, diapason::failure::BROKEN),
    };
    println!("{text}");
    Ok(code)
}
