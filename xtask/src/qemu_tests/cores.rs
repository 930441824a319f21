//! Two cores, simulated and booted: what crosses arrives, and nothing else does.
//!
//! The processors of the tests of booted cores are threads of this computer, which really run at
//! the same time. So they compare what is decided and done, and no times. Their clock goes slower
//! than the computer's: a pause of the computer is short then.

use super::Observed;
use crate::compare::{Recording, lives};
use crate::tally::Tally;
use diapason::console::Line;
use diapason::cores::{Processors, archives, boot};
use diapason::hardware::{Firmware, Inserted, Medium};
use diapason::metal::Built;
use diapason::plan::{Plan, Unproved};
use diapason::qemu::{Boot, MachineEnding, RunFolder};
use diapason::session::{RECORD_BYTES, Session};
use diapason::simulate::{Joined, Seat, together};
use diapason::stick;
use diapason::{Failure, Workspace};
use diapason_abi::archive::Refusal;
use diapason_abi::record::Record;
use diapason_abi::recorder::Entry;
use diapason_sim::{Costs, Observer, Options, Said};
use diapason_system::{RunOptions, System, parse_cores};
use std::fs;

const EXAMPLE: &str = "examples/two-cores.toml";
const HORIZON_NS: u64 = 2_000_000_000;
/// The speed of the simulated processors.
const CLOCK_HZ: u64 = 1_000_000_000;

type Test = fn(&Stage<'_>) -> Result<(), String>;

const TESTS: [(&str, Test); 9] = [
    ("simulator: a core does the same whatever another has to do", undisturbed),
    ("simulator: messages and rings of one core arrive on another", arrive),
    ("simulator: a doorbell that rings too soon is held back", held_back),
    ("simulator: cores of a run are equal in every run, kept apart or not", repeated),
    ("booted cores: two cores decide as simulated ones do", decided_alike),
    ("booted cores: faults on one core change nothing on another", beside_faults),
    ("booted cores: a storm of interrupts on one core changes nothing on another", beside_storm),
    ("booted cores: a machine with too few processors is refused", too_few),
    ("booted cores: an image boots all of them, by BIOS and UEFI", from_image),
];

/// Runs every test whose name contains `part`.
pub fn run(workspace: &Workspace, built: &Built, part: &str, tally: &mut Tally) {
    let stage = Stage { workspace, built };
    for (name, test) in TESTS.into_iter().filter(|(name, _)| name.contains(part)) {
        tally.step(name, || test(&stage));
    }
}

/// The parts needed to run cores.
pub(super) struct Stage<'a> {
    pub workspace: &'a Workspace,
    pub built: &'a Built,
}

/// The lines that a core's programs logged.
#[derive(Default)]
struct Lines(Vec<String>);

impl Observer for Lines {
    fn hear(&mut self, said: Said) {
        if let Said::Log(_, text) = said {
            self.0.push(text);
        }
    }
}

/// The fate of a core: how it ended, the hash of its kernel's entries, its log, and what is wrong
/// with it.
type Core = (MachineEnding, u64, Vec<String>, Vec<String>);

impl Stage<'_> {
    /// Returns the text of the example.
    pub fn text(&self) -> Result<String, String> {
        fs::read_to_string(self.workspace.root().join(EXAMPLE)).map_err(|error| error.to_string())
    }

    /// Returns the text without the process that never stops.
    pub fn without_hog(&self) -> Result<String, String> {
        let text = self.text()?;
        let hog = text.find("[[process]]\nname = \"hog\"").ok_or("there is no hog")?;
        let after = text[hog..].find("[[segment]]").ok_or("nothing follows the hog")?;
        Ok(format!("{}{}", &text[..hog], &text[hog + after..]))
    }

    fn run(&self, text: &str, how: &Options) -> Result<Vec<Core>, String> {
        let systems = parse_cores(EXAMPLE, text).map_err(|bad| bad.plain())?;
        let options = RunOptions { horizon_ns: HORIZON_NS, record_bytes: 0, watch: false };
        let assemble = |system| Session::assemble(system, self.built.clone(), options);
        let sessions: Result<Vec<Session>, _> = systems.into_iter().map(assemble).collect();
        let sessions = sessions.map_err(|failure| failure.to_string())?;
        let mut watchers: Vec<Lines> = Vec::new();
        watchers.resize_with(sessions.len(), Default::default);
        let seat =
            |(session, observer)| Seat { session, how: how.clone(), faults: Vec::new(), observer };
        let seats = sessions.iter().zip(&mut watchers).map(seat);
        let cores = together(seats.collect(), &Joined::Cores);
        let cores = cores.map_err(|failure| failure.to_string())?.into_iter();
        let judged = cores.zip(&sessions).map(|(core, session)| {
            let findings = session.judge(&core.run).findings();
            (core.run.ending, core.hash, findings)
        });
        let with_lines = judged.zip(watchers);
        Ok(with_lines
            .map(|((ending, hash, findings), Lines(log))| (ending, hash, log, findings))
            .collect())
    }
}

/// The example, without its process that never stops, and with a logger that has all the time.
fn undisturbed(stage: &Stage<'_>) -> Result<(), String> {
    let text = stage.text()?;
    let quiet = stage.without_hog()?;
    let roomy = text.replace("budget = \"500us\"", "budget = \"9ms\"");
    let how = Options { check: true, ..Options::default() };
    let expected = stage.run(&text, &how)?;
    for (what, text) in [("no hog", quiet), ("more time", roomy)] {
        let found = stage.run(&text, &how)?;
        if found[0] != expected[0] {
            return Err(format!("{what}: {:x?}, not {:x?}", found[0], expected[0]));
        }
        if found[1].1 == expected[1].1 {
            return Err(format!("{what} makes no difference on core 1 either"));
        }
    }
    Ok(())
}

/// Returns the numbers of the logger's last line: rings, job, broken messages, longest age in ns.
fn heard_by_logger(cores: &[Core]) -> Result<[u64; 4], String> {
    let last = cores[1].2.iter().rev().find_map(|line| line.strip_prefix("CORES "));
    let numbers = last.ok_or_else(|| format!("the logger said {:?}", cores[1].2))?;
    let numbers: Vec<u64> = numbers.split(' ').filter_map(|word| word.parse().ok()).collect();
    numbers.try_into().map_err(|numbers| format!("{numbers:?}"))
}

/// The controller rings every 10 ms. With an `interval` of 45 ms, its core may not interrupt the
/// other one more often than that, and the run says that it tried.
fn held_back(stage: &Stage<'_>) -> Result<(), String> {
    const INTERVAL_NS: u64 = 45_000_000;
    let text = stage.text()?.replace("interval = \"9ms\"", "interval = \"45ms\"");
    let cores = stage.run(&text, &Options { check: true, ..Options::default() })?;
    let [rings, ..] = heard_by_logger(&cores)?;
    let most = HORIZON_NS / INTERVAL_NS + 2;
    let names =
        |text: &&String| text.starts_with("alarm interrupt-distance") && text.contains("ready");
    let Some(alarm) = cores[1].3.iter().find(names) else {
        return Err(format!("nothing names the doorbell: {:?}", cores[1].3));
    };
    println!("{rings} rings of at most {most}; {alarm}");
    if rings > most || rings < most / 2 {
        return Err(format!("{rings} rings came through, at most {most} may"));
    }
    Ok(())
}

/// Messages and rings arrive.
fn arrive(stage: &Stage<'_>) -> Result<(), String> {
    let cores = stage.run(&stage.text()?, &Options::default())?;
    let [rings, job, broken, longest] = heard_by_logger(&cores)?;
    println!("{rings} rings up to job {job}, the oldest message {longest} ns old");
    // A ring for every ten jobs of a millisecond, heard at once: the logger has budget.
    let heard = rings >= HORIZON_NS / 10_000_000 - 21 && job >= 10 * rings;
    if !heard || broken > 0 || longest >= 100_000 {
        return Err(format!("{rings} rings, job {job}, {broken} broken, {longest} ns"));
    }
    Ok(())
}

fn repeated(stage: &Stage<'_>) -> Result<(), String> {
    let text = stage.text()?;
    let first = stage.run(&text, &Options::default())?;
    let strict = Options { check: true, isolate: true, ..Options::default() };
    for how in [Options::default(), strict] {
        let again = stage.run(&text, &how)?;
        if again != first {
            return Err(format!("{again:x?}, first {first:x?}"));
        }
    }
    Ok(())
}

/// The processors of these tests really run at the same time. A pause of the computer of 10 ms
/// takes a sixth of the controller's period.
pub(super) const PARALLEL: Processors = Processors::Parallel { slower: 6 };
/// Processors that run at the same time, with kernels that keep the computer's time.
pub(super) const AT_FULL_PACE: Processors = Processors::Parallel { slower: 0 };
/// How long they run: up to 100 jobs of the controller, and 10 rings. Boot takes a part of it.
const BOOTED_NS: u64 = 100_000_000;
/// A controller that did fewer jobs was not compared.
const JOBS_MIN: usize = 50;

/// A process on the second core that faults and is restarted, over and over.
const FAULTS: &str = r#"
[[vcpu]]
name = "noise"
budget = "10ms"
period = "20ms"
[[process]]
name = "supervisor"
core = 1
priority = 63
vcpu = "noise"
[[process]]
name = "diagnosis"
program = "victim"
core = 1
priority = 10
vcpu = "noise"
uses = ["tally"]
restart = "always"
backoff = "1us"
supervisor = "supervisor"
[[segment]]
name = "tally"
size = "4K"
"#;

/// A process on a third core that rings the doorbell of the second, as often as it can.
const STORM: &str = r#"
[[process]]
name = "ringer"
program = "cores-hog"
core = 2
priority = 63
arguments = [1]
uses = ["ready"]
"#;

/// A host with several cores that was booted and simulated.
pub(super) struct Both {
    booted: Vec<Observed>,
    /// The entries into each simulated kernel.
    simulated: Vec<Vec<Entry>>,
}

impl Stage<'_> {
    /// Returns the sessions of the cores of a text, to be recorded.
    fn recorded(&self, text: &str) -> Result<Vec<(String, Session)>, String> {
        let record_bytes = RECORD_BYTES;
        self.sessions(text, RunOptions { horizon_ns: BOOTED_NS, record_bytes, watch: false })
    }

    /// Returns the sessions of the cores of a text that run for two seconds.
    fn unrecorded(&self, text: &str) -> Result<Vec<(String, Session)>, String> {
        let options = RunOptions { horizon_ns: HORIZON_NS, record_bytes: 0, watch: false };
        self.sessions(text, options)
    }

    /// Returns the sessions of the cores of a text.
    pub fn sessions(
        &self,
        text: &str,
        options: RunOptions,
    ) -> Result<Vec<(String, Session)>, String> {
        self.planned(&parse_cores(EXAMPLE, text).map_err(|bad| bad.plain())?, options)
    }

    /// Returns the sessions of these cores of a host, each with its number.
    pub fn planned(
        &self,
        systems: &[System],
        options: RunOptions,
    ) -> Result<Vec<(String, Session)>, String> {
        let session = |plan: Plan| {
            let name = plan.system().core.to_string();
            let session = Session::planned(plan, self.built.clone(), options, Some(Unproved));
            Ok((name, session.map_err(|failure| failure.to_string())?))
        };
        Plan::of_cores(systems).into_iter().map(session).collect()
    }

    /// Runs the cores of a text on both machines, for so long with boot.
    pub fn both(
        &self,
        text: &str,
        processors: Processors,
        horizon_ns: u64,
    ) -> Result<Both, String> {
        let how = RunOptions { horizon_ns, record_bytes: RECORD_BYTES, watch: false };
        let mut sessions = self.sessions(text, how)?;
        let mut recordings: Vec<Recording> = Vec::new();
        recordings.resize_with(sessions.len(), Default::default);
        let how = Options { costs: Costs::recording(CLOCK_HZ), ..Options::default() };
        let seats = sessions.iter().zip(&mut recordings).map(|((_, session), observer)| Seat {
            session,
            how: how.clone(),
            faults: Vec::new(),
            observer,
        });
        together(seats.collect(), &Joined::Cores).map_err(|failure| failure.to_string())?;
        let mut lines: Vec<Vec<Line>> = sessions.iter().map(|_| Vec::new()).collect();
        let mut hear = |core: usize, line: &Line| lines[core].push(line.clone());
        let runs = boot(self.workspace, &mut sessions, processors, &mut hear);
        let runs = runs.map_err(|failure| failure.to_string())?.into_iter();
        let all = runs.zip(&sessions).zip(lines);
        let booted = all.map(|((run, (_, session)), lines)| Observed::of(session, run, lines));
        let simulated = recordings.into_iter().map(|Recording(entries)| entries).collect();
        Ok(Both { booted: booted.collect::<Result<_, String>>()?, simulated })
    }
}

impl Both {
    /// Each booted core must have decided what the kernel on this computer decides of the same
    /// entries, and each thread have done the same in the same order as in the simulator. Returns
    /// how many things each thread of a core did on both machines.
    pub fn agree(&self, core: usize) -> Result<Vec<usize>, String> {
        let booted = &self.booted[core];
        booted.holds()?;
        booted.replays_equal()?;
        let (metal, sim) = (lives(&booted.flight()?), lives(&self.simulated[core]));
        let mut counts = Vec::new();
        for (thread, life) in &metal {
            let Some(other) = sim.get(thread) else { continue };
            let alike = life.deeds.iter().zip(&other.deeds);
            if let Some((at, (a, b))) = alike.enumerate().find(|(_, (a, b))| a != b) {
                return Err(format!(
                    "core {core}, thread {thread}, deed {at}: {a:?} booted, {b:?} simulated"
                ));
            }
            counts.push(life.deeds.len().min(other.deeds.len()));
        }
        println!("core {core}: deeds {counts:?} on both machines");
        Ok(counts)
    }

    /// The controller on the first core did as in the simulator, and enough to tell.
    pub fn controls(&self) -> Result<(), String> {
        let deeds = self.agree(0)?;
        let jobs = self.booted[0].run.outcome.threads.iter().map(|row| row.jobs).sum::<u64>();
        println!("{jobs} jobs of the controller");
        match deeds.first() {
            Some(deeds) if *deeds >= JOBS_MIN => Ok(()),
            _ => Err(format!("the controller did {deeds:?}")),
        }
    }
}

/// The example on both machines. A ring of the first core is heard on the second.
fn decided_alike(stage: &Stage<'_>) -> Result<(), String> {
    let both = stage.both(&stage.text()?, PARALLEL, BOOTED_NS)?;
    both.controls()?;
    both.agree(1)?;
    let rings: u64 = both.booted[1].run.outcome.devices.iter().map(|row| row.interrupts).sum();
    println!("{rings} rings heard");
    if rings < 4 { Err(format!("only {rings} rings were heard")) } else { Ok(()) }
}

/// Beside a process that faults, the first core does as it does alone.
fn beside_faults(stage: &Stage<'_>) -> Result<(), String> {
    let both = stage.both(&(stage.text()? + FAULTS), PARALLEL, BOOTED_NS)?;
    let restarts = both.booted[1].process("diagnosis")?.restarts();
    println!("{restarts} restarts");
    if restarts < 10 {
        return Err(format!("only {restarts} restarts"));
    }
    both.controls()
}

/// Beside a core whose doorbell is rung all the time, the first core does as it does alone. The
/// rings are held back to their interval of 9 ms, and go on to be heard.
fn beside_storm(stage: &Stage<'_>) -> Result<(), String> {
    let text = stage.text()?.replace("cores = 2", "cores = 3") + STORM;
    let both = stage.both(&text, PARALLEL, BOOTED_NS)?;
    let devices = &both.booted[1].run.outcome.devices;
    let most = devices.iter().map(|row| row.interrupts).max().unwrap_or(0);
    println!("{most} rings heard in {} ms", BOOTED_NS / 1_000_000);
    if !(4..=13).contains(&most) {
        return Err(format!("{most} rings were heard"));
    }
    both.controls()
}

/// Two archives for a machine with one processor.
fn too_few(stage: &Stage<'_>) -> Result<(), String> {
    let sessions = stage.recorded(&stage.text()?)?;
    let all: Vec<&Session> = sessions.iter().map(|(_, session)| session).collect();
    let archive = archives(&all, 0);
    let machine = Boot { archive: &archive, ..sessions[0].1.boot() };
    let mut refusals = Vec::new();
    let booted = machine.run(&stage.workspace.target(), &mut |line| {
        if let Line::Record(Record::ArchiveRefused, words) = line {
            refusals.push(words[0]);
        }
    });
    let ending = booted.map_err(|failure| failure.to_string())?.ending;
    match (ending, &refusals[..]) {
        (MachineEnding::NoArchive, [why]) if *why == Refusal::Processors as u64 => Ok(()),
        other => Err(format!("{other:?}")),
    }
}

/// An image has the archives of all cores, and firmware has started the processors before.
fn from_image(stage: &Stage<'_>) -> Result<(), String> {
    let said = |failure: Failure| failure.to_string();
    super::require_firmware()?;
    let mut sessions = stage.unrecorded(&stage.text()?)?;
    let folder = RunFolder::create(&stage.workspace.target()).map_err(said)?;
    let file = folder.path().join("stick.img");
    let all: Vec<&Session> = sessions.iter().map(|(_, session)| session).collect();
    stick::make(&all, stage.workspace, &file).map_err(said)?;
    for firmware in [Firmware::Bios, Firmware::Uefi] {
        let medium = Medium::Disc;
        sessions[0].1.inserted = Some(Inserted { file: file.clone(), firmware, medium });
        let runs =
            boot(stage.workspace, &mut sessions, AT_FULL_PACE, &mut |_, _| ()).map_err(said)?;
        let jobs: u64 = runs[0].outcome.threads.iter().map(|row| row.jobs).sum();
        let rings: u64 = runs[1].outcome.devices.iter().map(|row| row.interrupts).sum();
        println!("{firmware:?}: {:?}, {jobs} jobs, {rings} rings", runs[0].ending);
        let ended = runs.iter().all(|run| run.ending == MachineEnding::Finished);
        if !ended || jobs == 0 || rings == 0 {
            return Err(format!("{firmware:?}: {jobs} jobs, {rings} rings"));
        }
    }
    Ok(())
}
