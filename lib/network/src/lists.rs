//! Dependency lists: for whom each host waits before it enumerates, and who enables.

use crate::flaws::flaws;
use crate::topology::Topology;
use alloc::vec::Vec;

/// The inputs of Algorithm 4 of every host.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Lists {
    /// The hosts whose debug capability each host waits for.
    pub awaits: Vec<Vec<usize>>,
    /// Whether each host enables its debug capability.
    pub enables: Vec<bool>,
    /// The host that enables before it waits for anybody.
    pub leader: Option<usize>,
}

impl Lists {
    /// Returns the lists that the cables ask for: each debug host waits for its targets, and each
    /// target enables.
    #[must_use]
    pub fn of(topology: &Topology, leader: Option<usize>) -> Lists {
        let mut awaits = alloc::vec![Vec::new(); topology.hosts];
        let mut enables = alloc::vec![false; topology.hosts];
        for (_, target, host) in topology.debug_cables() {
            awaits[host.host].push(target.host);
            enables[target.host] = true;
        }
        for list in &mut awaits {
            list.sort_unstable();
            list.dedup();
        }
        Lists { awaits, enables, leader }
    }

    /// Returns lists with a leader with which the network always forms: without one if none is
    /// needed, else with the first host that will do.
    #[must_use]
    pub fn with_some_leader(topology: &Topology) -> Option<Lists> {
        let leaders = core::iter::once(None).chain((0..topology.hosts).map(Some));
        let mut lists = leaders.map(|leader| Lists::of(topology, leader));
        lists.find(|lists| flaws(topology, lists).is_empty())
    }

    /// Returns whether `host` enables before it waits.
    #[must_use]
    pub fn leads(&self, host: usize) -> bool {
        self.leader == Some(host) && self.enables[host]
    }
}
