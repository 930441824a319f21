//! Reasons why hosts that follow their lists may not form the network of their cables.
//!
//! The judgement is exact for hosts that enumerate whatever they find at a passive cable, once:
//! there is a flaw if and only if some order of events ends in another network. `tests/explored.rs`
//! compares it with every order of events.

use crate::lists::Lists;
use crate::order::{Occurrence, Order};
use crate::topology::{Jack, Topology};
use alloc::vec::Vec;

/// A reason why the wanted network may not form.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Flaw {
    /// One debug capability would have to be the device of two hosts.
    TwoHosts {
        /// The controller with the capability.
        target: Jack,
        /// The numbers of its first two cables.
        cables: [usize; 2],
    },
    /// The target of a debug cable never enables its capability.
    NeverEnabled {
        /// The number of the cable.
        cable: usize,
    },
    /// A host waits for one that is not its debug target, or not enough.
    Stranger {
        /// The host that waits.
        host: usize,
        /// The host that it waits for.
        awaits: usize,
    },
    /// Hosts wait for each other in a circle without a leader.
    Circle {
        /// The hosts: each waits for the next, and the last for the first.
        hosts: Vec<usize>,
    },
    /// A debug host may enumerate before its target enables, because it does not wait for it.
    Missed {
        /// The number of the cable.
        cable: usize,
    },
    /// Another host may enumerate the capability first.
    Taken {
        /// The controller with the capability.
        target: Jack,
        /// The number of the cable over which the other host takes it.
        cable: usize,
        /// The host that may take it.
        by: usize,
    },
}

/// Returns every reason why hosts that follow `lists` may not form `topology`.
#[must_use]
pub fn flaws(topology: &Topology, lists: &Lists) -> Vec<Flaw> {
    let mut found = two_hosts(topology);
    for (cable, target, _) in topology.debug_cables() {
        if !lists.enables[target.host] {
            found.push(Flaw::NeverEnabled { cable });
        }
    }
    for (host, awaits) in lists.awaits.iter().enumerate() {
        let is_target = |other: usize| {
            let mut cables = topology.debug_cables();
            cables.any(|(_, target, to)| (target.host, to.host) == (other, host))
        };
        let strangers = awaits.iter().filter(|other| !is_target(**other));
        found.extend(strangers.map(|other| Flaw::Stranger { host, awaits: *other }));
    }
    if !found.is_empty() {
        return found;
    }
    let order = Order::of(lists);
    if let Some(hosts) = order.circle() {
        return alloc::vec![Flaw::Circle { hosts }];
    }
    for (cable, target, host) in topology.debug_cables() {
        let early = (Occurrence::enumerate(host.host), Occurrence::enable(target.host));
        if order.allows(&[early]) {
            found.push(Flaw::Missed { cable });
        }
    }
    for host in (0..topology.hosts).filter(|host| lists.enables[*host]) {
        for target in topology.capabilities(host) {
            found.extend(thieves(topology, lists, &order, target));
        }
    }
    found
}

/// Returns the capabilities with two hosts.
fn two_hosts(topology: &Topology) -> Vec<Flaw> {
    let mut found: Vec<Flaw> = Vec::new();
    let cables: Vec<(usize, Jack, Jack)> = topology.debug_cables().collect();
    for (place, (second, target, _)) in cables.iter().enumerate() {
        let same: Vec<usize> =
            cables[..place].iter().filter(|it| it.1 == *target).map(|it| it.0).collect();
        if let [first] = same[..] {
            found.push(Flaw::TwoHosts { target: *target, cables: [first, *second] });
        }
    }
    found
}

/// Returns how hosts other than the wanted one may take the capability `target`.
fn thieves(topology: &Topology, lists: &Lists, order: &Order, target: Jack) -> Vec<Flaw> {
    let own = topology.debug_cables().find(|(_, jack, _)| *jack == target);
    let enable = Occurrence::enable(target.host);
    let mut found = Vec::new();
    for (cable, edge) in topology.edges.iter().enumerate() {
        let Some(thief) = edge.passive_from(target) else { continue };
        if own.is_some_and(|(number, ..)| number == cable) {
            continue;
        }
        let enumerate = Occurrence::enumerate(thief.host);
        let mut pairs = alloc::vec![(enable, enumerate)];
        // Of two passive cables to its own host, the capability may come up at either.
        let rival = own.map(|(_, _, host)| host.host).filter(|host| *host != thief.host);
        pairs.extend(rival.map(|host| (enumerate, Occurrence::enumerate(host))));
        // The cable is in use, and safe, once this host has taken the thief's capability by it.
        let is_free = if lists.enables[thief.host] && edge.roles().is_some_and(|it| it.0 == thief) {
            let taken = Occurrence::enumerate(target.host);
            let before = [(enumerate, taken), (taken, Occurrence::enable(thief.host))];
            before.iter().any(|pair| order.allows(&[&pairs[..], &[*pair]].concat()))
        } else {
            order.allows(&pairs)
        };
        if is_free {
            found.push(Flaw::Taken { target, cable, by: thief.host });
        }
    }
    found
}
