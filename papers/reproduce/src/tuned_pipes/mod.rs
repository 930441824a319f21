//! Tuned pipes: the worked examples of §5, tables 8 and 9 and figure 12, figures 13 and 14 (input),
//! and 15 and 16 (output).
//!
//! The system is `examples/can-concentrator.toml`, for output `examples/can-output.toml`. Each
//! scenario runs on both machines: on the deterministic one and, lock-step with the same models of
//! devices, in QEMU.

mod scenarios;
mod spread;
mod throughput;
mod worked;
mod written;

use super::boot;
use super::concentrator::Concentrator;
use super::{Effort, Picture, Progress, ReproductionReport, Row};
use crate::fig12::Looks;
use diapason::console::Line;
use diapason::outcome::Outcome;
use diapason::session::Session;
use diapason::simulate::{self, Hearing, Simulation};
use diapason::tools::{Missing, QEMU};
use diapason::{Failure, Workspace};
use diapason_sim::{Costs, Options};
use diapason_system::{RunOptions, System};
use written::Second;

/// The machine that something runs on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Machine {
    Simulated,
    Qemu,
}

impl Machine {
    const BOTH: [Machine; 2] = [Machine::Simulated, Machine::Qemu];

    const fn id(self) -> &'static str {
        match self {
            Machine::Simulated => "sim",
            Machine::Qemu => "qemu",
        }
    }
}

/// Where the experiments run.
struct Bench {
    workspace: Workspace,
    concentrator: Concentrator,
}

/// The results of a run.
struct Seen {
    outcome: Outcome,
    looks: Looks,
    written: Vec<Second>,
}

impl Bench {
    fn new() -> Result<Bench, Failure> {
        let workspace = Workspace::find()?;
        QEMU.require(Missing::Say)?;
        let concentrator = Concentrator::prepare(&workspace)?;
        Ok(Bench { workspace, concentrator })
    }

    /// Runs a system for so many seconds of its own time.
    ///
    /// # Errors
    /// If it breaks a promise: then nothing it measured can be trusted.
    fn run(&self, system: System, seconds: u64, machine: Machine) -> Result<Seen, Failure> {
        let horizon_ns = seconds * 1_000_000_000;
        let options = RunOptions { horizon_ns, record_bytes: 0, watch: false };
        let clock = system.clock_hz;
        let session = Session::assemble(system, self.concentrator.built.clone(), options)?;
        let (mut looks, mut written) = (Looks::default(), Vec::new());
        let mut hear = |line: &Line| {
            if let Line::Log { text, .. } = line {
                looks.hear(text);
                written.extend(boot::numbers(text, "OUT").and_then(|said| Second::parse(&said)));
            }
        };
        let run = match machine {
            Machine::Qemu => session.run(&self.workspace, &mut hear)?,
            Machine::Simulated => {
                let works = simulate::works(&session, None);
                let how = Options { costs: Costs::at(clock), works, ..Options::default() };
                Simulation::new(&session, &how).run(&mut Hearing(&mut hear))?.run
            }
        };
        boot::trusted(&session, run).map(|run| Seen { outcome: run.outcome, looks, written })
    }
}

pub(super) fn reproduce(
    effort: Effort,
    progress: &Progress,
) -> Result<ReproductionReport, Failure> {
    let bench = Bench::new()?;
    let mut rows = worked::rows();
    let (scenario_rows, table) = scenarios::run(&bench, effort, progress)?;
    rows.extend(scenario_rows);
    let (input_rows, mut figures) = throughput::run(&bench, effort)?;
    rows.extend(input_rows);
    let (output_rows, more, written) = written::run(&bench, effort)?;
    rows.extend(output_rows);
    figures.extend(more);
    progress.end();
    let sections = vec![
        ("Table 8: what was lost, and how far tasks got".to_owned(), table),
        ("Figure 16: frames a second to two receivers".to_owned(), written),
    ];
    Ok(ReproductionReport::new("tuned-pipes", rows, sections, figures))
}
