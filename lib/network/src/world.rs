//! A model of hosts, controllers and passive cables, in which hosts follow their lists.
//!
//! An enabled capability is the device of the first host that enumerates it over a passive cable;
//! then that cable carries nothing else, and no other host senses the capability. [`explore`] tries
//! every order of events.

use crate::formation::{Deed, Formation, Sensed};
use crate::lists::Lists;
use crate::topology::{Jack, Topology};
use alloc::collections::BTreeSet;
use alloc::vec::Vec;
use diapason_abi::Nanos;

/// The ports at which a host enumerates.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Scope {
    /// All ports, as in Algorithm 4.
    All,
    /// Scope at which a cable of the description makes it the debug host. It keeps the others off.
    Own,
}

/// The plan of a world: what does not change in it.
#[derive(Clone, Copy, Debug)]
pub struct Scene<'a> {
    /// The hosts, and the cables that are really there.
    pub topology: &'a Topology,
    /// The lists that the hosts follow.
    pub lists: &'a Lists,
    /// The ports at which hosts enumerate.
    pub ports: Scope,
    /// How long a host waits until it reports.
    pub patience: Nanos,
}

/// The state of a world.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct World {
    /// The progress of each host; `None` while it has no power.
    hosts: Vec<Option<Formation>>,
    /// The capabilities that are enabled.
    enabled: BTreeSet<Jack>,
    /// The capabilities that are devices of a host: the cable over which each is.
    claims: BTreeSet<(Jack, usize)>,
}

impl World {
    /// Returns a world in which every host is off.
    #[must_use]
    pub fn new(scene: &Scene<'_>) -> World {
        World {
            hosts: alloc::vec![None; scene.topology.hosts],
            enabled: BTreeSet::new(),
            claims: BTreeSet::new(),
        }
    }

    /// Powers `host` on, or restarts it: it loses its links and whatever it knew.
    pub fn power(&mut self, scene: &Scene<'_>, host: usize, now: Nanos) {
        let topology = scene.topology;
        self.enabled.retain(|jack| jack.host != host);
        self.claims.retain(|(_, cable)| {
            topology.edges[*cable].ends().iter().all(|jack| jack.host != host)
        });
        self.hosts[host] = Some(Formation::new(scene.lists, host, scene.patience, now));
    }

    /// Returns whether `host` has power.
    #[must_use]
    pub fn is_on(&self, host: usize) -> bool {
        self.hosts[host].is_some()
    }

    /// Cuts the link over a cable for a moment. The capability stays enabled.
    pub fn lose(&mut self, cable: usize) {
        self.claims.retain(|(_, used)| *used != cable);
    }

    /// Returns the debug links that there are: the capability of each, and its cable.
    pub fn links(&self) -> impl Iterator<Item = (Jack, usize)> {
        self.claims.iter().copied()
    }

    /// Returns whether the links are those that the cables of the description ask for, and no
    /// other.
    #[must_use]
    pub fn is_wanted(&self, scene: &Scene<'_>) -> bool {
        let cables = scene.topology.debug_cables();
        let wanted: BTreeSet<(Jack, usize)> =
            cables.map(|(cable, jack, _)| (jack, cable)).collect();
        self.claims == wanted
    }

    /// Returns whether every host has power and says that its part of the network has formed.
    #[must_use]
    pub fn says_formed(&self, scene: &Scene<'_>) -> bool {
        let formed = |(host, it): (usize, &Option<Formation>)| {
            it.as_ref().is_some_and(|it| it.is_formed(|other| self.sense(scene, host, other)))
        };
        self.hosts.iter().enumerate().all(formed)
    }

    fn sense(&self, scene: &Scene<'_>, host: usize, other: usize) -> Sensed {
        let topology = scene.topology;
        let is_between = |cable: usize| {
            let ends = topology.edges[cable].ends().map(|jack| jack.host);
            ends == [host, other] || ends == [other, host]
        };
        let mut claims = self.claims.iter().filter(|(jack, _)| jack.host == other);
        if claims.any(|(_, cable)| is_between(*cable)) {
            return Sensed::Linked;
        }
        let mut free = self.free(scene, host).into_iter();
        let attached = free.any(|(jack, _)| jack.host == other);
        if attached { Sensed::Attached } else { Sensed::Absent }
    }

    /// Returns the capabilities that `host` senses and has not enumerated, each with a cable.
    fn free(&self, scene: &Scene<'_>, host: usize) -> Vec<(Jack, usize)> {
        let used = |cable: usize| self.claims.iter().any(|(_, it)| *it == cable);
        let claimed = |jack: Jack| self.claims.iter().any(|(it, _)| *it == jack);
        let mut found = Vec::new();
        for (cable, edge) in scene.topology.edges.iter().enumerate() {
            for jack in edge.ends() {
                let Some(far) = edge.passive_from(jack) else { continue };
                let is_own = edge.roles().is_some_and(|(target, _)| target == jack);
                let looks = scene.ports == Scope::All || is_own;
                let is_there = self.enabled.contains(&jack) && !claimed(jack) && !used(cable);
                if far.host == host && looks && is_there {
                    found.push((jack, cable));
                }
            }
        }
        found
    }

    /// Lets `host` do what is next for it at `now`. Of several cables over which it can enumerate
    /// a capability, `choose` picks one by its place.
    pub fn step(
        &mut self,
        scene: &Scene<'_>,
        host: usize,
        now: Nanos,
        choose: impl Fn(&[(Jack, usize)]) -> usize,
    ) -> Option<Deed> {
        let mut formation = self.hosts[host].take()?;
        let deed = formation.next(now, |other| self.sense(scene, host, other));
        self.hosts[host] = Some(formation);
        match deed {
            Some(Deed::Enable) => self.enabled.extend(scene.topology.capabilities(host)),
            Some(Deed::Enumerate) => loop {
                let free = self.free(scene, host);
                let Some((jack, cable)) = free.get(choose(&free)) else { break };
                self.claims.insert((*jack, *cable));
            },
            _ => {}
        }
        deed
    }
}

/// The ends of a world in every order of events.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Explored {
    /// The states that were seen.
    pub states: usize,
    /// States in which nothing happens any more, the links are the wanted ones, and no host waits.
    pub wanted: usize,
    /// Other states in which nothing happens any more.
    pub other: Vec<World>,
    /// States in which every host says that the network has formed, and it is not the wanted one.
    pub mistaken: Vec<World>,
}

/// Tries every order in which the hosts of `scene` get power and do their deeds, with up to
/// `failures` restarts of hosts and losses of links at any time.
///
/// It returns when every order has come to its end; deeds alone never go on for ever.
#[must_use]
pub fn explore(scene: &Scene<'_>, failures: usize) -> Explored {
    let mut explored = Explored::default();
    let mut seen: BTreeSet<(World, usize)> = BTreeSet::new();
    let mut left = alloc::vec![(World::new(scene), failures)];
    while let Some((world, failures)) = left.pop() {
        if !seen.insert((world.clone(), failures)) {
            continue;
        }
        if world.says_formed(scene) && !world.is_wanted(scene) {
            explored.mistaken.push(world.clone());
        }
        let next = successors(scene, &world);
        if next.is_empty() {
            match world.is_wanted(scene) && world.says_formed(scene) {
                true => explored.wanted += 1,
                false => explored.other.push(world.clone()),
            }
        }
        left.extend(next.into_iter().map(|next| (next, failures)));
        if let Some(fewer) = failures.checked_sub(1) {
            left.extend(failed(scene, &world).into_iter().map(|next| (next, fewer)));
        }
    }
    explored.states = seen.len();
    explored
}

/// Returns the states after each event that is no failure.
fn successors(scene: &Scene<'_>, world: &World) -> Vec<World> {
    let mut next = Vec::new();
    for host in 0..scene.topology.hosts {
        if !world.is_on(host) {
            let mut powered = world.clone();
            powered.power(scene, host, Nanos::ZERO);
            next.push(powered);
            continue;
        }
        // The first and the last choice of cables: with two passive cables between two hosts,
        // that is all.
        for last in [false, true] {
            let mut stepped = world.clone();
            let choose = |free: &[(Jack, usize)]| if last { free.len().wrapping_sub(1) } else { 0 };
            stepped.step(scene, host, Nanos::ZERO, choose);
            if stepped != *world && !next.contains(&stepped) {
                next.push(stepped);
            }
        }
    }
    next
}

/// Returns the states after each failure.
fn failed(scene: &Scene<'_>, world: &World) -> Vec<World> {
    let mut next = Vec::new();
    for host in (0..scene.topology.hosts).filter(|host| world.is_on(*host)) {
        let mut restarted = world.clone();
        restarted.power(scene, host, Nanos::ZERO);
        next.push(restarted);
    }
    for (_, cable) in world.links() {
        let mut lost = world.clone();
        lost.lose(cable);
        next.push(lost);
    }
    next
}
