//! How long a bulk transfer takes at worst: exactly, over the whole pattern of slots and every
//! start instant.
//!
//! The pattern says how much of each slot is periodic; that comes first and is charged in full. By
//! the lemma in [`crate::rotation`] only the start is left to choose. For a start in slot `f` all
//! that matters is how many items `q` still fit into the rest of it; with `q` given, the transfer
//! ends at the same instant, so the earliest start is the worst: just after `q + 1` items would
//! have fitted. The result is the supremum, to which such starts come arbitrarily close.

use crate::rotation::Rotation;
use crate::time::Picos;
use alloc::vec;
use alloc::vec::Vec;

/// The periodic time in each slot, repeated for ever.
#[derive(Clone, Copy, Debug)]
pub struct Pattern<'a> {
    /// One entry per slot; an empty pattern is one without periodic traffic.
    pub load: &'a [Picos],
    /// The length of a slot.
    pub slot: Picos,
}

impl Pattern<'_> {
    fn slots(&self) -> usize {
        self.load.len().max(1)
    }

    fn load(&self, f: usize) -> u64 {
        self.load.get(f).map_or(0, |load| load.0.min(self.slot.0))
    }

    fn room(&self, f: usize) -> u64 {
        self.slot.0 - self.load(f)
    }

    /// Returns the exact supremum of the time from the request to the end of the last item, over
    /// every start instant. `None`: it may take longer than `limit`, or for ever.
    #[must_use]
    pub fn worst_time(&self, rotation: &Rotation, limit: Picos) -> Option<Picos> {
        let mut walk = Walk::new(self, rotation, limit);
        let mut worst = 0;
        let mut constant = None;
        for f in 0..self.slots() {
            // Long stretches without a change give the same answer again and again.
            let begin = walk.complete(f, 0)?;
            let window = (begin / self.slot.0 + 3) as usize;
            if self.is_constant(f, window) {
                if constant == Some(self.load(f)) {
                    continue;
                }
                constant = Some(self.load(f));
            }
            worst = worst.max(walk.worst_in(f, begin, worst)?);
        }
        (worst <= limit.0).then_some(Picos(worst))
    }

    fn is_constant(&self, f: usize, window: usize) -> bool {
        let window = window.min(self.slots());
        (1..window).all(|i| self.load((f + i) % self.slots()) == self.load(f))
    }

    /// The worst over the starts at the beginning of a slot only: [USB 2023, eq. 6] made exact.
    #[must_use]
    pub fn worst_at_slot_starts(&self, rotation: &Rotation, limit: Picos) -> Option<Picos> {
        let mut walk = Walk::new(self, rotation, limit);
        let mut worst = 0;
        for f in 0..self.slots() {
            worst = worst.max(walk.complete(f, 0)?);
        }
        (worst <= limit.0).then_some(Picos(worst))
    }

    /// Returns a bound for controllers whose order is not known, as long as nobody is visited twice
    /// before everybody was: less than the longest item is lost in each slot.
    #[must_use]
    pub fn safe_any_order(&self, rotation: &Rotation, limit: Picos) -> Option<Picos> {
        let lost = rotation.longest().saturating_sub(1);
        let mut worst = 0;
        for f in 0..self.slots() {
            let next = (f + 1) % self.slots();
            let rest = self.fluid(rotation.until(rotation.items()), lost, next, limit.0)?;
            // As a supremum: just before the end of the slot, too late for the longest item.
            worst = worst.max(rest + rotation.longest().min(self.room(f)));
        }
        (worst <= limit.0).then_some(Picos(worst))
    }

    fn fluid(&self, work: u64, lost: u64, start: usize, limit: u64) -> Option<u64> {
        let (mut f, mut left, mut time, mut idle) = (start, work, 0u64, 0);
        loop {
            let done = self.room(f).saturating_sub(lost);
            if left <= done {
                return Some(time + self.load(f) + left);
            }
            idle = if done == 0 { idle + 1 } else { 0 };
            time += self.slot.0;
            if idle == self.slots() || time > limit {
                return None;
            }
            left -= done;
            f = (f + 1) % self.slots();
        }
    }
}

/// One sequence on one pattern. Slots of the same load and places in a pass recur, so how far the
/// sequence comes in a slot is remembered.
struct Walk<'a> {
    pattern: &'a Pattern<'a>,
    rotation: &'a Rotation,
    limit: u64,
    /// For each slot, which of the different loads it has.
    kinds: Vec<usize>,
    /// Items that fit, by kind and place in a pass.
    known: Vec<u64>,
}

const UNKNOWN: u64 = u64::MAX;

impl<'a> Walk<'a> {
    fn new(pattern: &'a Pattern<'a>, rotation: &'a Rotation, limit: Picos) -> Walk<'a> {
        let mut loads: Vec<u64> = (0..pattern.slots()).map(|f| pattern.load(f)).collect();
        let each = loads.clone();
        loads.sort_unstable();
        loads.dedup();
        let kind = |load: &u64| loads.partition_point(|other| other < load);
        Walk {
            pattern,
            rotation,
            limit: limit.0,
            kinds: each.iter().map(kind).collect(),
            known: vec![UNKNOWN; loads.len() * rotation.per_pass() as usize],
        }
    }

    /// Returns the time from the start of slot `start` with item `from` next until the last item
    /// has ended. `None`: never, or not within the limit.
    fn complete(&mut self, start: usize, from: u64) -> Option<u64> {
        let per_pass = self.rotation.per_pass();
        let (mut f, mut q, mut at) = (start, from, from % per_pass);
        let (mut time, mut idle) = (0u64, 0);
        loop {
            let room = self.pattern.room(f);
            let cell = &mut self.known[self.kinds[f] * per_pass as usize + at as usize];
            if *cell == UNKNOWN {
                *cell = self.rotation.advance(at, room);
            }
            let count = *cell;
            let next = self.rotation.after(q, count, room);
            if next == self.rotation.items() {
                let rest = self.rotation.until(next) - self.rotation.until(q);
                return Some(time + self.pattern.load(f) + rest);
            }
            idle = if count == 0 { idle + 1 } else { 0 };
            time += self.pattern.slot.0;
            if idle == self.kinds.len() || time > self.limit {
                return None;
            }
            q = next;
            at += count;
            if at >= per_pass {
                at %= per_pass;
            }
            f = if f + 1 == self.kinds.len() { 0 } else { f + 1 };
        }
    }

    /// The worst over all starts in slot `f`, or `worst` if none is above it. `begin` is the time
    /// from the start of the slot.
    fn worst_in(&mut self, f: usize, begin: u64, worst: u64) -> Option<u64> {
        let mut worst = worst.max(begin);
        let fitting = self.rotation.reach(0, self.pattern.room(f));
        let most = self.rotation.until(fitting);
        let next = (f + 1) % self.kinds.len();
        for q in 0..fitting {
            let rest = self.complete(next, q)?;
            worst = worst.max(self.rotation.until(q + 1) + rest);
            // Later starts leave less: none of the remaining can be worse than this.
            if most + rest <= worst {
                break;
            }
            if worst > self.limit {
                return None;
            }
        }
        Some(worst)
    }
}
