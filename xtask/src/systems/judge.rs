//! Judges a drawn system: planned, and if it is admitted simulated, without chance and with it.
//! It counts what happened (the lives of messages, the ends of jobs as the machine had them), not
//! what programs say of themselves.

use super::drawn::Drawn;
use super::slack::Slack;
use super::text::description;
use super::{boards, bursts, buses};
use diapason::console::Line;
use diapason::describe::describe_any;
use diapason::metal::Built;
use diapason::outcome::{Assumptions, RunVerdict};
use diapason::plan::Plan;
use diapason::plan::start::found_within;
use diapason::session::{FinishedRun, Session};
use diapason::simulate::{
    Hearing, Joined, Joints, Named, Seen, SeenStage, Simulated, Simulation, asked, delayed,
    drawn as faults_of, excuse, followed, own_seed, usual,
};
use diapason::{Failure, Workspace};
use diapason_abi::Nanos;
use diapason_system::{
    Description, Diagnostics, FaultKind, Hosts, InjectedFault, PipeDirection, PipeSpec,
    ProcessSpec, RunOptions, System,
};
use std::cell::RefCell;
use std::path::Path;

/// The length of each run: the ends of chains report a second after the interface is there.
const HORIZON_NS: u64 = 2_000_000_000;
/// An end of a pipe opens its channel within so many of its periods.
const PERIODS: u64 = 8;
/// Before that, devices are being found.
const SETTLED: &str = "100ms";

/// The fate of a system.
pub(crate) enum Judged {
    /// The reader of descriptions refuses it.
    Unread(String),
    /// The planner refuses it.
    Refused(String),
    /// The system was admitted and ran; what was seen of what was promised, in thousandths.
    Ran(Vec<Breach>, Box<Tightness>),
}

/// Observed in thousandths of what was promised.
#[derive(Clone, Default, Debug)]
pub(crate) struct Tightness {
    /// Delays of messages in pipes, in per mille of their bounds.
    pub pipes: Vec<u64>,
    /// Delays from devices to readers on other cores, as the readers say.
    pub far: Vec<u64>,
    /// Those of pipes to endpoints; they are among the pipes, too.
    pub sinks: Vec<u64>,
    pub jobs: Vec<u64>,
    /// Jobs that ask servers; they are among the jobs, too.
    pub calls: Vec<u64>,
    /// Messages of controllers with buffers: until they are in the queue, and until they are
    /// through.
    pub queued: Vec<u64>,
    pub through: Vec<u64>,
    /// Messages of other nodes until their readers take them.
    pub read: Vec<u64>,
    /// The items of bills that make bounds of pipes longer than what was seen.
    pub slack: Slack,
}

impl Tightness {
    /// Adds everything that another one has.
    pub(crate) fn extend(&mut self, other: Tightness) {
        self.pipes.extend(other.pipes);
        self.far.extend(other.far);
        self.sinks.extend(other.sinks);
        self.jobs.extend(other.jobs);
        self.calls.extend(other.calls);
        self.queued.extend(other.queued);
        self.through.extend(other.through);
        self.read.extend(other.read);
        self.slack.extend(other.slack);
    }
}

/// A promise that was broken.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Breach {
    /// The kind of promise.
    pub kind: String,
    /// The promise and what happened.
    pub text: String,
    /// The fault with which it happened, as the command line says it.
    pub fault: Option<String>,
}

/// Plans and simulates the description at `path`, of one host or of several.
pub fn judge_file(built: &Built, path: &Path) -> Judged {
    let usual = Conditions { drift: None, faults: false, seed: 0, horizon: HORIZON_NS };
    match describe_any(path) {
        Ok(Description::One(system)) => runs(built, named(vec![*system]), &Joined::Cores, &usual),
        Ok(Description::Cores(cores)) => runs(built, named(cores), &Joined::Cores, &usual),
        Ok(Description::Several(list)) => {
            let (parts, others) = (list.named(), list.others());
            let Hosts { cables, ethernet, switches, .. } = list;
            let joints = Joints { cables, ethernet, switches, others, ..Joints::default() };
            runs(built, parts, &Joined::By(Box::new(joints)), &usual)
        }
        Err(failure) => Judged::Unread(failure.to_string()),
    }
}

/// Under what a system runs, besides once without any of it.
struct Conditions {
    /// A fault, as the command line says it.
    drift: Option<String>,
    /// The faults of the seed happen, too.
    faults: bool,
    /// The seed draws what may vary.
    seed: u64,
    /// How long the system runs, in nanoseconds.
    horizon: u64,
}

/// Returns how long a drawn system runs: longer if its server takes long to find its devices, or if
/// ends of pipes have long periods.
pub fn horizon(drawn: &Drawn) -> u64 {
    let Some(can) = &drawn.can else { return HORIZON_NS };
    let readers = can.pipes.iter().chain(&can.second).map(|pipe| pipe.server.period);
    let ends = readers.chain(can.outputs.iter().map(|output| output.server.period));
    let longest = ends.max().unwrap_or_default();
    let found = read(drawn, Nanos::ZERO).map_or(Nanos::ZERO, |cores| found_within(&cores[0]));
    HORIZON_NS + found.0 + PERIODS * longest
}

/// Returns why the planner refuses a drawn system, or nothing.
pub fn refuses(drawn: &Drawn) -> Option<String> {
    refuses_with(drawn, Nanos::ZERO)
}

/// Returns why the planner refuses a drawn system with logs of this length, or nothing.
pub fn refuses_with(drawn: &Drawn, length: Nanos) -> Option<String> {
    let refused = |plan: &Plan| plan.clear().err();
    match read(drawn, length) {
        Ok(cores) => Plan::of_cores(&cores).iter().find_map(refused).map(|why| why.plain()),
        Err(why) => Some(why.plain()),
    }
}

/// Reads what each core of a drawn system has, with logs of this length.
pub fn read(drawn: &Drawn, length: Nanos) -> Result<Vec<System>, Diagnostics> {
    let mut cores = diapason_system::parse_cores("drawn.toml", &description(drawn, "drawn"))?;
    cores.iter_mut().for_each(|system| bursts::fill(system, length));
    Ok(cores)
}

/// Plans and simulates `drawn`; `seed` draws what may vary in its second run.
pub fn judge(built: &Built, drawn: &Drawn, seed: u64) -> Judged {
    let horizon = horizon(drawn);
    let cores = match read(drawn, Nanos(horizon)) {
        Ok(cores) => cores,
        Err(why) => return Judged::Unread(why.plain()),
    };
    let conditions = Conditions { drift: drift(drawn), faults: drawn.faults, seed, horizon };
    runs(built, named(cores), &Joined::Cores, &conditions)
}

fn ours(text: String) -> Judged {
    let violation = Breach { kind: String::from("ours"), text, fault: None };
    Judged::Ran(vec![violation], Box::default())
}

/// Returns cores with their names.
fn named(cores: Vec<System>) -> Vec<(String, System)> {
    cores.into_iter().map(|system| (system.core.to_string(), system)).collect()
}

/// Plans and runs hosts, or the cores of one.
fn runs(
    built: &Built,
    parts: Vec<(String, System)>,
    joined: &Joined,
    conditions: &Conditions,
) -> Judged {
    let options = RunOptions { horizon_ns: conditions.horizon, record_bytes: 0, watch: false };
    let (names, systems): (Vec<String>, Vec<System>) = parts.into_iter().unzip();
    let planned = |(name, plan)| Ok((name, Session::planned(plan, built.clone(), options, None)?));
    let sessions = names.into_iter().zip(joined.plans(&systems)).map(planned);
    match sessions.collect::<Result<Vec<Named>, Failure>>() {
        Ok(sessions) => match (sessions.as_slice(), joined) {
            ([(_, session)], Joined::Cores) => one_core(session, conditions),
            _ => several(sessions, joined, conditions),
        },
        Err(why) => stopped(why),
    }
}

/// Returns the fate of a system without sessions.
fn stopped(why: Failure) -> Judged {
    match why {
        Failure::NotAdmitted(why) => Judged::Refused(why),
        Failure::Input(why) => Judged::Unread(why),
        failure => ours(failure.to_string()),
    }
}

/// Runs all hosts, or all cores of one, beside each other: as one core runs alone.
fn several(mut sessions: Vec<Named>, joined: &Joined, conditions: &Conditions) -> Judged {
    let Conditions { drift, faults: of_seed, seed, horizon } = conditions;
    let of_each = |faults: &dyn Fn(&Named) -> Vec<InjectedFault>| {
        sessions.iter().map(faults).collect::<Vec<Vec<InjectedFault>>>()
    };
    let mut ways = vec![(None, of_each(&|_| Vec::new()), None)];
    if drift.is_some() {
        let drifts = of_each(&|(_, it)| asked(&it.system, drift.as_slice()).unwrap_or_default());
        ways.push((Some(*seed), drifts, drift.clone()));
    }
    if *of_seed {
        let drawn = of_each(&|(name, session)| {
            let faults = faults_of(&session.system, own_seed(name, *seed), *horizon);
            Joined::possible(&session.system, faults)
        });
        ways.push((Some(*seed), drawn, Some(format!("--faults --seed {seed}"))));
    }
    let (mut found, mut shares) = (Vec::new(), Tightness::default());
    for (seed, faults, said) in ways {
        for ((_, session), faults) in sessions.iter_mut().zip(faults) {
            session.system.faults = faults;
        }
        let drawn_too = said.is_some() && said != *drift;
        let broken = beside(&sessions, joined, (seed, drawn_too), &mut shares);
        found.extend(broken.into_iter().map(|it| Breach { fault: said.clone(), ..it }));
    }
    Judged::Ran(found, Box::new(shares))
}

/// Runs parts beside each other once, with their faults; what they broke.
fn beside(
    sessions: &[Named],
    joined: &Joined,
    (seed, drawn_too): (Option<u64>, bool),
    shares: &mut Tightness,
) -> Vec<Breach> {
    let said = RefCell::new(Vec::new());
    let hear = |line: &Line| {
        if let Line::Log { text, .. } = line {
            said.borrow_mut().push(text.clone());
        }
    };
    let observers = sessions.iter().map(|_| Hearing(&hear));
    let all = match followed(sessions, joined, seed, observers) {
        Ok(all) => all,
        Err(failure) => return vec![breach("ours", failure.to_string())],
    };
    let mut found = Vec::new();
    for ((_, session), ran) in sessions.iter().zip(all) {
        found.extend(look(session, ran, &session.system.faults, drawn_too, shares));
    }
    let systems = sessions.iter().map(|(_, session)| &session.system);
    found.retain(|it| !boards::is_named(systems.clone(), it));
    if !drawn_too {
        found.extend(boards::heard(systems, &said.into_inner()));
    }
    found
}

fn one_core(session: &Session, conditions: &Conditions) -> Judged {
    let Conditions { drift, faults: of_seed, seed, horizon } = conditions;
    let (mut violations, mut shares) = (Vec::new(), Tightness::default());
    let faults = asked(&session.system, drift.as_slice()).unwrap_or_default();
    let mut one = |seed, faults: &[InjectedFault], drawn_too: bool, said: Option<String>| {
        let how = usual(session, seed);
        let simulation = Simulation::new(session, &how).with_faults(faults).following(None);
        match simulation.run(&mut ()) {
            Ok(followed) => {
                let found = look(session, followed, faults, drawn_too, &mut shares);
                violations.extend(found.into_iter().map(|it| Breach { fault: said.clone(), ..it }));
            }
            Err(failure) => {
                let (kind, text) = (String::from("ours"), failure.to_string());
                violations.push(Breach { kind, text, fault: said });
            }
        }
    };
    one(None, &[], false, None);
    if !faults.is_empty() {
        one(Some(*seed), &faults, false, drift.clone());
    }
    if *of_seed {
        let mut faults = faults_of(&session.system, *seed, *horizon);
        // Tasks are released at absolute times, so after a reboot they are late by themselves.
        faults.retain(|fault| fault.kind != FaultKind::Reboot);
        one(Some(*seed), &faults, true, Some(format!("--faults --seed {seed}")));
    }
    Judged::Ran(violations, Box::new(shares))
}

/// Returns the drift of the interface's clock, as the command line says it.
fn drift(drawn: &Drawn) -> Option<String> {
    let what = if drawn.drift_ppm < 0 { "slow-clock" } else { "fast-clock" };
    let ppm = drawn.drift_ppm.unsigned_abs();
    (ppm > 0 && drawn.can.is_some()).then(|| format!("{SETTLED} {what} interface {ppm}"))
}

/// Returns what a run broke. With faults of the seed, an alarm is the answer to one, and what the
/// faulty device carries may be late; what others were promised is not.
fn look(
    session: &Session,
    followed: Simulated,
    faults: &[InjectedFault],
    drawn_too: bool,
    shares: &mut Tightness,
) -> Vec<Breach> {
    let Simulated { mut run, lives, .. } = followed;
    excuse(&session.system, faults, &mut run.outcome);
    let verdict = session.judge(&run);
    let mut found = findings(session, &verdict, drawn_too);
    found.retain(|it| !buses::is_dry(&run.outcome, &it.kind));
    found.extend(jobs(session, &run, faults, shares));
    if !drawn_too {
        found.extend(buses::waits(session, &run, shares));
        buses::reads(session, &run, shares);
        let plan = &session.plan;
        let (promised, flooded) = (Assumptions::of(plan), flooded(&session.system));
        let far = promised.pipes.iter().filter(|promise| promise.is_far);
        for promise in far {
            match promise.row(&run.outcome).filter(|row| row.messages > 0) {
                Some(row) => shares.far.push(row.whole_max_ns * 1_000 / promise.bound_ns.max(1)),
                None => found.push(breach("silent", format!("{}: no message", promise.name))),
            }
        }
        let pipes = session.system.pipes.iter().zip(&lives.seen).zip(&plan.pipes);
        // Nobody here knows of a reader on another core whose messages are not followed.
        let is_known = |((pipe, seen), _): &((&PipeSpec, &Seen), _)| {
            pipe.process().is_some() || seen.worst.is_some()
        };
        for ((pipe, seen), planned) in pipes.filter(is_known) {
            let name = &pipe.name;
            let Some(life) = seen.worst.as_ref().filter(|_| planned.bill.is_ok()) else {
                // Nobody follows pictures from the outside: their reader says how many came.
                let told = promised.pipes.iter().find(|it| it.name == *name);
                if told.is_some_and(|it| it.messages(&run.outcome) > 0) {
                    continue;
                }
                found.push(breach("silent", format!("{name}: no message arrived")));
                continue;
            };
            let Some(bound) = life.bound.filter(|_| !flooded.contains(&&**name)) else { continue };
            let worst = life.latency();
            let share = worst.0 * 1_000 / bound.0.max(1);
            shares.pipes.push(share);
            shares.sinks.extend(is_sink(pipe).then_some(share));
            shares.slack.note(life);
            let late = seen.stages().into_iter().find(|it| it.by_end > it.planned_by_end);
            if let Some(SeenStage { what, by_end, planned_by_end, .. }) = late {
                let (seen, most) = (by_end.0, planned_by_end.0);
                let text = format!("{name}: {} left after {seen} ns of {most} ns", what.name());
                found.push(breach("stage", text));
            }
            if worst > bound {
                found.push(breach("late", format!("{name}: {} ns of {} ns", worst.0, bound.0)));
            }
        }
    }
    if verdict == RunVerdict::Holds {
        found.iter_mut().for_each(|it| it.kind += ", unsaid");
    }
    found
}

/// Returns a broken promise of this kind, seen without a fault.
pub fn breach(kind: &str, text: String) -> Breach {
    Breach { kind: kind.to_owned(), text, fault: None }
}

/// The programs that misbehave.
const RUDE: [&str; 3] = ["rude", "hostile", "tuned-hostile"];

/// The doorbell that one of them rings as often as it likes.
const BELL: &str = "rude.bell";

/// The names of processes that misbehave, of VCPUs that nobody else is on, of messages that come
/// too often, and of a doorbell.
fn misbehaving(system: &System) -> Vec<&str> {
    let is_rude = |process: &&ProcessSpec| RUDE.contains(&&*process.program);
    let others: Vec<u16> =
        system.processes.iter().filter(|it| !is_rude(it)).filter_map(|it| it.vcpu).collect();
    let rude = || system.processes.iter().filter(is_rude);
    let vcpus = rude().filter_map(|it| it.vcpu).filter(|vcpu| !others.contains(vcpu));
    let vcpus = vcpus.filter_map(|vcpu| system.vcpu_name(vcpu));
    let messages = buses::floods(system);
    rude().map(|it| &*it.name).chain(vcpus).chain(messages).chain([BELL]).collect()
}

/// The program that writes to an endpoint. Nothing is declared of its jobs.
const WRITER: &str = "packet-writer";

/// The names of processes whose jobs may last longer than the time to the next one, as the plan
/// says, and of those without a VCPU or a declared job. A task asks for every job to be done by
/// then, and nobody promised that.
fn unpromised(session: &Session) -> Vec<&str> {
    let (system, plan) = (&session.system, &session.plan);
    let late = |(place, number): (usize, &u16)| {
        let job = plan.job(place)?;
        (job.done > job.every).then_some(*number)
    };
    let late: Vec<_> = plan.core.mains.iter().enumerate().filter_map(late).collect();
    let is_late = |process: &&ProcessSpec| {
        process.program == WRITER || process.vcpu.is_none_or(|it| late.contains(&it))
    };
    system.processes.iter().filter(is_late).map(|process| &*process.name).collect()
}

/// The alarms of a pipe whose writer breaks its contract: that alarm, and what follows from waiting
/// until a packet is due. No packet is lost.
const FLOODED: [&str; 4] = ["pipe-contract", "pipe-taken", "pipe-late", "pipe-buffer"];

/// Returns whether a sentence of a verdict is this alarm.
fn is_alarm(text: &str, alarm: &str) -> bool {
    text.strip_prefix("alarm ").and_then(|text| text.split(':').next()) == Some(alarm)
}

/// Returns whether a sentence has one of these names.
fn is_of(names: &[&str], text: &str) -> bool {
    text.split_whitespace().any(|word| names.contains(&word.trim_matches([',', ':', '`'])))
}

/// Returns the names of pipes to endpoints whose writers have more than one packet in each job.
/// Nothing is promised of their packets.
fn flooded(system: &System) -> Vec<&str> {
    let floods = |pipe: &&PipeSpec| {
        let Some(writer) = pipe.process() else { return false };
        let writer = &system.processes[usize::from(writer)];
        is_sink(pipe) && writer.program == WRITER && writer.arguments[3] > 1
    };
    system.pipes.iter().filter(floods).map(|pipe| &*pipe.name).collect()
}

/// Returns whether a pipe goes to an endpoint.
fn is_sink(pipe: &PipeSpec) -> bool {
    pipe.endpoint > 0 && pipe.way == PipeDirection::ToDevice
}

/// Returns what the verdict says, but of the programs that misbehave: nothing is promised to them.
fn findings(session: &Session, verdict: &RunVerdict, drawn_too: bool) -> Vec<Breach> {
    if let RunVerdict::Bug(text) = verdict {
        return vec![breach("ours", text.clone())];
    }
    let (names, unpromised) = (misbehaving(&session.system), unpromised(session));
    let own =
        |text: &String| is_of(&names, text) || text.contains("missed") && is_of(&unpromised, text);
    let flooded = flooded(&session.system);
    let flood =
        |text: &String| is_of(&flooded, text) && FLOODED.iter().any(|alarm| is_alarm(text, alarm));
    let answer = |text: &String| drawn_too && text.starts_with("alarm ");
    let wrong =
        verdict.findings().into_iter().filter(|text| !own(text) && !flood(text) && !answer(text));
    let kind = |text: &str| match text.split_once(':') {
        Some((alarm, _)) if alarm.starts_with("alarm ") => alarm.to_owned(),
        _ if text.contains("missed") => String::from("deadline"),
        _ if text.starts_with("process ") => String::from("process"),
        _ if text.starts_with("the kernel lost") => String::from("evidence lost"),
        _ => String::from("finding"),
    };
    wrong.map(|text| breach(&kind(&text), text)).collect()
}

/// Jobs that ended later than the plan says, but those that a fault made longer.
fn jobs(
    session: &Session,
    run: &FinishedRun,
    faults: &[InjectedFault],
    shares: &mut Tightness,
) -> Vec<Breach> {
    let system = &session.system;
    let plan = &session.plan;
    let late = delayed(system, faults);
    let mut found = Vec::new();
    for (place, number) in plan.core.mains.iter().enumerate() {
        let Some(vcpu) = system.vcpus.get(usize::from(*number)) else { continue };
        let Some(done) = plan.job(place).map(|job| job.done.0) else { continue };
        let mut users =
            (0..).zip(&system.processes).filter(|(_, process)| process.vcpu == Some(*number));
        let (Some((process, spec)), None) = (users.next(), users.next()) else { continue };
        if late.contains(&Some(*number)) {
            continue;
        }
        let rows = run.outcome.threads.iter().filter(|row| row.process == process);
        let worst = rows.map(|row| row.response_max_ns).max().unwrap_or_default();
        let share = worst * 1_000 / done.max(1);
        shares.jobs.push(share);
        if spec.program == "caller" {
            shares.calls.push(share);
        }
        if worst > done {
            found.push(breach("job", format!("{}: {worst} ns of {done} ns", vcpu.name)));
        }
    }
    found
}

/// Boots an admitted system in QEMU; what it breaks there.
///
/// # Errors
/// If it cannot be booted.
pub fn boot(workspace: &Workspace, built: &Built, drawn: &Drawn) -> Result<Vec<Breach>, Failure> {
    let horizon_ns = horizon(drawn);
    let cores = read(drawn, Nanos(horizon_ns)).map_err(|why| Failure::Input(why.plain()))?;
    let options = RunOptions { horizon_ns, record_bytes: 0, watch: false };
    let one = cores.into_iter().next().ok_or_else(|| Failure::Ours("no core".into()))?;
    let session = Session::assemble(one, built.clone(), options)?;
    let run = session.run(workspace, &mut |_| {})?;
    let mut found = findings(&session, &session.judge(&run), false);
    found.extend(jobs(&session, &run, &[], &mut Tightness::default()));
    Ok(found)
}
