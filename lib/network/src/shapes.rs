//! Common shapes of networks: the pairs of hosts that a cable joins.

use alloc::vec::Vec;

/// Two hosts that a cable joins.
pub type Pair = [usize; 2];

/// Returns the pairs of a line of `hosts` hosts.
#[must_use]
pub fn line(hosts: usize) -> Vec<Pair> {
    (1..hosts).map(|host| [host - 1, host]).collect()
}

/// Returns the pairs of a ring of `hosts` hosts; of fewer than three, those of a line.
#[must_use]
pub fn ring(hosts: usize) -> Vec<Pair> {
    let closing = (hosts > 2).then(|| [hosts - 1, 0]);
    line(hosts).into_iter().chain(closing).collect()
}

/// Returns the pairs of a star: host 0, and `leaves` hosts around it.
#[must_use]
pub fn star(leaves: usize) -> Vec<Pair> {
    (1..=leaves).map(|leaf| [leaf, 0]).collect()
}

/// Returns the pairs of a tree of `hosts` hosts in which each has `children` children at most.
#[must_use]
pub fn tree(hosts: usize, children: usize) -> Vec<Pair> {
    (1..hosts).map(|host| [host, (host - 1) / children.max(1)]).collect()
}

/// Returns the pairs of a hypercube: 2^`dimensions` hosts, each joined to those whose number
/// differs from its own in one bit.
#[must_use]
pub fn hypercube(dimensions: u32) -> Vec<Pair> {
    let hosts = 1usize << dimensions;
    let higher = |host: usize| {
        let bits = (0..dimensions).map(move |bit| host | 1 << bit);
        bits.filter(move |other| *other != host).map(move |other| [host, other])
    };
    (0..hosts).flat_map(higher).collect()
}
