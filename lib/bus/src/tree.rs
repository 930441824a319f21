//! Starting slots exactly: periods are powers of two, so a schedule is a binary tree.
//!
//! At a node, endpoints of period 1 take their time off the capacity of everything below; the
//! others are divided between the even and the odd slots, where their periods are half as long. A
//! division fails if a half is more than full on average; what has failed once is not tried again.

use crate::place::SlotDemand;
use alloc::collections::BTreeSet;
use alloc::vec;
use alloc::vec::Vec;

/// The result of the search.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum SearchResult {
    /// A start for each item.
    Placed(Vec<u32>),
    /// There is no placement.
    Impossible,
    /// The search was given up.
    Undecided,
}

type Entry = (u32, u64, usize);

struct Search {
    failed: BTreeSet<(u64, Vec<(u32, u64)>)>,
    nodes: u32,
}

/// `GaveUp` ends the search at once, `No` only this branch.
enum Stop {
    No,
    GaveUp,
}

/// Returns a start for each item so that no slot holds more than `capacity`, after at most `nodes`
/// steps.
#[must_use]
pub fn exact(items: &[SlotDemand], capacity: u64, nodes: u32) -> SearchResult {
    let mut search = Search { failed: BTreeSet::new(), nodes };
    let mut own: Vec<Entry> =
        items.iter().enumerate().map(|(index, item)| (item.period, item.cost, index)).collect();
    own.sort_by_key(|&(period, cost, _)| (core::cmp::Reverse(cost), period));
    let mut starts = vec![0; items.len()];
    match search.solve(&own, capacity, &mut starts) {
        Ok(()) => SearchResult::Placed(starts),
        Err(Stop::No) => SearchResult::Impossible,
        Err(Stop::GaveUp) => SearchResult::Undecided,
    }
}

/// `Σ cost / period` rounded up, as far as it matters.
fn mean_exceeds(items: &[Entry], capacity: u64) -> bool {
    let scale = crate::PERIOD_MAX;
    let sum: u128 =
        items.iter().map(|(period, cost, _)| u128::from(*cost) * u128::from(scale / period)).sum();
    sum > u128::from(capacity) * u128::from(scale)
}

impl Search {
    fn solve(&mut self, items: &[Entry], capacity: u64, starts: &mut [u32]) -> Result<(), Stop> {
        self.nodes = self.nodes.checked_sub(1).ok_or(Stop::GaveUp)?;
        if mean_exceeds(items, capacity) {
            return Err(Stop::No);
        }
        let (always, rest): (Vec<Entry>, Vec<Entry>) = items.iter().partition(|item| item.0 == 1);
        let taken: u64 = always.iter().map(|item| item.1).sum();
        for item in always {
            starts[item.2] = 0;
        }
        if rest.is_empty() {
            return Ok(());
        }
        let capacity = capacity - taken;
        let mut key: Vec<(u32, u64)> = rest.iter().map(|item| (item.0, item.1)).collect();
        key.sort_unstable();
        let key = (capacity, key);
        if self.failed.contains(&key) {
            return Err(Stop::No);
        }
        let halves: Vec<_> = rest.iter().map(|item| (item.0 / 2, item.1, item.2)).collect();
        let mut sides = [Vec::new(), Vec::new()];
        let found = self.divide(&halves, &mut sides, capacity, starts);
        if let Err(Stop::No) = found {
            self.failed.insert(key);
        }
        found
    }

    /// Decides for one item after the other on which side it is.
    fn divide(
        &mut self,
        items: &[Entry],
        sides: &mut [Vec<Entry>; 2],
        capacity: u64,
        starts: &mut [u32],
    ) -> Result<(), Stop> {
        self.nodes = self.nodes.checked_sub(1).ok_or(Stop::GaveUp)?;
        let Some((first, rest)) = items.split_first() else {
            let [even, odd] = sides.clone();
            self.solve(&even, capacity, starts)?;
            self.solve(&odd, capacity, starts)?;
            even.iter().for_each(|item| starts[item.2] *= 2);
            odd.iter().for_each(|item| starts[item.2] = starts[item.2] * 2 + 1);
            return Ok(());
        };
        for side in [0, 1] {
            // Mirror images: the first of all is even; equal items fill the even side first.
            let equal = |other: &Entry| (other.0, other.1) == (first.0, first.1);
            let mirrored = side == 0 && sides[1].last().is_some_and(equal);
            if mirrored || (side == 1 && sides[0].is_empty() && sides[1].is_empty()) {
                continue;
            }
            sides[side].push(*first);
            if !mean_exceeds(&sides[side], capacity) {
                match self.divide(rest, sides, capacity, starts) {
                    Err(Stop::No) => {}
                    done => return done,
                }
            }
            sides[side].pop();
        }
        Err(Stop::No)
    }
}
