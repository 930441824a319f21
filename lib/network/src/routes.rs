//! Routes by destination, and whether messages that wait for each other can come to a stop.
//!
//! A message holds the buffer of the cable it came over until the next one has room. If no circle
//! of cables exists in which each is followed by the next on some route, that never stops
//! (Dally and Seitz).

use crate::topology::Topology;
use alloc::vec::Vec;

/// A cable in the direction away from a host.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Leg {
    /// The number of the cable.
    pub cable: usize,
    /// The host that sends.
    pub from: usize,
}

/// The table of each host: by destination, the cable that a message takes next.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Routes {
    hosts: usize,
    /// By host and destination: the cable, and the host at its far end.
    next: Vec<Option<(usize, usize)>>,
}

impl Routes {
    fn by(topology: &Topology, mut choose: impl FnMut(usize, usize) -> Option<usize>) -> Routes {
        let hosts = topology.hosts;
        let mut next = Vec::with_capacity(hosts * hosts);
        for host in 0..hosts {
            for to in 0..hosts {
                let cable = if host == to { None } else { choose(host, to) };
                next.push(cable.and_then(|cable| {
                    let mut cables = topology.neighbours(host);
                    cables.find(|(number, _)| *number == cable)
                }));
            }
        }
        Routes { hosts, next }
    }

    /// Returns routes with the fewest hops; of several, by the first cable. Only hosts for which
    /// `forwards` is true pass messages on.
    #[must_use]
    pub fn shortest(topology: &Topology, forwards: impl Fn(usize) -> bool) -> Routes {
        let distances: Vec<Vec<Option<usize>>> =
            (0..topology.hosts).map(|to| topology.distances(to, &forwards)).collect();
        Routes::by(topology, |host, to| {
            let hops = distances[to][host]?;
            let nearer = |other: usize| distances[to][other].is_some_and(|it| it + 1 == hops);
            let passes = |other: usize| other == to || forwards(other);
            let mut cables = topology.neighbours(host);
            cables.find(|(_, other)| nearer(*other) && passes(*other)).map(|(cable, _)| cable)
        })
    }

    /// Returns the routes of a hypercube that correct the bits of the destination one by one, from
    /// the lowest (e-cube); `None` if a cable of the hypercube is missing.
    #[must_use]
    pub fn e_cube(topology: &Topology) -> Option<Routes> {
        let routes = Routes::by(topology, |host, to| {
            let other = host ^ 1 << (host ^ to).trailing_zeros();
            topology.neighbours(host).find(|(_, far)| *far == other).map(|(cable, _)| cable)
        });
        let complete = (0..topology.hosts)
            .all(|from| (0..topology.hosts).all(|to| routes.hops(from, to).is_some()));
        (topology.hosts.is_power_of_two() && complete).then_some(routes)
    }

    /// Returns routes that go up a tree of fewest hops from host 0, and then down. They stop
    /// nowhere, whatever the network. Only hosts for which `forwards` is true pass messages on;
    /// host 0 must be one of them.
    #[must_use]
    pub fn up_down(topology: &Topology, forwards: impl Fn(usize) -> bool) -> Routes {
        let levels = topology.distances(0, &forwards);
        let rank = |host: usize| (levels[host], host);
        let passes = |host: usize, to: usize| host == to || forwards(host);
        let ways: Vec<Vec<Option<(bool, usize)>>> = (0..topology.hosts)
            .map(|to| up_then_down(topology, to, rank, |host| passes(host, to)))
            .collect();
        Routes::by(topology, |host, to| {
            let (goes_down, hops) = ways[to][host]?;
            let good = |other: usize| {
                let is_up = rank(other) < rank(host);
                let way = ways[to][other].filter(|_| passes(other, to));
                let Some((also_down, rest)) = way else { return false };
                is_up != goes_down && rest + 1 == hops && (also_down || !goes_down)
            };
            topology.neighbours(host).find(|(_, other)| good(*other)).map(|(cable, _)| cable)
        })
    }

    /// Returns the cable that a message at `host` for `to` takes, and the host at its far end.
    #[must_use]
    pub fn next(&self, host: usize, to: usize) -> Option<(usize, usize)> {
        self.next[host * self.hosts + to]
    }

    /// Returns the cables of the route, each away from the host before it; `None` if it leads
    /// nowhere.
    #[must_use]
    pub fn path(&self, from: usize, to: usize) -> Option<Vec<Leg>> {
        let (mut at, mut path) = (from, Vec::new());
        while at != to {
            let (cable, far) = self.next(at, to).filter(|_| path.len() < self.hosts)?;
            path.push(Leg { cable, from: at });
            at = far;
        }
        Some(path)
    }

    /// Returns the number of hops from one host to another.
    #[must_use]
    pub fn hops(&self, from: usize, to: usize) -> Option<usize> {
        self.path(from, to).map(|path| path.len())
    }

    /// Returns a circle of lanes in which messages can wait for each other for ever, if there is
    /// one; `None`: buffers of any size are enough.
    #[must_use]
    pub fn deadlock(&self) -> Option<Vec<Leg>> {
        let mut follows: Vec<(Leg, Leg)> = Vec::new();
        for from in 0..self.hosts {
            for to in 0..self.hosts {
                let path = self.path(from, to).unwrap_or_default();
                follows.extend(path.windows(2).map(|pair| (pair[0], pair[1])));
            }
        }
        circle(follows)
    }
}

/// Returns a circle of lanes in which messages can wait for each other for ever, if there is one.
/// `follows` are the pairs of lanes of which some message takes one behind the other.
#[must_use]
pub fn circle(mut follows: Vec<(Leg, Leg)>) -> Option<Vec<Leg>> {
    follows.sort_unstable();
    follows.dedup();
    // Lanes that nothing follows are in no circle; what is left after all of them is one.
    loop {
        let open = |lane: Leg| follows.iter().any(|(first, _)| *first == lane);
        let kept: Vec<(Leg, Leg)> =
            follows.iter().copied().filter(|(_, second)| open(*second)).collect();
        if kept.len() == follows.len() {
            break;
        }
        follows = kept;
    }
    let mut walk = alloc::vec![follows.first()?.0];
    loop {
        let last = *walk.last()?;
        let (_, next) = *follows.iter().find(|(first, _)| *first == last)?;
        if let Some(start) = walk.iter().position(|lane| *lane == next) {
            return Some(walk.split_off(start));
        }
        walk.push(next);
    }
}

/// Returns, of each host, whether a way to `to` only goes down, and the hops of the way it takes:
/// the shortest way down, or else the way of the best host above it. Only hosts for which `passes`
/// is true stand behind the first one.
fn up_then_down(
    topology: &Topology,
    to: usize,
    rank: impl Fn(usize) -> (Option<usize>, usize),
    passes: impl Fn(usize) -> bool,
) -> Vec<Option<(bool, usize)>> {
    let mut ways = alloc::vec![None; topology.hosts];
    ways[to] = Some((true, 0));
    let mut reached = alloc::vec![to];
    for hops in 1.. {
        let above = |host: &usize| {
            let below = rank(*host);
            topology.neighbours(*host).map(|it| it.1).filter(|up| rank(*up) < below).collect()
        };
        let through = reached.iter().filter(|host| passes(**host));
        let mut next: Vec<usize> = through.flat_map(|it| -> Vec<usize> { above(it) }).collect();
        next.retain(|host| ways[*host].is_none());
        if next.is_empty() {
            break;
        }
        next.iter().for_each(|host| ways[*host] = Some((true, hops)));
        reached = next;
    }
    let mut order: Vec<usize> = (0..topology.hosts).filter(|it| ways[*it].is_none()).collect();
    order.sort_unstable_by_key(|host| rank(*host));
    for host in order {
        let above = topology.neighbours(host);
        let above = above.filter(|(_, up)| rank(*up) < rank(host) && passes(*up));
        let hops = above.filter_map(|(_, up)| ways[up].map(|(_, hops)| hops + 1)).min();
        ways[host] = hops.map(|hops| (false, hops));
    }
    ways
}
