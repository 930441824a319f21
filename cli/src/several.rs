//! Several hosts, or the cores of one, that run together: what both `sim` and `run` do with them
//! before and after the run.

use crate::commands::{Addition, as_json, as_tables, code, holds};
use crate::console::Line;
use crate::failure::{BROKEN, Failure, HOLDS, UNPROVED};
use crate::formats::{RunFormat, named};
use crate::live::live_from;
use crate::metal::Built;
use crate::outcome::{ChainPromise, FORMAT, RunVerdict};
use crate::output::{note, say};
use crate::plan::{NetworkPlan, Plan, Unproved};
use crate::project;
use crate::session::{FinishedRun, Session};
use crate::simulate::{PromisedTime, SeenTime, SwitchReport, steps};
use crate::workspace::Workspace;
use diapason_devices::faulty::OwnClock;
use diapason_plan::{FlowStage, PlannedCredit};
use diapason_sim::StepSpan;
use diapason_system::{
    Cable, EthernetLink, FaultTarget, Flow, FlowWay, Hosts, InjectedFault, RunOptions, Switch,
    System, WireEnd,
};
use serde_json::{Value, json};
use std::path::Path;
use std::sync::LazyLock;

/// Memory of a bridge cable in each direction.
pub(crate) const CABLE_BYTES: usize = 16 * 1024;

/// A host or core with its name.
pub type Named = (String, Session);

/// The hosts or cores that run together.
pub(crate) struct Several {
    /// Each with its name.
    parts: Vec<(String, System)>,
    joined: Joined,
    /// The network between them is proved to form.
    forms: bool,
    /// Where those that are only about one are described.
    file: Option<String>,
    /// The promises about flows, with the number of the part in which each ends.
    flows: Vec<(usize, ChainPromise)>,
    /// Their programs mark the works that they do.
    marked: bool,
}

/// The connection between hosts or cores that run together.
pub enum Joined {
    /// They are hosts, with what joins them.
    By(Box<Joints>),
    /// They are the cores of one host.
    Cores,
}

/// The cables, wires and switches between hosts.
#[derive(Clone, Debug, Default)]
pub struct Joints {
    pub cables: Vec<Cable>,
    pub ethernet: Vec<EthernetLink>,
    pub switches: Vec<Switch>,
    /// By how many millionths the clock of each host is fast; hosts behind the last have no drift.
    pub drifts: Vec<i32>,
    /// The host of each part behind the hosts: those are other cores of hosts.
    pub others: Vec<usize>,
    /// Ports of switches and the classes in which flows with a bound leave by them.
    pub promised: Vec<(String, usize)>,
    /// The common times with a bound.
    pub times: Vec<PromisedTime>,
    /// When frames of flows in step with gates have left the adapter, if that has a bound.
    pub steps: Vec<(WireEnd, StepSpan)>,
    /// The credit of ports of switches.
    pub credits: Vec<PlannedCredit>,
}

impl Joints {
    /// Returns the clock of the world as a host sees it.
    #[must_use]
    pub fn world(&self, host: usize) -> OwnClock {
        OwnClock::world(self.drifts.get(host).copied().unwrap_or(0))
    }

    /// Returns the parts of each host, in the order of its cores.
    #[must_use]
    pub fn crews(&self, systems: &[&System]) -> Vec<Vec<usize>> {
        let hosts = systems.len() - self.others.len();
        let mut crews: Vec<Vec<usize>> = (0..hosts).map(|host| vec![host]).collect();
        for (part, host) in (hosts..).zip(&self.others) {
            crews[*host].push(part);
        }
        crews.iter_mut().for_each(|crew| crew.sort_by_key(|part| systems[*part].core));
        crews
    }

    /// Returns whether a cable or wire is pulled during the run.
    #[must_use]
    pub fn pulls(&self) -> bool {
        let cables = self.cables.iter().map(|cable| &cable.pulled);
        let mut all = cables.chain(self.ethernet.iter().map(|wire| &wire.pulled));
        all.any(|times| !times.is_empty())
    }
}

impl From<Vec<Cable>> for Box<Joints> {
    fn from(cables: Vec<Cable>) -> Box<Joints> {
        Box::new(Joints { cables, ..Joints::default() })
    }
}

impl Joined {
    /// Returns the clock of the world, as a host sees it.
    pub(crate) fn world(&self, host: usize) -> OwnClock {
        match self {
            Joined::By(joints) => OwnClock::world(joints.drifts.get(host).copied().unwrap_or(0)),
            Joined::Cores => OwnClock::default(),
        }
    }

    /// Returns what joins the hosts; cores have nothing of the kind.
    #[must_use]
    pub fn joints(&self) -> &Joints {
        static NONE: LazyLock<Joints> = LazyLock::new(Joints::default);
        match self {
            Joined::By(joints) => joints,
            Joined::Cores => &NONE,
        }
    }

    /// Returns the word for one of the parts.
    pub(crate) const fn noun(&self) -> &'static str {
        match self {
            Joined::By(_) => "host",
            Joined::Cores => "core",
        }
    }

    /// Returns the name of a part where it stands alone.
    pub(crate) fn called(&self, name: &str) -> String {
        match self {
            Joined::By(_) => name.to_owned(),
            Joined::Cores => format!("core {name}"),
        }
    }

    /// Returns the name of a folder for what is written about a part.
    pub(crate) fn folder(&self, name: &str) -> String {
        self.called(name).replace(' ', "-")
    }

    /// Returns the parts of each host, in the order of its cores.
    pub(crate) fn crews(&self, systems: &[&System]) -> Vec<Vec<usize>> {
        match self {
            Joined::By(joints) => joints.crews(systems),
            Joined::Cores => vec![(0..systems.len()).collect()],
        }
    }

    /// Returns the plan of each part: those of one host are planned together.
    #[must_use]
    pub fn plans(&self, systems: &[System]) -> Vec<Plan> {
        let crews = self.crews(&systems.iter().collect::<Vec<&System>>());
        let mut plans: Vec<Option<Plan>> = systems.iter().map(|_| None).collect();
        for crew in crews {
            let cores: Vec<System> = crew.iter().map(|part| systems[*part].clone()).collect();
            for (part, plan) in crew.into_iter().zip(Plan::of_cores(&cores)) {
                plans[part] = Some(plan);
            }
        }
        plans.into_iter().flatten().collect()
    }

    /// Keeps the possible faults: a core does not lose its power alone.
    #[must_use]
    pub fn possible(system: &System, mut faults: Vec<InjectedFault>) -> Vec<InjectedFault> {
        if system.cores > 1 {
            faults.retain(|fault| fault.kind.target() != FaultTarget::Host);
        }
        faults
    }
}

impl Several {
    /// Returns the hosts of a file with the cables between them and the plan of their network.
    pub fn hosts(list: Hosts, network: &NetworkPlan) -> Several {
        let (flows, forms) = (ChainPromise::of_flows(&list, network), network.holds());
        let (promised, times) = (promised(&list, network), PromisedTime::of(&list, network));
        let steps = steps(&list, network);
        let drift = |(host, _): (usize, &System)| list.hosts[host].drift_ppm;
        let drifts = list.systems().map(drift).collect();
        let (parts, others) = (list.named(), list.others());
        let Hosts { hosts, cables, ethernet, switches, .. } = list;
        let credits = network.credits.clone();
        let file = hosts.first().map(|host| host.file.clone());
        let joints =
            Joints { cables, ethernet, switches, drifts, others, promised, times, steps, credits };
        Several { parts, joined: Joined::By(Box::new(joints)), forms, file, flows, marked: false }
    }

    /// Returns the cores of one host.
    pub fn cores(cores: Vec<System>) -> Several {
        let named = |system: System| (system.core.to_string(), system);
        let parts = cores.into_iter().map(named).collect();
        let flows = Vec::new();
        Several { parts, joined: Joined::Cores, forms: true, file: None, flows, marked: false }
    }

    /// Returns the names of the parts.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.parts.iter().map(|(name, _)| &**name)
    }

    /// Returns the systems of the parts.
    pub fn systems(&self) -> Vec<&System> {
        self.parts.iter().map(|(_, system)| system).collect()
    }

    /// Lets programs mark the works that they do.
    pub fn marked(self) -> Several {
        Several { marked: true, ..self }
    }

    /// Refuses options that are about one host or core. Each comes with whether it is given.
    ///
    /// # Errors
    /// Names the first option that is given.
    pub fn refuse(&self, path: &Path, of_one: &[(bool, &str)]) -> Result<(), Failure> {
        let Some((_, option)) = of_one.iter().find(|(given, _)| *given) else { return Ok(()) };
        let help = match &self.file {
            Some(first) => format!("name the description of one: {first}"),
            None => String::from("leave it out; `diapason sim --trace` shows all"),
        };
        Err(Failure::Input(format!(
            "error: `{option}` is about one {}, {} has {}\nhelp: {help}",
            self.joined.noun(),
            path.display(),
            self.parts.len(),
        )))
    }

    /// Builds what the parts run, and returns each as a session.
    ///
    /// # Errors
    /// If something does not compile, or one does not hold and nobody wants it unproved.
    pub fn assemble(
        self,
        workspace: &Workspace,
        path: &Path,
        options: RunOptions,
        unproved: Option<Unproved>,
    ) -> Result<(Vec<Named>, Joined), Failure> {
        note("building the programs");
        let Several { parts, joined, forms, flows, marked, .. } = self;
        let systems: Vec<&System> = parts.iter().map(|(_, system)| system).collect();
        let built = Built { marked, ..project::build(workspace, path, &systems)? };
        let mut sessions = Vec::new();
        let (names, systems): (Vec<String>, Vec<System>) = parts.into_iter().unzip();
        let plans = joined.plans(&systems);
        for (name, plan) in names.into_iter().zip(plans) {
            let mut session = Session::planned(plan, built.clone(), options, unproved)?;
            session.proved &= forms;
            let own = flows.iter().filter(|(part, _)| *part == sessions.len());
            session.flows = own.map(|(_, promise)| promise.clone()).collect();
            sessions.push((name, session));
        }
        Ok((sessions, joined))
    }
}

/// Returns the ports of switches, and the classes, in which flows with a bound leave by them.
fn promised(list: &Hosts, network: &NetworkPlan) -> Vec<(String, usize)> {
    let bills = list.flows.iter().zip(&network.flows);
    let bills = bills.filter_map(|(flow, it)| Some((flow, it.bill.as_ref().ok()?)));
    let ports = bills.flat_map(|(flow, bill)| {
        let ports = bill.items.iter().filter(|item| item.stage == FlowStage::Port);
        ports.map(|item| (item.name.clone(), class(list, flow)))
    });
    ports.collect()
}

/// Returns the traffic class of a flow over Ethernet.
pub(crate) fn class(list: &Hosts, flow: &Flow) -> usize {
    let Some(FlowWay::Sockets { from, .. }) = flow.hops.first().map(|hop| hop.way) else {
        return 0;
    };
    let socket = &list.hosts[flow.from.host].system.sockets[from];
    socket.priority.unwrap_or(0).into()
}

/// Returns what shows the lines of each part as they come, behind its name.
pub(crate) fn live_parts(
    sessions: &[Named],
    joined: &Joined,
    json: bool,
) -> Vec<impl FnMut(&Line) + use<>> {
    let names: Vec<String> = sessions.iter().map(|(name, _)| joined.called(name)).collect();
    let width = names.iter().map(String::len).max().unwrap_or(0);
    let live = |(name, (_, session)): (&String, &Named)| {
        live_from(format!("{name:width$} "), json, session.names.clone(), session.promises())
    };
    names.iter().zip(sessions).map(live).collect()
}

/// Refuses a format that is for one host.
///
/// # Errors
/// If this format is one.
pub(crate) fn refuse_format(path: &Path, format: Option<RunFormat>) -> Result<(), Failure> {
    if format != Some(RunFormat::Junit) {
        return Ok(());
    }
    Err(Failure::Input(format!(
        "error: {} has several hosts or cores, and the format of JUnit is for one\n\
         help: leave out `--format junit`, or write `--format json`",
        path.display()
    )))
}

/// Several runs as a whole.
pub(crate) struct AllParts<'a> {
    /// The word for a part.
    pub noun: &'a str,
    /// The switches between hosts, if there are any.
    pub switches: Option<&'a SwitchReport>,
    /// The common times of hosts.
    pub times: Vec<SeenTime>,
    /// Anything else about each part, in their order; empty if there is nothing.
    pub each: Vec<Addition>,
    /// Anything else about all parts together.
    pub addition: Addition,
}

/// Says how each part's run went, and returns the code of the worst.
///
/// # Errors
/// If a run shows a bug of ours.
pub(crate) fn report(
    json: bool,
    sessions: &[Named],
    runs: &[FinishedRun],
    about: AllParts<'_>,
) -> Result<u8, Failure> {
    let AllParts { noun, switches, times, mut each, addition } = about;
    each.resize_with(sessions.len(), Addition::default);
    let mut lost = switches.map(SwitchReport::findings).unwrap_or_default();
    lost.extend(times.iter().flat_map(SeenTime::findings));
    let judged: Vec<RunVerdict> =
        sessions.iter().zip(runs).map(|((_, session), run)| session.judge(run)).collect();
    let parts = || sessions.iter().zip(runs).zip(&judged);
    let each = parts().zip(each).map(|((((name, session), run), verdict), addition)| {
        (name, session, run, verdict, addition)
    });
    if json {
        let object =
            |(name, session, run, verdict, addition): (&String, &Session, &_, &_, Addition)| {
                named(noun, name, as_json(session, run, verdict, addition))
            };
        let all_hold = parts().all(|(((_, session), run), verdict)| holds(session, run, verdict));
        let all_hold = all_hold && lost.is_empty();
        let proved = sessions.iter().all(|(_, session)| session.proved);
        let objects: Value = each.map(object).collect();
        let mut all = json!({
            "format": FORMAT,
            "result": "run",
            "holds": all_hold,
            "proved": proved,
            format!("{noun}s"): objects,
        });
        if let Some(all) = all.as_object_mut() {
            all.extend(addition.json);
        }
        if let Some(switches) = switches {
            all["switches"] = switches.to_json().into();
            all["gates"] = switches.gated_json().into();
            all["credits"] = switches.credits_json().into();
            all["times"] = times.iter().map(SeenTime::to_json).collect();
            all["lost"] = json!(lost);
        }
        say(&format!("{all:#}"));
    } else {
        for (name, session, run, verdict, addition) in each {
            let tables = as_tables(session, run, verdict, addition);
            say(&format!("\n{noun} {name}\n\n{tables}"));
        }
        if !addition.text.is_empty() {
            say(&format!("\n{}", addition.text.trim_end()));
        }
        let switched = switches.map(SwitchReport::render).unwrap_or_default();
        for tables in [switched, SeenTime::render(&times)] {
            if !tables.is_empty() {
                say(&format!("\n{tables}"));
            }
        }
        lost.iter().for_each(|finding| say(&format!("\n{finding}: does not hold")));
    }
    let ran = sessions.iter().zip(runs).map(|((_, session), run)| (session, run));
    let code = worst_code(
        judged.into_iter().zip(ran).map(|(verdict, (session, run))| (verdict, session, run)),
    )?;
    Ok(if lost.is_empty() { code } else { BROKEN })
}

/// Returns the exit code of the worst of several runs.
///
/// # Errors
/// If a run shows a bug of ours.
pub(crate) fn worst_code<'a>(
    judged: impl Iterator<Item = (RunVerdict, &'a Session, &'a FinishedRun)>,
) -> Result<u8, Failure> {
    let coded = judged.map(|(verdict, session, run)| code(session, run, verdict));
    let codes = coded.collect::<Result<Vec<u8>, Failure>>()?;
    let worst = [BROKEN, UNPROVED].into_iter().find(|code| codes.contains(code));
    Ok(worst.unwrap_or(HOLDS))
}
