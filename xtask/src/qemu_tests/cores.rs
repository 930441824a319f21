//! Two cores in one simulation: what crosses arrives, and nothing else does.

use crate::tally::Tally;
use diapason::Workspace;
use diapason::metal::Built;
use diapason::qemu::Ending;
use diapason::session::Session;
use diapason::simulate::{Joined, Seat, together};
use diapason_sim::{Observer, Options, Said};
use diapason_system::{RunOptions, parse_cores};
use std::fs;

const EXAMPLE: &str = "examples/two-cores.toml";
const HORIZON_NS: u64 = 2_000_000_000;

type Test = fn(&Stage<'_>) -> Result<(), String>;

const TESTS: [(&str, Test); 3] = [
    ("a core does the same whatever another has to do", undisturbed),
    ("messages and rings of one core arrive on another", arrive),
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

/// The fate of a core: how it ended, the hash of its kernel's entries, and its log.
type Core = (Ending, u64, Vec<String>);

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
        let cores = cores.map_err(|failure| failure.to_string())?.into_iter().zip(watchers);
        Ok(cores.map(|(core, lines)| (core.run.ending, core.hash, lines.0)).collect())
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

/// The numbers of the logger's last line: rings, job, broken messages, longest age in ns.
fn arrive(stage: &Stage<'_>) -> Result<(), String> {
    let cores = stage.run(&stage.text()?, &Options::default())?;
    let last = cores[1].2.iter().rev().find_map(|line| line.strip_prefix("CORES "));
    let numbers = last.ok_or_else(|| format!("the logger said {:?}", cores[1].2))?;
    let numbers: Vec<u64> = numbers.split(' ').filter_map(|word| word.parse().ok()).collect();
    let [rings, job, broken, longest] = numbers[..] else { return Err(format!("{numbers:?}")) };
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
