//! `[[flow]]` of a list of hosts: the way of messages from a program over cables, or over Ethernet,
//! to programs of other hosts.
//!
//! A flow begins at a program that sends messages over a link, by a socket or to a mailbox. Each
//! `[[flow.hop]]` names the next program and the cable, wire or mailbox that leads to it. Whether a
//! link of both hosts serves the cable is for the plan to say, because servers read that from their
//! settings.

mod computed;
mod derived;
mod detour;
mod mailed;
mod piped;
mod released;

use crate::diagnostics::{Problem, Report};
use crate::hosts::{Cable, HostSpec};
use crate::keys;
use crate::pipe::BURST_MAX;
use crate::source::{At, Span};
use crate::suggest::{listed, nearest};
use crate::table::{Raw, Table};
use crate::wires::{EthernetLink, WireEnd};
use diapason_abi::Nanos;
use diapason_contract::carried::{Contract, PER_MAX};
use diapason_contract::link::MESSAGE_MAX;

use computed::Computed;
pub(crate) use derived::derive;
pub use detour::Detour;
pub(crate) use piped::send_on;
pub use released::{CLOCKS_APART, FlowRelease};

/// Longest time in a flow: 1000 s.
const TIME_MAX: u64 = 1_000_000_000_000;
/// Most hops of a flow.
const HOPS_MAX: usize = 32;
/// Most messages for which a program lends memory.
const SLOTS_MAX: u64 = 64;

/// The way of messages through programs of several hosts.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Flow {
    pub name: String,
    /// The most that its first program sends.
    pub contract: Contract,
    /// Most bytes of a message, with its head.
    pub bytes: u32,
    /// The longest delay that is acceptable.
    pub latency_ns: Option<u64>,
    /// The program that sends the messages.
    pub from: FlowStop,
    /// Each further program, in the order of the messages.
    pub hops: Vec<FlowHop>,
    /// Other ways around hops over cables, in the order of these hops.
    pub detours: Vec<Detour>,
    /// The times at which its messages are released, if they keep step with gates.
    pub release: Option<FlowRelease>,
    /// The pipe of its first host that it begins with: a number of
    /// [`System::pipes`](crate::System::pipes).
    pub pipe: Option<usize>,
    /// The pipe to a device of its last host that it ends with, as a number there.
    pub into: Option<usize>,
}

/// A program that messages of a flow pass.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FlowStop {
    /// The number of its host.
    pub host: usize,
    /// The number of the process in its host.
    pub process: u16,
    /// The longest it takes for one message, kernel calls aside, if the description says it.
    pub work_ns: Option<u64>,
}

/// A step of a flow from one host to the next.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FlowHop {
    pub way: FlowWay,
    /// The program that takes the message.
    pub to: FlowStop,
    /// Messages for which it lends memory to its link, or that the mailbox holds; 1 if it takes
    /// them by a socket.
    pub slots: u64,
}

/// The way of a flow from one host to the next.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FlowWay {
    /// Over the cable with this number.
    Cable(usize),
    /// Over Ethernet: the numbers of the sockets that send and receive, in their systems.
    Sockets { from: usize, to: usize },
    /// Within a host, by the mailbox with this number in its system.
    Mailbox(usize),
}

/// The cables and wires by which a flow can go from host to host.
pub(crate) struct Ways<'a> {
    pub cables: &'a [Cable],
    pub ethernet: &'a [EthernetLink],
}

impl Flow {
    /// Returns every program of the flow, in the order of the messages.
    pub fn stops(&self) -> impl Iterator<Item = &FlowStop> {
        std::iter::once(&self.from).chain(self.hops.iter().map(|hop| &hop.to))
    }

    /// Returns whether it goes over Ethernet. It has one hop then.
    #[must_use]
    pub fn is_on_ethernet(&self) -> bool {
        self.hops.iter().any(|hop| matches!(hop.way, FlowWay::Sockets { .. }))
    }

    /// Returns the most cables that a message crosses, by whatever ways.
    #[must_use]
    pub fn most_cables(&self) -> u64 {
        let longer = self.detours.iter().map(|detour| detour.hops.len().saturating_sub(1));
        let own = self.hops.iter().filter(|hop| matches!(hop.way, FlowWay::Cable(_))).count();
        (own + longer.sum::<usize>()) as u64
    }

    /// Returns the program that gives its messages to the first cable.
    #[must_use]
    pub fn first_on_cables(&self) -> FlowStop {
        let mailbox = self.hops.first().filter(|hop| matches!(hop.way, FlowWay::Mailbox(_)));
        mailbox.map_or(self.from, |hop| hop.to)
    }

    /// Returns the last program.
    #[must_use]
    pub fn end(&self) -> FlowStop {
        self.hops.last().map_or(self.from, |hop| hop.to)
    }
}

pub(crate) struct DeclaredFlow {
    pub name: At<String>,
    from: Option<At<String>>,
    /// The pipe from a device whose messages it sends on.
    pipe: Option<At<String>>,
    /// The pipe to a device into which the last program writes each message.
    into: Option<At<String>>,
    work_ns: Option<u64>,
    bytes: Option<At<u64>>,
    contract: Contract,
    latency_ns: Option<u64>,
    offset: Option<At<u64>>,
    /// The last program, if the way is computed, those that it leads through, and the memory for
    /// messages of each hop.
    to: Option<At<String>>,
    via: Vec<At<String>>,
    slots: Option<At<u64>>,
    /// The mailbox at both ends of a computed way.
    mailbox: Option<At<String>>,
    hops: Vec<DeclaredHop>,
}

struct DeclaredHop {
    place: Span,
    process: Option<At<String>>,
    by: Option<At<String>>,
    slots: Option<At<u64>>,
    work_ns: Option<u64>,
    patience: Option<At<u64>>,
    otherwise: Vec<DeclaredHop>,
}

pub(crate) fn flow(raw: Raw<'_>, report: &mut Report) -> DeclaredFlow {
    let mut table = Table::new("[[flow]]", "flow", raw, report);
    let name = keys::name(&mut table);
    let from = table.text("from", "from = \"left:sampler\"");
    table.needs("from", "add `from = \"HOST:PROCESS\"`: the program that sends the messages");
    let bytes = table.number("bytes", 1..=MESSAGE_MAX as u64, " of a message, at most");
    table.needs("bytes", "add `bytes = 1024`: the most bytes of a message, with its head");
    let pipe = table.text("pipe", "pipe = \"samples\"");
    let into = table.text("into", "into = \"commands\"");
    let (messages, per) = piped::paced(&mut table, pipe.is_some());
    let value = |number: Option<At<u64>>, else_: u64| number.map_or(else_, |number| number.value);
    let burst = value(table.number("burst", 1..=BURST_MAX, ", messages at once"), 1);
    let jitter = Nanos(value(table.duration("jitter", 0..=TIME_MAX), 0));
    let work_ns = table.duration("work", 1..=TIME_MAX).map(|work| work.value);
    let latency_ns = table.duration("latency", 1..=TIME_MAX).map(|latency| latency.value);
    let offset = table.duration("offset", 0..=PER_MAX.0);
    let hops = table.list("hop");
    let to = table.text("to", "to = \"right:display\"");
    let via = table.texts("via", "via = [\"middle:filter\"]");
    let mailbox = table.text("mailbox", "mailbox = \"samples\"");
    let wrong = computed::wrong_way(&to, via.first(), mailbox.as_ref());
    wrong.into_iter().for_each(|problem| table.report.push(problem));
    let slots = table.number("slots", 1..=SLOTS_MAX, ", messages that find room");
    match (&to, &slots, hops.first()) {
        (None, None, None) => {
            let help = "add `[[flow.hop]]`: the cable, and the program at its other end; or `to` \
                        and `slots`, and the way is computed";
            table.needs("hop", help);
        }
        (Some(to), _, Some(_)) => {
            let help = "remove one of the two: the way to `to` is computed";
            table.report.push(Problem::new(&to.span, "a flow with `to` and hops", help));
        }
        (Some(_), None, None) => {
            let help = "add `slots = 4`: messages for which each program on the way lends memory \
                        to its link";
            table.needs("slots", help);
        }
        (None, Some(slots), _) => {
            let help = "write it in each `[[flow.hop]]`, or name the last program with `to`";
            table.report.push(Problem::new(&slots.span, "a flow with `slots` and no `to`", help));
        }
        _ => {}
    }
    table.report_unknown();
    let hops = hops.into_iter().map(|raw| hop(raw, true, report)).collect();
    let contract = Contract { messages, per, burst, jitter };
    DeclaredFlow {
        name,
        from,
        pipe,
        into,
        work_ns,
        bytes,
        contract,
        latency_ns,
        offset,
        to,
        via,
        slots,
        mailbox,
        hops,
    }
}

/// Reads a hop. Only one of the flow itself has another way.
fn hop(raw: Raw<'_>, may_turn: bool, report: &mut Report) -> DeclaredHop {
    let title = if may_turn { "[[flow.hop]]" } else { "[[flow.hop.otherwise]]" };
    let mut table = Table::new(title, "hop", raw, report);
    let place = table.place();
    let process = table.text("process", "process = \"right:display\"");
    table.needs("process", "add `process = \"HOST:PROCESS\"`: the program that is next");
    let by = table.text("by", "by = \"bridge\"");
    table.needs("by", "add `by = \"…\"`: the `[[cable]]` that leads to it");
    let slots = table.number("slots", 1..=SLOTS_MAX, ", messages that find room");
    let work = table.duration("work", 1..=TIME_MAX);
    let patience = may_turn.then(|| table.duration("patience", 1..=TIME_MAX)).flatten();
    let otherwise = if may_turn { table.list("otherwise") } else { Vec::new() };
    table.report_unknown();
    let otherwise = otherwise.into_iter().map(|raw| hop(raw, false, report)).collect();
    let work_ns = work.map(|work| work.value);
    DeclaredHop { place, process, by, slots, work_ns, patience, otherwise }
}

/// Finds the hosts, processes and cables of flows; what cannot be is reported.
pub(crate) fn resolve(
    declared: &mut [DeclaredFlow],
    hosts: &[HostSpec],
    ways: &Ways<'_>,
    report: &mut Report,
) -> Vec<Flow> {
    let list = List { hosts, cables: ways.cables, ethernet: ways.ethernet };
    list.compute(declared, report);
    let declared = &*declared;
    let flows: Vec<Option<Flow>> = declared.iter().map(|flow| list.flow(flow, report)).collect();
    for (number, flow) in flows.iter().enumerate() {
        let Some(flow) = flow else { continue };
        let end = (flow.end().host, flow.end().process);
        let ends_there = |other: &&Option<Flow>| {
            other.as_ref().is_some_and(|other| (other.end().host, other.end().process) == end)
        };
        let by_another = |other: &&Option<Flow>| ends_there(other) && !by_one_mailbox(flow, other);
        if let Some(first) = flows[..number].iter().position(|other| by_another(&other)) {
            let name = list.written(flow.end());
            let title = format!("two flows end at `{name}`");
            let help = "a program measures the flows of one mailbox, or one other: let another \
                        program take one of them";
            let problem = Problem::new(&declared[number].name.span, title, help);
            report.push(problem.with(&declared[first].name.span, "the first"));
        }
    }
    list.one_owner(declared, &flows, report);
    released::alone(declared, &flows, report);
    piped::alone(declared, &flows, report);
    flows.into_iter().flatten().collect()
}

/// Returns whether two flows lead to one mailbox.
fn by_one_mailbox(flow: &Flow, other: &Option<Flow>) -> bool {
    let last = |flow: &Flow| flow.hops.last().map(|hop| (hop.to.host, hop.way));
    let is_mailbox = matches!(last(flow), Some((_, FlowWay::Mailbox(_))));
    is_mailbox && other.as_ref().is_some_and(|other| last(other) == last(flow))
}

struct List<'a> {
    hosts: &'a [HostSpec],
    cables: &'a [Cable],
    ethernet: &'a [EthernetLink],
}

impl List<'_> {
    fn written(&self, stop: FlowStop) -> String {
        let host = &self.hosts[stop.host];
        format!("{}:{}", host.name, host.system.processes[usize::from(stop.process)].name)
    }

    /// Computes the hops of each flow that names only its last program.
    fn compute(&self, declared: &mut [DeclaredFlow], report: &mut Report) {
        let is_open = |flow: &DeclaredFlow| flow.to.is_some() && flow.hops.is_empty();
        if !declared.iter().any(is_open) {
            return;
        }
        let computed = Computed::of(self);
        for flow in declared.iter_mut().filter(|flow| is_open(flow)) {
            if let Some(to) = &flow.to {
                flow.hops = computed.hops(flow, to, report);
            }
        }
    }

    fn flow(&self, declared: &DeclaredFlow, report: &mut Report) -> Option<Flow> {
        if let Some(extra) = declared.hops.get(HOPS_MAX) {
            let title = format!("{} hops, the most is {HOPS_MAX}", declared.hops.len());
            report.push(Problem::new(&extra.place, title, "end the flow before it"));
        }
        let on_ethernet = |hop: &DeclaredHop| {
            let by = hop.by.as_ref().map(|by| &by.value);
            self.ethernet.iter().any(|link| Some(&link.name) == by)
        };
        if let Some(second) = declared.hops.get(1).filter(|_| declared.hops.iter().any(on_ethernet))
        {
            let title = "a flow over Ethernet has one hop".to_owned();
            let help = "end it there, and let another flow begin at that program";
            report.push(Problem::new(&second.place, title, help));
            return None;
        }
        let from = self.stop(declared.from.as_ref(), declared.work_ns, report);
        let hops = self.steps(&declared.hops, from, report);
        let whole = hops.len() == declared.hops.len();
        if whole && !self.is_mailed_whole(declared, from, &hops, report) {
            return None;
        }
        let mut detours = Vec::new();
        let mut before = from;
        for (number, hop) in declared.hops.iter().enumerate() {
            if let (true, Some(start)) = (whole, before) {
                detours.extend(self.detour(hop, (number, hops[number]), start, report));
            }
            before = hops.get(number).map(|hop| hop.to);
        }
        let bytes = declared.bytes.as_ref().map_or(1, |bytes| bytes.value as u32);
        let DeclaredFlow { contract, latency_ns, .. } = *declared;
        let name = declared.name.value.clone();
        let from = from.filter(|_| whole && !hops.is_empty())?;
        let [pipe, into] = [None; 2];
        let release = None;
        let mut flow =
            Flow { name, contract, bytes, latency_ns, from, hops, detours, release, pipe, into };
        piped::begun(declared, &mut flow, self.hosts, report);
        piped::ended(declared, &mut flow, self.hosts, report);
        flow.release = released::released(declared, &flow, (self.hosts, self.ethernet), report);
        Some(flow)
    }

    /// Returns the steps of a way, those that can be.
    fn steps(
        &self,
        declared: &[DeclaredHop],
        from: Option<FlowStop>,
        report: &mut Report,
    ) -> Vec<FlowHop> {
        let mut hops = Vec::new();
        let mut before = from;
        for declared in declared {
            let to = self.stop(declared.process.as_ref(), declared.work_ns, report);
            let host = before.zip(to).filter(|(before, to)| before.host == to.host);
            let by = self.by(declared.by.as_ref(), host.map(|(_, to)| to.host), report);
            if let (Some(before), Some(to), Some(by)) = (before, to, by) {
                hops.extend(self.step(declared, by, [before, to], report));
            }
            before = to;
        }
        hops
    }

    /// Returns the program that a text such as `left:sampler` names.
    fn stop(
        &self,
        text: Option<&At<String>>,
        work_ns: Option<u64>,
        report: &mut Report,
    ) -> Option<FlowStop> {
        let At { value, span } = text?;
        let mut refuse = |title: String, help: String| {
            report.push(Problem::new(span, title, help));
        };
        let Some((host, process)) = value.split_once(':') else {
            let help = "write host and process as in `\"left:sampler\"`".to_owned();
            refuse(format!("`{value}` is no program of a host"), help);
            return None;
        };
        let names = || self.hosts.iter().map(|host| host.name.as_str());
        let Some(number) = names().position(|known| known == host) else {
            refuse(format!("no host is called `{host}`"), near(host, names()));
            return None;
        };
        let HostSpec { system, file, .. } = &self.hosts[number];
        let Some(place) = system.processes.iter().position(|it| it.name == process) else {
            let (title, help) = self.hosts[number].lacks(process);
            refuse(title, help);
            return None;
        };
        if system.processes[place].vcpu.is_none() {
            let title = format!("`{value}` is in a flow and has no VCPU");
            let help = format!("add `vcpu = \"…\"` to the process in `{file}`");
            refuse(title, help);
            return None;
        }
        Some(FlowStop { host: number, process: place as u16, work_ns })
    }

    /// Returns the cable or wire that a hop names; the mailbox, if both of its ends are programs of
    /// one host.
    fn by(
        &self,
        by: Option<&At<String>>,
        within: Option<usize>,
        report: &mut Report,
    ) -> Option<By> {
        let At { value, span } = by?;
        if let Some(mailbox) = within.and_then(|host| self.mailbox(host, value)) {
            return Some(By::Mailbox(mailbox));
        }
        let cables = || self.cables.iter().map(|cable| cable.name.as_str());
        let wires = || self.ethernet.iter().map(|link| link.name.as_str());
        let cable = cables().position(|known| known == value).map(By::Cable);
        let found = cable.or_else(|| wires().position(|known| known == value).map(By::Wire));
        if found.is_none() {
            let (title, help) = match within {
                Some(host) => self.no_mailbox(host, value),
                None => {
                    let help = near(value, cables().chain(wires()));
                    (format!("no cable is called `{value}`"), help)
                }
            };
            report.push(Problem::new(span, title, help));
        }
        found
    }

    /// Returns a hop from one program to another.
    fn step(
        &self,
        declared: &DeclaredHop,
        by: By,
        [before, to]: [FlowStop; 2],
        report: &mut Report,
    ) -> Option<FlowHop> {
        match by {
            By::Cable(cable) => {
                self.joined(declared, cable, [before, to], report);
                if declared.slots.is_none() {
                    let help = "add `slots = 4`: messages for which the program lends memory to \
                                its link";
                    let title = "a hop over a cable without `slots`";
                    report.push(Problem::new(&declared.place, title, help));
                }
                let slots = declared.slots.as_ref().map_or(1, |slots| slots.value);
                Some(FlowHop { way: FlowWay::Cable(cable), to, slots })
            }
            By::Mailbox(mailbox) => self.mailed(declared, mailbox, [before, to], report),
            By::Wire(wire) => {
                if let Some(slots) = &declared.slots {
                    let title = "a hop over Ethernet with `slots`";
                    let help = "remove it: the `quota` of the socket says how many frames may wait";
                    report.push(Problem::new(&slots.span, title, help));
                }
                let way = self.sockets(declared, wire, [before, to], report)?;
                Some(FlowHop { way, to, slots: 1 })
            }
        }
    }

    /// Returns the sockets by which a message goes from one program to another.
    fn sockets(
        &self,
        declared: &DeclaredHop,
        wire: usize,
        [before, to]: [FlowStop; 2],
        report: &mut Report,
    ) -> Option<FlowWay> {
        let place = declared.by.as_ref().map_or(&declared.place, |by| &by.span);
        let mut refuse = |title: String, help: String| {
            report.push(Problem::new(place, title, help));
        };
        let link = &self.ethernet[wire];
        let own = link.ends.iter().find_map(|end| match *end {
            WireEnd::Adapter { host, adapter } if host == before.host => Some(adapter),
            _ => None,
        });
        let here = &self.hosts[before.host];
        let Some(adapter) = own else {
            let title = format!("`{}` has no adapter at `{}`", here.name, link.name);
            refuse(title, "name the `[[ethernet]]` at the adapter that sends".to_owned());
            return None;
        };
        let sockets = &here.system.sockets;
        let sends = |it: &crate::UdpPort| it.process == before.process && it.adapter == adapter;
        let from = sockets.iter().position(|it| sends(it) && it.peer.is_some());
        let Some((from, peer)) = from.and_then(|at| Some((at, sockets[at].peer?))) else {
            let title = format!("`{}` sends nothing over `{}`", self.written(before), link.name);
            let help = format!("give it a `[[socket]]` with a `peer` in `{}`", here.file);
            refuse(title, help);
            return None;
        };
        let there = &self.hosts[to.host];
        let is_peer = |it: &crate::UdpPort| {
            let adapter = &there.system.adapters[it.adapter];
            it.process == to.process
                && (adapter.address, adapter.mac, it.port) == (peer.address, peer.mac, peer.port)
        };
        let Some(socket) = there.system.sockets.iter().position(is_peer) else {
            let [a, b, c, d] = peer.address;
            let name = &sockets[from].name;
            let title = format!("`{}` has no socket where `{name}` sends", self.written(to));
            let help = format!(
                "its `peer` is {a}.{b}.{c}.{d}:{}: change `peer` and `peer_mac` in `{}`, or the \
                 `[[socket]]` in `{}`",
                peer.port, here.file, there.file
            );
            refuse(title, help);
            return None;
        };
        Some(FlowWay::Sockets { from, to: socket })
    }

    /// Reports a cable that does not join the hosts of two programs that follow each other.
    fn joined(&self, hop: &DeclaredHop, cable: usize, stops: [FlowStop; 2], report: &mut Report) {
        let mut ends = self.cables[cable].ends.map(|end| end.host);
        let mut wanted = stops.map(|stop| stop.host);
        if wanted[0] == wanted[1] {
            let place = hop.process.as_ref().map_or(&hop.place, |name| &name.span);
            let title = "a hop from a host to itself".to_owned();
            let help = "name a program of the host at the other end of the cable, or a \
                        `[[mailbox]]` of this host";
            report.push(Problem::new(place, title, help));
            return;
        }
        ends.sort_unstable();
        wanted.sort_unstable();
        if ends != wanted {
            let place = hop.by.as_ref().map_or(&hop.place, |name| &name.span);
            let [one, other] = stops.map(|stop| self.hosts[stop.host].name.as_str());
            let title =
                format!("`{}` does not lead from `{one}` to `{other}`", self.cables[cable].name);
            let leads = |cable: &&Cable| {
                let mut ends = cable.ends.map(|end| end.host);
                ends.sort_unstable();
                ends == wanted
            };
            let help = match self.cables.iter().find(leads) {
                Some(right) => format!("write `by = \"{}\"`", right.name),
                None => "go by hosts that cables join".to_owned(),
            };
            report.push(Problem::new(place, title, help));
        }
    }
}

/// The cable, wire or mailbox that a hop names, by its number.
#[derive(Clone, Copy)]
enum By {
    Cable(usize),
    Wire(usize),
    Mailbox(usize),
}

/// Returns the name that was meant, or those that there are.
pub(crate) fn near<'a>(word: &str, known: impl Iterator<Item = &'a str> + Clone) -> String {
    match nearest(word, known.clone()) {
        Some(near) => format!("did you mean `{near}`?"),
        None if known.clone().next().is_none() => "there is none".to_owned(),
        None => format!("there is {}", listed(known.take(8), "and")),
    }
}
