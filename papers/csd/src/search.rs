//! The best allocation of tasks to queues, without testing them all.
//!
//! The cost of an allocation is a sum that needs no test: all allocations are listed with their
//! cost, 166,751 for 100 tasks and four queues, and tested from the cheapest on. Two facts, both
//! consequences of "more work never helps", keep the number of tests small:
//!
//! - Making the last DP queue of a prefix longer, or splitting more queues off the FP queue, lowers
//!   no charge of the tasks already placed. So a prefix whose last queue is refused at the least
//!   charges it can have rules out all allocations that begin with it, and those in which that
//!   queue is longer. (The exception, an FP queue that becomes empty and saves its place in the
//!   list of queues, is not ruled out by this.)
//! - With r tasks in DP queues, whatever the split, there is a least charge for DP and for FP
//!   tasks. If the FP queue is refused with these, it is refused in every allocation with this r.
//!
//! An allocation that is ruled out stays so if costs grow, so the search for the breakdown
//! utilization keeps that knowledge. The answer is that of trying all; [`exhaustive`] does, and a
//! test compares them.

use crate::task::CsdTask;
use crate::test::{
    SchedulabilityTest, Unschedulable, charged, check, dp_queue, fp_queue, fp_response,
};
use crate::utilization::{ONE, upper};
use crate::{Allocation, QUEUES_MAX, QueuePrices, TaskSet, inflate};
use alloc::collections::BTreeMap;
use alloc::vec;
use alloc::vec::Vec;

/// The best allocation and what it costs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct BestAllocation {
    /// The allocation of tasks to queues.
    pub allocation: Allocation,
    /// Share of the processor that scheduling takes, in units of 1/[`ONE`].
    pub overhead: u128,
    /// How many allocations were tested.
    pub tested: usize,
}

/// An allocation with its cost.
pub(super) type Candidate = (u128, Allocation);

/// Returns all allocations to at most `queues` queues, cheapest first; equals in order of their
/// lengths.
pub(super) fn candidates(set: &TaskSet, prices: &QueuePrices, queues: usize) -> Vec<Candidate> {
    let mut until = vec![0u128];
    for task in set.tasks() {
        until.push(until[until.len() - 1] + ONE / u128::from(task.period.0));
    }
    let mut found = Vec::new();
    collect(Allocation::rm(set.len()), queues.clamp(1, QUEUES_MAX), &mut |allocation| {
        let charges = prices.charges(&allocation);
        let (mut cost, mut start) = (0, 0);
        for (length, charge) in lengths(&allocation).zip(charges) {
            cost += u128::from(charge) * (until[start + length] - until[start]);
            start += length;
        }
        found.push((cost, allocation));
    });
    found.sort_unstable();
    found
}

/// Lengths of all queues, the FP queue last.
fn lengths(allocation: &Allocation) -> impl Iterator<Item = usize> {
    let dp = allocation.dp().iter().map(|length| usize::from(*length));
    dp.chain([allocation.fp()])
}

/// `allocation` and everything that splits off its FP queue, up to `queues` queues.
fn collect(allocation: Allocation, queues: usize, found: &mut impl FnMut(Allocation)) {
    found(allocation);
    if allocation.dp().len() + 1 < queues {
        for length in 1..=allocation.fp() {
            collect(allocation.split(length), queues, found);
        }
    }
}

/// Returns the cheapest allocation to at most `queues` queues (at most 8) that passes `test`.
///
/// # Panics
/// If there are no prices for as many tasks.
#[must_use]
pub fn cheapest(
    set: &TaskSet,
    prices: &QueuePrices,
    queues: usize,
    test: SchedulabilityTest,
) -> Option<BestAllocation> {
    let mut search = Search::new(set, prices, queues, test);
    let fitting = candidates(set, prices, queues)
        .into_iter()
        .take_while(|(overhead, _)| search.may_fit(*overhead));
    let candidates: Vec<Candidate> = fitting.collect();
    let (overhead, allocation) =
        candidates.into_iter().find(|(_, allocation)| search.feasible(allocation))?;
    Some(BestAllocation { allocation, overhead, tested: search.tested })
}

/// Searches by testing every allocation.
///
/// # Panics
/// If there are no prices for as many tasks.
#[must_use]
pub fn exhaustive(
    set: &TaskSet,
    prices: &QueuePrices,
    queues: usize,
    test: SchedulabilityTest,
) -> Option<BestAllocation> {
    let all = candidates(set, prices, queues);
    let tested = all.len();
    let passes = |(_, allocation): &&Candidate| {
        check(&inflate(set.tasks(), allocation, prices), allocation, test).is_ok()
    };
    let fitting: Vec<&Candidate> = all.iter().filter(passes).collect();
    let (overhead, allocation) = fitting.into_iter().min().copied()?;
    Some(BestAllocation { allocation, overhead, tested })
}

/// A search in progress: costs only ever grow.
pub(super) struct Search<'a> {
    set: &'a TaskSet,
    prices: &'a QueuePrices,
    queues: usize,
    test: SchedulabilityTest,
    /// The tasks at the present scale.
    tasks: Vec<CsdTask>,
    scale: u64,
    /// Utilization of `tasks` without scheduling, at most one unit per task too low.
    utilization: u128,
    /// After a prefix, a DP queue that ends here or later is refused.
    dead_ends: BTreeMap<Allocation, usize>,
    splits: Vec<Split>,
    pub(super) tested: usize,
}

/// The knowledge about all allocations with a given number of DP tasks.
#[derive(Clone, Copy)]
struct Split {
    dead: bool,
    /// The scale at which it was last found not to be dead.
    alive_at: u64,
    /// The FP task that was refused last.
    suspect: usize,
}

impl<'a> Search<'a> {
    /// The scale of unscaled costs.
    pub(super) const WHOLE: u64 = 1 << 16;

    pub(super) fn new(
        set: &'a TaskSet,
        prices: &'a QueuePrices,
        queues: usize,
        test: SchedulabilityTest,
    ) -> Self {
        let split = Split { dead: false, alive_at: u64::MAX, suspect: 0 };
        let splits = vec![split; set.len() + 1];
        let (tasks, dead_ends) = (Vec::new(), BTreeMap::new());
        let queues = queues.clamp(1, QUEUES_MAX);
        let (scale, utilization, tested) = (0, 0, 0);
        let mut search = Search {
            set,
            prices,
            queues,
            test,
            tasks,
            scale,
            utilization,
            dead_ends,
            splits,
            tested,
        };
        search.grow(Search::WHOLE);
        search
    }

    /// Sets all costs to `scale` / [`Search::WHOLE`] of what was given; at first, or larger than
    /// before.
    pub(super) fn grow(&mut self, scale: u64) {
        self.tasks = self.set.scaled(scale, Search::WHOLE);
        self.scale = scale;
        self.utilization = upper(&self.tasks).saturating_sub(self.tasks.len() as u128);
    }

    /// False if the processor is certainly too slow for the tasks and this much scheduling.
    pub(super) fn may_fit(&self, overhead: u128) -> bool {
        // Each of three sums is at most one unit per task off, and charges are below 2^30 ns.
        self.utilization + overhead <= ONE + ((self.tasks.len() as u128) << 31)
    }

    /// Returns whether `allocation` passes the test at the present scale.
    pub(super) fn feasible(&mut self, allocation: &Allocation) -> bool {
        if self.is_ruled_out(allocation) {
            return false;
        }
        self.tested += 1;
        let inflated = inflate(&self.tasks, allocation, self.prices);
        let in_dp = allocation.in_dp();
        let suspect = self.splits[in_dp].suspect;
        if suspect > 0 && fp_response(&inflated, suspect, 0).is_none() {
            return false;
        }
        match check(&inflated, allocation, self.test) {
            Ok(()) => true,
            Err(refusal) => {
                self.learn(allocation, refusal);
                false
            }
        }
    }

    fn is_ruled_out(&self, allocation: &Allocation) -> bool {
        if self.splits[allocation.in_dp()].dead {
            return true;
        }
        let (mut prefix, mut end) = (Allocation::rm(self.tasks.len()), 0);
        for length in allocation.dp() {
            end += usize::from(*length);
            if self.dead_ends.get(&prefix).is_some_and(|dead| *dead <= end)
                && end < self.tasks.len()
            {
                return true;
            }
            prefix = prefix.split(usize::from(*length));
        }
        false
    }

    /// Learns from a refusal about other allocations.
    fn learn(&mut self, allocation: &Allocation, refusal: Unschedulable) {
        let queue = match refusal {
            Unschedulable::Overload { queue } | Unschedulable::Undecided { queue } => queue,
            Unschedulable::Late { task, .. } => allocation.queue_of(task),
        };
        if queue < allocation.dp().len() {
            self.learn_prefix(allocation, queue);
            return;
        }
        let in_dp = allocation.in_dp();
        if let Unschedulable::Late { task, .. } = refusal {
            self.splits[in_dp].suspect = task;
        }
        if self.splits[in_dp].alive_at != self.scale {
            self.splits[in_dp].alive_at = self.scale;
            self.splits[in_dp].dead = self.is_dead(in_dp);
        }
    }

    /// Returns whether the FP queue is refused for every split of the tasks before it.
    fn is_dead(&self, in_dp: usize) -> bool {
        let tasks = self.tasks.len();
        let (dp, fp) = self.prices.whatever_the_split(tasks, in_dp, self.queues - 1);
        let whole = if in_dp == 0 { Allocation::rm(tasks) } else { two_queues(tasks, in_dp) };
        let charges = if in_dp == 0 { [fp, 0] } else { [dp, fp] };
        fp_queue(&charged(&self.tasks, &whole, &charges), in_dp, 0).is_err()
    }

    /// Rules out what begins like `allocation` up to `queue`, if that holds for all of it.
    fn learn_prefix(&mut self, allocation: &Allocation, queue: usize) {
        let mut before = Allocation::rm(self.tasks.len());
        for length in &allocation.dp()[..queue] {
            before = before.split(usize::from(*length));
        }
        let prefix = before.split(usize::from(allocation.dp()[queue]));
        let (start, end) = (before.in_dp(), prefix.in_dp());
        if end == self.tasks.len() {
            return;
        }
        let charges = self.prices.at_least(&prefix, queue + 2);
        let inflated = charged(&self.tasks, &prefix, &charges);
        if dp_queue(&inflated[..end], start, queue, self.test).is_err() {
            let dead = self.dead_ends.entry(before).or_insert(end);
            *dead = end.min(*dead);
        }
    }
}

/// Returns one DP queue, and the rest.
fn two_queues(tasks: usize, in_dp: usize) -> Allocation {
    Allocation::rm(tasks).split(in_dp)
}
