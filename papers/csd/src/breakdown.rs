//! Breakdown utilization: how far the costs of a set can be scaled before a scheduler fails.

use crate::search::{Search, candidates};
use crate::test::{SchedulabilityTest, check, inflate};
use crate::{Allocation, QueuePrices, TaskSet};

/// Costs are scaled in steps of one part in this many.
pub const STEPS: u64 = Search::WHOLE;

/// The largest scale at which a set still fits.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Breakdown {
    /// Costs times `scale` / [`STEPS`] fit, and no larger ones. 0 if scheduling alone is too much.
    pub scale: u64,
    /// The allocation that makes it possible.
    pub allocation: Allocation,
    /// The number of tests that the search took.
    pub tested: usize,
}

impl Breakdown {
    /// Returns the breakdown utilization: what the tasks themselves compute, scheduling not
    /// included.
    #[must_use]
    pub fn utilization(&self, set: &TaskSet) -> f64 {
        set.utilization() * self.scale as f64 / STEPS as f64
    }
}

/// Scale at which the tasks alone fill the processor: no scheduler gets beyond. If they compute
/// next to nothing, a scale at which nobody asks further.
fn ceiling(set: &TaskSet) -> u64 {
    let utilization = set.utilization();
    if utilization <= 0.0 { STEPS } else { (STEPS as f64 / utilization).min(1e15) as u64 + 2 }
}

/// Returns the largest scale below `too_much` that `fits`, knowing that `low` fits; `fits` is
/// monotone.
fn largest(mut low: u64, mut too_much: u64, mut fits: impl FnMut(u64) -> bool) -> u64 {
    while low + 1 < too_much {
        let middle = low + (too_much - low) / 2;
        if fits(middle) { low = middle } else { too_much = middle }
    }
    low
}

/// Breakdown of one allocation.
///
/// # Panics
/// If there are no prices for as many tasks.
#[must_use]
pub fn of_allocation(
    set: &TaskSet,
    prices: &QueuePrices,
    allocation: &Allocation,
    test: SchedulabilityTest,
) -> Breakdown {
    let mut tested = 0;
    let scale = largest(0, ceiling(set), |scale| {
        tested += 1;
        fits(set, prices, allocation, test, scale)
    });
    Breakdown { scale, allocation: *allocation, tested }
}

fn fits(
    set: &TaskSet,
    prices: &QueuePrices,
    allocation: &Allocation,
    test: SchedulabilityTest,
    scale: u64,
) -> bool {
    let tasks = inflate(&set.scaled(scale, STEPS), allocation, prices);
    check(&tasks, allocation, test).is_ok()
}

/// Breakdown of CSD with at most `queues` queues, the best allocation at each scale. `known` is
/// the breakdown with fewer queues, or of any allocation that is allowed here.
///
/// # Panics
/// If there are no prices for as many tasks.
#[must_use]
pub fn of_csd(
    set: &TaskSet,
    prices: &QueuePrices,
    queues: usize,
    test: SchedulabilityTest,
    known: Breakdown,
) -> Breakdown {
    let mut best = Breakdown { tested: 0, ..known };
    let mut search = Search::new(set, prices, queues, test);
    search.grow(best.scale.saturating_add(1));
    for (overhead, allocation) in candidates(set, prices, queues) {
        if !search.may_fit(overhead) || best.scale + 1 >= ceiling(set) {
            break;
        }
        if !search.feasible(&allocation) {
            continue;
        }
        let scale = largest(best.scale + 1, ceiling(set), |scale| {
            best.tested += 1;
            fits(set, prices, &allocation, test, scale)
        });
        (best.scale, best.allocation) = (scale, allocation);
        search.grow(scale + 1);
    }
    Breakdown { tested: best.tested + search.tested, ..best }
}

/// Finds the breakdown by searching that of every allocation.
///
/// # Panics
/// If there are no prices for as many tasks.
#[must_use]
pub fn exhaustive(
    set: &TaskSet,
    prices: &QueuePrices,
    queues: usize,
    test: SchedulabilityTest,
) -> Breakdown {
    let all = candidates(set, prices, queues);
    let tried = all.iter().map(|(_, allocation)| of_allocation(set, prices, allocation, test));
    let none = Breakdown { scale: 0, allocation: Allocation::rm(set.len()), tested: 0 };
    tried.fold(none, |best, other| {
        let tested = best.tested + other.tested;
        let better = if other.scale > best.scale { other } else { best };
        Breakdown { tested, ..better }
    })
}
