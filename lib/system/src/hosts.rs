//! Several hosts: a file that names a description for each, and the cables between them.
//!
//! Each host is a system of its own, so every rule for systems is checked where it always is. This
//! module checks the connections between the hosts.

use crate::credit::DeclaredCredit;
use crate::diagnostics::{Diagnostics, Problem, Report};
use crate::flow::{self, DeclaredFlow, Flow, Ways, near};
use crate::gates;
use crate::limits::XHCI;
use crate::network::{self, DeclaredNetwork, NameList};
use crate::pulled::{self, Pulled};
use crate::source::{At, Source, Span};
use crate::suggest::nearest;
use crate::system::{DeviceSpec, System};
use crate::table::{Raw, Table};
use crate::wires::{self, DeclaredLink, DeclaredSwitch, EthernetLink, Switch};
use crate::{cores_of, keys, syntax, whole};
use diapason_abi::archive::Location;
use toml::Spanned;
use toml::de::DeTable;

/// Most hosts of one file.
const HOSTS_MAX: usize = 64;
/// How long a cable takes if the description does not say.
const DELAY_DEFAULT: u64 = 1_000;
/// From the shortest time that can be told apart to one that nobody would call a cable.
const DELAYS: std::ops::RangeInclusive<u64> = 1..=1_000_000;
/// Ports of a controller.
const PORTS: std::ops::RangeInclusive<u8> = 1..=15;
/// Instead of a port: the controller's debug capability.
const DEBUG: &str = "debug";

/// Hosts and what joins them.
#[derive(Clone, Debug)]
pub struct Hosts {
    /// In the order of the text.
    pub hosts: Vec<HostSpec>,
    /// In the order of the text.
    pub cables: Vec<Cable>,
    /// The wires between adapters and switches, in the order of the text.
    pub ethernet: Vec<EthernetLink>,
    /// In the order of the text.
    pub switches: Vec<Switch>,
    /// The host that enables its debug capability before it waits for others.
    pub leader: Option<usize>,
    /// In the order of the text.
    pub flows: Vec<Flow>,
    pub(crate) origin: Box<HostsOrigin>,
}

/// Where in the text things stand that a later stage may complain about.
#[derive(Clone, Debug)]
pub(crate) struct HostsOrigin {
    pub source: Source,
    /// The names of the hosts.
    pub hosts: Vec<Span>,
    /// The list of each host, or its name if there is none.
    pub depends: Vec<Span>,
    /// The names of the cables.
    pub cables: Vec<Span>,
    /// The names of the wires.
    pub ethernet: Vec<Span>,
    pub leader: Option<Span>,
    /// The names of the flows.
    pub flows: Vec<Span>,
    /// The idle slopes of each switch.
    pub credits: Vec<Vec<Span>>,
    /// The idle slopes of each wire.
    pub wire_credits: Vec<Vec<Span>>,
}

/// A host of the list.
#[derive(Clone, Debug)]
pub struct HostSpec {
    pub name: String,
    /// The file of its description, as the text names it.
    pub file: String,
    /// The description of the host; of one with several cores, that of the core with its USB
    /// controller.
    pub system: System,
    /// The descriptions of its other cores, in their order.
    pub others: Vec<System>,
    /// The hosts whose debug capability it waits for, if the text says.
    pub depends: Option<Vec<usize>>,
    /// Whether the host enables its debug capability, if the text says.
    pub enables: Option<bool>,
    /// By how many millionths its clock is fast in a simulation.
    pub drift_ppm: i32,
}

impl HostSpec {
    /// Returns a host as it is declared, with what each of its cores has.
    fn new(host: &DeclaredHost, mut others: Vec<System>) -> HostSpec {
        for system in &mut others {
            system.clock_hz = host.clock_hz.unwrap_or(system.clock_hz);
        }
        let has_ends = |system: &System| system.devices.iter().any(is_controller);
        let system = others.remove(others.iter().position(has_ends).unwrap_or(0));
        let (name, file) = (host.name.value.clone(), host.system.value.clone());
        let (depends, enables, drift_ppm) = (None, host.enable, host.drift_ppm);
        HostSpec { name, file, system, others, depends, enables, drift_ppm }
    }

    /// Returns why a flow cannot end at `process`, which the core with the controller lacks.
    pub(crate) fn lacks(&self, process: &str) -> (String, String) {
        let HostSpec { name, file, system, others, .. } = self;
        let has = |other: &&System| other.processes.iter().any(|it| it.name == process);
        if let Some(other) = others.iter().find(has) {
            let title = format!("`{name}:{process}` is in a flow and on core {}", other.core);
            let own = system.core;
            let help = format!(
                "write `core = {own}` for it in `{file}`, the core of the USB server: the \
                 semaphores of a link reach no other core"
            );
            return (title, help);
        }
        let names = system.processes.iter().map(|process| process.name.as_str());
        (format!("`{file}` has no process called `{process}`"), near(process, names))
    }

    /// Returns the name of one of the host's cores among all hosts. That with the ends of cables
    /// has the name of the host.
    #[must_use]
    pub fn called(&self, core: &System) -> String {
        match core.core == self.system.core {
            true => self.name.clone(),
            false => format!("{} core {}", self.name, core.core),
        }
    }
}

impl Hosts {
    /// Returns every description: first that of each host, then those of other cores of hosts.
    /// Each comes with the number of its host.
    pub fn systems(&self) -> impl Iterator<Item = (usize, &System)> {
        let each = self.hosts.iter().map(|host| &host.system).enumerate();
        let others = self.hosts.iter().enumerate();
        each.chain(others.flat_map(|(host, it)| it.others.iter().map(move |other| (host, other))))
    }

    /// Returns the host of each description behind those of hosts.
    #[must_use]
    pub fn others(&self) -> Vec<usize> {
        self.systems().skip(self.hosts.len()).map(|(host, _)| host).collect()
    }

    /// Returns every description with its name, in the order of [`Hosts::systems`].
    #[must_use]
    pub fn named(&self) -> Vec<(String, System)> {
        let named =
            |(host, system): (usize, &System)| (self.hosts[host].called(system), system.clone());
        self.systems().map(named).collect()
    }
}

/// A cable: a bridge, whose ends are devices at two ports; or a debug cable, between a port and
/// another host's debug capability.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Cable {
    pub name: String,
    /// The two ends of the cable.
    pub ends: [End; 2],
    /// How much later one end notices what the other did, in ns; at least 1.
    pub delay_ns: u64,
    /// When it is pulled in a simulation, in order.
    pub pulled: Vec<Pulled>,
}

/// Where an end of a cable is plugged in.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct End {
    /// A number of a host.
    pub host: usize,
    /// The controller: a number of a device of its system.
    pub device: usize,
    /// Where in the controller.
    pub socket: Socket,
}

impl End {
    /// Returns the root port at which the controller finds the device of a cable, which is a
    /// SuperSpeed one; `None` at the debug capability.
    #[must_use]
    pub const fn root_port(&self) -> Option<u8> {
        match self.socket {
            // A connector has a root port for each protocol; the SuperSpeed ones come second.
            Socket::Port(port) => Some(*PORTS.end() + port),
            Socket::Debug => None,
        }
    }
}

/// Where in a controller a cable ends.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Socket {
    /// At this port, from 1.
    Port(u8),
    /// At the debug capability: the host is a device of the one at the other end.
    Debug,
}

/// The kind of description that `text` is.
#[derive(Clone, Debug)]
pub enum Description {
    /// The description of one host.
    One(Box<System>),
    /// The description of a host with several cores: what each has, in their order.
    Cores(Vec<System>),
    /// A list of hosts.
    Several(Hosts),
}

/// Reads and checks `text`, whether it describes one host or lists several. `find` finds the
/// description that a host's `system` names: the name that messages use, and its text; or why not.
///
/// # Errors
/// Everything that is wrong with the text; or with the first description in it that is wrong.
pub fn parse_any(
    file_name: &str,
    text: &str,
    mut find: impl FnMut(&str) -> Result<(String, String), String>,
) -> Result<Description, Diagnostics> {
    let source = Source::new(file_name, text);
    let mut report = Report::new();
    let table = syntax::table(text, &mut report);
    if !lists_hosts(table.get_ref()) {
        return whole((source, table, report), &mut find, cores_of)?.map(described);
    }
    let is_sound = report.is_empty();
    let mut declared = declarations(&table, &mut report);
    if !report.is_empty() {
        if !is_sound {
            report.keep_what_syntax_cannot_have_caused(text);
        }
        return Err(Diagnostics::new(source, report));
    }
    let mut hosts = Vec::new();
    for host in &declared.hosts {
        match find(&host.system.value) {
            Ok((_, text)) if lists_hosts(syntax::table(&text, &mut Report::new()).get_ref()) => {
                let title = format!("`{}` is a list of hosts itself", host.system.value);
                let help = "name the description of one host, which has a table `[system]`";
                report.push(Problem::new(&host.system.span, title, help));
            }
            Ok((file_name, text)) => {
                let mut beside = |part: &str| find(&beside(&host.system.value, part));
                let mut report = Report::new();
                let read =
                    (Source::new(&file_name, &text), syntax::table(&text, &mut report), report);
                hosts.push(HostSpec::new(host, whole(read, &mut beside, cores_of)??));
            }
            Err(reason) => {
                let title = format!("cannot read `{}`: {reason}", host.system.value);
                let help = "name a file, seen from the folder of this one";
                report.push(Problem::new(&host.system.span, title, help));
            }
        }
    }
    if report.is_empty() {
        let cables = cables(&declared, &hosts, &mut report);
        let leader = network::resolve(&declared, &mut hosts, &cables, &mut report);
        let wires = (&*declared.ethernet, &*declared.switches);
        let (ethernet, switches) = wires::resolve(wires, &hosts, &mut report);
        let ways = Ways { cables: &cables, ethernet: &ethernet };
        // A flow over a wire that is wrong is not wrong, too.
        let flows = if ethernet.len() == declared.ethernet.len() {
            flow::resolve(&mut declared.flows, &hosts, &ways, &mut report)
        } else {
            Vec::new()
        };
        if report.is_empty() {
            gates::bounded((&ethernet, &declared.ethernet), &flows, &hosts, &mut report);
        }
        if report.is_empty() {
            flow::derive(&mut hosts, &flows, &ethernet);
            flow::send_on(&mut hosts, &flows);
            let origin = Box::new(origin(source, &declared));
            let list = Hosts { hosts, cables, ethernet, switches, leader, flows, origin };
            return Ok(Description::Several(list));
        }
    }
    Err(Diagnostics::new(source, report))
}

/// Returns whether a text lists hosts instead of describing one.
pub(crate) fn lists_hosts(table: &DeTable<'_>) -> bool {
    let has = |key: &&str| table.contains_key(*key);
    ["host", "cable", "network", "flow", "ethernet", "switch"].iter().any(has)
        && !table.contains_key("system")
}

fn origin(source: Source, declared: &Declared) -> HostsOrigin {
    let list = |host: &DeclaredHost| {
        host.depends.as_ref().map_or(&host.name.span, |list| &list.span).clone()
    };
    let slopes = |all: &[DeclaredCredit]| all.iter().map(|it| it.span.clone()).collect();
    HostsOrigin {
        source,
        hosts: declared.hosts.iter().map(|host| host.name.span.clone()).collect(),
        depends: declared.hosts.iter().map(list).collect(),
        cables: declared.cables.iter().map(|cable| cable.name.span.clone()).collect(),
        ethernet: declared.ethernet.iter().map(|link| link.name.span.clone()).collect(),
        leader: declared.network.leader.as_ref().map(|leader| leader.span.clone()),
        flows: declared.flows.iter().map(|flow| flow.name.span.clone()).collect(),
        credits: declared.switches.iter().map(|it| slopes(&it.credits)).collect(),
        wire_credits: declared.ethernet.iter().map(|it| slopes(&it.credits)).collect(),
    }
}

/// Returns the name of a file that the description in `file` names, seen from where `file` is seen.
fn beside(file: &str, name: &str) -> String {
    match file.rsplit_once('/') {
        Some((folder, _)) if !name.starts_with('/') => format!("{folder}/{name}"),
        _ => name.to_owned(),
    }
}

fn described(mut cores: Vec<System>) -> Description {
    match cores.len() {
        1 => Description::One(Box::new(cores.swap_remove(0))),
        _ => Description::Cores(cores),
    }
}

pub(crate) struct DeclaredHost {
    pub name: At<String>,
    system: At<String>,
    clock_hz: Option<u64>,
    pub depends: Option<NameList>,
    enable: Option<bool>,
    drift_ppm: i32,
}

struct DeclaredCable {
    name: At<String>,
    ends: Vec<At<String>>,
    ends_place: Span,
    delay_ns: u64,
    pulled: Vec<Pulled>,
}

pub(crate) struct Declared {
    pub hosts: Vec<DeclaredHost>,
    cables: Vec<DeclaredCable>,
    ethernet: Vec<DeclaredLink>,
    switches: Vec<DeclaredSwitch>,
    pub network: DeclaredNetwork,
    flows: Vec<DeclaredFlow>,
}

pub(crate) fn declarations(table: &Spanned<DeTable<'_>>, report: &mut Report) -> Declared {
    let raw = Raw { entries: table.get_ref(), place: 0..0 };
    let mut top = Table::new("a list of hosts", "list of hosts", raw, report);
    let (hosts, cables, of_all) = (top.list("host"), top.list("cable"), top.get("network"));
    let (flows, links, switches) = (top.list("flow"), top.list("ethernet"), top.list("switch"));
    top.report_unknown();
    let network = of_all.map_or_else(DeclaredNetwork::default, |it| network::read(it, report));
    let hosts: Vec<DeclaredHost> = hosts.into_iter().filter_map(|raw| host(raw, report)).collect();
    let cables: Vec<DeclaredCable> = cables.into_iter().map(|raw| cable(raw, report)).collect();
    let flows: Vec<DeclaredFlow> = flows.into_iter().map(|raw| flow::flow(raw, report)).collect();
    let ethernet: Vec<DeclaredLink> =
        links.into_iter().map(|raw| wires::link(raw, report)).collect();
    let switches: Vec<DeclaredSwitch> =
        switches.into_iter().map(|raw| wires::switch(raw, report)).collect();
    unique("host", hosts.iter().map(|host| &host.name), report);
    let joining = cables.iter().map(|cable| &cable.name);
    unique("cable", joining.chain(ethernet.iter().map(|link| &link.name)), report);
    unique("switch", switches.iter().map(|switch| &switch.name), report);
    unique("flow", flows.iter().map(|flow| &flow.name), report);
    if hosts.is_empty() && report.is_empty() {
        let help = "add `[[host]]` with `name = \"left\"` and `system = \"left.toml\"`";
        report.push(Problem::new(&(0..0), "there is no host", help));
    }
    if let Some(extra) = hosts.get(HOSTS_MAX) {
        let title = format!("{} hosts, the most is {HOSTS_MAX}", hosts.len());
        let help = format!("remove {} of them", hosts.len() - HOSTS_MAX);
        report.push(Problem::new(&extra.name.span, title, help));
    }
    Declared { hosts, cables, ethernet, switches, network, flows }
}

fn host(raw: Raw<'_>, report: &mut Report) -> Option<DeclaredHost> {
    let mut table = Table::new("[[host]]", "host", raw, report);
    let name = keys::name(&mut table);
    let system = table.text("system", "system = \"left.toml\"");
    table.needs("system", "add `system = \"left.toml\"`, the file that describes it");
    let (clock_hz, drift_ppm) = (keys::clock(&mut table), keys::drift(&mut table));
    let (depends, enable) = (network::list(&mut table), table.flag("enable"));
    table.report_unknown();
    system.map(|system| DeclaredHost { name, system, clock_hz, depends, enable, drift_ppm })
}

fn cable(raw: Raw<'_>, report: &mut Report) -> DeclaredCable {
    let mut table = Table::new("[[cable]]", "cable", raw, report);
    let name = keys::name(&mut table);
    let ends = table.texts("ends", EXAMPLE);
    let ends_place = table.get("ends").map_or_else(|| table.place(), Spanned::span);
    table.needs("ends", &format!("add `{EXAMPLE}`"));
    let delay = table.duration("delay", DELAYS);
    let pulled = pulled::pulled(&mut table);
    table.report_unknown();
    let delay_ns = delay.map_or(DELAY_DEFAULT, |delay| delay.value);
    DeclaredCable { name, ends, ends_place, delay_ns, pulled }
}

const EXAMPLE: &str = "ends = [\"left:xhci:1\", \"right:xhci:1\"]";

fn unique<'a>(noun: &str, names: impl Iterator<Item = &'a At<String>>, report: &mut Report) {
    let mut known: Vec<&At<String>> = Vec::new();
    for name in names {
        match known.iter().find(|other| other.value == name.value) {
            Some(first) => {
                let title = format!("two {noun}s are called `{}`", name.value);
                let problem = Problem::new(&name.span, title, "rename one of them");
                report.push(problem.with(&first.span, "the first"));
            }
            None => known.push(name),
        }
    }
}

/// Returns where every cable is plugged in; what cannot be is reported.
fn cables(declared: &Declared, hosts: &[HostSpec], report: &mut Report) -> Vec<Cable> {
    let mut cables = Vec::new();
    let mut taken: Vec<(End, &Span)> = Vec::new();
    for cable in &declared.cables {
        if cable.ends.len() != 2 {
            let count = match cable.ends.len() {
                1 => "1 end".to_owned(),
                count => format!("{count} ends"),
            };
            let title = format!("cable `{}` has {count}, and a cable has 2", cable.name.value);
            report.push(Problem::new(&cable.ends_place, title, format!("write `{EXAMPLE}`")));
            continue;
        }
        let mut ends = Vec::new();
        for text in &cable.ends {
            let Some(end) = end(text, hosts, report) else { continue };
            if let Some((_, first)) = taken.iter().find(|(other, _)| *other == end) {
                let (title, help) = match end.socket {
                    Socket::Port(port) => {
                        (format!("port {port} has two cables"), "give each a port of its own")
                    }
                    Socket::Debug => (
                        String::from("the debug capability has two cables"),
                        "a controller has one: make one of them a bridge, or turn it round",
                    ),
                };
                let problem = Problem::new(&text.span, title, help);
                report.push(problem.with(first, "the first"));
            }
            taken.push((end, &text.span));
            ends.push(end);
        }
        if let [one, other] = ends[..] {
            if (one.socket, other.socket) == (Socket::Debug, Socket::Debug) {
                let title = format!("cable `{}` has no port at either end", cable.name.value);
                let help = "a debug capability is a device for a port of another host";
                report.push(Problem::new(&cable.ends_place, title, help));
            }
            let (name, delay_ns) = (cable.name.value.clone(), cable.delay_ns);
            let pulled = cable.pulled.clone();
            cables.push(Cable { name, ends: [one, other], delay_ns, pulled });
        }
    }
    cables
}

fn end(text: &At<String>, hosts: &[HostSpec], report: &mut Report) -> Option<End> {
    let parts: Vec<&str> = text.value.split(':').collect();
    let &[host, device, port] = &parts[..] else {
        let title = format!("`{}` is not the end of a cable", text.value);
        let help = "write host, controller and port as in `\"left:xhci:1\"`";
        report.push(Problem::new(&text.span, title, help));
        return None;
    };
    let found = find_end(host, device, port, hosts);
    if let Err((title, help)) = &found {
        report.push(Problem::new(&text.span, title, help));
    }
    found.ok()
}

fn is_controller(device: &DeviceSpec) -> bool {
    matches!(device.location, Location::Pci(pci) if pci.class == XHCI)
}

fn find_end(
    host: &str,
    device: &str,
    port: &str,
    hosts: &[HostSpec],
) -> Result<End, (String, String)> {
    let suggested = |word: &str, known: Vec<&str>| match nearest(word, known.iter().copied()) {
        Some(near) => format!("did you mean `{near}`?"),
        None => format!("there is {}", known.join(", ")),
    };
    let Some(number) = hosts.iter().position(|known| known.name == host) else {
        let known = hosts.iter().map(|host| host.name.as_str()).collect();
        return Err((format!("no host is called `{host}`"), suggested(host, known)));
    };
    let HostSpec { system, file, .. } = &hosts[number];
    let mut controllers = system.devices.iter().filter(|it| is_controller(it));
    let Some(index) = system.devices.iter().position(|it| it.name == device && is_controller(it))
    else {
        let help = match controllers.next() {
            Some(first) => format!("did you mean `{}`?", first.name),
            None => format!("declare a `[[device]]` with `pci = \"0c0330\"` in `{file}`"),
        };
        return Err((format!("`{file}` has no USB controller called `{device}`"), help));
    };
    if port == DEBUG {
        return Ok(End { host: number, device: index, socket: Socket::Debug });
    }
    let Some(port) = port.parse().ok().filter(|port| PORTS.contains(port)) else {
        let (first, last) = (PORTS.start(), PORTS.end());
        let help = format!("write a number from {first} to {last}, or `{DEBUG}`");
        return Err((format!("a controller has no port `{port}`"), help));
    };
    let mut plugs = system.usb.iter().filter(|plug| plug.behind.is_none());
    if let Some(plug) = plugs.find(|plug| (plug.device, plug.port) == (index, port)) {
        let title = format!("port {port} of `{device}` has `{}` in it", plug.name);
        return Err((title, String::from("give each a port of its own")));
    }
    Ok(End { host: number, device: index, socket: Socket::Port(port) })
}
