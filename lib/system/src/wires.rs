//! `[[ethernet]]` and `[[switch]]` of a list of hosts: the wires between adapters, and the switches
//! that pass frames on.
//!
//! A switch knows every adapter of the list from the beginning. So the way of a frame follows from
//! its address alone, and there is one way: wires that form a circle are refused here.

use crate::credit::{self, ClassCredit, DeclaredCredit};
use crate::diagnostics::{Problem, Report};
use crate::ethernet::EthernetAdapter;
use crate::gates::{self, AdapterGates, DeclaredGates, GatedEnd};
use crate::hosts::{HostSpec, Hosts};
use crate::keys;
use crate::pulled::{self, Pulled};
use crate::source::{At, Span};
use crate::suggest::{listed, nearest};
use crate::table::{Raw, Table};
use crate::wire_time::{self, DeclaredTime, WireTime};
use diapason_tsn::GateList;
use std::ops::RangeInclusive;

/// Delay of a wire if the description does not say: 100 m.
const DELAY_DEFAULT: u64 = 500;
const DELAYS: RangeInclusive<u64> = 1..=1_000_000;
const SPEEDS: [u64; 3] = [10, 100, 1_000];
/// Speed of a wire between two switches if the description does not say, in Mbit/s.
const SPEED_DEFAULT: u64 = 1_000;
const SWITCHES_MAX: usize = 16;
const PORTS: RangeInclusive<u64> = 2..=16;
const LATENCIES: RangeInclusive<u64> = 0..=1_000_000;
const LATENCY_DEFAULT: u64 = 2_000;
const ROOM: RangeInclusive<u64> = 1..=4_096;
const ROOM_DEFAULT: u64 = 64;
const EXAMPLE: &str = "ends = [\"left:nic0\", \"right:nic0\"]";

/// A wire between two adapters, an adapter and a port of a switch, or two ports.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct EthernetLink {
    pub name: String,
    pub ends: [WireEnd; 2],
    /// The bit rate of the wire in Mbit/s.
    pub speed: u64,
    /// The time that a bit takes from one end to the other, in ns; at least 1.
    pub delay_ns: u64,
    /// When it is pulled in a simulation, in order.
    pub pulled: Vec<Pulled>,
    /// The gates of the adapters at its ends that have some.
    pub gates: Vec<AdapterGates>,
    /// The common time of the hosts at its ends, if they keep one.
    pub time: Option<WireTime>,
}

impl EthernetLink {
    /// Returns the gates of the adapter at this end.
    #[must_use]
    pub fn gates(&self, end: WireEnd) -> Option<&AdapterGates> {
        self.gates.iter().find(|gates| gates.end == end)
    }
}

/// The adapter, or the port of a switch, at which a wire ends.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum WireEnd {
    /// An adapter: the number of its host, and its place in the adapters of that host.
    Adapter { host: usize, adapter: usize },
    /// A port of a switch, from 0.
    Port { switch: usize, port: usize },
}

impl WireEnd {
    /// Returns its name, as in `ends`.
    #[must_use]
    pub fn name(self, hosts: &Hosts) -> String {
        match self {
            WireEnd::Adapter { host, adapter } => {
                let host = &hosts.hosts[host];
                format!("{}:{}", host.name, host.system.adapters[adapter].name())
            }
            WireEnd::Port { switch, port } => {
                format!("{}:{}", hosts.switches[switch].name, port + 1)
            }
        }
    }
}

/// A switch that takes each frame whole before it passes it on.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Switch {
    pub name: String,
    pub ports: usize,
    /// The time from the last bit of a frame until it is in its queue, in ns.
    pub latency_ns: u64,
    /// By how many millionths its clock is fast in a simulation.
    pub drift_ppm: i32,
    /// Frames that may wait in each queue of a port, besides the one on the wire.
    pub room: u64,
    /// The gates of each port that has some.
    pub gates: Vec<(usize, GateList)>,
    /// The priorities that ports shape by credit, each with its port, from 0.
    pub credits: Vec<(usize, ClassCredit)>,
}

impl Switch {
    /// Returns the gates of a port, which are always open unless the description says otherwise.
    #[must_use]
    pub fn gates(&self, port: usize) -> GateList {
        let found = self.gates.iter().find(|(own, _)| *own == port);
        found.map_or_else(|| GateList::open(1_000_000), |(_, list)| list.clone())
    }
}

pub(crate) struct DeclaredLink {
    pub name: At<String>,
    ends: Vec<At<String>>,
    ends_place: Span,
    speed: Option<At<u64>>,
    delay_ns: u64,
    pulled: Vec<Pulled>,
    pub gates: Vec<DeclaredGates>,
    pub credits: Vec<DeclaredCredit>,
    time: DeclaredTime,
}

pub(crate) struct DeclaredSwitch {
    pub name: At<String>,
    ports: usize,
    latency_ns: u64,
    drift_ppm: i32,
    room: u64,
    gates: Vec<DeclaredGates>,
    pub credits: Vec<DeclaredCredit>,
}

pub(crate) fn link(raw: Raw<'_>, report: &mut Report) -> DeclaredLink {
    let mut table = Table::new("[[ethernet]]", "wire", raw, report);
    let name = keys::name(&mut table);
    let ends = table.texts("ends", EXAMPLE);
    let ends_place = table.place_of("ends").unwrap_or_else(|| table.place());
    table.needs("ends", &format!("add `{EXAMPLE}`"));
    let speed = table.number("speed", 10..=1_000, " Mbit/s");
    if let Some(speed) = speed.as_ref().filter(|it| !SPEEDS.contains(&it.value)) {
        let title = format!("no wire has a speed of {} Mbit/s", speed.value);
        table.report.push(Problem::new(&speed.span, title, "write 10, 100 or 1000"));
    }
    let delay = table.duration("delay", DELAYS);
    let pulled = pulled::pulled(&mut table);
    let (gates, credits) = (table.list("gates"), table.list("credit"));
    let time = wire_time::read(&mut table);
    table.report_unknown();
    let delay_ns = delay.map_or(DELAY_DEFAULT, |delay| delay.value);
    let gates = gates.into_iter().map(|raw| gates::of_adapter(raw, report)).collect();
    let credits = credits.into_iter().map(|raw| credit::of_adapter(raw, report)).collect();
    DeclaredLink { name, ends, ends_place, speed, delay_ns, pulled, gates, credits, time }
}

pub(crate) fn switch(raw: Raw<'_>, report: &mut Report) -> DeclaredSwitch {
    let mut table = Table::new("[[switch]]", "switch", raw, report);
    let name = keys::name(&mut table);
    let ports = table.number("ports", PORTS, " ports");
    table.needs("ports", "add `ports = 4`");
    let latency = table.duration("latency", LATENCIES);
    let drift_ppm = keys::drift(&mut table);
    let room = table.number("room", ROOM, ", frames that wait in a queue");
    let (gates, credits) = (table.list("gates"), table.list("credit"));
    table.report_unknown();
    DeclaredSwitch {
        name,
        ports: ports.map_or(*PORTS.end(), |ports| ports.value) as usize,
        latency_ns: latency.map_or(LATENCY_DEFAULT, |latency| latency.value),
        drift_ppm,
        room: room.map_or(ROOM_DEFAULT, |room| room.value),
        gates: gates.into_iter().map(|raw| gates::of_port(raw, report)).collect(),
        credits: credits.into_iter().map(|raw| credit::of_port(raw, report)).collect(),
    }
}

/// Finds the adapters and ports that wires join; what cannot be is reported.
pub(crate) fn resolve(
    (links, declared): (&[DeclaredLink], &[DeclaredSwitch]),
    hosts: &[HostSpec],
    report: &mut Report,
) -> (Vec<EthernetLink>, Vec<Switch>) {
    if let Some(extra) = declared.get(SWITCHES_MAX) {
        let title = format!("{} switches, the most is {SWITCHES_MAX}", declared.len());
        report.push(Problem::new(&extra.name.span, title, "join fewer"));
    }
    let switches: Vec<Switch> = declared.iter().map(|it| whole(it, hosts, report)).collect();
    let mut found: Vec<EthernetLink> = Vec::new();
    let mut taken: Vec<(WireEnd, &Span)> = Vec::new();
    for link in links {
        let places = Places { hosts, switches: &switches };
        let Some(ends) = places.ends(link, &mut taken, report) else { continue };
        let Some(speed) = places.speed(link, ends, report) else { continue };
        let (name, delay_ns) = (link.name.value.clone(), link.delay_ns);
        if is_joined(&found, ends) {
            let title = format!("`{name}` closes a circle of wires");
            let help = "remove a wire of the circle: frames have one way from adapter to adapter";
            report.push(Problem::new(&link.name.span, title, help));
            continue;
        }
        let pulled = link.pulled.clone();
        let written: Vec<(&str, WireEnd)> =
            link.ends.iter().map(|text| text.value.as_str()).zip(ends).collect();
        let mut gates = gates::resolve(&link.gates, &written, (speed, hosts), report);
        credit::resolve(&link.credits, &written, (speed, &mut gates), report);
        let time = wire_time::resolve(&link.time, &written, hosts, report);
        found.push(EthernetLink { name, ends, speed, delay_ns, pulled, gates, time });
    }
    one_address_each(&found, links, hosts, report);
    for (number, (switch, declared)) in switches.iter().zip(declared).enumerate() {
        let mbit = |port: usize| {
            let end = WireEnd::Port { switch: number, port };
            let link = found.iter().find(|link| link.ends.contains(&end));
            link.map_or(SPEED_DEFAULT, |link| link.speed)
        };
        credit::check(switch, &declared.credits, mbit, report);
    }
    (found, switches)
}

fn whole(declared: &DeclaredSwitch, hosts: &[HostSpec], report: &mut Report) -> Switch {
    let name = declared.name.value.clone();
    if hosts.iter().any(|host| host.name == name) {
        let title = format!("a host and a switch are called `{name}`");
        report.push(Problem::new(&declared.name.span, title, "rename one of them"));
    }
    let mut gates: Vec<(usize, GateList)> = Vec::new();
    for DeclaredGates { of, list } in &declared.gates {
        let (Some(GatedEnd::Port(port)), Some((span, list))) = (of, list) else { continue };
        let number = port.value as usize - 1;
        if number >= declared.ports {
            let title = format!("`{name}` has no port {}", port.value);
            let help = format!("write a number from 1 to {}", declared.ports);
            report.push(Problem::new(&port.span, title, help));
        } else if gates.iter().any(|(other, _)| *other == number) {
            let title = format!("port {} has two lists of gates", port.value);
            report.push(Problem::new(&port.span, title, "remove one of them"));
        } else if let Some(problem) = gates::too_short(list, span, 1_000, 0) {
            report.push(problem);
        } else {
            gates.push((number, list.clone()));
        }
    }
    let credits = credit::whole(&declared.credits, (&name, declared.ports), report);
    let DeclaredSwitch { ports, latency_ns, drift_ppm, room, .. } = *declared;
    Switch { name, ports, latency_ns, drift_ppm, room, gates, credits }
}

struct Places<'a> {
    hosts: &'a [HostSpec],
    switches: &'a [Switch],
}

impl Places<'_> {
    fn ends<'s>(
        &self,
        declared: &'s DeclaredLink,
        taken: &mut Vec<(WireEnd, &'s Span)>,
        report: &mut Report,
    ) -> Option<[WireEnd; 2]> {
        if declared.ends.len() != 2 {
            let name = &declared.name.value;
            let title = format!("wire `{name}` has {} ends, and a wire has 2", declared.ends.len());
            report.push(Problem::new(&declared.ends_place, title, format!("write `{EXAMPLE}`")));
            return None;
        }
        let mut ends = Vec::new();
        for text in &declared.ends {
            let end = match self.end(&text.value) {
                Ok(end) => end,
                Err((title, help)) => {
                    report.push(Problem::new(&text.span, title, help));
                    continue;
                }
            };
            if let Some((_, first)) = taken.iter().find(|(other, _)| *other == end) {
                let title = format!("`{}` has two wires", text.value);
                let problem = Problem::new(&text.span, title, "give each wire ends of its own");
                report.push(problem.with(first, "the first"));
                continue;
            }
            taken.push((end, &text.span));
            ends.push(end);
        }
        <[WireEnd; 2]>::try_from(ends).ok()
    }

    fn end(&self, text: &str) -> Result<WireEnd, (String, String)> {
        let Some((name, rest)) = text.split_once(':') else {
            let help = "write host and adapter as in `\"left:nic0\"`, or switch and port as in \
                        `\"switch:1\"`";
            return Err((format!("`{text}` is not the end of a wire"), help.to_owned()));
        };
        if let Some(switch) = self.switches.iter().position(|it| it.name == name) {
            let ports = self.switches[switch].ports;
            let port = rest.parse().ok().filter(|port| (1..=ports).contains(port));
            let port = port.ok_or_else(|| {
                let help = format!("write a number from 1 to {ports}");
                (format!("`{name}` has no port `{rest}`"), help)
            })?;
            return Ok(WireEnd::Port { switch, port: port - 1 });
        }
        let Some(host) = self.hosts.iter().position(|it| it.name == name) else {
            let hosts = self.hosts.iter().map(|it| it.name.as_str());
            let known = || hosts.clone().chain(self.switches.iter().map(|it| it.name.as_str()));
            return Err((format!("no host or switch is called `{name}`"), near(name, known())));
        };
        let HostSpec { system, file, .. } = &self.hosts[host];
        let has_wire = |it: &EthernetAdapter| it.card().is_some();
        let cards = system.adapters.iter().filter(|it| has_wire(it));
        let is = |it: &EthernetAdapter| has_wire(it) && it.name() == rest;
        let Some(adapter) = system.adapters.iter().position(is) else {
            let known = cards.map(EthernetAdapter::name);
            if system.adapters.iter().any(|it| it.name() == rest) {
                let title = format!("`{rest}` in `{file}` is a USB device, and wires join cards");
                return Err((title, "take an `[[adapter]]` whose device is a card".into()));
            }
            let help = match known.clone().next() {
                None => format!("declare an `[[adapter]]` in `{file}`"),
                Some(_) => near(rest, known),
            };
            return Err((format!("`{file}` has no adapter called `{rest}`"), help));
        };
        Ok(WireEnd::Adapter { host, adapter })
    }

    /// Returns the speed of a wire, which is that of the adapters at its ends.
    fn speed(
        &self,
        declared: &DeclaredLink,
        ends: [WireEnd; 2],
        report: &mut Report,
    ) -> Option<u64> {
        let of = |end: &WireEnd| match *end {
            WireEnd::Adapter { host, adapter } => {
                Some(self.hosts[host].system.adapters[adapter].speed)
            }
            WireEnd::Port { .. } => None,
        };
        let adapters: Vec<u64> = ends.iter().filter_map(of).collect();
        let said = declared.speed.as_ref().map(|speed| speed.value);
        let speed = said.or(adapters.first().copied()).unwrap_or(SPEED_DEFAULT);
        let Some(other) = adapters.iter().find(|other| **other != speed) else {
            return Some(speed);
        };
        let place = declared.speed.as_ref().map_or(&declared.ends_place, |speed| &speed.span);
        let name = &declared.name.value;
        let title = format!("`{name}` has {speed} Mbit/s, and an adapter at its end {other}");
        let help = "write the same `speed` in both: the adapters do not negotiate";
        report.push(Problem::new(place, title, help));
        None
    }
}

/// Returns whether a way leads from one end to the other already.
fn is_joined(links: &[EthernetLink], ends: [WireEnd; 2]) -> bool {
    // A switch joins its ports. An adapter has one wire.
    let [Some(from), Some(to)] = ends.map(of_switch) else { return false };
    let mut reached = vec![from];
    let mut next = 0;
    while let Some(here) = reached.get(next).copied() {
        next += 1;
        for link in links {
            let [Some(one), Some(other)] = link.ends.map(of_switch) else { continue };
            for (near, far) in [(one, other), (other, one)] {
                if near == here && !reached.contains(&far) {
                    reached.push(far);
                }
            }
        }
    }
    reached.contains(&to)
}

const fn of_switch(end: WireEnd) -> Option<usize> {
    match end {
        WireEnd::Port { switch, .. } => Some(switch),
        WireEnd::Adapter { .. } => None,
    }
}

/// Reports two adapters that wires join and that have the same address.
fn one_address_each(
    links: &[EthernetLink],
    declared: &[DeclaredLink],
    hosts: &[HostSpec],
    report: &mut Report,
) {
    let mut known: Vec<([u8; 6], &str)> = Vec::new();
    for link in links {
        for end in link.ends {
            let WireEnd::Adapter { host, adapter } = end else { continue };
            let mac = hosts[host].system.adapters[adapter].mac;
            if let Some((_, other)) = known.iter().find(|(taken, _)| *taken == mac) {
                let of = declared.iter().find(|it| it.name.value == link.name);
                let place = of.map_or(0..0, |it| it.ends_place.clone());
                let name = &hosts[host].name;
                let title = format!("adapters of `{name}` and `{other}` have the same `mac`");
                report.push(Problem::new(&place, title, "give each adapter a `mac` of its own"));
            }
            known.push((mac, &hosts[host].name));
        }
    }
}

/// Returns the name that was meant, or those that there are.
fn near<'a>(word: &str, known: impl Iterator<Item = &'a str> + Clone) -> String {
    match nearest(word, known.clone()) {
        Some(near) => format!("did you mean `{near}`?"),
        None => format!("there is {}", listed(known.take(8), "and")),
    }
}
