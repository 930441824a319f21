//! The wires and switches of a list of hosts, and what passed them in a run.

use super::switches::SwitchReport;
use crate::failure::Failure;
use crate::plan::NetworkPlan;
use crate::several::{Joined, Joints, Named, class};
use diapason_abi::Nanos;
use diapason_contract::release::ReleaseTerms;
use diapason_devices::faulty::OwnClock;
use diapason_plan::GateStep;
use diapason_sim::{
    EthernetBooks, EthernetJack, EthernetNetwork, GatedBooks, StepSpan, SwitchSpec,
};
use diapason_system::{EthernetLink, FlowWay, Hosts, Switch, System, WireEnd};
use diapason_tsn::LinkRate;
use std::collections::BTreeMap;

/// Devices of a host, at most.
const DEVICES: usize = 1 << 16;

/// The traffic between the adapters of hosts.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct WireBooks {
    books: EthernetBooks,
    /// The frames that adapters with gates sent.
    pub(super) gated: Vec<GatedBooks>,
    /// Frames that were lost in each wire.
    lost: Vec<u64>,
}

impl WireBooks {
    /// Returns what passed a network so far.
    pub(crate) fn of(network: &EthernetNetwork) -> WireBooks {
        WireBooks { books: network.books(), gated: network.gated(), lost: network.lost() }
    }

    /// Returns what passed the switches and wires between hosts, if there are any.
    pub(crate) fn report(&self, joined: &Joined, sessions: &[Named]) -> Option<SwitchReport> {
        let Joined::By(joints) = joined else { return None };
        let name = |card| {
            let (host, device) = place(card);
            let (name, session) = &sessions[host];
            format!("{name}:{}", session.system.devices[device].name)
        };
        let gated: Vec<_> = self.gated.iter().map(|books| (name(books.card), books)).collect();
        let report = || SwitchReport::of(joints, &self.books, &self.lost).with_gates(&gated);
        (!joints.ethernet.is_empty()).then(report)
    }
}

/// Returns the number by which a network knows the adapter that is this device of a host.
pub(crate) const fn card(host: usize, device: usize) -> usize {
    host * DEVICES + device
}

/// Returns that number of an adapter at a wire, which is a card.
fn card_of(systems: &[&System], host: usize, adapter: usize) -> usize {
    let device = systems[host].adapters[adapter].card();
    // Only cards have wires.
    card(host, device.unwrap_or(DEVICES - 1))
}

/// Returns the host, and the device there, of the adapter with this number.
pub(super) const fn place(card: usize) -> (usize, usize) {
    (card / DEVICES, card % DEVICES)
}

/// Returns the network that the wires and switches of a list make.
pub(crate) fn network(joints: &Joints, systems: &[&System]) -> Result<EthernetNetwork, Failure> {
    let specs = (0..joints.switches.len()).map(|number| spec(joints, systems, number));
    // A checked description has gates and credit that ports can follow.
    let network = EthernetNetwork::new(specs.collect());
    let network = network.map_err(|refusal| Failure::Ours(refusal.to_string()))?;
    for link in &joints.ethernet {
        let jacks = link.ends.map(|end| match end {
            WireEnd::Adapter { host, adapter } => {
                EthernetJack::Card(card_of(systems, host, adapter))
            }
            WireEnd::Port { switch, port } => EthernetJack::Port { switch, port },
        });
        network.join(jacks, link.speed, Nanos(link.delay_ns));
        let times = link.pulled.iter().map(|it| [Nanos(it.at_ns), Nanos(it.end_ns())]);
        network.pull(times.collect());
        for gates in &link.gates {
            if let WireEnd::Adapter { host, adapter } = gates.end {
                let time = joints.times.iter().find_map(|it| it.at(&link.name));
                let time = time.map(|(leads, error)| (joints.world(leads), error));
                let number = card_of(systems, host, adapter);
                let books = GatedBooks::new(number, gates.list.clone(), time);
                let own = joints.steps.iter().filter(|(end, _)| *end == gates.end);
                network.gate(books.in_step(own.map(|(_, span)| *span).collect()));
            }
        }
    }
    Ok(network)
}

/// Returns when frames of each flow in step have left their adapter.
#[must_use]
pub fn steps(list: &Hosts, network: &NetworkPlan) -> Vec<(WireEnd, StepSpan)> {
    let each = list.flows.iter().zip(&network.flows);
    let span = each.filter_map(|(flow, flowed)| {
        let GateStep { terms, done_ns } = flowed.bill.as_ref().ok()?.step?;
        let FlowWay::Sockets { from, .. } = flow.hops.first()?.way else { return None };
        let host = flow.from.host;
        let end = WireEnd::Adapter { host, adapter: list.hosts[host].system.sockets[from].adapter };
        let ReleaseTerms { first_ns, period_ns, early_ns, .. } = terms;
        let from = (first_ns % period_ns + period_ns - early_ns) % period_ns;
        let [period, from, length] = [period_ns, from, early_ns + done_ns?].map(Nanos);
        Some((end, StepSpan { class: class(list, flow), period, from, length }))
    });
    span.collect()
}

fn spec(joints: &Joints, systems: &[&System], number: usize) -> SwitchSpec {
    let Switch { ports, latency_ns, drift_ppm, room, .. } = joints.switches[number];
    let port = |port: usize| {
        let here = WireEnd::Port { switch: number, port };
        let link = joints.ethernet.iter().find(|link| link.ends.contains(&here));
        let rate = LinkRate::new(link.map_or(1_000, |link| link.speed) * 1_000_000);
        (joints.switches[number].gates(port), rate, joints.switches[number].shaping(port))
    };
    let ways = (0..ports).flat_map(|port| {
        let behind = behind(&joints.ethernet, WireEnd::Port { switch: number, port });
        behind.into_iter().map(move |(host, adapter)| (systems[host].adapters[adapter].mac, port))
    });
    let ways: BTreeMap<[u8; 6], usize> = ways.collect();
    let room = usize::try_from(room).unwrap_or(usize::MAX);
    let (latency, world) = (Nanos(latency_ns), OwnClock::world(drift_ppm));
    SwitchSpec { latency, world, room, ports: (0..ports).map(port).collect(), ways }
}

/// Returns the adapters that are reached by leaving a switch at a port. Wires form no circle.
fn behind(links: &[EthernetLink], port: WireEnd) -> Vec<(usize, usize)> {
    let far = links.iter().find_map(|link| match link.ends {
        [one, other] if one == port => Some(other),
        [other, one] if one == port => Some(other),
        _ => None,
    });
    match far {
        None => Vec::new(),
        Some(WireEnd::Adapter { host, adapter }) => vec![(host, adapter)],
        Some(WireEnd::Port { switch, port: entry }) => {
            let ends = links.iter().flat_map(|link| link.ends);
            let others = ends.filter(|end| match *end {
                WireEnd::Port { switch: own, port } => own == switch && port != entry,
                WireEnd::Adapter { .. } => false,
            });
            others.flat_map(|end| behind(links, end)).collect()
        }
    }
}
