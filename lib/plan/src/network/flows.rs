//! The bill of every flow: how long a message takes at most from when its first
//! program has it until its last program is done with it.
//!
//! A bill has an item for each program, and for each cable the server that sends, the buses and the
//! cable, the time until the other server is told, and that server. Each item is the longest time
//! of a stage whatever the others do; what it needs to know of them is the jitter with which
//! messages reach the stage, and that is what the stages before it take at most. So the bills of
//! all flows are one fixed point, from below. `docs/flows.md` has the proofs.

use super::credit;
use super::ended::ended;
use super::ethernet::{self, Planned};
use super::net::{Net, workers};
use super::passing::{FlowPassage, jammed, misrouted};
use super::route::{Route, known, routes, undeclared, unmailed};
use super::step::GateStep;
use crate::core::{self, Core};
use crate::human;
use crate::missing::Missing;
use crate::mutexes::Mutexes;
use crate::pipes::{NoBill, Plant};
use diapason_abi::Nanos;
use diapason_costs::KernelTimes;
use diapason_system::{Diagnostics, Flow, Hosts, HostsPlace, System};

/// The plan of a flow.
#[derive(Clone, Debug)]
pub struct Flowed {
    /// The flow's bill, or why there is none.
    pub bill: Result<FlowBill, NoBill>,
}

/// How long a message of a flow takes at most.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FlowBill {
    /// The items of its bill, in the order of the messages.
    pub items: Vec<FlowItem>,
    /// The longest by its own way.
    pub total: Nanos,
    /// The other ways around its hops, in the order of its detours.
    pub others: Vec<OtherWay>,
    /// The longest by whatever ways a message goes.
    pub longest: Nanos,
    /// Its times if it is in step with gates.
    pub step: Option<GateStep>,
    /// How messages leave the program before each cable, and the last one, for its own way and each
    /// other way.
    pub(super) passages: Vec<Vec<FlowPassage>>,
}

/// Another way around a hop: what it costs, and what a cable that is lost costs before it is taken.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct OtherWay {
    /// The number of the hop.
    pub hop: usize,
    /// The program turns from the cable when a message was not taken for so long.
    pub patience: Nanos,
    /// The program knows by then at the latest that a cable that works has taken a message.
    pub least: Nanos,
    /// Messages that are lost or late at most, each time the cable is lost.
    pub lost: u64,
    /// The program tries a cable that gives messages back once in so long, and as many are lost or
    /// late each time. Nothing: the cable keeps them.
    pub again: Option<Nanos>,
    /// The items of the way.
    pub items: Vec<FlowItem>,
}

/// One line of the bill of a flow.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FlowItem {
    pub stage: FlowStage,
    /// The number of the host; `None` between hosts.
    pub host: Option<usize>,
    /// The program, the server, or the cable.
    pub name: String,
    /// How long at most.
    pub value: Nanos,
    /// How long after the message began it is behind this, at most.
    pub after: Nanos,
    /// Messages that wait here at most, and those there is room for; in a cable, packets.
    pub waiting: Option<(u64, u64)>,
}

/// A stage of a flow.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum FlowStage {
    /// The server hands the message to the controller.
    Sends,
    /// The buses at both ends, and the cable between them.
    Cable,
    /// Until the other server's thread is told, or looks.
    Told,
    /// The other server tells its program.
    Receives,
    /// A program has the message until it has passed it on.
    Program,
    /// The clocks of hosts run apart.
    Clocks,
    /// The adapter that sends, and its wire.
    Wire,
    /// A port of a switch, and its wire.
    Port,
    /// The pipe from a device that the flow begins with, with the program that reads it; or the
    /// pipe to a device that it ends with.
    Pipe,
}

/// Stages of a crossing, in their order.
pub(super) const CROSSING: [FlowStage; 5] =
    [FlowStage::Sends, FlowStage::Cable, FlowStage::Told, FlowStage::Receives, FlowStage::Program];

impl FlowStage {
    /// Returns the word for it in tables and JSON.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            FlowStage::Sends => "sends",
            FlowStage::Cable => "cable",
            FlowStage::Told => "told",
            FlowStage::Receives => "receives",
            FlowStage::Program => "program",
            FlowStage::Clocks => "clocks",
            FlowStage::Wire => "wire",
            FlowStage::Port => "port",
            FlowStage::Pipe => "pipe",
        }
    }
}

/// Returns the bills of all flows, the common times of all wires that have one, and all credit, in
/// their order.
pub(super) fn flows(hosts: &Hosts) -> Planned {
    let timeless = hosts.ethernet.iter().all(|wire| wire.time.is_none());
    let strict = !credit::has_credit(hosts);
    if hosts.flows.is_empty() && timeless && strict {
        return Planned::default();
    }
    let systems = || hosts.systems().map(|(_, system)| system);
    let costs: Vec<KernelTimes> = systems().map(System::kernel_times).collect();
    let cores: Vec<Core> = systems().zip(&costs).map(|(it, costs)| core::core(it, costs)).collect();
    let priced = || systems().zip(&cores).zip(&costs);
    let mutexes: Vec<Mutexes<'_>> =
        priced().map(|((it, core), costs)| Mutexes::new(it, core, costs)).collect();
    let each = || {
        let parts = priced().zip(&mutexes);
        parts.map(|(((it, core), costs), own)| Plant::new(it, core, costs, own))
    };
    // The readers of a host's pipes may be on its other cores.
    let crew = |host| {
        let all = each().zip(hosts.systems()).filter(|(_, (of, _))| *of == host);
        all.map(|(plant, _)| plant).collect()
    };
    let crews: Vec<Vec<Plant<'_>>> = (0..hosts.hosts.len()).map(crew).collect();
    let plants = each().zip(&crews).map(|(plant, crew)| plant.among(crew));
    let plants: Vec<Plant<'_>> = plants.collect();
    let mut on_cables = bills(hosts, &plants).into_iter();
    let (on_wires, times, credits) = ethernet::bills(hosts, &plants);
    let mut on_wires = on_wires.into_iter();
    let each = hosts
        .flows
        .iter()
        .filter_map(|flow| if flow.is_on_ethernet() { on_wires.next() } else { on_cables.next() });
    (each.collect(), times, credits)
}

/// Returns the bills of the flows over cables, in their order.
fn bills(hosts: &Hosts, plants: &[Plant<'_>]) -> Vec<Flowed> {
    let flows = hosts.flows.iter().enumerate().filter(|(_, flow)| !flow.is_on_ethernet());
    let flows: Vec<(usize, &Flow)> = flows.collect();
    let numbered = known(hosts);
    let known: Vec<Route<'_>> = numbered.iter().flat_map(|(_, ways)| ways.clone()).collect();
    let routes = flows.iter().map(|(number, flow)| {
        let wrong = |route: &Route<'_>| {
            undeclared(hosts, route, &known).or_else(|| unmailed(hosts, route, &known))
        };
        let ways = routes(hosts, flow)?;
        if let Some(wrong) = ways.iter().find_map(wrong) {
            return Err(wrong);
        }
        let misrouted = misrouted(hosts, *number, &numbered);
        if let Some(wrong) = misrouted.or_else(|| jammed(hosts, *number, &numbered)) {
            return Err(wrong);
        }
        let manned = |route| workers(plants, &route, &known).map(|workers| (route, workers));
        let manned = ways.into_iter().map(manned).collect::<Result<Vec<_>, Missing>>()?;
        Ok((manned, piped(plants, flow)?))
    });
    let routes: Vec<Result<_, Missing>> = routes.collect();
    if let Some(first) = routes.iter().position(Result::is_err) {
        // The others share stages with it, and its traffic there is not known.
        let name = &flows[first].1.name;
        let beside =
            || (format!("the flow `{name}` has none"), format!("see the message about `{name}`"));
        return routes.into_iter().map(|it| none(it.err().unwrap_or_else(beside))).collect();
    }
    let mut net = Net::new(hosts);
    for (ways, piped) in routes.into_iter().flatten() {
        net.add(ways, piped);
    }
    match net.settle() {
        Ok(()) => {
            let bill = |flow: usize| ended((hosts, plants), net.routes[flow].flow, net.bill(flow));
            net.mains().map(|flow| Flowed { bill: bill(flow) }).collect()
        }
        Err(missing) => flows.iter().map(|_| none(missing.clone())).collect(),
    }
}

/// Returns the longest time of a message from the device of a flow's pipe until the reader has sent
/// it on; nothing if the flow begins at a program.
pub(super) fn piped(plants: &[Plant<'_>], flow: &Flow) -> Result<Option<Nanos>, Missing> {
    let Some(pipe) = flow.pipe else { return Ok(None) };
    let plant = &plants[flow.from.host];
    let bill = plant.input(pipe).ok().and_then(|piped| piped.bill.ok());
    let bill = bill.ok_or_else(|| {
        let what = format!("the pipe `{}` has none", plant.system.pipes[pipe].name);
        (what, "see the message about it".to_owned())
    })?;
    Ok(Some(bill.total))
}

pub(super) fn none((what, remedy): Missing) -> Flowed {
    Flowed { bill: Err(NoBill::Missing(what, remedy)) }
}

impl FlowBill {
    /// Returns the bill from when the first program sends a message until the last one is done with
    /// it: a run sees the pipes before and behind these by themselves.
    #[must_use]
    pub fn between_pipes(&self) -> FlowBill {
        let mut behind = self.clone();
        let at_pipe = |item: Option<&FlowItem>| {
            item.filter(|item| item.stage == FlowStage::Pipe).map_or(Nanos::ZERO, |item| item.value)
        };
        let [before, after] = [self.items.first(), self.items.last()].map(at_pipe);
        if after > Nanos::ZERO {
            behind.items.pop();
        }
        for item in
            behind.items.iter_mut().chain(behind.others.iter_mut().flat_map(|it| &mut it.items))
        {
            item.after = item.after - before;
        }
        behind.items.iter_mut().take(1).for_each(|item| item.value = item.value - before);
        let pipes = before + after;
        (behind.total, behind.longest) = (self.total - pipes, self.longest - pipes);
        behind
    }

    /// Returns a bill without items.
    pub(super) const fn new() -> FlowBill {
        let total = Nanos::ZERO;
        FlowBill {
            items: Vec::new(),
            total,
            others: Vec::new(),
            longest: total,
            step: None,
            passages: Vec::new(),
        }
    }

    /// Puts the item of the first program, or of the pipe from a device that it reads.
    pub(super) fn begin(&mut self, hosts: &Hosts, flow: &Flow, value: Nanos) {
        let system = &hosts.hosts[flow.from.host].system;
        let (stage, name) = match flow.pipe {
            Some(pipe) => (FlowStage::Pipe, &*system.pipes[pipe].name),
            None => {
                let name = system.process_name(flow.from.process);
                (FlowStage::Program, name.unwrap_or_default())
            }
        };
        self.put(stage, (Some(flow.from.host), name.to_owned()), value, None);
    }

    pub(super) fn put(
        &mut self,
        stage: FlowStage,
        (host, name): (Option<usize>, String),
        value: Nanos,
        waiting: Option<(u64, u64)>,
    ) {
        self.total += value;
        self.longest = self.total;
        self.items.push(FlowItem { stage, host, name, value, after: self.total, waiting });
    }
}

/// Returns the problems of flows, each of which is a refusal of the list.
pub(super) fn refusals<'a>(
    hosts: &'a Hosts,
    flows: &'a [Flowed],
) -> impl Iterator<Item = Diagnostics> + 'a {
    let numbered = hosts.flows.iter().zip(flows).enumerate();
    numbered.filter_map(|(number, (flow, flowed))| {
        let [title, note, help] = match &flowed.bill {
            Err(none) => none.words(&flow.name),
            Ok(bill) => bill.refusal(flow, hosts)?,
        };
        Some(hosts.problem(HostsPlace::Flow(number), [&title, &note, &help]))
    })
}

impl FlowItem {
    /// Returns its host and name, as sentences have it.
    #[must_use]
    pub fn place(&self, hosts: &Hosts) -> String {
        match self.host {
            Some(host) => format!("{}:{}", hosts.hosts[host].name, self.name),
            None => self.name.clone(),
        }
    }

    /// Returns why there is too little room here, and the remedy.
    fn crowded(&self, hosts: &Hosts) -> Option<[String; 2]> {
        let (needed, room) = self.waiting.filter(|(needed, room)| needed > room)?;
        let place = self.place(hosts);
        Some(match self.stage {
            FlowStage::Receives => [
                format!(
                    "{needed} messages may need memory at `{place}`, and there is some for {room}"
                ),
                format!("lend memory for {needed} (`slots`), or send fewer messages"),
            ],
            FlowStage::Program => [
                format!("{needed} messages may be in the mailbox of `{place}`, which holds {room}"),
                format!("write `messages = {needed}` or more, or send fewer messages"),
            ],
            FlowStage::Cable => [
                format!("{needed} packets may be in the cable `{place}`, which holds {room}"),
                "send fewer or shorter messages".to_owned(),
            ],
            FlowStage::Wire | FlowStage::Port => {
                ethernet::crowded(self.stage, &place, needed, room)
            }
            _ => [
                format!("{needed} messages may be under way from `{place}`, which keeps {room}"),
                "send fewer messages".to_owned(),
            ],
        })
    }
}

impl FlowBill {
    fn refusal(&self, flow: &Flow, hosts: &Hosts) -> Option<[String; 3]> {
        let name = &flow.name;
        let said = |item: &FlowItem| {
            format!("{} {} {}", item.place(hosts), item.stage.word(), human(item.value.0))
        };
        let note = self.items.iter().map(said).collect::<Vec<String>>().join(", ");
        let all = || self.items.iter().chain(self.others.iter().flat_map(|it| &it.items));
        let twice = self.others.iter().find_map(|it| it.told_twice(flow, hosts));
        let crowded = || all().find_map(|item| item.crowded(hosts));
        let wrong = |it: &OtherWay| it.hasty(flow, hosts).or_else(|| it.given_up(flow, hosts));
        let wrong = || self.others.iter().find_map(wrong);
        if let Some([what, help]) = twice.or_else(crowded).or_else(wrong) {
            return Some([format!("`{name}`: {what}"), note, help]);
        }
        let wanted = flow.latency_ns.filter(|wanted| *wanted < self.longest.0)?;
        let longest = all().max_by_key(|item| item.value)?;
        let (total, wanted) = (human(self.longest.0), human(wanted));
        let help = format!(
            "write `latency = \"{}us\"`, or shorten the longest item, {} of `{}`",
            self.longest.0.div_ceil(1_000),
            longest.stage.word(),
            longest.place(hosts)
        );
        let title = format!("messages of `{name}` may take {total}; at most {wanted} is wanted");
        Some([title, note, help])
    }
}
