//! The cost of mutexes under bandwidth inheritance: the time of others that a VCPU pays for.
//!
//! A VCPU whose thread waits for a mutex runs the holder in the waiter's place and on the waiter's
//! budget. Servers keep their guarantees, since none gets more than its budget; what changes is the
//! demand on the waiter's: each job must include what it may have to do for others.
//!
//! Assumptions. One core. Sections nest, and mutexes are always taken in an order without a cycle.
//! Inside a section a thread waits for nothing but the mutexes of sections inside it. A mutex that
//! is let go is taken by the first who is chosen of those that want it: the most urgent one with
//! budget. Lengths are worst execution times, sections inside included, waiting not. The holder
//! runs on its own budget as long as it has some and is the more urgent.
//!
//! Then, each time a job takes a mutex, a *less urgent* VCPU holds it at most once: the thread that
//! gets it next is more urgent. That holder may itself wait for a mutex inside its section, whose
//! holder is then helped, too, and so on down the order: a chain. A *more urgent* holder needs help
//! only if its budget ran out inside the section: never if it conforms, and otherwise at most once
//! for each replenishment. VCPUs of one DP queue are more and less urgent by turns, since a
//! deadline moves with every replenishment, whether or not budgets last: they count as both.

use super::model::{Queue, SharedCore};
use alloc::vec;
use alloc::vec::Vec;
use diapason_abi::Nanos;

/// A critical section of a thread on a VCPU.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
pub struct Section {
    pub vcpu: usize,
    /// The mutex, by a number of the caller's.
    pub mutex: usize,
    /// Worst execution time from lock to unlock, sections inside included.
    pub length: Nanos,
    /// The number of times that the section is run: per job, or, for a section inside another, per
    /// run of that one.
    pub times: u32,
    /// The section it lies in, which is earlier in the list.
    pub inside: Option<usize>,
}

/// Whether the budget of a VCPU is known to last.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Budgets {
    /// The VCPU conforms: it never runs out of budget inside a section. (Run-time check: the
    /// counter of budgets that ended inside a section stays zero.)
    Last,
    /// The VCPU's budget may end anywhere.
    MayEnd,
}

/// Why there is no bound. The index is the section's.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Unbounded {
    /// The VCPU does not exist.
    UnknownVcpu(usize),
    /// Inside a section that is not earlier in the list, is another VCPU's, or is shorter.
    WrongNest(usize),
    /// The order in which mutexes are taken has a cycle through this section: a deadlock.
    Cycle(usize),
}

/// Sections that nest and cannot deadlock, and the VCPUs that they are on.
#[derive(Clone, Debug)]
pub struct Sharing {
    system: SharedCore,
    sections: Vec<Section>,
    /// Places of sections: what a chain through one costs needs only those before it.
    order: Vec<usize>,
}

impl Sharing {
    /// # Errors
    /// Sections that do not nest, or may deadlock.
    pub fn new(system: SharedCore, sections: Vec<Section>) -> Result<Sharing, Unbounded> {
        check(&system, &sections)?;
        let order = inner_first(&sections)?;
        Ok(Sharing { system, sections, order })
    }

    /// Returns the extra demand of one job of `vcpu`: what its budget must hold beyond its own
    /// work, so that u(d) is the number of jobs in d times the sum of both. `budgets` says of each
    /// VCPU whether its budget lasts. The job takes no longer than `window`, which bounds how often
    /// others come back while it waits, where they can.
    #[must_use]
    pub fn extra(&self, vcpu: usize, budgets: &dyn Fn(usize) -> Budgets, window: Nanos) -> Nanos {
        let help = Help::of(&self.system, &self.sections, (budgets, window), vcpu);
        let chains = help.chains(&self.order);
        let mut sum = 0u64;
        for (index, section) in self.sections.iter().enumerate() {
            if section.vcpu == vcpu {
                let each = help.waiting(&chains, section.mutex, vcpu);
                sum = sum.saturating_add(each.saturating_mul(runs(&self.sections, index)));
            }
        }
        Nanos(sum)
    }
}

/// [`Sharing::extra`] of each Main VCPU, if the same is known of all budgets.
///
/// # Errors
/// Sections that do not nest, or may deadlock.
pub fn extra_demand(
    system: &SharedCore,
    sections: &[Section],
    budgets: Budgets,
    window: Nanos,
) -> Result<Vec<Nanos>, Unbounded> {
    let sharing = Sharing::new(system.clone(), sections.to_vec())?;
    let each = 0..system.mains.len();
    Ok(each.map(|vcpu| sharing.extra(vcpu, &|_| budgets, window)).collect())
}

fn check(system: &SharedCore, sections: &[Section]) -> Result<(), Unbounded> {
    for (index, section) in sections.iter().enumerate() {
        if section.vcpu >= system.mains.len() {
            return Err(Unbounded::UnknownVcpu(index));
        }
        let Some(outer) = section.inside else { continue };
        let fits = sections[..index].get(outer).is_some_and(|outer| {
            let inner = section.length.0.saturating_mul(u64::from(section.times));
            outer.vcpu == section.vcpu && inner <= outer.length.0
        });
        if !fits {
            return Err(Unbounded::WrongNest(index));
        }
    }
    Ok(())
}

/// Returns how often a section is run per job.
fn runs(sections: &[Section], index: usize) -> u64 {
    let mut times = u64::from(sections[index].times);
    let mut outer = sections[index].inside;
    while let Some(at) = outer {
        times = times.saturating_mul(u64::from(sections[at].times));
        outer = sections[at].inside;
    }
    times
}

/// Sections such that all sections of the mutexes taken inside one come before it: what a chain
/// through a section costs needs only those before.
fn inner_first(sections: &[Section]) -> Result<Vec<usize>, Unbounded> {
    let mut order = Vec::with_capacity(sections.len());
    let mut placed = vec![false; sections.len()];
    let waits_for = |outer: usize, other: usize, placed: &[bool]| {
        // `outer` waits for `other` if it takes the mutex of `other` inside.
        let taken = |inner: usize| {
            sections[inner].mutex == sections[other].mutex && inside(sections, inner, outer)
        };
        !placed[other] && (0..sections.len()).any(taken)
    };
    while order.len() < sections.len() {
        let free = (0..sections.len()).find(|index| {
            let all = 0..sections.len();
            !placed[*index] && !all.into_iter().any(|other| waits_for(*index, other, &placed))
        });
        let Some(free) = free else {
            let stuck = placed.iter().position(|placed| !placed);
            return Err(Unbounded::Cycle(stuck.unwrap_or_default()));
        };
        placed[free] = true;
        order.push(free);
    }
    Ok(order)
}

/// The threads that one VCPU may help, and how often for each time it takes a mutex.
struct Help<'a> {
    sections: &'a [Section],
    helper: usize,
    /// By VCPU: whether it may hold a mutex as the less urgent.
    lower: Vec<bool>,
    /// By VCPU: how often its budget may end in a section while the helper waits.
    ends: Vec<u64>,
}

impl<'a> Help<'a> {
    fn of(
        system: &SharedCore,
        sections: &'a [Section],
        (budgets, window): (&dyn Fn(usize) -> Budgets, Nanos),
        helper: usize,
    ) -> Help<'a> {
        let own = &system.mains[helper];
        let rank = |vcpu: usize| {
            let main = &system.mains[vcpu];
            (main.queue, main.period, vcpu)
        };
        let peers = |vcpu: usize| own.queue != Queue::Fp && system.mains[vcpu].queue == own.queue;
        let all = 0..system.mains.len();
        let lower = all.clone().map(|vcpu| peers(vcpu) || rank(vcpu) > rank(helper)).collect();
        let ends = all.map(|vcpu| {
            let urgent = rank(vcpu) < rank(helper) && budgets(vcpu) == Budgets::MayEnd;
            if peers(vcpu) || urgent { replenishments(system, vcpu, window) } else { 0 }
        });
        Help { sections, helper, lower, ends: ends.collect() }
    }

    /// Returns the time that may run for others on the helper's budget when `waiter` takes `mutex`.
    fn waiting(&self, chains: &[u64], mutex: usize, waiter: usize) -> u64 {
        let mut longest = 0;
        let mut above = 0u64;
        for (vcpu, ends) in self.ends.iter().enumerate() {
            if vcpu == waiter || vcpu == self.helper {
                continue;
            }
            let theirs = self.sections.iter().zip(chains);
            let theirs =
                theirs.filter(|(section, _)| section.vcpu == vcpu && section.mutex == mutex);
            let chain = theirs.map(|(_, chain)| *chain).max().unwrap_or(0);
            if self.lower[vcpu] {
                longest = longest.max(chain);
            }
            above = above.saturating_add(chain.saturating_mul(*ends));
        }
        above.saturating_add(longest)
    }

    /// Returns for each section what finishing it may cost the helper, with all those it waits for
    /// inside.
    fn chains(&self, order: &[usize]) -> Vec<u64> {
        let mut chains = vec![0u64; self.sections.len()];
        for at in order {
            let mut sum = self.sections[*at].length.0;
            for (inner, section) in self.sections.iter().enumerate() {
                if inside(self.sections, inner, *at) {
                    let each = self.waiting(&chains, section.mutex, section.vcpu);
                    let times = runs(self.sections, inner) / runs(self.sections, *at).max(1);
                    sum = sum.saturating_add(each.saturating_mul(times));
                }
            }
            chains[*at] = sum;
        }
        chains
    }
}

/// Returns whether one section lies in another, at whatever depth.
fn inside(sections: &[Section], inner: usize, outer: usize) -> bool {
    let mut at = sections[inner].inside;
    while let Some(next) = at {
        if next == outer {
            return true;
        }
        at = sections[next].inside;
    }
    false
}

/// Replenishments of a VCPU that may be used up in a window: those of each period in it, and what
/// was there at its start.
fn replenishments(system: &SharedCore, vcpu: usize, window: Nanos) -> u64 {
    let main = &system.mains[vcpu];
    let periods = window.0.div_ceil(main.period.0.max(1)).saturating_add(1);
    periods.saturating_mul(u64::from(main.chunks))
}
