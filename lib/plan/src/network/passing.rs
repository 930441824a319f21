//! Routers on the ways of flows: the messages that they let pass, those that may come to them
//! whatever their neighbours do, and their tables.
//!
//! A router holds each flow to the contract with which its messages leave it. A message that comes
//! too early keeps its memory, so no more messages come by a link than there is memory for, and
//! than memory that is lent again: for each message that passed, and for one more of the same flow
//! that was thrown away (`diapason_pipe::hold`).

use super::flows::FlowStage;
use super::net::{Net, POSTED, Place, Seat, stage};
use super::route::{Crossing, Mailed, Port, Route};
use crate::missing::Missing;
use diapason_abi::Nanos;
use diapason_contract::carried::Contract;
use diapason_contract::link::{DATA, LABELLING, LINKS, UNIT, label_of};
use diapason_contract::mail::MAILBOXES_MAX;
use diapason_contract::routes::{Gate, LinkRoute, OWN, PIECES, PROGRAM, ROUTES_MAX, RouterMemory};
use diapason_system::{FlowStop, Hosts};
use diapason_topology::{Leg, circle};
use std::collections::BTreeMap;

/// Bytes of a page.
const PAGE: u64 = 4_096;

/// How messages of a flow leave a program.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct FlowPassage {
    /// The most that leave.
    pub contract: Contract,
    /// The most that are on their way out at once, until the program can know that they have gone,
    /// if the other side takes them in time.
    pub most: u64,
}

/// The settings of a router.
pub(super) struct RouterTable {
    pub ways: Vec<LinkRoute>,
    pub memory: RouterMemory,
    /// The numbers of its mailboxes in its host, in the order of its own numbers.
    pub mailboxes: Vec<usize>,
}

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

    /// Returns the most messages of a route that a program gives on before a crossing, or behind
    /// the last one.
    fn passage(&self, route: usize, number: usize) -> Contract {
        let at = stage(number, FlowStage::Sends);
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

    /// Returns the mailboxes out of which a router takes messages: the route, and the mailbox.
    fn posts(&self, stop: &FlowStop) -> impl Iterator<Item = (usize, &Mailed)> {
        let all = self.mailed_to(stop).filter(|(_, at, _)| *at == POSTED);
        all.map(|(route, _, it)| (route, it))
    }

    /// Returns the most messages that a router takes out of a mailbox in a window, whatever their
    /// sender does.
    fn posted(&self, route: usize, window: Nanos) -> u64 {
        self.arrivals(route, stage(0, FlowStage::Sends), window)
    }

    /// Returns the most messages that a router hears of in a window. Their senders fill the
    /// mailboxes: the router hears of as many as find room, of the one that it holds, and of one
    /// more for each that it takes.
    fn heard(&self, stop: &FlowStop, window: Nanos) -> u64 {
        let each = self.posts(stop).map(|(route, it)| {
            self.posted(route, window).saturating_add(it.room).saturating_add(1)
        });
        each.fold(0, u64::saturating_add)
    }

    /// Returns the most messages that come to a router by links in a window, those of them that it
    /// lets pass, those that it takes out of mailboxes, and those that end beyond these: they were
    /// given to a link before the window, and have gone in it.
    fn flow_through(&self, stop: &FlowStop, window: Nanos) -> [u64; 4] {
        let ports = self.ports(stop);
        let came = ports.iter().map(|port| self.pressed(*port, window));
        let gone = self.to(stop).map(|place| self.passed(place, window));
        let posted = self.posts(stop).map(|(route, _)| self.posted(route, window));
        let seat = Seat::of(stop);
        let out = self.places().filter(|(_, _, it)| Seat::of(&it.from.0) == seat);
        let ended = out.map(|place| self.ended(place, window));
        let sum = u64::saturating_add;
        let [came, gone] = [came.fold(0, sum), gone.fold(0, sum)];
        let (posted, ended) = (posted.fold(0, sum), ended.fold(0, sum));
        [came, gone, posted, ended.saturating_sub(gone.saturating_add(posted))]
    }

    /// Returns how often a router wakes in a window: for each message that comes, for the end of
    /// each that went out in it or before, and when a message that waited may pass. Of a message in
    /// a mailbox another thread hears, and wakes it.
    pub(super) fn router_woken(&self, stop: &FlowStop, window: Nanos) -> u64 {
        let [came, gone, posted, earlier] = self.flow_through(stop, window);
        let through = gone.saturating_add(posted).saturating_mul(2).saturating_add(earlier);
        came.saturating_add(through).saturating_add(self.heard(stop, window).saturating_mul(2))
    }

    /// Returns the longest time of a router for a message that need not wait.
    ///
    /// A turn takes each message that has come, and then passes on all that may go. Each piece of
    /// memory is in one message of a turn. So when a message comes, it is done with at most all of
    /// the turn under way and all of the next one. With mailboxes the router is done when it has
    /// nothing to do: messages of mailboxes have priorities, and no order is relied on.
    ///
    /// A router with mailboxes looks into those out of which it takes messages: once in each turn,
    /// and once more for each message that it takes. A wake-up has a turn that finds nothing, and
    /// one before it for each message that comes, may pass or has gone, at most. So that is two
    /// looks for each of these, and one when it hears of a message. `each` has four: for a message
    /// that comes, those until it may pass; for one that passes or that it takes, those until it
    /// has gone. One that it takes has a look more, and one that was on its way has two of four.
    pub(super) fn router_job(&self, stop: &FlowStop) -> Option<Nanos> {
        let worker = self.worker(stop);
        let posted = self.posts(stop).map(|(_, it)| it.to.work_ns);
        let works = self.to(stop).map(|(_, _, it)| it.to.0.work_ns).chain(posted);
        let step = worker.each + Nanos(works.flatten().max().unwrap_or_default());
        let slots = |port: &Port| self.into(*port).map(|(_, _, it)| it.slots).max();
        let slots = self.ports(stop).iter().filter_map(slots).fold(0, u64::saturating_add);
        let turns = worker.done_with(Nanos(step.0.saturating_mul(slots.saturating_mul(2))));
        let work = |window: Nanos| {
            let [came, gone, posted, earlier] = self.flow_through(stop, window);
            let steps = came.saturating_add(posted).saturating_mul(step.0);
            let passing = gone.saturating_add(earlier).saturating_mul(worker.each.0);
            let passing = passing.saturating_add(posted.saturating_mul(worker.look.0));
            let hears = self.heard(stop, window).saturating_mul(worker.hears.0);
            Nanos(steps.saturating_add(passing).saturating_add(hears))
        };
        // A wake-up for a message costs two rings and waits, and one of the other kinds one.
        let least = Nanos(worker.least().0.min(worker.each.0 / 2));
        let busy = worker.busy(|window| self.router_woken(stop, window), work, least)?;
        Some(turns.min(busy))
    }

    /// Returns the most messages of a route that a program has on their way out by a crossing.
    ///
    /// It takes note of all that have gone when a job begins, and gives messages within the job.
    fn most(&self, place: Place<'_>) -> u64 {
        let (route, number, crossing) = place;
        let window = self.known_to_be_sent(place) + self.job(&crossing.from.0);
        self.arrivals(route, stage(number, FlowStage::Sends), window)
    }

    /// Returns the messages out of mailboxes that a router may have on their way out.
    pub(super) fn own(&self, stop: &FlowStop) -> u64 {
        let first = |route: usize| Some((route, 0, self.routes[route].crossings.first()?));
        let places = self.posts(stop).filter_map(|(route, _)| first(route));
        places.map(|place| self.most(place)).fold(0, u64::saturating_add)
    }

    /// Returns how messages of a flow leave the program before each crossing, and the one behind
    /// the last, for its own way and each other way.
    pub(super) fn passages(&self, flow: usize) -> Vec<Vec<FlowPassage>> {
        let of = |route: usize| {
            let crossings = &self.routes[route].crossings;
            let first = crossings.first().map(|it| (route, 0, it));
            let behind = crossings.iter().enumerate();
            let behind =
                behind.map(|(number, it)| self.onward((route, number, it)).into_iter().next());
            let each = std::iter::once(first).chain(behind).enumerate().map(|(number, next)| {
                let most = next.map(|next| self.most(next)).unwrap_or_default();
                FlowPassage { contract: self.passage(route, number), most }
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

/// A flow's way through a router.
struct Step<'r> {
    /// The number of the flow in the list.
    flow: usize,
    /// The number of the route among those of the flow, and that of the crossing by which the
    /// messages go on.
    place: [usize; 2],
    stop: FlowStop,
    /// The crossing by which the messages come; `None`: the mailbox before the first one.
    came: Option<&'r Crossing>,
    /// The crossing by which they go on; `None`: the mailbox behind the last one.
    next: Option<&'r Crossing>,
    mailboxes: Option<[Mailed; 2]>,
}

/// Returns all ways of a flow through routers. `ways` are its own way and its other ways.
fn steps<'r>(hosts: &'r Hosts, flow: usize, ways: &'r [Route<'_>]) -> Vec<Step<'r>> {
    let mut found = Vec::new();
    for (way, route) in ways.iter().enumerate() {
        let mailboxes = route.mailed;
        let behind = route.around.and_then(|around| ways[0].crossings.get(around.hop + 1));
        let [post, delivery] = match mailboxes {
            Some([post, delivery]) => [Some(post.to), Some(delivery.from)],
            None => [None; 2],
        };
        let crossings = &route.crossings;
        for number in 0..=crossings.len() {
            let came = number.checked_sub(1).map(|before| &crossings[before]);
            let next = crossings.get(number).or(behind);
            let stop = match (came, next) {
                (Some(came), Some(_)) => Some(came.to.0),
                (None, _) => post,
                (Some(_), None) => delivery,
            };
            if let Some(stop) = stop.filter(|stop| is_router(hosts, stop)) {
                found.push(Step { flow, place: [way, number], stop, came, next, mailboxes });
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
    for step in flows.iter().flat_map(|(flow, ways)| steps(hosts, *flow, ways)) {
        let table = tables.entry((step.stop.host, step.stop.process)).or_default();
        let passage = passage(step.flow, step.place);
        table.add(&step, passage, hosts.flows[step.flow].bytes);
    }
    tables
}

impl Default for RouterTable {
    fn default() -> RouterTable {
        let memory = RouterMemory { bytes: 0, own: 0, slots: [0; LINKS] };
        RouterTable { ways: Vec::new(), memory, mailboxes: Vec::new() }
    }
}

impl RouterTable {
    fn add(&mut self, step: &Step<'_>, passage: Option<FlowPassage>, bytes: u32) {
        let from = match step.came {
            Some(came) => {
                let (link, slots) = (came.to.1.link, u8::try_from(came.slots).unwrap_or(u8::MAX));
                self.memory.slots[link] = slots.max(self.memory.slots[link]);
                Gate::Link(link)
            }
            None => {
                self.memory.own = OWN as u8;
                self.mailbox(step, 0)
            }
        };
        let to = match step.next {
            Some(next) => Gate::Link(next.from.1.link),
            None => self.mailbox(step, 1),
        };
        self.memory.bytes = bytes.max(self.memory.bytes);
        self.ways.push(LinkRoute {
            from,
            label: label_of(step.flow),
            to,
            contract: passage.map(|it| it.contract),
            most: passage.map_or(0, |it| u8::try_from(it.most).unwrap_or(u8::MAX)),
        });
    }

    /// Returns the mailbox at an end of the flow of a step.
    fn mailbox(&mut self, step: &Step<'_>, end: usize) -> Gate {
        let number = step.mailboxes.map_or(0, |mailboxes| mailboxes[end].number);
        let known = self.mailboxes.iter().position(|it| *it == number);
        Gate::Mailbox(known.unwrap_or_else(|| {
            self.mailboxes.push(number);
            self.mailboxes.len() - 1
        }))
    }
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
    let ends = [hosts.flows[flow].from, hosts.flows[flow].end()];
    if let Some(end) = ends.iter().find(|stop| is_router(hosts, stop)) {
        let what = format!("`{}` passes messages on, and sends and keeps none", name(hosts, end));
        return Some((what, "begin and end the flow at other programs".to_owned()));
    }
    if main.mailed.is_some() && label_of(flow) == 0 {
        let what = format!("its messages have no label: it is behind {} others", u8::MAX);
        return Some((what, "list it before flows without mailboxes".to_owned()));
    }
    let turns = ways.iter().skip(1).flat_map(|route| {
        [route.crossings.first().map(|it| &it.from.0), route.crossings.last().map(|it| &it.to.0)]
    });
    if let Some(stop) = turns.flatten().find(|stop| is_router(hosts, stop)) {
        let what = format!("`{}` knows one way for a flow", name(hosts, stop));
        return Some((what, "let other ways begin and end at other programs".to_owned()));
    }
    let own = steps(hosts, flow, ways);
    let wrong = |step: &Step<'_>| {
        overfull(hosts, step, flows)
            .or_else(|| mixed(hosts, step, flows))
            .or_else(|| unended(hosts, step, flows))
    };
    own.iter().find_map(wrong)
}

/// Returns why a router has no room for its table or its messages.
fn overfull(hosts: &Hosts, step: &Step<'_>, flows: &[(usize, Vec<Route<'_>>)]) -> Option<Missing> {
    let stop = step.stop;
    let own = name(hosts, &stop);
    let all = tables(hosts, flows, |_, _| None).remove(&(stop.host, stop.process))?;
    let RouterTable { ways, memory, mailboxes } = all;
    if ways.len() > ROUTES_MAX {
        let what =
            format!("`{own}` passes on {} ways of flows, and knows {ROUTES_MAX}", ways.len());
        return Some((what, "let fewer flows pass it".to_owned()));
    }
    if mailboxes.len() > MAILBOXES_MAX {
        let what = format!("`{own}` has {} mailboxes, and knows {MAILBOXES_MAX}", mailboxes.len());
        return Some((what, "send to fewer".to_owned()));
    }
    let lent = memory.slots.iter().map(|slots| usize::from(*slots)).sum::<usize>();
    let needed = lent + usize::from(memory.own);
    if needed > PIECES {
        let what = format!("`{own}` has memory for {PIECES} messages; {needed} are needed");
        return Some((what, "write smaller `slots`".to_owned()));
    }
    let host = &hosts.hosts[stop.host];
    let data = host.system.segments.iter().find(|segment| segment.name == DATA)?;
    // The first piece begins at a multiple of its size, and the segment at one of a page.
    let piece = memory.piece() as u64;
    let bytes = needed as u64 * piece + piece.saturating_sub(PAGE);
    (data.size < bytes).then(|| {
        let what =
            format!("`{DATA}` of `{}` has no room for {needed} messages of a router", host.name);
        let pages = bytes.div_ceil(PAGE) * (PAGE >> 10);
        (what, format!("write at least `size = \"{pages}K\"` in `{}`", host.file))
    })
}

/// Returns why a router cannot tell the messages of a flow from those of others by the same link.
fn mixed(hosts: &Hosts, step: &Step<'_>, flows: &[(usize, Vec<Route<'_>>)]) -> Option<Missing> {
    // A mailbox has one flow.
    let (flow, crossing) = (step.flow, step.came?);
    let all = || flows.iter().flat_map(|(flow, ways)| steps(hosts, *flow, ways));
    let by_it = || all().filter(|it| it.came.is_some_and(|it| it.to.1 == crossing.to.1));
    let own = name(hosts, &step.stop);
    if by_it().filter(|other| other.flow == flow).count() > 1 {
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

/// Returns why a message of a flow may not end at a router. A message of whole packets ends with
/// the memory that it is written to, and a router lends memory for the longest of all messages.
/// Those out of mailboxes are shorter than a packet.
fn unended(hosts: &Hosts, step: &Step<'_>, flows: &[(usize, Vec<Route<'_>>)]) -> Option<Missing> {
    step.came?;
    let (stop, flow) = (step.stop, &hosts.flows[step.flow]);
    let memory = tables(hosts, flows, |_, _| None).remove(&(stop.host, stop.process))?.memory;
    let packet = UNIT as u32;
    let [lent, longest] = [memory.bytes, flow.bytes].map(|bytes| bytes.next_multiple_of(packet));
    if flow.mailbox().is_some() || flow.bytes < packet || lent == longest {
        return None;
    }
    let own = name(hosts, &stop);
    let what = format!(
        "`{own}` lends memory of {lent} bytes, in which a message of {packet} bytes does not end"
    );
    let most = memory.bytes;
    let help = format!("write less than `bytes = {packet}`, or `bytes = {most}` as another flow");
    Some((what, help))
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
    let follows = all.filter_map(|it| Some((it.flow, (leg(it.came?), leg(it.next?)))));
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
