//! Routers on the ways of flows: the messages that they let pass, those that may come to them
//! whatever their neighbours do, and their tables.
//!
//! A router holds each flow to the contract with which its messages leave it. A message that comes
//! too early keeps its memory, so no more messages come by a link than there is memory for, and
//! than memory that is lent again: for each message that passed, and for one more of the same flow
//! that was thrown away (`diapason_pipe::hold`).

use super::flows::FlowStage;
use super::net::{Net, Place, stage};
use super::route::{Crossing, Port, Route};
use crate::missing::Missing;
use diapason_abi::Nanos;
use diapason_contract::carried::Contract;
use diapason_contract::link::{DATA, LABELLING, LINKS, MESSAGE_MAX, UNIT, label_of};
use diapason_contract::routes::{LinkRoute, PIECES, PROGRAM, ROUTES_MAX, RouterMemory};
use diapason_system::{FlowStop, Hosts};
use diapason_topology::{Leg, circle};
use std::collections::BTreeMap;

/// How messages of a flow leave a program.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct FlowPassage {
    /// The most that leave.
    pub contract: Contract,
    /// The most that are on their way out at once, until the program can know that they have gone,
    /// if the other side takes them in time.
    pub most: u64,
}

/// The settings of a router: its table, and its memory.
pub(super) type RouterTable = (Vec<LinkRoute>, RouterMemory);

impl Net<'_> {
    /// Returns whether a program holds the flows that it passes on.
    pub(super) fn holds(&self, stop: &FlowStop) -> bool {
        is_router(self.hosts, stop)
    }

    /// Returns the most messages of a route that a router lets pass at the end of a crossing in a
    /// window, whatever its neighbour does.
    fn passed(&self, (route, number, _): Place<'_>, window: Nanos) -> u64 {
        self.arrivals(route, stage(number + 1, FlowStage::Sends), window)
    }

    /// Returns the contract of [`Net::passed`].
    pub(super) fn passage(&self, route: usize, number: usize) -> Contract {
        let at = stage(number + 1, FlowStage::Sends);
        let contract = self.routes[route].flow.steady();
        Contract {
            burst: contract.burst.saturating_add(self.late(route, at)),
            jitter: Nanos(contract.jitter.0.saturating_add(self.before(route, at).0)),
            ..contract
        }
    }

    /// Returns the most messages that come to a router by a port in a window, whatever its
    /// neighbour does.
    ///
    /// A piece of memory is lent to the port, or a message in it waits, or is on its way. Of those
    /// for which a message comes in the window, all that were not lent at its beginning have passed
    /// before or are lent again in it. So there are no more than pieces, messages that pass in the
    /// window, and messages that are thrown away in it.
    pub(super) fn pressed(&self, port: Port, window: Nanos) -> u64 {
        let slots = self.into(port).map(|(_, _, it)| it.slots).max().unwrap_or_default();
        let each = self.into(port).map(|it| self.passed(it, window).saturating_mul(2) + 1);
        each.fold(slots, u64::saturating_add)
    }

    /// Returns how often a router rings a port in a window. A ring follows a message that goes out
    /// there, or memory that is lent again: after a message that was on its way when the window
    /// began, one that passed in it, or one that was thrown away.
    pub(super) fn rung(&self, port: Port, window: Nanos) -> u64 {
        let out = self.out_of(port);
        let out = out.map(|(route, number, _)| {
            self.arrivals(route, stage(number, FlowStage::Sends), window)
        });
        out.fold(self.pressed(port, window), u64::saturating_add)
    }

    fn ports(&self, stop: &FlowStop) -> Vec<Port> {
        let mut ports: Vec<Port> = self.to(stop).map(|(_, _, it)| it.to.1).collect();
        ports.sort_unstable_by_key(|port| port.link);
        ports.dedup();
        ports
    }

    /// Returns the most messages that come to a router in a window, and those that it lets pass.
    fn flow_through(&self, stop: &FlowStop, window: Nanos) -> [u64; 2] {
        let ports = self.ports(stop);
        let came = ports.iter().map(|port| self.pressed(*port, window));
        let gone = self.to(stop).map(|place| self.passed(place, window));
        [came.fold(0, u64::saturating_add), gone.fold(0, u64::saturating_add)]
    }

    /// Returns how often a router wakes in a window: for each message that comes, for the end of
    /// each that passed, and when a message that waited may pass.
    pub(super) fn router_woken(&self, stop: &FlowStop, window: Nanos) -> u64 {
        let [came, gone] = self.flow_through(stop, window);
        came.saturating_add(gone.saturating_mul(2))
    }

    /// Returns the longest time of a router for a message that need not wait.
    ///
    /// A turn takes each message that has come, and then passes on all that may go. Each piece of
    /// memory is in one message of a turn. So when a message comes, it is done with at most all of
    /// the turn under way and all of the next one.
    pub(super) fn router_job(&self, stop: &FlowStop) -> Option<Nanos> {
        let worker = self.worker(stop);
        let longest = self.to(stop).filter_map(|(_, _, it)| it.to.0.work_ns).max();
        let step = worker.each + Nanos(longest.unwrap_or_default());
        let slots = |port: &Port| self.into(*port).map(|(_, _, it)| it.slots).max();
        let slots = self.ports(stop).iter().filter_map(slots).fold(0, u64::saturating_add);
        let turns = worker.any(Nanos(step.0.saturating_mul(slots.saturating_mul(2))));
        let work = |window: Nanos| {
            let [came, gone] = self.flow_through(stop, window);
            let passing = gone.saturating_mul(worker.each.0);
            Nanos(came.saturating_mul(step.0).saturating_add(passing))
        };
        // A wake-up for a message costs two rings and waits, and one of the other kinds one.
        let least = Nanos(worker.each.0 / 2);
        let busy = worker.busy(|window| self.router_woken(stop, window), work, least)?;
        Some(turns.min(busy))
    }

    /// Returns how messages of a flow leave the program at the end of each crossing, for its own
    /// way and each other way.
    pub(super) fn passages(&self, flow: usize) -> Vec<Vec<FlowPassage>> {
        let of = |route: usize| {
            let crossings = self.routes[route].crossings.iter().enumerate();
            let each = crossings.map(|(number, crossing)| {
                let place = (route, number, crossing);
                let next = self.onward(place).into_iter().next();
                let most = next.map(|next| self.passed(place, self.known_to_be_sent(next)));
                let contract = self.passage(route, number);
                FlowPassage { contract, most: most.unwrap_or_default() }
            });
            each.collect()
        };
        std::iter::once(flow).chain(self.others(flow)).map(of).collect()
    }
}

fn is_router(hosts: &Hosts, stop: &FlowStop) -> bool {
    hosts.hosts[stop.host].system.processes[usize::from(stop.process)].program == PROGRAM
}

fn name(hosts: &Hosts, stop: &FlowStop) -> String {
    let host = &hosts.hosts[stop.host];
    format!("{}:{}", host.name, host.system.process_name(stop.process).unwrap_or_default())
}

/// A flow's way through a router: its number in the list, the numbers of the route and the crossing
/// among those of the flow, the crossing, and the next one.
type Step<'r> = (usize, [usize; 2], &'r Crossing, &'r Crossing);

/// Returns all ways of a flow through routers. `ways` are its own way and its other ways.
fn steps<'r>(hosts: &'r Hosts, flow: usize, ways: &'r [Route<'_>]) -> Vec<Step<'r>> {
    let mut found = Vec::new();
    for (place, route) in ways.iter().enumerate() {
        let behind = route.around.and_then(|around| ways[0].crossings.get(around.hop + 1));
        let next = route.crossings.iter().skip(1).chain(behind);
        for (number, (crossing, next)) in route.crossings.iter().zip(next).enumerate() {
            if is_router(hosts, &crossing.to.0) {
                found.push((flow, [place, number], crossing, next));
            }
        }
    }
    found
}

/// Returns what each router is told, by host and process. `flows` are the ways of each flow that
/// has some, with its number. `passage` returns that of a step, if the flow has a bill.
pub(super) fn tables(
    hosts: &Hosts,
    flows: &[(usize, Vec<Route<'_>>)],
    passage: impl Fn(usize, [usize; 2]) -> Option<FlowPassage>,
) -> BTreeMap<(usize, u16), RouterTable> {
    let mut tables: BTreeMap<(usize, u16), RouterTable> = BTreeMap::new();
    for (flow, ways) in flows {
        for (_, place, crossing, next) in steps(hosts, *flow, ways) {
            let (stop, port) = crossing.to;
            let memory = RouterMemory { bytes: 0, slots: [0; LINKS] };
            let (table, memory) =
                tables.entry((stop.host, stop.process)).or_insert_with(|| (Vec::new(), memory));
            let passage = passage(*flow, place);
            let most = passage.map_or(0, |it| u8::try_from(it.most).unwrap_or(u8::MAX));
            table.push(LinkRoute {
                from: port.link,
                label: label_of(*flow),
                to: next.from.1.link,
                contract: passage.map(|it| it.contract),
                most,
            });
            let slots = u8::try_from(crossing.slots).unwrap_or(u8::MAX);
            memory.slots[port.link] = slots.max(memory.slots[port.link]);
            memory.bytes = hosts.flows[*flow].bytes.max(memory.bytes);
        }
    }
    tables
}

/// Returns why routers cannot pass on the messages of the flow with this number among `flows`, and
/// the remedy.
pub(super) fn misrouted(
    hosts: &Hosts,
    flow: usize,
    flows: &[(usize, Vec<Route<'_>>)],
) -> Option<Missing> {
    let ways = &flows.iter().find(|(number, _)| *number == flow)?.1;
    let main = &ways[0];
    let ends = [main.stops().next()?, &hosts.flows[flow].end()];
    if let Some(end) = ends.into_iter().find(|stop| is_router(hosts, stop)) {
        let what = format!("`{}` passes messages on, and sends and keeps none", name(hosts, end));
        return Some((what, "begin and end the flow at other programs".to_owned()));
    }
    let turns = ways.iter().skip(1).flat_map(|route| {
        [route.crossings.first().map(|it| &it.from.0), route.crossings.last().map(|it| &it.to.0)]
    });
    if let Some(stop) = turns.flatten().find(|stop| is_router(hosts, stop)) {
        let what = format!("`{}` knows one way for a flow", name(hosts, stop));
        return Some((what, "let other ways begin and end at other programs".to_owned()));
    }
    let own = steps(hosts, flow, ways);
    own.iter().find_map(|step| overfull(hosts, step, flows).or_else(|| mixed(hosts, step, flows)))
}

/// Returns why a router has no room for its table or its messages.
fn overfull(hosts: &Hosts, step: &Step<'_>, flows: &[(usize, Vec<Route<'_>>)]) -> Option<Missing> {
    let stop = step.2.to.0;
    let own = name(hosts, &stop);
    let (table, memory) = tables(hosts, flows, |_, _| None).remove(&(stop.host, stop.process))?;
    if table.len() > ROUTES_MAX {
        let what =
            format!("`{own}` passes on {} ways of flows, and knows {ROUTES_MAX}", table.len());
        return Some((what, "let fewer flows pass it".to_owned()));
    }
    let needed = memory.slots.iter().map(|slots| usize::from(*slots)).sum::<usize>();
    if needed > PIECES {
        let what = format!("`{own}` has memory for {PIECES} messages; {needed} are needed");
        return Some((what, "write smaller `slots`".to_owned()));
    }
    let host = &hosts.hosts[stop.host];
    let data = host.system.segments.iter().find(|segment| segment.name == DATA)?;
    let bytes = ((needed + 1) * MESSAGE_MAX) as u64;
    (data.size < bytes).then(|| {
        let what =
            format!("`{DATA}` of `{}` has no room for {needed} messages of a router", host.name);
        (what, format!("write at least `size = \"{}K\"` in `{}`", bytes / UNIT as u64, host.file))
    })
}

/// Returns why a router cannot tell the messages of a flow from those of others by the same link.
fn mixed(hosts: &Hosts, step: &Step<'_>, flows: &[(usize, Vec<Route<'_>>)]) -> Option<Missing> {
    let (flow, _, crossing, _) = *step;
    let all = || flows.iter().flat_map(|(flow, ways)| steps(hosts, *flow, ways));
    let by_it = || all().filter(|(_, _, it, _)| it.to.1 == crossing.to.1);
    let own = name(hosts, &crossing.to.0);
    if by_it().filter(|(other, ..)| *other == flow).count() > 1 {
        let cable = &hosts.cables[crossing.cable].name;
        let what = format!("its messages come to `{own}` more than once by `{cable}`");
        return Some((what, "let it come there once, or end it before".to_owned()));
    }
    let first = hosts.flows[flow].first_on_cables();
    let program = &hosts.hosts[first.host].system.processes[usize::from(first.process)].program;
    let has_label = label_of(flow) != 0 && LABELLING.contains(&program.as_str());
    let alone = hosts.flows.iter().filter(|it| it.mailbox().is_none());
    let begun = alone.filter(|it| {
        let other = it.first_on_cables();
        !it.is_on_ethernet() && (other.host, other.process) == (first.host, first.process)
    });
    let is_one = hosts.flows[flow].mailbox().is_some() || begun.count() == 1;
    if by_it().count() > 1 && !(has_label && is_one) {
        let cable = &hosts.cables[crossing.cable].name;
        let what = format!(
            "`{own}` cannot tell its messages from those of another flow by `{cable}`: `{}` gives \
             them no label",
            name(hosts, &first)
        );
        let help = "let a program of its own begin it that writes labels, such as `link-ping`, or \
                    send by mailboxes";
        return Some((what, help.to_owned()));
    }
    None
}

/// Returns why messages of a flow can wait for each other in routers for ever, if buffers are full
/// once: it is in a circle of cables in which each follows the one before.
pub(super) fn jammed(
    hosts: &Hosts,
    flow: usize,
    flows: &[(usize, Vec<Route<'_>>)],
) -> Option<Missing> {
    let leg = |it: &Crossing| Leg { cable: it.cable, from: it.from.0.host };
    let all = flows.iter().flat_map(|(flow, ways)| steps(hosts, *flow, ways));
    let follows = all.map(|(flow, _, it, next)| (flow, (leg(it), leg(next))));
    let follows: Vec<(usize, (Leg, Leg))> = follows.collect();
    let lanes = circle(follows.iter().map(|(_, pair)| *pair).collect())?;
    let turns = |(one, next): &(Leg, Leg)| {
        let at = lanes.iter().position(|lane| lane == one);
        at.is_some_and(|at| lanes[(at + 1) % lanes.len()] == *next)
    };
    if !follows.iter().any(|(other, pair)| *other == flow && turns(pair)) {
        return None;
    }
    let names = lanes.iter().map(|lane| format!("`{}`", hosts.cables[lane.cable].name));
    let names = names.collect::<Vec<_>>().join(", ");
    Some((
        format!("messages in routers can wait for each other in a circle of cables: {names}"),
        "let one of the flows go another way".to_owned(),
    ))
}
