//! Starting slots under both conditions: no slot is filled beyond its capacity, and every guarantee
//! of the asynchronous endpoints holds on the pattern that results.
//!
//! Simple placements are tried first; if none fits into the slots, the period tree decides; if they
//! fit but a guarantee breaks, flatter placements and single moves are tried.

use crate::judge::{HOPELESS, Judge, ONE};
use crate::place::{Bins, SlotDemand, portfolio};
use crate::time::Picos;
use crate::tree::{self, SearchResult};
use alloc::vec::Vec;

/// Steps of the period tree before it gives up.
const NODES: u32 = 20_000;
/// Patterns judged by one descent, at most …
const MOVES: u64 = 300;
/// … and slots that it looks at in all. Only long hyperperiods with long guarantees come near.
const WORK: u64 = 1 << 24;
/// Starts tried for one item in one round.
const STARTS: u32 = 64;

/// The constraints that do not change.
pub(crate) struct Ground<'a> {
    pub judge: &'a Judge,
    /// Most periodic time in a slot, in ps.
    pub capacity: u64,
    /// The items whose places are fixed.
    pub fixed: &'a [(SlotDemand, u32)],
}

impl Ground<'_> {
    /// Returns the slots as the fixed items fill them, enough for `items`.
    #[must_use]
    pub fn bins(&self, items: &[SlotDemand]) -> Bins {
        let periods = self.fixed.iter().map(|(item, _)| item.period);
        let slots = periods.chain(items.iter().map(|item| item.period)).max().unwrap_or(1);
        let mut bins = Bins::new(slots, self.capacity);
        self.fixed.iter().for_each(|(item, start)| bins.put(item, *start));
        bins
    }

    fn pattern(&self, bins: &Bins, items: &[SlotDemand], starts: &[u32]) -> Vec<Picos> {
        let mut bins = bins.clone();
        items.iter().zip(starts).for_each(|(item, start)| bins.put(item, *start));
        bins.pattern()
    }

    /// Returns a start for each item. `None`: none was found; `items` fit nowhere, or only in a way
    /// that this search does not reach.
    #[must_use]
    pub fn arrange(&self, items: &[SlotDemand]) -> Option<Vec<u32>> {
        let bins = self.bins(items);
        let slots = bins.load().len();
        let taken: u128 = bins.load().iter().map(|load| u128::from(*load)).sum();
        let times =
            |item: &SlotDemand| u128::from(item.cost) * (slots as u128 / u128::from(item.period));
        let sum = taken + items.iter().map(times).sum::<u128>();
        let possible = sum <= u128::from(self.capacity) * slots as u128;
        if !possible || !self.judge.is_possible(sum, slots) {
            return None;
        }
        let mut best: Option<(u64, Vec<u32>)> = None;
        let mut consider = |starts: &[u32]| {
            let load = self.pattern(&bins, items, starts);
            if self.judge.holds(&load) {
                return true;
            }
            let most = best.as_ref().map_or(HOPELESS, |(other, _)| *other);
            let ratio = self.judge.ratio(&load, most);
            if best.as_ref().is_none_or(|(other, _)| ratio < *other) {
                best = Some((ratio, starts.to_vec()));
            }
            false
        };
        if let Some(starts) = portfolio(&bins, items, &mut consider) {
            return Some(starts);
        }
        if self.fixed.is_empty() {
            for starts in self.by_tree(items, sum, slots) {
                if consider(&starts) {
                    return Some(starts);
                }
            }
        }
        let (_, mut starts) = best?;
        let ratio = self.descend(items, &mut starts, ONE);
        (ratio <= ONE).then_some(starts)
    }

    /// Placements by the period tree: within the capacity, and within the lowest one that it finds.
    fn by_tree(&self, items: &[SlotDemand], sum: u128, slots: usize) -> Vec<Vec<u32>> {
        let mut found = Vec::new();
        let solve = |capacity| match tree::exact(items, capacity, NODES) {
            SearchResult::Placed(starts) => Some(starts),
            SearchResult::Impossible | SearchResult::Undecided => None,
        };
        let Some(first) = solve(self.capacity) else { return found };
        found.push(first);
        let mean = u64::try_from(sum / slots as u128).unwrap_or(u64::MAX);
        let (mut low, mut high) = (mean.min(self.capacity), self.capacity);
        for _ in 0..8 {
            let middle = low + (high - low) / 2;
            match solve(middle) {
                Some(starts) => {
                    high = middle;
                    found.push(starts);
                }
                None => low = middle,
            }
        }
        found.reverse();
        found
    }

    /// Moves single items, or exchanges two, as long as that lowers the ratio or the highest slot
    /// at the same ratio. Ends when the ratio is at most `enough`; returns it.
    pub fn descend(&self, items: &[SlotDemand], starts: &mut [u32], enough: u64) -> u64 {
        let mut bins = self.bins(items);
        items.iter().zip(starts.iter()).for_each(|(item, start)| bins.put(item, *start));
        let mut best = self.judge.ratio(&bins.pattern(), HOPELESS);
        let work = (bins.load().len() * self.judge.window()) as u64;
        let mut moves = (WORK / work).clamp(8, MOVES);
        loop {
            let before = best;
            for index in 0..items.len() {
                for start in 0..items[index].period.min(STARTS) {
                    if best <= enough || moves == 0 {
                        return best;
                    }
                    let changed = self.change(&mut bins, items, starts, (index, start), best);
                    if let Some(ratio) = changed {
                        moves -= 1;
                        best = ratio;
                    }
                }
            }
            if best == before {
                return best;
            }
        }
    }

    /// Moves item `index` to `start` if it fits there and the ratio falls below `best`; if it does
    /// not fit, exchanges it with an item of the same period there. Returns the ratio afterwards,
    /// or `None` if nothing had to be judged.
    fn change(
        &self,
        bins: &mut Bins,
        items: &[SlotDemand],
        starts: &mut [u32],
        (index, start): (usize, u32),
        best: u64,
    ) -> Option<u64> {
        let (item, old) = (items[index], starts[index]);
        if old == start {
            return None;
        }
        bins.take(&item, old);
        if bins.fits(&item, start) {
            bins.put(&item, start);
            let ratio = self.judge.ratio(&bins.pattern(), best);
            if ratio < best {
                starts[index] = start;
                return Some(ratio);
            }
            bins.take(&item, start);
            bins.put(&item, old);
            return Some(best);
        }
        let partner = (0..items.len()).find(|&other| {
            items[other].period == item.period
                && starts[other] == start
                && items[other].cost != item.cost
        });
        let ratio = partner
            .and_then(|other| self.exchange(bins, items, [(index, old), (other, start)], best));
        match (partner, ratio) {
            (Some(other), Some(ratio)) if ratio < best => {
                starts.swap(index, other);
                return Some(ratio);
            }
            (Some(other), Some(_)) => {
                bins.take(&item, start);
                bins.take(&items[other], old);
                bins.put(&items[other], start);
            }
            _ => {}
        }
        bins.put(&item, old);
        ratio.map(|_| best)
    }

    /// With `a` already taken out: put `a` where `b` is and `b` where `a` was, if both fit. Else
    /// nothing is changed.
    fn exchange(
        &self,
        bins: &mut Bins,
        items: &[SlotDemand],
        [a, b]: [(usize, u32); 2],
        best: u64,
    ) -> Option<u64> {
        bins.take(&items[b.0], b.1);
        if bins.fits(&items[a.0], b.1) {
            bins.put(&items[a.0], b.1);
            if bins.fits(&items[b.0], a.1) {
                bins.put(&items[b.0], a.1);
                return Some(self.judge.ratio(&bins.pattern(), best));
            }
            bins.take(&items[a.0], b.1);
        }
        bins.put(&items[b.0], b.1);
        None
    }
}
