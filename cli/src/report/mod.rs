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

use crate::commands::{Length, code};
use crate::describe::describe;
use crate::failure::Failure;
use crate::outcome::{Outcome, RunVerdict};
use crate::output::note;
use crate::plan::{self, Plan};
use crate::project;
use crate::session::{FinishedRun, Session};
use crate::simulate::{self, Lives, Simulated, Simulation};
use crate::workspace::Workspace;
use diapason_system::RunOptions;
use std::path::PathBuf;
use watch::{Watch, Window};

/// The request to `report`.
#[derive(Clone, Debug, clap::Args)]
pub struct ReportRequest {
    #[arg(default_value = "system.toml")]
    pub system: PathBuf,
    #[command(flatten)]
    pub length: Length,
    /// Draw what may vary (times between best and worst); without it everything takes longest.
    #[arg(long, value_name = "N")]
    pub seed: Option<u64>,
    #[arg(short, long, value_name = "FILE", default_value = "report.html")]
    pub out: PathBuf,
}

/// Everything the page is made of.
struct Facts<'a> {
    session: &'a Session,
    plan: &'a Plan,
    run: &'a FinishedRun,
    lives: &'a Lives,
    watch: &'a Watch,
    verdict: &'a RunVerdict,
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
    plan::cleared(&plan, request.length.unproved())?;
    note("building the programs");
    let built = project::build(&Workspace::find()?, &request.system, &[&system])?;
    let options =
        RunOptions { horizon_ns: request.length.horizon_ns, record_bytes: 0, watch: false };
    let session = Session::planned(plan, built, options, request.length.unproved())?;
    note(simulate::TRUST);
    note(&format!("simulating {}", crate::duration::human(request.length.horizon_ns)));
    let mut watch = Watch::new(Window::of(&session.system, request.length.horizon_ns));
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
    note(&out.display().to_string());
    code(&session, &run, verdict)
}
