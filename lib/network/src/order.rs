//! Happens-before between what hosts do: each enumerates once, and those with a debug capability
//! to show enable it once.

use crate::lists::Lists;
use alloc::vec::Vec;

/// The two acts of a host that the order is about.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Act {
    /// The host enumerates what is attached to its ports.
    Enumerate,
    /// The host enables its debug capability.
    Enable,
}

/// An act of a host.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Occurrence {
    /// The number of the host.
    pub host: usize,
    /// The act of this host.
    pub act: Act,
}

impl Occurrence {
    /// Returns the occurrence at which `host` enumerates.
    #[must_use]
    pub const fn enumerate(host: usize) -> Occurrence {
        Occurrence { host, act: Act::Enumerate }
    }

    /// Returns the occurrence at which `host` enables.
    #[must_use]
    pub const fn enable(host: usize) -> Occurrence {
        Occurrence { host, act: Act::Enable }
    }

    const fn number(self) -> usize {
        self.host * 2 + self.act as usize
    }

    const fn of(number: usize) -> Occurrence {
        let act = if number.is_multiple_of(2) { Act::Enumerate } else { Act::Enable };
        Occurrence { host: number / 2, act }
    }
}

/// The order that lists impose on the acts of all hosts.
pub(crate) struct Order {
    /// The occurrences that each occurrence waits for.
    after: Vec<Vec<Occurrence>>,
    enables: Vec<bool>,
}

impl Order {
    /// Returns the order that `lists` impose.
    pub fn of(lists: &Lists) -> Order {
        let mut after = alloc::vec![Vec::new(); lists.awaits.len() * 2];
        for (host, awaits) in lists.awaits.iter().enumerate() {
            let (enumerate, enable) = (Occurrence::enumerate(host), Occurrence::enable(host));
            after[enumerate.number()] = awaits.iter().map(|it| Occurrence::enable(*it)).collect();
            if lists.leader != Some(host) {
                after[enable.number()].push(enumerate);
            }
        }
        Order { after, enables: lists.enables.clone() }
    }

    /// Returns whether all acts can happen in an order in which also the first of each pair comes
    /// before its second.
    pub fn allows(&self, pairs: &[(Occurrence, Occurrence)]) -> bool {
        self.layers(pairs).1.is_empty()
    }

    /// Returns a circle of hosts, each of which waits for the next, if there is one.
    pub fn circle(&self) -> Option<Vec<usize>> {
        let (_, stuck) = self.layers(&[]);
        // Every stuck occurrence waits for a stuck one, so the walk comes back to where it was.
        let mut walk: Vec<Occurrence> = stuck.first().copied().into_iter().collect();
        loop {
            let last = *walk.last()?;
            let next = *self.after[last.number()].iter().find(|it| stuck.contains(it))?;
            if let Some(start) = walk.iter().position(|occurrence| *occurrence == next) {
                let enumerates = walk[start..].iter().filter(|it| it.act == Act::Enumerate);
                return Some(enumerates.map(|it| it.host).collect());
            }
            walk.push(next);
        }
    }

    /// Returns the occurrences in layers, each after what it waits for, and those that never come.
    fn layers(
        &self,
        pairs: &[(Occurrence, Occurrence)],
    ) -> (Vec<Vec<Occurrence>>, Vec<Occurrence>) {
        let exists = |occurrence: &Occurrence| {
            occurrence.act == Act::Enumerate || self.enables[occurrence.host]
        };
        let mut left: Vec<Occurrence> =
            (0..self.after.len()).map(Occurrence::of).filter(exists).collect();
        let (mut layers, mut done) = (Vec::new(), alloc::vec![false; self.after.len()]);
        loop {
            let ready = |occurrence: &Occurrence| {
                let own = self.after[occurrence.number()].iter().all(|first| done[first.number()]);
                let mut asked = pairs.iter().filter(|(_, second)| second == occurrence);
                own && asked.all(|(first, _)| done[first.number()])
            };
            let (now, later): (Vec<Occurrence>, Vec<Occurrence>) =
                left.iter().partition(|it| ready(it));
            if now.is_empty() {
                return (layers, left);
            }
            now.iter().for_each(|occurrence| done[occurrence.number()] = true);
            layers.push(now);
            left = later;
        }
    }
}

/// Returns the acts of all hosts in rounds: each act comes in the round after the last one that it
/// waits for. Acts that never come are left out.
#[must_use]
pub fn rounds(lists: &Lists) -> Vec<Vec<Occurrence>> {
    Order::of(lists).layers(&[]).0
}
