//! `diapason run` for a list of hosts: each host boots the real kernel in a QEMU of its own, and
//! bridge cables, wires and switches join them.
//!
//! All guests stand still together at every slice of virtual time, until the models at their ports
//! and in the cables have caught up. So two runs are equal to the byte, however busy the computer
//! is. A cable is the model that the simulator has, and both of its ends are in this process. So
//! are the wires of Ethernet and the switches.

mod machines;
mod wires;

use crate::commands::{Addition, RunRequest};
use crate::cores::share_kernel_in;
use crate::describe::refused;
use crate::failure::Failure;
use crate::formats::RunFormat;
use crate::interrupt;
use crate::outcome::NetworkRow;
use crate::output::tell;
use crate::plan::{NetworkPlan, cleared_network};
use crate::plugged::{self, PORTS_MAX};
use crate::qemu;
use crate::session::Session;
use crate::several::{AllParts, Several, live_parts, refuse_format, report};
use crate::tools::QEMU;
use crate::workspace::Workspace;
use diapason_abi::Nanos;
use diapason_contract::settings::{LINKS, PROGRAM};
use diapason_redir::WIRES_MAX;
use diapason_system::{
    Flow, FlowHop, FlowWay, Hosts, HostsPlace, RunOptions, Socket, System, UsbPlug, WireEnd,
};
pub use machines::{HostRuns, boot};
use std::iter;

/// Most hosts that run together: each needs a QEMU, whose processor is a thread of the computer.
const HOSTS_MAX: usize = 8;

/// How often hosts with nothing but cables wait for each other: a microframe. The shorter it is,
/// the less a run adds to the time of a cable.
pub const SLICE: Nanos = Nanos::from_micros(125);

/// Boots the hosts of a list together and reports on each.
///
/// # Errors
/// If QEMU cannot have such hosts or cables, or there was no run to report on.
pub fn run(request: &RunRequest, mut list: Hosts) -> Result<u8, Failure> {
    refuse_format(&request.system, request.format)?;
    let network = instruct(&mut list)?;
    cleared_network(&network, request.length.unproved())?;
    let (judgeable, slice) = (Judgeable::of(&list), slice(&list));
    let several = Several::hosts(list, &network);
    let of_one = [
        (request.record.is_some(), "--record"),
        (request.captures.can_server.is_some(), "--can-server"),
    ];
    several.refuse(&request.system, &of_one)?;
    let workspace = Workspace::find()?;
    QEMU.require(request.missing)?;
    let options =
        RunOptions { horizon_ns: request.length.horizon_ns, record_bytes: 0, watch: request.watch };
    let unproved = request.length.unproved();
    let (mut sessions, joined) =
        several.assemble(&workspace, &request.system, options, unproved)?;
    for (part, (_, session)) in sessions.iter_mut().enumerate() {
        session.slice = slice;
        session.hardware.iommu = request.iommu;
        judgeable.limit(part, session);
    }
    let systems: Vec<&System> = sessions.iter().map(|(_, session)| &session.system).collect();
    for (host, crew) in joined.crews(&systems).into_iter().enumerate() {
        let captures = request.captures.clone().within(&joined.folder(&sessions[host].0));
        crew.iter().for_each(|part| sessions[*part].1.captures = captures.clone());
        share_kernel_in(&workspace, &mut sessions, &crew)?;
    }
    interrupt::await_signals()?;
    let json = RunFormat::of(request.json, request.format).is_for_programs();
    let mut observers = live_parts(&sessions, &joined, json);
    let parts: Vec<_> = sessions.iter().map(|(_, session)| session).collect();
    let HostRuns { mut runs, consoles, served, frames, wires, refused } =
        boot(&workspace, &parts, joined.joints(), &mut |host, line| observers[host](line))?;
    for (run, (_, session)) in runs.iter_mut().zip(&sessions) {
        NetworkRow::call_all(&mut run.outcome.network, &session.system.neighbours);
    }
    for ((name, _), console) in sessions.iter().zip(consoles) {
        tell(&format!("console {console:016x} of {name}"));
    }
    tell(&format!("USB devices {served:016x}"));
    let switches = wires.report(&joined, &sessions);
    if switches.is_some() {
        tell(&format!("frames {frames:016x}"));
    }
    for ((name, _), refused) in sessions.iter().zip(refused).filter(|(_, refused)| *refused > 0) {
        tell(&format!("{refused} frames found no adapter of {name} that was ready for them"));
    }
    let about = AllParts {
        noun: joined.noun(),
        switches: switches.as_ref(),
        times: Vec::new(),
        each: Vec::new(),
        addition: Addition::default(),
    };
    report(json, &sessions, &runs, about)
}

/// Checks that QEMU can have these hosts and cables, and tells the servers of each host their part
/// of the plan of the network.
///
/// # Errors
/// Names the first host or cable that QEMU cannot have.
pub fn instruct(list: &mut Hosts) -> Result<NetworkPlan, Failure> {
    check(list)?;
    let network = NetworkPlan::of(list);
    network.instruct(list);
    list.hosts.iter_mut().for_each(|host| renumber(&mut host.system));
    Ok(network)
}

/// Returns how often the hosts of a list wait for each other. QEMU's controllers do not moderate
/// interrupts. So hosts with other devices than cables stop as seldom as one host does alone, and
/// the devices' data come together.
#[must_use]
pub fn slice(list: &Hosts) -> Nanos {
    let has_devices = list.hosts.iter().any(|host| !host.system.usb.is_empty());
    if has_devices { plugged::SLICE } else { SLICE }
}

/// Writes root ports as QEMU's controllers count them. A description counts the ports of USB 2
/// first, QEMU those of SuperSpeed.
fn renumber(system: &mut System) {
    let other = |port: u8| match port {
        0 => 0,
        1..=PORTS_MAX => port + PORTS_MAX,
        _ => port - PORTS_MAX,
    };
    let ends = system.neighbours.links.iter_mut().filter_map(|end| end.port.as_mut());
    ends.for_each(|port| *port = other(*port));
    for process in system.processes.iter_mut().filter(|process| process.program == PROGRAM) {
        let ports = process.setting(LINKS).iter();
        // A checked description has ports of a controller: 30 at most.
        let ports: Vec<u64> = ports.map(|port| other(*port as u8).into()).collect();
        if !ports.is_empty() {
            process.set(LINKS, &ports);
        }
    }
}

/// Refuses what QEMU does not have, with its place in the list.
///
/// # Errors
/// Names the first host or cable that cannot be had.
fn check(list: &Hosts) -> Result<(), Failure> {
    let wrong = |place, texts: [&str; 3]| Err(refused(&list.problem(place, texts)));
    if list.hosts.len() > HOSTS_MAX {
        let title = format!("{} hosts, and `run` boots {HOSTS_MAX} at most", list.hosts.len());
        let help = "start the list with `diapason sim`";
        return wrong(HostsPlace::Host(HOSTS_MAX), [&title, "each host needs a QEMU", help]);
    }
    for (number, host) in list.hosts.iter().enumerate() {
        let cores = || iter::once(&host.system).chain(&host.others);
        let adapters = cores().map(qemu::adapters).max().unwrap_or(0);
        if adapters > WIRES_MAX {
            let title = format!("`{}` needs a machine with {adapters} adapters", host.name);
            let note = format!("a host of a list has {WIRES_MAX} at most in QEMU");
            let help = "lower the `instance` of its devices, or run this host alone";
            return wrong(HostsPlace::Host(number), [&title, &note, help]);
        }
        let acts_alone = |plug: &&UsbPlug| plug.only_in_qemu();
        if let Some(plug) = cores().flat_map(|core| &core.usb).find(acts_alone) {
            let title = format!("`{}` of `{}` does not keep step", plug.name, host.name);
            let note = format!("`{}` acts in the computer's own time", plug.word());
            let help = "plug in a model, or run this host alone";
            return wrong(HostsPlace::Host(number), [&title, &note, help]);
        }
    }
    if let Some(number) = list.ethernet.iter().position(|link| link.time.is_some()) {
        let title = format!("QEMU cannot have the common time of `{}`", list.ethernet[number].name);
        let note = "the clocks of its adapters stand still";
        let help = "start the list with `diapason sim`";
        return wrong(HostsPlace::Ethernet(number), [&title, note, help]);
    }
    for (number, cable) in list.cables.iter().enumerate() {
        let place = HostsPlace::Cable(number);
        if cable.ends.iter().any(|end| end.socket == Socket::Debug) {
            let title = format!("QEMU cannot have the debug cable `{}`", cable.name);
            let note = "the controllers that QEMU has have no debug capability";
            let help = "start the list with `diapason sim`, or make the cable a bridge";
            return wrong(place, [&title, note, help]);
        }
        for end in &cable.ends {
            let host = &list.hosts[end.host];
            if plugged::first_controller(&host.system) != Some(end.device) {
                let title = format!("cable `{}` ends at no first controller", cable.name);
                let note =
                    format!("in QEMU, only the first controller of `{}` has ports", host.name);
                let help = "move the cable there, or start the list with `diapason sim`";
                return wrong(place, [&title, &note, help]);
            }
        }
    }
    Ok(())
}

/// The promises that a run on machines can judge: every host has a clock of its own.
pub struct Judgeable {
    /// The flows that end where they begin or pass nothing but Ethernet, and how many cables each
    /// crosses at most. A program measures the delay of datagrams against the shortest, so it needs
    /// no clock but its own.
    flows: Vec<(String, u64)>,
    /// The adapters with gates, each with its host. Only the host's own clock tells when they open.
    gates: Vec<(usize, String)>,
}

impl Judgeable {
    /// Returns those of a list.
    #[must_use]
    pub fn of(list: &Hosts) -> Judgeable {
        let is_by_sockets = |hop: &FlowHop| matches!(hop.way, FlowWay::Sockets { .. });
        let can_be =
            |flow: &&Flow| flow.from.host == flow.end().host || flow.hops.iter().all(is_by_sockets);
        let flow = |flow: &Flow| (flow.name.clone(), flow.most_cables());
        let flows = list.flows.iter().filter(can_be).map(flow).collect();
        let gates = list.ethernet.iter().flat_map(|wire| &wire.gates);
        let gates = gates.filter_map(|gates| match gates.end {
            WireEnd::Adapter { host, .. } => Some((host, gates.end.name(list))),
            WireEnd::Port { .. } => None,
        });
        Judgeable { flows, gates: gates.collect() }
    }

    /// Keeps the promises of this host, or of another core of one, that the run can judge, and
    /// notes the others.
    pub fn limit(&self, part: usize, session: &mut Session) {
        let cables = |name: &str| self.flows.iter().find(|(seen, _)| seen == name);
        let (seen, unseen): (Vec<_>, Vec<_>) =
            session.flows.drain(..).partition(|flow| cables(&flow.name).is_some());
        session.flows = seen;
        for flow in &mut session.flows {
            flow.crossings = cables(&flow.name).map_or(0, |(_, cables)| *cables);
        }
        let of = |name: &str| format!("flow {name}: the clocks of its two hosts are not one");
        session.unseen = unseen.iter().map(|flow| of(&flow.name)).collect();
        let own = self.gates.iter().filter(|(whose, _)| *whose == part);
        let of = |(_, end): &(usize, String)| {
            format!("gates of {end}: only the clock of their host tells when they open")
        };
        session.unseen.extend(own.map(of));
        session.unseen.extend(qemu::unseen(&session.system));
        session.unspaced = true;
    }
}
