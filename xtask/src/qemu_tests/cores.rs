//! Two cores in one simulation: what crosses arrives, and nothing else does.

use crate::tally::Tally;
use diapason::Workspace;
use diapason::metal::Built;
use diapason::qemu::MachineEnding;
use diapason::session::Session;
use diapason::simulate::{Joined, Seat, together};
use diapason_sim::{Observer, Options, Said};
use diapason_system::{RunOptions, parse_cores};
use std::fs;

const EXAMPLE: &str = "examples/two-cores.toml";
const HORIZON_NS: u64 = 2_000_000_000;

type Test = fn(&Stage<'_>) -> Result<(), String>;

const TESTS: [(&str, Test); 4] = [
    ("a core does the same whatever another has to do", undisturbed),
    ("messages and rings of one core arrive on another", arrive),
    ("a doorbell that rings too soon is held back", held_back),
    ("cores of a run are equal in every run, kept apart or not", repeated),
];

/// Runs every test whose name contains `part`.
pub fn run(workspace: &Workspace, built: &Built, part: &str, tally: &mut Tally) {
    let stage = Stage { workspace, built };
    for (name, test) in TESTS {
        let name = format!("simulator: {name}");
        if name.contains(part) {
            tally.step(&name, || test(&stage));
        }
    }
}

/// The parts needed to run cores.
struct Stage<'a> {
    workspace: &'a Workspace,
    built: &'a Built,
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
    fn text(&self) -> Result<String, String> {
        fs::read_to_string(self.workspace.root().join(EXAMPLE)).map_err(|error| error.to_string())
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
    let hog = text.find("[[process]]\nname = \"hog\"").ok_or("there is no hog")?;
    let after = text[hog..].find("[[segment]]").ok_or("nothing follows the hog")?;
    let quiet = format!("{}{}", &text[..hog], &text[hog + after..]);
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
