//! Every machine simulates the same: runs of fixed seeds, and the hashes that they left where they
//! were accepted. To accept new ones, run the step with `DIAPASON_BLESS=1`.
//!
//! A trace has the arguments of calls, and those hold addresses that the compiler chose. So each
//! run has a second hash, of each decision's thread, time and cause, which only the sources change;
//! and the trace is compared where the programs are the same to the byte.

use super::session;
use diapason::Workspace;
use diapason::metal::Built;
use diapason::simulate::{Simulation, drawn, works};
use diapason_abi::recorder::Entry;
use diapason_sim::{Observer, Options, Trace};
use std::fs;

/// Where the hashes are kept.
const FILE: &str = "tests/traces.txt";
/// The first line of the file.
const HEAD: &str = "# What runs of fixed seeds leave: cargo xtask test --qemu \"fixed seeds\"\n";

/// A run: the system, its seed, and whether things go wrong as that says.
const RUNS: [(&str, Option<u64>, bool); 7] = [
    ("examples/engine.toml", None, false),
    ("examples/vcpus.toml", Some(1), true),
    ("examples/can-concentrator.toml", None, false),
    ("examples/can-concentrator.toml", Some(3), true),
    ("examples/usb-devices.toml", Some(2), true),
    ("tests/systems/server.toml", Some(5), true),
    ("tests/systems/whole.toml", Some(4), false),
];
const HORIZON_NS: u64 = 3_000_000_000;

/// Both hashes of a run.
#[derive(Default)]
pub(super) struct Hashes {
    trace: Trace,
    /// The hash of what only the sources change.
    pub timeline: Trace,
}

impl Observer for Hashes {
    fn entry(&mut self, entry: &Entry) {
        self.trace.entry(entry);
        self.timeline.entry(&Entry { arguments: [0; 5], result: 0, ..*entry });
    }
}

/// The hashes kept of a run.
#[derive(PartialEq, Eq)]
struct Kept {
    run: String,
    /// The hash of the archive that was booted.
    programs: String,
    trace: String,
    timeline: String,
}

impl Kept {
    fn line(&self) -> String {
        let Kept { run, programs, trace, timeline } = self;
        format!("{run}: programs {programs} trace {trace} timeline {timeline}\n")
    }

    fn parse(line: &str) -> Option<Kept> {
        let (run, rest) = line.split_once(": programs ")?;
        let (programs, rest) = rest.split_once(" trace ")?;
        let (trace, timeline) = rest.split_once(" timeline ")?;
        let [run, programs, trace, timeline] = [run, programs, trace, timeline].map(str::to_owned);
        Some(Kept { run, programs, trace, timeline })
    }

    /// Returns whether this run is as the one that was kept.
    fn agrees(&self, kept: &Kept) -> bool {
        let same = self.programs == kept.programs;
        self.timeline == kept.timeline && (!same || self.trace == kept.trace)
    }
}

fn hash(bytes: &[u8]) -> u64 {
    bytes.iter().fold(Trace::default().0, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3)
    })
}

fn run(
    workspace: &Workspace,
    built: &Built,
    (file, seed, faults): (&str, Option<u64>, bool),
) -> Result<Kept, String> {
    let session = session(workspace, built, file, HORIZON_NS)?;
    let mut hashes = Hashes::default();
    let how = Options { works: works(&session, seed), ..Options::default() };
    let seeded = seed.filter(|_| faults);
    let faults = seeded.map(|seed| drawn(&session.system, seed, HORIZON_NS)).unwrap_or_default();
    let simulation = Simulation::new(&session, &how).with_faults(&faults);
    simulation.run(&mut hashes).map_err(|failure| failure.to_string())?;
    let seed = seed.map_or(String::new(), |seed| format!(" --seed {seed}"));
    let faults = if faults.is_empty() { "" } else { " --faults" };
    Ok(Kept {
        run: format!("{file}{seed}{faults}"),
        programs: format!("{:016x}", hash(&session.archive)),
        trace: format!("{:016x}", hashes.trace.0),
        timeline: format!("{:016x}", hashes.timeline.0),
    })
}

/// Checks the traces of fixed seeds.
pub fn check(workspace: &Workspace, built: &Built) -> Result<(), String> {
    let path = workspace.root().join(FILE);
    let runs: Result<Vec<Kept>, String> =
        RUNS.iter().map(|one| run(workspace, built, *one)).collect();
    let runs = runs?;
    if std::env::var_os("DIAPASON_BLESS").is_some() {
        let lines: String = runs.iter().map(Kept::line).collect();
        fs::write(&path, format!("{HEAD}{lines}")).map_err(|error| error.to_string())?;
    }
    let text = fs::read_to_string(&path).map_err(|error| format!("{FILE}: {error}"))?;
    let kept: Vec<Kept> = text.lines().filter_map(Kept::parse).collect();
    let other = runs.iter().filter(|run| !kept.iter().any(|kept| kept.programs == run.programs));
    println!("of {} runs {} had other programs than those kept", runs.len(), other.count());
    let differs = |run: &&Kept| !kept.iter().any(|kept| kept.run == run.run && run.agrees(kept));
    let differing: String = runs.iter().filter(differs).map(Kept::line).collect();
    if differing.is_empty() && kept.len() == runs.len() {
        return Ok(());
    }
    Err(format!("other than {FILE} keeps (accept with DIAPASON_BLESS=1):\n{differing}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_trace_counts_where_the_programs_are_the_same() {
        let kept = |programs: &str, trace: &str, timeline: &str| {
            let line =
                format!("a.toml --seed 1: programs {programs} trace {trace} timeline {timeline}");
            Kept::parse(&line).unwrap()
        };
        let one = kept("p", "t", "l");
        assert_eq!(Kept::parse(one.line().trim_end()).unwrap().line(), one.line());
        assert!(one.agrees(&kept("p", "t", "l")) && one.agrees(&kept("q", "u", "l")));
        assert!(!one.agrees(&kept("p", "u", "l")) && !one.agrees(&kept("q", "t", "m")));
        assert!(Kept::parse("# head").is_none());
    }
}
