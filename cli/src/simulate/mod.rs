//! `diapason sim`: a described system on the deterministic machine.
//!
//! The simulator runs what boots: the same archive, the same programs, the same kernel core. So the
//! outcome is reported and judged by the same code as that of a run.

mod buses;
mod cables;
mod debug;
mod ethernet;
mod explain;
mod faults;
mod flows;
mod hosts;
mod measured;
mod messages;
mod part;
mod perfetto;
mod progress;
mod responses;
mod search;
mod simulation;
mod switches;
mod times;
mod usage;
mod watch;

use crate::can_server::CanServer;
use crate::capture::CaptureRequest;
use crate::commands::{Length, report};
use crate::describe::{describe_any, refused};
use crate::failure::{BROKEN, Failure, HOLDS};
use crate::formats::RunFormat;
use crate::live::live;
use crate::outcome::{Finding, OpenJob, Outcome, RunVerdict};
use crate::output::{note, tell};
use crate::session::{FinishedRun, Session};
pub use crate::several::Named;
use crate::several::{self, Several};
use crate::surroundings::{in_sight, simulable};
use crate::witness::Witness;
use crate::workspace::Workspace;
use crate::{can_server, interrupt, plan, project, words};
use diapason_abi::Nanos;
use diapason_abi::recorder::Entry;
use diapason_core::{Decision, Kernel, Thread, ThreadId};
use diapason_sim::{BillWriter, Costs, Glance, Moment, Observer, Options, Said, Trace};
use diapason_system::{Description, InjectedFault, RunOptions, System, parse_pulled};
pub use ethernet::{WireBooks, steps};
pub(crate) use ethernet::{card, network as ethernet_network};
use explain::Asked;
pub(crate) use explain::Cast;
pub use faults::{adrift, asked, delayed, drawn, excuse};
pub use flows::told as told_flows;
pub use flows::{FlowLife, LinkLogs, ToldFlow};
pub use hosts::{Joined, Joints, Seat, followed, own_seed, together};
use measured::pictures;
use messages::Messages;
pub(crate) use messages::{Called, HostPart, render as render_life};
pub use messages::{Choice, Life, Lives, Seen, SeenStage};
use part::Wishes;
use perfetto::{Perfetto, Sheet};
use progress::Progress;
use responses::Responses;
use search::Searched;
pub use search::Seeds;
pub use simulation::{Hearing, Simulated, Simulation, usual, works};
use simulation::{drive, line, simulated, with_upsets};
use std::net::SocketAddr;
use std::path::PathBuf;
pub(crate) use switches::SwitchReport;
pub use times::PromisedTime;
pub(crate) use times::SeenTime;
use usage::Usage;
use watch::Watch;

/// The trust that a simulation needs: every run says it.
pub(crate) const TRUST: &str = "the programs run inside this process, which nothing protects \
                     from them: simulate only what you would run on this host (docs/sim.md)";

/// The request to `sim`.
#[derive(Clone, Debug, clap::Args)]
pub struct SimRequest {
    #[arg(default_value = "system.toml")]
    pub system: PathBuf,
    #[command(flatten)]
    pub length: Length,
    /// Draw what may vary (times between best and worst); without it everything takes longest.
    #[arg(long, value_name = "N")]
    pub seed: Option<u64>,
    /// Break things, as the seed says: interrupts, packets, plugs, processes, the power.
    #[arg(long)]
    pub faults: bool,
    /// Break this, such as "2s unplug interface 100ms"; may be given several times.
    #[arg(long, value_name = "FAULT")]
    pub fault: Vec<String>,
    /// Run so many seeds on all cores, up to the first that breaks a promise.
    #[arg(long, value_name = "N", conflicts_with_all = [
        "trace", "explain", "stages", "json", "histogram", "svg", "pcap", "candump",
        "asc", "blf", "can_server",
    ])]
    pub search: Option<u64>,
    /// In so many processes [default: one for each core].
    #[arg(long, value_name = "N", requires = "search")]
    pub jobs: Option<u64>,
    /// Print the hash of each seed's trace, too.
    #[arg(long, requires = "search")]
    pub traces: bool,
    /// Keep beside the description how close the runs came to each bound, for `plan`.
    #[arg(long, requires = "search", conflicts_with_all = ["faults", "fault"])]
    pub witness: bool,
    /// Run these seeds: what each process of a search does.
    #[arg(long, hide = true, value_parser = Seeds::parse)]
    pub seeds: Option<Seeds>,
    /// Instructions a second, such as 1.1GHz [default: the description's `clock`].
    #[arg(long = "clock", value_name = "RATE", value_parser = plan::clock)]
    pub clock_hz: Option<u64>,
    /// Print the outcome as JSON; what the system says goes to standard error.
    #[arg(long)]
    pub json: bool,
    /// Print the outcome in this format; `--json` is short for `--format json`.
    #[arg(long, value_name = "FORMAT", value_enum, conflicts_with_all = ["json", "search"])]
    pub format: Option<RunFormat>,
    /// Write a trace that opens in Perfetto.
    #[arg(long, value_name = "FILE")]
    pub trace: Option<PathBuf>,
    /// Keep processes from each other's memory as the metal does, and check every invariant of
    /// the kernel: slow.
    #[arg(long)]
    pub strict: bool,
    /// Show where the time of a job or a message went: `worst`, PROCESS.SLOT:JOB, PIPE:worst,
    /// or PIPE:NUMBER.
    #[arg(long, value_name = "WHICH")]
    pub explain: Option<String>,
    /// Show how long messages were at most on each part of their way, beside the plan.
    #[arg(long)]
    pub stages: bool,
    /// Show how long jobs took from release to end: a histogram for each thread.
    #[arg(long)]
    pub histogram: bool,
    /// Write the histograms and their distribution functions (SVG) into this folder.
    #[arg(long, value_name = "DIR")]
    pub svg: Option<PathBuf>,
    /// Stand still for GDB at this address [default: 127.0.0.1:1234]; it can go back in time.
    #[arg(
        long, value_name = "ADDR:PORT", num_args = 0..=1,
        default_missing_value = "127.0.0.1:1234", conflicts_with_all = [
            "search", "trace", "explain", "stages", "histogram", "svg", "strict", "pcap",
            "candump", "asc", "blf", "can_server",
        ],
    )]
    pub gdb: Option<SocketAddr>,
    #[command(flatten)]
    pub captures: CaptureRequest,
}

impl SimRequest {
    /// Returns the options of a run of a session.
    fn options(&self, session: &Session, seed: Option<u64>) -> Options {
        let costs = Costs::at(self.clock_hz.unwrap_or(session.system.clock_hz));
        let (check, isolate) = (self.strict, self.strict);
        Options { costs, check, isolate, ..usual(session, seed) }
    }

    /// Returns the faults that the seed draws with `--faults`.
    fn drawn(&self, session: &Session, seed: u64) -> Vec<InjectedFault> {
        let draw = || faults::drawn(&session.system, seed, self.length.horizon_ns);
        if self.faults { draw() } else { Vec::new() }
    }

    /// Returns all faults of a run: described, asked for, and drawn.
    fn faults(
        &self,
        session: &Session,
        asked: &[InjectedFault],
        seed: Option<u64>,
    ) -> Vec<InjectedFault> {
        let drawn = self.drawn(session, seed.unwrap_or(0));
        [&session.system.faults, asked, &drawn].concat()
    }

    /// Returns what is wanted of a part of the run.
    fn wishes(&self, system: &System, asked: Asked, perfetto: Option<Perfetto>) -> Wishes {
        let follows = !system.pipes.is_empty() || !system.far.is_empty();
        let captures = self.captures.clone();
        let pictured = self.histogram || self.svg.is_some();
        let part = HostPart::default();
        Wishes { part, asked, follows, captures, pictured, perfetto }
    }

    /// Returns the options that a repeated run of one seed needs besides.
    fn again(&self) -> Vec<String> {
        let mut options = vec![String::from("--for"), format!("{}ns", self.length.horizon_ns)];
        if let Some(clock) = self.clock_hz {
            options.extend([String::from("--clock"), format!("{}kHz", clock / 1_000)]);
        }
        if self.faults {
            options.push(String::from("--faults"));
        }
        for fault in &self.fault {
            options.extend([String::from("--fault"), fault.clone()]);
        }
        if self.strict {
            options.push(String::from("--strict"));
        }
        if self.length.unproved {
            options.push(String::from("--unproved"));
        }
        options
    }
}

/// Collects what a run of the simulator says.
#[derive(Default)]
struct Listener {
    outcome: Outcome,
    hash: Trace,
    ledger: Option<BillWriter>,
    perfetto: Option<Perfetto>,
    watch: Option<Watch>,
    usage: Vec<Usage>,
    messages: Option<Messages>,
    responses: Option<Responses>,
    progress: Option<Progress>,
    cast: Cast,
    now: Nanos,
}

impl Observer for Listener {
    fn look(&mut self, glance: &Glance<'_, '_>) {
        if glance.ended {
            self.outcome.open_jobs = open_jobs(glance);
        }
    }

    fn worked(&mut self, key: u64) {
        self.outcome.worked.get_or_insert_default().insert(key);
    }

    fn wants_end(&self) -> bool {
        interrupt::came()
    }

    fn hear(&mut self, said: Said) {
        match &said {
            Said::Fault(time, text) => self.outcome.injected.push((time.0, text.clone())),
            Said::Stray(time, stray) => self.outcome.strays.push((time.0, *stray)),
            Said::Boots(_) => self.outcome.boot_again(),
            Said::Record(..) | Said::Log(..) | Said::Note(..) => {}
        }
        let line = line(said);
        self.outcome.note(&line);
        if let Some(perfetto) = &mut self.perfetto {
            perfetto.said(self.now, &line);
        }
        if let Some(progress) = &mut self.progress {
            progress.clear();
        }
    }

    fn entry(&mut self, entry: &Entry) {
        self.hash.entry(entry);
    }

    fn moment(&mut self, from: Nanos, to: Nanos, what: Moment) {
        self.now = to;
        if let Some(ledger) = &mut self.ledger {
            ledger.moment(from, to, what);
        }
        if let Some(perfetto) = &mut self.perfetto {
            perfetto.moment(from, to, what, &self.cast);
        }
        if let Some(messages) = &mut self.messages {
            messages.moment(from, to, what);
        }
        if let Some(watch) = &mut self.watch {
            watch.at(to, self.perfetto.as_mut(), self.messages.as_mut());
        }
        if let (Some(progress), Moment::Kernel(_)) = (&mut self.progress, what) {
            progress.at(to.0, |seconds| format!("{:.1} x real time", to.0 as f64 / 1e9 / seconds));
        }
    }

    fn decided(&mut self, read: Nanos, now: Nanos, kernel: &Kernel<'_>, decision: &Decision) {
        if let Some(ledger) = &mut self.ledger {
            ledger.decided(read, now, kernel, decision);
        }
        if let Some(messages) = &mut self.messages {
            messages.decided(read, now, kernel, decision);
        }
        if let Some(responses) = &mut self.responses {
            responses.look(read, kernel);
        }
        let explains = self.ledger.is_some() || self.messages.is_some();
        if explains || self.perfetto.is_some() || self.responses.is_some() {
            self.cast.refresh(kernel);
        }
        if let Some(perfetto) = &mut self.perfetto {
            perfetto.decided(read, now, kernel, &self.cast);
        }
    }

    fn changed(
        &mut self,
        now: Nanos,
        thread: ThreadId,
        word: usize,
        change: (u64, u64),
        memory: &[u8],
    ) {
        if let Some(messages) = &mut self.messages {
            messages.changed(now, thread, word, change, memory);
        }
    }
}

/// Returns the jobs on VCPUs that are under way.
fn open_jobs(glance: &Glance<'_, '_>) -> Vec<OpenJob> {
    let threads = &glance.kernel.threads;
    let open = threads.ids().map(|id| &threads[id]);
    let open = open.filter(|thread| thread.generation > 0 && thread.vcpu.is_some());
    let open = open.filter(|thread| thread.jobs.active && thread.jobs.release < glance.now);
    let job = |thread: &Thread| OpenJob {
        process: thread.process.index().into(),
        slot: thread.slot.into(),
        name: thread.name,
        vcpu: thread.vcpu.index().into(),
        age_ns: (glance.now - thread.jobs.release).0,
    };
    open.map(job).collect()
}

/// Simulates a system and reports, or searches seeds for one that breaks a promise.
///
/// # Errors
/// If there was no run to report on.
pub fn simulate(request: &SimRequest) -> Result<u8, Failure> {
    let json = request.json || request.format == Some(RunFormat::Json);
    let request = &SimRequest { json, ..request.clone() };
    let description = describe_any(&request.system)?;
    if !matches!(description, Description::One(_)) {
        several::refuse_format(&request.system, request.format)?;
    }
    let system = match description {
        Description::One(system) => *system,
        Description::Several(mut list) => {
            for text in &request.fault {
                let (what, time) = parse_pulled(&list, text).map_err(|wrong| refused(&wrong))?;
                list.pull(what, time);
            }
            if request.faults {
                let seed = request.seed.unwrap_or(0);
                faults::disturb(&mut list, seed, request.length.horizon_ns);
            }
            let network = plan::NetworkPlan::of(&list);
            network.instruct(&mut list);
            plan::cleared_network(&network, request.length.unproved())?;
            let several = Several::hosts(list.clone(), &network);
            return hosts::simulate(request, several, Some((&list, &network)));
        }
        Description::Cores(cores) => return hosts::simulate(request, Several::cores(cores), None),
    };
    let promised = plan::Plan::of(&system);
    plan::cleared(&promised, request.length.unproved())?;
    if system.processes.is_empty() && !system.cans.is_empty() {
        return buses::simulate(request, &system, &promised);
    }
    can_server::check(&system, &request.captures)?;
    note(TRUST);
    if request.witness && !system.faults.is_empty() {
        return Err(Failure::Input(
            "error: the description has a `[[fault]]`, and runs with faults are no witnesses\n\
             help: remove it, or leave out `--witness`"
                .into(),
        ));
    }
    if let Some(count) = request.search {
        let from = request.seed.unwrap_or(0);
        let searched = search::search(request, &[&system], from, count);
        return searched.and_then(|found| found.tell(request));
    }
    let wanted = request.explain.as_deref().map(|text| explain::wanted(text, &[&system]));
    let wanted = wanted.transpose().map_err(|text| Failure::Input(format!("error: {text}")))?;
    let wanted = wanted.map_or_else(Asked::default, |asked| asked[0]);
    let asked = faults::asked(&system, &request.fault)?;
    note("building the programs");
    let built = project::build(&Workspace::find()?, &request.system, &[&system])?;
    let options =
        RunOptions { horizon_ns: request.length.horizon_ns, record_bytes: 0, watch: false };
    let session = Session::planned(promised, built, options, request.length.unproved())?;
    let session = Session { captures: request.captures.clone(), ..session };
    match (request.seeds, request.gdb) {
        (Some(seeds), _) => through(request, &session, &asked, seeds),
        (None, Some(address)) => debug::debug(request, &session, &asked, address),
        (None, None) => once(request, &session, &asked, wanted),
    }
}

fn once(
    request: &SimRequest,
    session: &Session,
    asked: &[InjectedFault],
    wanted: Asked,
) -> Result<u8, Failure> {
    let (names, format) = (&session.names, RunFormat::of(request.json, request.format));
    let faults = request.faults(session, asked, request.seed);
    let mut how = with_upsets(session, &request.options(session, request.seed), &faults);
    simulable(&session.system)?;
    interrupt::await_signals()?;
    let sheet = request.trace.as_ref().map(|path| Sheet::create(path)).transpose()?;
    let perfetto = sheet.as_ref().map(|sheet| sheet.host(0, "", names.clone()));
    let wishes = request.wishes(&session.system, wanted, perfetto);
    let server = request.captures.can_server.map(CanServer::open).transpose()?;
    let (functions, sights) = in_sight(&session.system, &faults, wishes.transfers());
    server.into_iter().for_each(|server| server.serve(&sights.buses));
    let mut listener = wishes.listener(session, sights, &faults, &mut how)?;
    listener.progress = Some(Progress::new(request.length.horizon_ns, format.is_for_programs()));
    let live = live(format.is_for_programs(), names.clone(), session.promises());
    let mut both = (listener, Hearing(live));
    let ending = drive(session, &how, functions, &mut both)?;
    let (outcome, hash, observations) = both.0.finish(names)?;
    sheet.map_or(Ok(()), Sheet::finish)?;
    let run = simulated(ending, outcome);
    let addition = observations.addition(session, &run, request.stages);
    let code = report(format, session, &run, addition)?;
    request.svg.as_ref().map_or(Ok(()), |folder| pictures(folder, &observations.jobs))?;
    tell(&format!("trace {:016x}", hash.0));
    if request.explain.is_some() {
        let explained = observations.explained(wanted);
        let called = |_| observations.called(names);
        let words = explained.map(|it| it.render(&session.system, called));
        tell(&format!("\n{}", words.as_deref().unwrap_or(explain::NOTHING)));
    }
    Ok(code)
}

/// Returns the first promise that a run of a search broke. A fault breaks an assumption, and an
/// alarm that says so is the answer to it.
fn finding(session: &Session, faults: &[InjectedFault], run: &mut FinishedRun) -> Option<String> {
    faults::excuse(&session.system, faults, &mut run.outcome);
    match session.judge(run) {
        RunVerdict::Holds => None,
        RunVerdict::Broken(findings) => {
            let is_answer =
                |finding: &Finding| !faults.is_empty() && matches!(finding, Finding::Alarm(_));
            let wrong = findings.into_iter().find(|finding| !is_answer(finding));
            wrong.map(|finding| finding.to_string())
        }
        RunVerdict::Bug(text) => Some(format!("BUG: {text}")),
    }
}

/// Tells of the faults of a run that broke a promise.
fn tell_faults(seed: u64, run: &FinishedRun) {
    for (time, fault) in run.outcome.lives().flat_map(|life| &life.injected) {
        Searched::Fault(seed, words::stamped(Some(*time), fault)).tell();
    }
}

/// Many runs, up to the first that breaks a promise.
fn through(
    request: &SimRequest,
    session: &Session,
    asked: &[InjectedFault],
    seeds: Seeds,
) -> Result<u8, Failure> {
    for seed in seeds.each() {
        Searched::Tries(seed).tell();
        let faults = request.faults(session, asked, Some(seed));
        let how = request.options(session, Some(seed));
        let simulation = Simulation::new(session, &how).with_faults(&faults).following(None);
        let Simulated { mut run, hash, .. } = simulation.run(&mut ())?;
        Searched::Trace(seed, hash).tell();
        let finding = finding(session, &faults, &mut run);
        // A run with faults may be later than its bounds: it is no witness of them.
        if faults.is_empty() && finding.is_none() {
            let close = session.assumptions(&run).closeness(&run.outcome);
            close.into_iter().for_each(|it| Searched::Close(Witness::new(seed, it)).tell());
        }
        if let Some(finding) = finding {
            Searched::Broke(seed, finding).tell();
            tell_faults(seed, &run);
            return Ok(BROKEN);
        }
    }
    Ok(HOLDS)
}
