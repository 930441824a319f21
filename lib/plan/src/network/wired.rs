//! The ways of frames through wires and switches: which ports a socket's frames leave by, and which
//! sockets may send there without a flow that bounds them.

use diapason_ether::{IPV4_HEAD, UDP_HEAD};
use diapason_system::{AdapterGates, EthernetLink, Flow, FlowWay, Hosts, UdpPort, WireEnd};
use diapason_tsn::{LinkRate, wire_bytes};

/// A socket of a host, by their numbers.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) struct Sender {
    pub host: usize,
    pub socket: usize,
}

impl Sender {
    /// Returns the socket by which a flow over Ethernet is sent, and the one that takes it.
    pub fn ends(flow: &Flow) -> Option<[Sender; 2]> {
        let hop = flow.hops.first()?;
        let FlowWay::Sockets { from, to } = hop.way else { return None };
        let from = Sender { host: flow.from.host, socket: from };
        Some([from, Sender { host: hop.to.host, socket: to }])
    }

    /// Returns the socket in the description of its host.
    pub fn port(self, hosts: &Hosts) -> &UdpPort {
        &hosts.hosts[self.host].system.sockets[self.socket]
    }

    /// Returns the end of a wire at its adapter.
    pub fn end(self, hosts: &Hosts) -> WireEnd {
        WireEnd::Adapter { host: self.host, adapter: self.port(hosts).adapter }
    }

    /// Returns the traffic class of its frames in switches.
    pub fn class(self, hosts: &Hosts) -> usize {
        self.port(hosts).priority.unwrap_or(0).into()
    }

    /// Returns how it is called in messages.
    pub fn name(self, hosts: &Hosts) -> String {
        format!("{}:{}", hosts.hosts[self.host].name, self.port(hosts).name)
    }
}

/// Returns the wire at an end, and its other end.
fn far(hosts: &Hosts, end: WireEnd) -> Option<(&EthernetLink, WireEnd)> {
    hosts.ethernet.iter().find_map(|link| match link.ends {
        [one, other] if one == end => Some((link, other)),
        [other, one] if one == end => Some((link, other)),
        _ => None,
    })
}

/// Returns the wire at an end that has one.
pub(super) fn link(hosts: &Hosts, end: WireEnd) -> Option<&EthernetLink> {
    far(hosts, end).map(|(link, _)| link)
}

/// Returns the gates of the adapter at an end.
pub(super) fn gates(hosts: &Hosts, end: WireEnd) -> Option<&AdapterGates> {
    link(hosts, end)?.gates(end)
}

/// Returns the ends that frames leave by on their way from an adapter: its own, and a port of each
/// switch. `to` is the adapter they go to; without one, they go to all. Frames go out by every port
/// from which `to` is reached.
pub(super) fn ways(hosts: &Hosts, from: WireEnd, to: Option<WireEnd>) -> Vec<WireEnd> {
    let mut found = Vec::new();
    leaves(hosts, from, to, &mut found);
    found
}

/// Follows frames out of an end. Returns whether they reach `to`, and adds the ends on the way, the
/// first in front.
fn leaves(hosts: &Hosts, from: WireEnd, to: Option<WireEnd>, found: &mut Vec<WireEnd>) -> bool {
    let Some((_, there)) = far(hosts, from) else { return false };
    let place = found.len();
    let reached = match there {
        WireEnd::Adapter { .. } => to.is_none_or(|to| to == there),
        WireEnd::Port { switch, port } => {
            let ports = (0..hosts.switches[switch].ports).filter(|other| *other != port);
            let onward = ports.map(|port| leaves(hosts, WireEnd::Port { switch, port }, to, found));
            onward.fold(false, |any, reached| any | reached)
        }
    };
    if reached {
        found.insert(place, from);
    }
    reached
}

/// Returns the adapter with this address on the wires of the list.
fn addressed(hosts: &Hosts, mac: [u8; 6]) -> Option<WireEnd> {
    let mut ends = hosts.ethernet.iter().flat_map(|link| link.ends);
    ends.find(|end| match *end {
        WireEnd::Adapter { host, adapter } => hosts.hosts[host].system.adapters[adapter].mac == mac,
        WireEnd::Port { .. } => false,
    })
}

/// A socket that may send and that no flow bounds, and the ends that its frames may leave by.
pub(super) struct Stranger {
    pub sender: Sender,
    pub class: usize,
    pub ways: Vec<WireEnd>,
}

/// Returns all sockets on the wires of the list that may send and that no flow bounds.
pub(super) fn strangers(hosts: &Hosts) -> Vec<Stranger> {
    let declared: Vec<Sender> =
        hosts.flows.iter().filter_map(Sender::ends).map(|[from, _]| from).collect();
    let all = hosts.hosts.iter().enumerate().flat_map(|(host, it)| {
        (0..it.system.sockets.len()).map(move |socket| Sender { host, socket })
    });
    let stranger = |sender: Sender| {
        let port = sender.port(hosts);
        let from = sender.end(hosts);
        if declared.contains(&sender) || !port.sends() {
            return None;
        }
        let ways = match port.peer {
            // Frames of the rest go wherever their program says.
            None => ways(hosts, from, None),
            Some(peer) if peer.mac[0] & 1 == 1 => ways(hosts, from, None),
            // At least its own wire carries what no switch passes on.
            Some(peer) => match addressed(hosts, peer.mac) {
                Some(to) => ways(hosts, from, Some(to)),
                None => vec![from],
            },
        };
        Some(Stranger { sender, class: sender.class(hosts), ways })
    };
    all.filter_map(stranger).collect()
}

/// Returns the time that a datagram with so much payload occupies a wire, in ns.
pub(super) fn occupies(link: &EthernetLink, payload: u64, tagged: bool) -> u64 {
    on_wire(link, payload + (IPV4_HEAD + UDP_HEAD) as u64, tagged)
}

/// Returns the time that a frame with a packet of so many bytes occupies a wire, in ns.
pub(super) fn on_wire(link: &EthernetLink, packet: u64, tagged: bool) -> u64 {
    const LONGEST: u64 = 1_500;
    let bytes = wire_bytes(packet.min(LONGEST), tagged).unwrap_or(u64::MAX);
    LinkRate::new(link.speed * 1_000_000).time_ns(bytes)
}

/// Returns the time of the longest frame on a wire, in ns.
pub(super) fn longest(link: &EthernetLink) -> u64 {
    occupies(link, u64::MAX / 2, true)
}
