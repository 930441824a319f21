//! The messages of flows over cables: each is followed from the program that gives it to a link,
//! through the links and programs of every host, until the last program gives its memory back.
//!
//! Times are by the clock of the world, so those at different hosts compare.

mod ears;
mod follow;
mod mailboxes;
mod tell;

pub use ears::{LinkEars, LinkLogs};
use follow::Legs;
pub use follow::{FlowLife, FlowSeen};
pub use tell::ToldFlow;
use tell::{render, render_books, steps};

use crate::commands::Addition;
use diapason_abi::Nanos;
use diapason_plan::{FlowBill, FlowItem, FlowStage, LinkEnd, NetworkPlan, flow_legs};
use diapason_system::{Flow, FlowHop, FlowStop, FlowWay, Hosts};

/// The message of a flow whose life is wanted.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FlowChoice {
    /// The one that took most of its bound, of all flows.
    WorstOfAll,
    /// The slowest of the flow with this number.
    Worst(usize),
    /// This one of a flow, from 1.
    This(usize, u64),
}

impl FlowChoice {
    /// Reads what `--explain` says of a list of hosts: `worst`, `FLOW:worst` or `FLOW:NUMBER`.
    ///
    /// # Errors
    /// Returns the forms that would be understood.
    pub fn parse(text: &str, hosts: &Hosts) -> Result<FlowChoice, String> {
        if text == "worst" {
            return Ok(FlowChoice::WorstOfAll);
        }
        let named = text.rsplit_once(':').and_then(|(name, number)| {
            let flow =
                hosts.flows.iter().position(|flow| flow.name == name && is_followed(flow))?;
            match number {
                "worst" => Some(FlowChoice::Worst(flow)),
                _ => number.parse().ok().map(|number| FlowChoice::This(flow, number)),
            }
        });
        named.ok_or_else(|| {
            let flows = hosts.flows.iter().filter(|flow| is_followed(flow));
            let flows: Vec<&str> = flows.map(|flow| &*flow.name).collect();
            let known = match flows.is_empty() {
                true => String::from("no flow goes over cables"),
                false => format!("flows over cables: {}", flows.join(", ")),
            };
            format!(
                "`{text}` names no message of a flow: write `worst`, or FLOW:MESSAGE with a number \
                 or `worst`; {known}; a job or a message of a pipe is HOST:PROCESS.SLOT:JOB or \
                 HOST:PIPE:MESSAGE"
            )
        })
    }

    /// Returns the number of the message that is to be kept of a flow.
    const fn number(self, flow: usize) -> Option<u64> {
        match self {
            FlowChoice::This(of, number) if of == flow => Some(number),
            _ => None,
        }
    }

    /// Returns the life of the message in words.
    #[must_use]
    pub fn life(self, flows: &[ToldFlow<'_>]) -> String {
        let named = |number: usize| flows.iter().find(|flow| flow.number == number);
        let worst = |flow: &ToldFlow<'_>| Some(flow.life(flow.seen.worst.as_ref()?));
        let found = match self {
            FlowChoice::WorstOfAll => {
                // In parts of a million of its bound.
                let part = |flow: &&ToldFlow<'_>| {
                    let worst = flow.seen.worst.as_ref().map_or(0, |worst| worst.latency().0);
                    u128::from(worst) * 1_000_000 / u128::from(flow.bill.total.0.max(1))
                };
                flows.iter().max_by_key(part).and_then(worst)
            }
            FlowChoice::Worst(flow) => named(flow).and_then(worst),
            FlowChoice::This(flow, _) => {
                named(flow).and_then(|flow| Some(flow.life(flow.seen.this.as_ref()?)))
            }
        };
        found.unwrap_or_else(|| String::from("there was no such message"))
    }
}

/// Returns whether messages of a flow are followed: those over Ethernet are not.
fn is_followed(flow: &Flow) -> bool {
    !flow.is_on_ethernet()
}

/// Returns every flow over cables that has a bill, with what was seen of it. `logs` has the links
/// of every host.
#[must_use]
pub fn told<'a>(
    hosts: &'a Hosts,
    network: &'a NetworkPlan,
    logs: &[&LinkLogs],
    choice: Option<FlowChoice>,
) -> Vec<ToldFlow<'a>> {
    let starts: Vec<Vec<LinkEnd>> = hosts.flows.iter().map(|flow| starts(hosts, flow)).collect();
    let named = hosts.flows.iter().zip(&network.flows).enumerate();
    let named = named.filter(|(_, (flow, _))| is_followed(flow));
    let told = named.filter_map(|(number, (flow, flowed))| {
        let bill = flowed.bill.as_ref().ok()?.between_pipes();
        let legs = flow_legs(hosts, flow)?;
        let wanted = choice.and_then(|choice| choice.number(number));
        let shares = |other: &&Vec<LinkEnd>| other.iter().any(|it| starts[number].contains(it));
        let alone = starts.iter().filter(shares).count() == 1;
        let ends = [flow.from.host, flow.end().host];
        let mail = flow.mailbox().and(u32::try_from(number).ok()).map(|own| (ends, own));
        let (patience, bound) = (patience(flow, &bill), bill.longest);
        let legs = Legs { all: legs, mail, patience, bound };
        let seen = FlowSeen::of(&legs, logs, wanted, alone);
        let (cables, steps) = (cables(hosts, flow), steps(&bill, flow.mailbox().is_some(), hosts));
        let (name, mail) = (flow.name.as_str(), boxes(hosts, flow).unwrap_or_default());
        Some(ToldFlow { number, name, bill, steps, cables, mail, seen })
    });
    told.collect()
}

/// Returns the time after which a message is late at each cable of a flow's own way, if the cable
/// has another way: the patience of its program, or the time that the plan has for the crossing.
fn patience(flow: &Flow, bill: &FlowBill) -> Vec<Option<Nanos>> {
    let mut all = vec![None; flow.hops.len()];
    for other in &bill.others {
        let reached = |stop: usize| {
            let is_program =
                |item: &&FlowItem| matches!(item.stage, FlowStage::Program | FlowStage::Pipe);
            let programs = bill.items.iter().filter(is_program);
            programs.map(|item| item.after).nth(stop).unwrap_or(Nanos::ZERO)
        };
        let crosses = reached(other.hop + 1) - reached(other.hop);
        all[other.hop] = Some(other.patience.max(crosses));
    }
    all
}

/// Returns the links to which the first program of a flow gives its messages.
fn starts(hosts: &Hosts, flow: &Flow) -> Vec<LinkEnd> {
    let Some(legs) = flow_legs(hosts, flow) else { return Vec::new() };
    let others = legs.others.iter().filter(|(hop, _)| *hop == 0).map(|(_, legs)| legs);
    let firsts = std::iter::once(&legs.own).chain(others).filter_map(|legs| legs.first());
    firsts.map(|leg| leg.from).collect()
}

/// Returns the places at which a message can be lost on each cable of a flow, then on those of its
/// other ways.
fn cables(hosts: &Hosts, flow: &Flow) -> Vec<[String; 3]> {
    let mut all = places(hosts, flow.from, &flow.hops);
    for detour in &flow.detours {
        let from = flow.stops().nth(detour.hop).copied().unwrap_or(flow.from);
        all.extend(places(hosts, from, &detour.hops));
    }
    all
}

/// Returns the places at which a message can be lost on each cable of a way: the server that sends
/// it, the cable, and the program that takes it.
fn places(hosts: &Hosts, from: FlowStop, hops: &[FlowHop]) -> Vec<[String; 3]> {
    let mut before = from;
    let place = |hop: &FlowHop| {
        let FlowWay::Cable(cable) = hop.way else {
            before = hop.to;
            return None;
        };
        let host = |stop: FlowStop| hosts.hosts[stop.host].name.as_str();
        let cable = hosts.cables[cable].name.as_str();
        let program = hosts.hosts[hop.to.host].system.process_name(hop.to.process);
        let places = [
            format!("at {}, before {cable}", host(before)),
            format!("in {cable}, from {} to {}", host(before), host(hop.to)),
            format!("at {}:{}", host(hop.to), program.unwrap_or_default()),
        ];
        before = hop.to;
        Some(places)
    };
    hops.iter().filter_map(place).collect()
}

/// Returns the places beside its cables at which a message of a flow from mailbox to mailbox can be
/// lost, in the order of [`follow::LostMail`].
fn boxes(hosts: &Hosts, flow: &Flow) -> Option<[String; 6]> {
    let mailbox = flow.mailbox()?;
    let (from, to) = (&hosts.hosts[flow.from.host], &hosts.hosts[flow.end().host]);
    let name = &from.system.mailboxes[mailbox].name;
    let server = from.system.process_name(flow.hops.first()?.to.process).unwrap_or_default();
    let (from, to) = (&from.name, &to.name);
    Some([
        format!("at {from}, `{name}` was full"),
        format!("at {from}, in `{name}`"),
        format!("at {from}:{server}, too many on their way"),
        format!("at {from}:{server}"),
        format!("at {to}, `{name}` was full"),
        format!("at {to}, in `{name}`"),
    ])
}

/// Returns where the messages of all flows are, as an addition to the report of all hosts.
#[must_use]
pub(crate) fn books(flows: &[ToldFlow<'_>]) -> Addition {
    Addition { text: render_books(flows), ..addition(flows) }
}

/// Returns the longest times at each stage, as an addition to the report of all hosts.
#[must_use]
pub(crate) fn addition(flows: &[ToldFlow<'_>]) -> Addition {
    let json = flows.iter().map(ToldFlow::to_json).collect();
    let text = format!("{}\n{}", render(flows), render_books(flows));
    Addition { text, json: vec![("flows".into(), json)] }
}
