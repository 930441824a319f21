//! What kernel operations cost, counted in instructions.
//!
//! `examples/bench.toml` boots a program that measures and logs one line per operation;
//! `examples/storm.toml`, watched, gives the longest kernel path. Nothing here measures: it
//! boots, collects, and compares with [`targets`].

mod report;
pub mod targets;

pub use report::Report;

use crate::console::Line;
use crate::image::Image;
use crate::metal::{self, Built};
use crate::outcome::{LongestPath, Verdict};
use crate::session::{Run, Session, describe};
use crate::{Failure, Workspace, words};
use diapason_system::RunOptions;

/// Descriptions this is measured with, below the workspace's root.
pub const BENCH: &str = "examples/bench.toml";
/// Hostile processes with random calls: where the longest kernel path is looked for.
pub const STORM: &str = "examples/storm.toml";
/// Time the benchmark program has, in ns. It ends by itself long before.
const BENCH_NS: u64 = 60_000_000_000;
/// Length of the watched storm, in ns.
const STORM_NS: u64 = 2_000_000_000;

/// What one operation costs.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Operation {
    /// Its name; `docs/bench.md` says what is counted.
    pub name: String,
    /// Instructions, median of the runs.
    pub median: u64,
    /// Instructions, largest of the runs.
    pub max: u64,
    /// How often it was measured.
    pub runs: u64,
    /// CR3 writes in a thousand operations.
    pub cr3: u64,
    /// MSR writes in a thousand operations.
    pub msr: u64,
    /// Device accesses in a thousand operations.
    pub mmio: u64,
}

impl Operation {
    /// The operation a logged text reports: `BENCH name median max runs cr3 msr mmio`.
    #[must_use]
    pub fn parse(text: &str) -> Option<Operation> {
        let mut words = text.strip_prefix("BENCH ")?.split_ascii_whitespace();
        let name = words.next()?.to_string();
        let numbers = words.map(|word| word.parse().ok()).collect::<Option<Vec<u64>>>()?;
        let [median, max, runs, cr3, msr, mmio] = numbers[..] else { return None };
        Some(Operation { name, median, max, runs, cr3, msr, mmio })
    }
}

/// Boots the benchmark and the storm, and puts the numbers together.
///
/// # Errors
/// If one of the runs has no result.
pub fn measure(workspace: &Workspace) -> Result<Report, Failure> {
    let built = metal::build(workspace)?;
    let sizes = Image::read(&built.kernel)?.sizes();
    let operations = operations(workspace, built.clone())?;
    let longest_path = longest_path(workspace, built)?;
    Ok(Report { operations, sizes, longest_path })
}

fn operations(workspace: &Workspace, built: Built) -> Result<Vec<Operation>, Failure> {
    eprintln!("counting instructions ({BENCH})");
    let (mut operations, mut said) = (Vec::new(), Vec::new());
    let options = RunOptions { horizon_ns: BENCH_NS, record_bytes: 0, watch: false };
    run(workspace, built, BENCH, options, &mut |line, text| {
        if let Line::Log { text, .. } = line {
            match Operation::parse(text) {
                Some(operation) => operations.push(operation),
                None => said.push(text.clone()),
            }
        } else {
            said.push(text);
        }
    })?;
    if operations.is_empty() {
        let said = said.join("\n");
        return Err(Failure::Ours(format!(
            "the benchmark reported no operation; it said:\n{said}"
        )));
    }
    Ok(operations)
}

fn longest_path(workspace: &Workspace, built: Built) -> Result<LongestPath, Failure> {
    eprintln!("looking for the longest kernel path ({STORM})");
    let options = RunOptions { horizon_ns: STORM_NS, record_bytes: 0, watch: true };
    let run = run(workspace, built, STORM, options, &mut |_, _| {})?;
    let missing = || Failure::Ours("the watched run reported no longest kernel path".into());
    run.outcome.longest_path.ok_or_else(missing)
}

/// Runs one description; a bug of ours ends everything, a broken promise of the run does not.
fn run(
    workspace: &Workspace,
    built: Built,
    description: &str,
    options: RunOptions,
    observer: &mut dyn FnMut(&Line, String),
) -> Result<Run, Failure> {
    let system = describe(&workspace.root().join(description))?;
    let session = Session::assemble(system, built, options)?;
    let run = session.run(workspace, &mut |line| {
        observer(line, words::sentence(line, &session.names));
    })?;
    match session.judge(&run) {
        Verdict::Bug(text) => Err(Failure::Ours(format!("{description}: {text}"))),
        Verdict::Holds | Verdict::Broken(_) => Ok(run),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_logged_line_becomes_an_operation() {
        let operation = Operation::parse("BENCH yield_switch 131 140 1000 1000 0 12").unwrap();
        assert_eq!(operation.name, "yield_switch");
        assert_eq!((operation.median, operation.max, operation.runs), (131, 140, 1000));
        assert_eq!((operation.cr3, operation.msr, operation.mmio), (1000, 0, 12));
        for text in ["BENCH x 1 2 3 4 5", "BENCH x 1 2 3 4 5 6 7", "BENCH x a 2 3 4 5 6", "bench"] {
            assert_eq!(Operation::parse(text), None, "{text}");
        }
    }
}
