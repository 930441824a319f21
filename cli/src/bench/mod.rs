//! The costs of kernel operations, counted in instructions.
//!
//! `examples/bench.toml` boots a program that measures and logs one line per operation;
//! `examples/bench-bulk.toml` does so for a bulk transfer and the parts of its way;
//! `examples/storm.toml`, watched, gives the longest kernel path. Nothing here measures: it
//! boots, collects, and compares with the targets of `diapason_costs`.

mod placement;
mod report;
mod targets;

pub use report::{Measurements, Report};

use crate::console::Line;
use crate::describe::{describe, describe_changed, text_of};
use crate::image::Image;
use crate::metal::{self, Built};
use crate::outcome::{LongestPath, Verdict};
use crate::session::{Run, Session};
use placement::{PLACEMENTS, placed};
use crate::{Failure, Workspace, words};
use diapason_costs::targets::Placement;
use diapason_system::{RunOptions, System};

/// Descriptions this is measured with, below the workspace's root.
pub const BENCH: &str = "examples/bench.toml";
/// A sensor, the USB server and its client.
pub const BULK: &str = "examples/bench-bulk.toml";
/// Hostile processes with random calls: where the longest kernel path is looked for.
pub const STORM: &str = "examples/storm.toml";
/// Time the benchmark program has, in ns. It ends by itself long before.
const BENCH_NS: u64 = 600_000_000_000;
/// Length of the run with the sensor, in ns: a second's transfers, and time to find it.
const BULK_NS: u64 = 2_000_000_000;
/// Length of the watched storm, in ns.
const STORM_NS: u64 = 2_000_000_000;

/// The cost of one operation.
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

/// A part of an operation.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Part {
    pub of: String,
    pub name: String,
    /// Instructions, median of the runs.
    pub median: u64,
    /// Instructions, largest of the runs.
    pub max: u64,
    /// How often it was measured.
    pub runs: u64,
}

impl Part {
    /// The part a logged text reports: `PART operation name median max runs`.
    #[must_use]
    pub fn parse(text: &str) -> Option<Part> {
        let mut words = text.strip_prefix("PART ")?.split_ascii_whitespace();
        let (of, name) = (words.next()?.to_string(), words.next()?.to_string());
        let numbers = words.map(|word| word.parse().ok()).collect::<Option<Vec<u64>>>()?;
        let [median, max, runs] = numbers[..] else { return None };
        Some(Part { of, name, median, max, runs })
    }
}

#[derive(Default)]
struct Measured {
    operations: Vec<Operation>,
    parts: Vec<Part>,
}

/// Boots the benchmark and the storm, and puts the numbers together.
///
/// # Errors
/// If one of the runs has no result.
pub fn measure(workspace: &Workspace) -> Result<Report, Failure> {
    let built = metal::build(workspace)?;
    let sizes = Image::read(&built.kernel)?.sizes();
    let path = workspace.root().join(BENCH);
    let text = text_of(&path)?;
    let mut measurements = Measurements::default();
    for placement in PLACEMENTS {
        let system = describe_changed(&path, &placed(placement, &text))?;
        let what = format!("{BENCH}, {}", placement::name(placement));
        let all = operations(workspace, built.clone(), system, (&what, BENCH_NS))?;
        measurements.add(placement, all.operations);
    }
    let bulk = describe(&workspace.root().join(BULK))?;
    let bulk = operations(workspace, built.clone(), bulk, (BULK, BULK_NS))?;
    let longest_path = longest_path(workspace, built)?;
    measurements.add(Placement::None, bulk.operations);
    Ok(Report { measurements, parts: bulk.parts, sizes, longest_path })
}

/// Returns the operations that benchmarks of these lengths logged.
fn operations(
    workspace: &Workspace,
    built: Built,
    system: System,
    (description, horizon_ns): (&str, u64),
) -> Result<Measured, Failure> {
    eprintln!("counting instructions ({description})");
    let (mut measured, mut said) = (Measured::default(), Vec::new());
    let options = RunOptions { horizon_ns, record_bytes: 0, watch: false };
    run(workspace, built, (description, system), options, &mut |line, text| {
        let Line::Log { text, .. } = line else { return said.push(text) };
        match (Operation::parse(text), Part::parse(text)) {
            (Some(operation), _) => measured.operations.push(operation),
            (_, Some(part)) => measured.parts.push(part),
            _ => said.push(text.clone()),
        }
    })?;
    if measured.operations.is_empty() {
        let said = said.join("\n");
        return Err(Failure::Ours(format!(
            "{description} reported no operation; it said:\n{said}"
        )));
    }
    Ok(measured)
}

fn longest_path(workspace: &Workspace, built: Built) -> Result<LongestPath, Failure> {
    eprintln!("looking for the longest kernel path ({STORM})");
    let options = RunOptions { horizon_ns: STORM_NS, record_bytes: 0, watch: true };
    let storm = (STORM, describe(&workspace.root().join(STORM))?);
    let run = run(workspace, built, storm, options, &mut |_, _| {})?;
    let missing = || Failure::Ours("the watched run reported no longest kernel path".into());
    run.outcome.longest_path.ok_or_else(missing)
}

/// Runs one description; a bug of ours ends everything, a broken promise of the run does not.
fn run(
    workspace: &Workspace,
    built: Built,
    (description, system): (&str, System),
    options: RunOptions,
    observer: &mut dyn FnMut(&Line, String),
) -> Result<Run, Failure> {
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
        let part = Part::parse("PART usb_bulk lock 131 140 400").unwrap();
        assert_eq!((&part.of[..], &part.name[..]), ("usb_bulk", "lock"));
        assert_eq!((part.median, part.max, part.runs), (131, 140, 400));
        for text in ["PART a b 1 2", "PART a b 1 2 3 4", "PART a b was not measured", "PART"] {
            assert_eq!(Part::parse(text), None, "{text}");
        }
    }
}
