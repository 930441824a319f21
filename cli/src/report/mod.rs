//! `diapason report`: one page that says everything about a system, for a browser without network.
//!
//! The page has what `plan` proves and what a simulated run shows beside it: of one host, of the
//! cores of one, or of the hosts of a list with the cables between them. Every picture is also a
//! table, and the page follows the browser's light or dark. It is complete without its script,
//! which only makes the picture of threads larger.

mod bills;
mod buses;
mod chain_bars;
mod curves;
mod facts;
mod flow_bars;
mod head;
mod network;
mod page;
mod script;
mod style;
mod svg;
mod tables;
mod timeline;
mod topology;
mod watch;
mod worst;

use crate::commands::Length;
use crate::describe::describe_any;
use crate::failure::Failure;
use crate::output::note;
use crate::plan::{self, NetworkPlan, Plan};
use crate::project;
use crate::session::Session;
use crate::several::{Joined, Named, Several, worst_code};
use crate::simulate::{self, Simulated, Simulation};
use crate::workspace::Workspace;
use diapason_system::{Description, Hosts, RunOptions, System};
use facts::{Facts, PageFacts};
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

/// A described system whose programs are built.
struct Subject {
    parts: Vec<Named>,
    /// The connection of its parts, if it has several.
    joined: Option<Joined>,
    /// The list of its hosts, and their plan.
    network: Option<(Hosts, NetworkPlan)>,
}

impl Subject {
    fn prepare(request: &ReportRequest) -> Result<Subject, Failure> {
        let (unproved, path) = (request.length.unproved(), &request.system);
        let horizon_ns = request.length.horizon_ns;
        let options = RunOptions { horizon_ns, record_bytes: 0, watch: false };
        let (several, network) = match describe_any(path)? {
            Description::One(system) => return Subject::one(request, *system, options),
            Description::Cores(cores) => (Several::cores(cores), None),
            Description::Several(mut list) => {
                let network = NetworkPlan::of(&list);
                network.instruct(&mut list);
                plan::cleared_network(&network, unproved)?;
                (Several::hosts(list.clone(), &network), Some((list, network)))
            }
        };
        let workspace = Workspace::find()?;
        let (parts, joined) = several.assemble(&workspace, path, options, unproved)?;
        Ok(Subject { parts, joined: Some(joined), network })
    }

    fn one(
        request: &ReportRequest,
        system: System,
        options: RunOptions,
    ) -> Result<Subject, Failure> {
        let plan = Plan::of(&system);
        plan::cleared(&plan, request.length.unproved())?;
        note("building the programs");
        let built = project::build(&Workspace::find()?, &request.system, &[&system])?;
        let session = Session::planned(plan, built, options, request.length.unproved())?;
        let parts = vec![(session.system.name.clone(), session)];
        Ok(Subject { parts, joined: None, network: None })
    }

    /// Simulates it; each part has its watch.
    fn run(
        &self,
        request: &ReportRequest,
        watches: &mut [Watch],
    ) -> Result<Vec<Simulated>, Failure> {
        let watches = watches.iter_mut();
        let Some(joined) = &self.joined else {
            let alone = self.parts.iter().zip(watches).map(|((_, session), watch)| {
                let how = simulate::usual(session, request.seed);
                let simulation = Simulation::new(session, &how);
                let simulation = simulation.with_faults(&session.system.faults);
                simulation.following(None).run(watch)
            });
            return alone.collect();
        };
        simulate::followed(&self.parts, joined, request.seed, watches)
    }
}

/// Plans a system, simulates it, and writes the page.
///
/// # Errors
/// If the description makes no sense, does not hold, or the page cannot be written.
pub fn report(request: &ReportRequest) -> Result<u8, Failure> {
    let subject = Subject::prepare(request)?;
    note(simulate::TRUST);
    note(&format!("simulating {}", crate::duration::human(request.length.horizon_ns)));
    let systems = subject.parts.iter().map(|(_, session)| &session.system);
    let window = Window::of(systems, request.length.horizon_ns);
    let mut watches: Vec<Watch> = subject.parts.iter().map(|_| Watch::new(window)).collect();
    let runs = subject.run(request, &mut watches)?;
    let facts = subject.parts.iter().zip(&runs).zip(&watches);
    let facts = facts.map(|((part, ran), watch)| Facts::of(part, ran, watch));
    let page = PageFacts {
        parts: facts.collect(),
        joined: subject.joined.as_ref(),
        network: subject.network.as_ref(),
        request,
    };
    let out = &request.out;
    std::fs::write(out, page::page(&page))
        .map_err(|error| Failure::io(format!("write {}", out.display()), &error))?;
    note(&out.display().to_string());
    let judged = page.parts.into_iter().map(|facts| (facts.verdict, facts.session, facts.run));
    worst_code(judged)
}
