//! The costs of kernel operations, counted in instructions.
//!
//! `examples/bench.toml` boots a program that measures, and reports a record per operation;
//! `examples/bench-bulk.toml` does so for a bulk transfer and the parts of its way;
//! `examples/storm.toml`, watched, gives the longest kernel path. Nothing here measures: it
//! boots, collects, and compares with the targets of `diapason_costs`.

mod limits;
mod placement;
mod report;
mod targets;
mod touched;

pub use limits::TouchLimits;
pub use placement::{PLACEMENTS, name};
pub use report::{BenchReport, Measurements};
pub use touched::Touched;

use crate::console::Line;
use crate::describe::{describe, describe_changed, text_of};
use crate::failure::Failure;
use crate::image::Image;
use crate::metal::{self, Built};
use crate::outcome::{LongestPath, Outcome, RunVerdict};
use crate::output::note;
use crate::qemu::{Boot, Booted, Onlooker};
use crate::session::{FinishedRun, Session};
use crate::words;
use crate::workspace::Workspace;
use diapason_costs::targets::Placement;
use diapason_pipe::measured::{CostReport, Measurement, Reported};
use diapason_system::{RunOptions, System};
use placement::placed;

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
    /// The operation's name; `docs/bench.md` says what is counted.
    pub name: String,
    /// Instructions, median of the runs.
    pub median: u64,
    /// Instructions, largest of the runs.
    pub max: u64,
    /// The number of measurements of the operation.
    pub runs: u64,
    /// CR3 writes in a thousand operations.
    pub cr3: u64,
    /// MSR writes in a thousand operations.
    pub msr: u64,
    /// Device accesses in a thousand operations.
    pub mmio: u64,
    /// The numbers of a plugin of QEMU, if one looked on.
    pub touched: Option<Touched>,
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
    /// The number of measurements of the part.
    pub runs: u64,
}

/// The operations that a benchmark reported.
#[derive(Default)]
pub(crate) struct Measured {
    pub(crate) operations: Vec<Operation>,
    parts: Vec<Part>,
    /// The runs of each report, and the operation if it is of one and not of a part.
    reports: Vec<(u64, Option<usize>)>,
}

impl Measured {
    /// Takes in a report. A part is of the operation before it.
    pub(crate) fn note(&mut self, report: &CostReport) {
        let name = report.name.into_iter().take_while(|byte| *byte != 0).map(char::from).collect();
        let [median, max, runs] = [report.median, report.max, report.runs].map(u64::from);
        let [cr3, msr, mmio] = report.expensive.map(u64::from);
        self.reports.push((runs, (!report.is_part).then_some(self.operations.len())));
        if !report.is_part {
            let operation = Operation { name, median, max, runs, cr3, msr, mmio, touched: None };
            return self.operations.push(operation);
        }
        if let Some(Operation { name: of, .. }) = self.operations.last() {
            self.parts.push(Part { of: of.clone(), name, median, max, runs });
        }
    }

    /// Takes in what the plugin saw of the probes, which are in the order of their reports.
    fn see(&mut self, probes: &[(u64, Touched)]) -> Result<(), String> {
        if probes.len() != self.reports.len() {
            let (seen, told) = (probes.len(), self.reports.len());
            return Err(format!("the plugin saw {seen} probes, and {told} were reported"));
        }
        for ((seen, touched), (told, operation)) in probes.iter().zip(&self.reports) {
            if seen != told {
                return Err(format!("the plugin saw {seen} ends, and {told} were reported"));
            }
            if let Some(operation) = operation {
                self.operations[*operation].touched = Some(*touched);
            }
        }
        Ok(())
    }
}

/// Boots the benchmark and the storm, and puts the numbers together.
///
/// # Errors
/// If one of the runs has no result.
pub fn measure(workspace: &Workspace) -> Result<BenchReport, Failure> {
    let built = metal::build(workspace)?;
    let sizes = Image::read(&built.kernel)?.sizes();
    let limits = TouchLimits::read(workspace)?;
    let (mut measurements, mut parts) = (Measurements::default(), Vec::new());
    for placement in PLACEMENTS {
        let measured = measure_placed(workspace, &built, placement)?;
        measurements.add(placement, measured.operations);
        parts.extend(measured.parts);
    }
    let longest_path = longest_path(workspace, built)?;
    Ok(BenchReport { measurements, parts, sizes, longest_path, limits })
}

/// Measures the operations of threads that live there.
///
/// # Errors
/// If a run has no result.
pub fn measure_placement(
    workspace: &Workspace,
    built: &Built,
    placement: Placement,
) -> Result<Measurements, Failure> {
    let mut measurements = Measurements::default();
    measurements.add(placement, measure_placed(workspace, built, placement)?.operations);
    Ok(measurements)
}

/// Counts the instructions of the kernel's own operations where threads live there. Nothing looks
/// on, so it takes half the time of [`measure_placement`].
///
/// # Errors
/// If the run has no result.
pub fn count_placement(
    workspace: &Workspace,
    built: &Built,
    placement: Placement,
) -> Result<Vec<Operation>, Failure> {
    let (system, what) = placed_bench(workspace, placement)?;
    let counted = operations(workspace, built.clone(), system, (&what, BENCH_NS), false)?;
    Ok(counted.operations)
}

/// Returns the benchmark whose threads live there, and words for it.
fn placed_bench(workspace: &Workspace, placement: Placement) -> Result<(System, String), Failure> {
    let path = workspace.root().join(BENCH);
    let system = describe_changed(&path, &placed(placement, &text_of(&path)?))?;
    Ok((system, format!("{BENCH}, {}", placement::name(placement))))
}

/// The bulk transfer is of threads without a VCPU, whose interrupt it begins with.
fn measure_placed(
    workspace: &Workspace,
    built: &Built,
    placement: Placement,
) -> Result<Measured, Failure> {
    let (system, what) = placed_bench(workspace, placement)?;
    let mut measured = operations(workspace, built.clone(), system, (&what, BENCH_NS), true)?;
    if placement == Placement::None {
        let bulk = describe(&workspace.root().join(BULK))?;
        let bulk = operations(workspace, built.clone(), bulk, (BULK, BULK_NS), true)?;
        measured.operations.extend(bulk.operations);
        measured.parts.extend(bulk.parts);
    }
    Ok(measured)
}

/// Returns the operations that a benchmark of this length reported, and what they touched if they
/// are `watched`.
fn operations(
    workspace: &Workspace,
    built: Built,
    system: System,
    (description, horizon_ns): (&str, u64),
    watched: bool,
) -> Result<Measured, Failure> {
    note(&format!("counting instructions ({description})"));
    let (mut measured, mut said) = (Measured::default(), Vec::new());
    let options = RunOptions { horizon_ns, record_bytes: 0, watch: false };
    let onlooker = if watched { touched::onlooker(&system) } else { None };
    let (_, seen) =
        run(workspace, built, (description, system), (options, onlooker), &mut |line, text| {
            match line.measured() {
                Some((_, Some(Reported { said: Measurement::Cost(report), .. }))) => {
                    measured.note(&report);
                }
                _ => said.push(text),
            }
        })?;
    if measured.operations.is_empty() {
        let said = said.join("\n");
        return Err(Failure::Ours(format!(
            "{description} reported no operation; it said:\n{said}"
        )));
    }
    if watched {
        let probes = touched::medians(&seen.unwrap_or_default());
        let seen = probes.and_then(|probes| measured.see(&probes));
        seen.map_err(|wrong| Failure::Ours(format!("{description}: {wrong}")))?;
    }
    Ok(measured)
}

fn longest_path(workspace: &Workspace, built: Built) -> Result<LongestPath, Failure> {
    note(&format!("looking for the longest kernel path ({STORM})"));
    let options = RunOptions { horizon_ns: STORM_NS, record_bytes: 0, watch: true };
    let storm = (STORM, describe(&workspace.root().join(STORM))?);
    let (outcome, _) = run(workspace, built, storm, (options, None), &mut |_, _| {})?;
    let missing = || Failure::Ours("the watched run reported no longest kernel path".into());
    outcome.longest_path.ok_or_else(missing)
}

/// Runs one description, and returns its outcome and what the onlooker saw. A bug of ours ends
/// everything, a broken promise of the run does not.
fn run(
    workspace: &Workspace,
    built: Built,
    (description, system): (&str, System),
    (options, onlooker): (RunOptions, Option<Onlooker>),
    observer: &mut dyn FnMut(&Line, String),
) -> Result<(Outcome, Option<String>), Failure> {
    let session = Session::assemble(system, built, options)?;
    let mut outcome = Outcome::default();
    let boot = Boot { onlooker, ..session.boot() };
    let Booted { ending, served, seen, .. } = boot.run(&workspace.target(), &mut |line| {
        outcome.note(line);
        observer(line, words::sentence(line, &session.names));
    })?;
    let run = FinishedRun { ending, outcome, flight: None, served };
    match session.judge(&run) {
        RunVerdict::Bug(text) => Err(Failure::Ours(format!("{description}: {text}"))),
        RunVerdict::Holds | RunVerdict::Broken(_) => Ok((run.outcome, seen)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use diapason_pipe::measured::NAME_BYTES;

    #[test]
    fn a_report_becomes_an_operation_or_a_part_of_the_one_before() {
        let report = |name, is_part| CostReport {
            is_part,
            median: 131,
            max: 140,
            runs: 400,
            expensive: [1_000, 0, 12],
            ..CostReport::named(name)
        };
        let mut measured = Measured::default();
        measured.note(&report("of nothing", true));
        assert!(measured.parts.is_empty(), "no operation was reported before it");
        let long = "a_name_with_exactly_as_many_bytes_as_fit";
        assert_eq!(long.len(), NAME_BYTES);
        measured.note(&report("yield_switch", false));
        measured.note(&report(long, false));
        measured.note(&report("lock", true));
        let names: Vec<&str> = measured.operations.iter().map(|it| it.name.as_str()).collect();
        assert_eq!(names, ["yield_switch", long]);
        let operation = &measured.operations[0];
        assert_eq!((operation.median, operation.max, operation.runs), (131, 140, 400));
        assert_eq!((operation.cr3, operation.msr, operation.mmio), (1_000, 0, 12));
        let part = &measured.parts[0];
        assert_eq!((part.of.as_str(), part.name.as_str()), (long, "lock"));
        assert_eq!((part.median, part.max, part.runs), (131, 140, 400));
    }
}
