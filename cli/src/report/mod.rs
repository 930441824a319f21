//! `diapason report`: one page that says everything about a system, for a browser without network.
//!
//! The page has what `plan` proves and what a simulated run shows beside it. Every picture is also
//! a table, and the page follows the browser's light or dark.

mod bills;
mod buses;
mod chain_bars;
mod curves;
mod page;
mod svg;
mod tables;
mod timeline;
mod topology;
mod watch;

use crate::commands::code;
use crate::describe::describe;
use crate::outcome::{Outcome, Verdict};
use crate::plan::{self, Plan, Unproved};
use crate::session::{Run, Session};
use crate::simulate::{self, Lives, Simulated, Simulation};
use crate::{Failure, Workspace, metal};
use diapason_system::RunOptions;
use std::path::PathBuf;
use watch::{Watch, Window};

/// The request to `report`.
#[derive(Clone, Debug)]
pub struct ReportRequest {
    pub system: PathBuf,
    /// Length of the simulated run in ns.
    pub horizon_ns: u64,
    /// Draws what may vary; nothing does without.
    pub seed: Option<u64>,
    /// Where to put the page.
    pub out: PathBuf,
    /// Simulate it even if its plan does not hold.
    pub unproved: Option<Unproved>,
}

/// Everything the page is made of.
struct Facts<'a> {
    session: &'a Session,
    plan: &'a Plan,
    run: &'a Run,
    lives: &'a Lives,
    watch: &'a Watch,
    verdict: &'a Verdict,
    request: &'a ReportRequest,
}

impl Facts<'_> {
    fn outcome(&self) -> &Outcome {
        &self.run.outcome
    }
}

/// Plans a system, simulates it, and writes the page.
///
/// # Errors
/// If the description makes no sense, does not hold, or the page cannot be written.
pub fn report(request: &ReportRequest) -> Result<u8, Failure> {
    let system = describe(&request.system)?;
    let plan = Plan::of(&system, system.clock_hz);
    plan::cleared(&plan, request.unproved)?;
    eprintln!("building the programs");
    let built = metal::build(&Workspace::find()?)?;
    let options = RunOptions { horizon_ns: request.horizon_ns, record_bytes: 0, watch: false };
    let session = Session::planned(plan, built, options, request.unproved)?;
    eprintln!("{}", simulate::TRUST);
    eprintln!("simulating {}", crate::duration::human(request.horizon_ns));
    let mut watch = Watch::new(Window::of(&session.system, request.horizon_ns));
    let how = simulate::usual(&session, request.seed);
    let simulation = Simulation::new(&session, &how).with_faults(&session.system.faults);
    let Simulated { run, lives, .. } = simulation.following(None).run(&mut watch)?;
    let verdict = session.judge(&run);
    let facts = Facts {
        session: &session,
        plan: &session.plan,
        run: &run,
        lives: &lives,
        watch: &watch,
        verdict: &verdict,
        request,
    };
    let out = &request.out;
    std::fs::write(out, page::page(&facts))
        .map_err(|error| Failure::io(format!("write {}", out.display()), &error))?;
    eprintln!("{}", out.display());
    code(&session, &run, verdict)
}
