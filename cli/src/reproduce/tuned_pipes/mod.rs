//! Tuned pipes: the worked examples of §5, tables 8 and 9 and figure 12, and figures 13 and 14.
//!
//! The system is `examples/can-concentrator.toml`. Each scenario runs on both machines: on the
//! deterministic one and, lock-step with the same models of devices, in QEMU.

mod scenarios;
mod throughput;
mod worked;

use super::{Effort, Figure, Progress, Report, Row};
use crate::console::Line;
use crate::metal::{self, Built};
use crate::outcome::{Outcome, Verdict};
use crate::reproduce::fig12::Looks;
use crate::session::{Run, Session};
use crate::tools::{Missing, QEMU};
use crate::{Failure, Workspace, simulate};
use diapason_sim::{Costs, Options};
use diapason_system::{RunOptions, System};

/// The description, below the workspace's root.
const SYSTEM: &str = "examples/can-concentrator.toml";
/// Who watches the tasks. Looks are whole periods apart.
const MONITOR: &str = r#"
[[process]]
name = "monitor"
program = "spin-monitor"
priority = 50
vcpu = "watch"
uses = ["progress"]
arguments = [700000]

[[vcpu]]
name = "watch"
budget = "50us"
period = "4ms"
"#;

/// Which machine something runs on.
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

/// The built kernel and programs, and the text of the description.
struct Bench {
    workspace: Workspace,
    built: Built,
    text: String,
}

/// What a run showed.
struct Seen {
    outcome: Outcome,
    looks: Looks,
}

impl Bench {
    fn new() -> Result<Bench, Failure> {
        let workspace = Workspace::find()?;
        QEMU.require(Missing::Say)?;
        eprintln!("building the kernel and the programs");
        let built = metal::build(&workspace)?;
        let path = workspace.root().join(SYSTEM);
        let text = std::fs::read_to_string(&path)
            .map_err(|error| Failure::io(format!("read {}", path.display()), &error))?;
        Ok(Bench { workspace, built, text: text + MONITOR })
    }

    /// The description, with everything its author wrote.
    fn describe(&self) -> Result<System, Failure> {
        diapason_system::parse(SYSTEM, &self.text)
            .map_err(|diagnostics| Failure::Input(diagnostics.plain()))
    }

    /// Runs a system for so many seconds of its own time.
    ///
    /// # Errors
    /// If it breaks a promise: then nothing it measured can be trusted.
    fn run(&self, system: System, seconds: u64, machine: Machine) -> Result<Seen, Failure> {
        let horizon_ns = seconds * 1_000_000_000;
        let options = RunOptions { horizon_ns, record_bytes: 0, watch: false };
        let clock = system.clock_hz;
        let session = Session::assemble(system, self.built.clone(), options)?;
        let mut looks = Looks::default();
        let mut hear = |line: &Line| {
            if let Line::Log { text, .. } = line {
                looks.hear(text);
            }
        };
        let run = match machine {
            Machine::Qemu => session.run(&self.workspace, &mut hear)?,
            Machine::Simulated => {
                let works = simulate::works(&session, None);
                let how = Options { costs: Costs::at(clock), works, ..Options::default() };
                simulate::run(&session, &how, &[], &mut hear)?
            }
        };
        trusted(&session, run).map(|outcome| Seen { outcome, looks })
    }
}

fn trusted(session: &Session, run: Run) -> Result<Outcome, Failure> {
    match session.judge(&run) {
        Verdict::Holds => Ok(run.outcome),
        Verdict::Bug(text) => Err(Failure::Ours(text)),
        Verdict::Broken(findings) => Err(Failure::Ours(findings.join("; "))),
    }
}

/// Runs the experiments.
pub(super) fn reproduce(effort: Effort, progress: &Progress) -> Result<Report, Failure> {
    let bench = Bench::new()?;
    let mut rows = worked::rows();
    let (scenario_rows, table) = scenarios::run(&bench, effort, progress)?;
    rows.extend(scenario_rows);
    let (input_rows, figures) = throughput::run(&bench, effort)?;
    rows.extend(input_rows);
    progress.end();
    let sections = vec![("Table 8: what was lost, and how far tasks got".to_owned(), table)];
    Ok(Report { name: "tuned-pipes", rows, sections, figures })
}
