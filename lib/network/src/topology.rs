//! A graph of hosts, and the two kinds of cables between them.

use alloc::vec::Vec;

/// One controller of a host, at which cables end.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Jack {
    /// The number of the host.
    pub host: usize,
    /// The number of the controller in its host.
    pub controller: usize,
}

impl Jack {
    /// Returns the first controller of `host`.
    #[must_use]
    pub const fn of(host: usize) -> Jack {
        Jack { host, controller: 0 }
    }
}

/// A cable between two controllers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Edge {
    /// A cable with a device for each of its two hosts.
    Bridge([Jack; 2]),
    /// A passive cable. The target shows itself to the host as a device.
    Debug {
        /// The controller whose debug capability is enabled.
        target: Jack,
        /// The controller that enumerates it.
        host: Jack,
    },
}

impl Edge {
    /// Returns the debug cable from the first controller of `target` to that of `host`.
    #[must_use]
    pub const fn debug(target: usize, host: usize) -> Edge {
        Edge::Debug { target: Jack::of(target), host: Jack::of(host) }
    }

    /// Returns the bridge between the first controllers of two hosts.
    #[must_use]
    pub const fn bridge(one: usize, other: usize) -> Edge {
        Edge::Bridge([Jack::of(one), Jack::of(other)])
    }

    /// Returns both ends of the cable. The first end of a debug cable is its target.
    #[must_use]
    pub const fn ends(&self) -> [Jack; 2] {
        match *self {
            Edge::Bridge(ends) => ends,
            Edge::Debug { target, host } => [target, host],
        }
    }

    /// Returns target and host of a debug cable.
    #[must_use]
    pub const fn roles(&self) -> Option<(Jack, Jack)> {
        match *self {
            Edge::Bridge(_) => None,
            Edge::Debug { target, host } => Some((target, host)),
        }
    }

    /// Returns the far end of a passive cable, seen from the controller `jack`.
    #[must_use]
    pub fn passive_from(&self, jack: Jack) -> Option<Jack> {
        let (target, host) = self.roles()?;
        if jack == target {
            return Some(host);
        }
        (jack == host).then_some(target)
    }
}

/// Hosts by number, and the cables between them.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Topology {
    /// The number of hosts.
    pub hosts: usize,
    /// The cables, in the order of their description.
    pub edges: Vec<Edge>,
}

impl Topology {
    /// Returns the debug cables: the number of each, its target and its host.
    pub fn debug_cables(&self) -> impl Iterator<Item = (usize, Jack, Jack)> {
        let of = |(number, edge): (usize, &Edge)| edge.roles().map(|(t, h)| (number, t, h));
        self.edges.iter().enumerate().filter_map(of)
    }

    /// Returns the controllers whose capability `host` enables when it enables any: those at which
    /// it is a target; if there is none, all at which a passive cable ends.
    #[must_use]
    pub fn capabilities(&self, host: usize) -> Vec<Jack> {
        let targets = self.debug_cables().map(|(_, target, _)| target);
        let mut found: Vec<Jack> = targets.filter(|jack| jack.host == host).collect();
        if found.is_empty() {
            let ends = self.debug_cables().flat_map(|(_, target, host)| [target, host]);
            found.extend(ends.filter(|jack| jack.host == host));
        }
        found.sort_unstable();
        found.dedup();
        found
    }

    /// Returns the hosts that share a cable with `host`, each with the number of the cable.
    pub fn neighbours(&self, host: usize) -> impl Iterator<Item = (usize, usize)> {
        self.edges.iter().enumerate().filter_map(move |(number, edge)| {
            let [one, other] = edge.ends();
            if one.host == host {
                return Some((number, other.host));
            }
            (other.host == host).then_some((number, one.host))
        })
    }

    /// Returns the number of hops from `from` to every host; `None` where no way leads. Only hosts
    /// for which `forwards` is true stand in the middle of a way.
    #[must_use]
    pub fn distances(&self, from: usize, forwards: impl Fn(usize) -> bool) -> Vec<Option<usize>> {
        let mut distances = alloc::vec![None; self.hosts];
        let mut reached = alloc::vec![from];
        distances[from] = Some(0);
        for hops in 1.. {
            let through = reached.into_iter().filter(|host| *host == from || forwards(*host));
            let next = through.flat_map(|host| self.neighbours(host).map(|(_, other)| other));
            let mut next: Vec<usize> = next.filter(|host| distances[*host].is_none()).collect();
            next.sort_unstable();
            next.dedup();
            if next.is_empty() {
                break;
            }
            next.iter().for_each(|host| distances[*host] = Some(hops));
            reached = next;
        }
        distances
    }
}
