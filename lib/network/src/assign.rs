//! The choice of debug cables for hosts that are to be joined: as few bridges as possible.
//!
//! A host with one capability is the target of one cable at most, so with n hosts n cables can be
//! debug cables. They form only with a leader that nothing but its circle points at; where no host
//! can be that, n − 1 is the most. `tests/chosen.rs` compares with every choice.

use crate::lists::Lists;
use crate::shapes::Pair;
use crate::topology::{Edge, Topology};
use alloc::vec::Vec;

/// Why no choice has fewer bridges.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Fewest {
    /// Every cable is a debug cable.
    NoBridge,
    /// Each host is the target of one cable at most, and there are fewer hosts than cables.
    Capabilities,
    /// As many debug cables as hosts need a leader with two cables, without which the others are
    /// still joined. There is none.
    NoLeader,
}

/// Debug cables and bridges for pairs of hosts.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Cabling {
    /// The cables, in the order of the pairs.
    pub topology: Topology,
    /// The dependency lists with which the network always forms.
    pub lists: Lists,
    /// The number of bridges among the cables.
    pub bridges: usize,
    /// Why there are no fewer.
    pub fewest: Fewest,
}

/// Chooses the cables for `pairs` of `hosts` hosts that each have one debug capability.
///
/// # Errors
/// A host that no way joins to host 0.
pub fn choose(hosts: usize, pairs: &[Pair]) -> Result<Cabling, usize> {
    let tree = towards(hosts, pairs, 0, None);
    if let Some(apart) = (1..hosts).find(|host| tree[*host].is_none()) {
        return Err(apart);
    }
    let circle = || (0..hosts).find_map(|leader| led(hosts, pairs, leader).map(|it| (leader, it)));
    let (leader, targets, fewest) = if pairs.len() < hosts {
        (None, tree, Fewest::NoBridge)
    } else {
        match circle() {
            Some((leader, targets)) => {
                let all = pairs.len() == hosts;
                let fewest = if all { Fewest::NoBridge } else { Fewest::Capabilities };
                (Some(leader), targets, fewest)
            }
            None => (None, tree, Fewest::NoLeader),
        }
    };
    let edge = |(number, pair): (usize, &Pair)| {
        let target = pair.iter().position(|host| targets[*host] == Some(number));
        match target {
            Some(end) => Edge::debug(pair[end], pair[1 - end]),
            None => Edge::bridge(pair[0], pair[1]),
        }
    };
    let edges = pairs.iter().enumerate().map(edge).collect();
    let topology = Topology { hosts, edges };
    let bridges = pairs.len() - topology.debug_cables().count();
    Ok(Cabling { lists: Lists::of(&topology, leader), topology, bridges, fewest })
}

/// Returns, of each host, the pair that leads it towards `root` by the fewest hops. No way leads
/// through the host `without`.
fn towards(
    hosts: usize,
    pairs: &[Pair],
    root: usize,
    without: Option<usize>,
) -> Vec<Option<usize>> {
    let mut found = alloc::vec![None; hosts];
    let mut reached = alloc::vec![root];
    while !reached.is_empty() {
        let mut next = Vec::new();
        for parent in reached {
            for (number, pair) in pairs.iter().enumerate() {
                let Some(end) = pair.iter().position(|host| *host == parent) else { continue };
                let child = pair[1 - end];
                if child != root && Some(child) != without && found[child].is_none() {
                    found[child] = Some(number);
                    next.push(child);
                }
            }
        }
        reached = next;
    }
    found
}

/// Returns, of each host, the cable whose target it is, in a circle led by `leader` with all others
/// behind it; `None` if the leader cannot lead one.
fn led(hosts: usize, pairs: &[Pair], leader: usize) -> Option<Vec<Option<usize>>> {
    let own: Vec<usize> = (0..pairs.len()).filter(|pair| pairs[*pair].contains(&leader)).collect();
    let [first, .., last] = own[..] else { return None };
    let before = pairs[last].iter().copied().find(|host| *host != leader)?;
    let mut targets = towards(hosts, pairs, before, Some(leader));
    let joined = |host: usize| host == leader || host == before || targets[host].is_some();
    if !(0..hosts).all(joined) {
        return None;
    }
    targets[before] = Some(last);
    targets[leader] = Some(first);
    Some(targets)
}

/// A choice of the host that is the device of each cable.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Orientation {
    /// The host of each pair that is the device; `None`: a bridge is needed.
    pub devices: Vec<Option<usize>>,
    /// Hosts with more cables among them than they can be devices of; empty if no bridge is needed.
    pub crowd: Vec<usize>,
    /// The number of cables among the hosts of the crowd.
    pub crowded: usize,
}

/// Finds a device for as many pairs as possible, where each host is the device of `each` at most.
///
/// It says nothing of the order in which the links form.
#[must_use]
pub fn orient(hosts: usize, pairs: &[Pair], each: usize) -> Orientation {
    let mut devices: Vec<Option<usize>> = alloc::vec![None; pairs.len()];
    let mut crowd = alloc::vec![false; hosts];
    for pair in 0..pairs.len() {
        let mut seen = alloc::vec![false; hosts];
        if !place(pair, pairs, each, &mut devices, &mut seen) {
            // Every host seen is full, and every cable that fills one lies among them.
            seen.iter().zip(&mut crowd).for_each(|(seen, crowd)| *crowd |= *seen);
        }
    }
    let within = |pair: &&Pair| pair.iter().all(|host| crowd[*host]);
    let crowded = pairs.iter().filter(within).count();
    Orientation { devices, crowd: (0..hosts).filter(|host| crowd[*host]).collect(), crowded }
}

/// Makes an end of a pair its device, by moving others if need be.
fn place(
    pair: usize,
    pairs: &[Pair],
    each: usize,
    devices: &mut [Option<usize>],
    seen: &mut [bool],
) -> bool {
    for host in pairs[pair] {
        if core::mem::replace(&mut seen[host], true) {
            continue;
        }
        let own: Vec<usize> =
            (0..pairs.len()).filter(|other| devices[*other] == Some(host)).collect();
        if own.len() < each || own.into_iter().any(|it| place(it, pairs, each, devices, seen)) {
            devices[pair] = Some(host);
            return true;
        }
    }
    false
}
