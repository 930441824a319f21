//! `diapason sim`: a described system on the deterministic machine.
//!
//! What is simulated is what boots: the same archive, the same programs, the same kernel core. So
//! the outcome is reported and judged by the same code as that of a run.

use crate::commands::{live, report};
use crate::console::Line;
use crate::outcome::Outcome;
use crate::qemu::Ending;
use crate::session::{Run, Session, describe};
use crate::{Failure, Workspace, metal, plan};
use diapason_abi::recorder::Entry;
use diapason_sim::{Costs, Observer, Options, Said, Trace};
use diapason_system::RunOptions;
use std::path::PathBuf;

/// What `sim` was asked to do.
#[derive(Clone, Debug)]
pub struct SimRequest {
    /// The description.
    pub system: PathBuf,
    /// Length of the run in ns.
    pub horizon_ns: u64,
    /// Instructions a second; the description's clock if it is not said.
    pub clock_hz: Option<u64>,
    /// Print JSON instead of tables?
    pub json: bool,
}

/// Collects what a run of the simulator says.
struct Listener<F> {
    outcome: Outcome,
    trace: Trace,
    live: F,
}

impl<F: FnMut(&Line)> Observer for Listener<F> {
    fn hear(&mut self, said: Said) {
        let line = match said {
            Said::Record(record, words) => Line::Record(record, words),
            Said::Log(process, text) => Line::Log { process, text },
        };
        self.outcome.note(&line);
        (self.live)(&line);
    }

    fn entry(&mut self, entry: &Entry) {
        self.trace.entry(entry);
    }
}

/// Simulates a system and reports.
///
/// # Errors
/// If there was no run to report on.
pub fn simulate(request: &SimRequest) -> Result<u8, Failure> {
    let system = describe(&request.system)?;
    plan::insist(&system)?;
    let clock = request.clock_hz.unwrap_or(system.clock_hz);
    eprintln!("building the programs");
    let built = metal::build(&Workspace::find()?)?;
    let options = RunOptions { horizon_ns: request.horizon_ns, record_bytes: 0, watch: false };
    let session = Session::assemble(system, built, options)?;
    let mut listener = Listener {
        outcome: Outcome::default(),
        trace: Trace::default(),
        live: live(request.json, session.names.clone()),
    };
    let how = Options { costs: Costs::at(clock), ..Options::default() };
    let ended = diapason_sim::run(&session.archive, &how, &mut listener)
        .map_err(|error| Failure::Ours(error.to_string()))?;
    let ending = match ended.ending {
        diapason_sim::Ending::Finished => Ending::Finished,
        diapason_sim::Ending::Halted => Ending::Halted,
        diapason_sim::Ending::SupervisorDied => Ending::SupervisorDied,
    };
    let Listener { outcome, trace, .. } = listener;
    eprintln!("trace {:016x}", trace.0);
    report(request.json, &session, &Run { ending, outcome, flight: None })
}
