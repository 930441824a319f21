//! A schedule for several modes of operation: each endpoint has the same slots in every mode in
//! which it runs, so a change of mode disturbs nothing that stays.
//!
//! In a mode all of its endpoints run, each at its own period. A change stops what ends and then
//! starts what begins. At every instant the bus therefore has a part of the old mode or a part of
//! the new one. A transfer that lasts from the one into the other sees slots of both. It takes no
//! longer than it would if each slot had the larger load of the two.

use crate::endpoint::{Async, BusInstance, PeriodicEndpoint, Starts, check};
use crate::judge::Judge;
use crate::limits::EndpointId;
use crate::nonsense::InvalidDemand;
use crate::place::{Bins, SlotDemand};
use crate::plan::{BusPlan, Placed, Promise, plan, promises, without_periodic};
use crate::refusal::{EndpointRefusal, NoSchedule};
use crate::time::Picos;
use alloc::collections::VecDeque;
use alloc::vec;
use alloc::vec::Vec;

/// How often an endpoint that found no slots goes first in another attempt.
const ATTEMPTS: usize = 60;

/// The schedules of all modes, and the promises while one mode follows another.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ModePlan {
    /// The schedule of each mode.
    pub modes: Vec<BusPlan>,
    /// Each pair of modes, the first with the lower number. A change in either direction keeps the
    /// same promises.
    pub changes: Vec<ModeChange>,
    /// Slots that must pass from one change to the next. No guaranteed transfer lasts longer, so
    /// none sees more than two modes.
    pub rest: u32,
}

/// Two modes of which one may follow the other.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ModeChange {
    /// The numbers of the modes.
    pub modes: (usize, usize),
    /// One for each guarantee, for transfers that the change meets.
    pub promises: Vec<Promise>,
}

/// Why several modes have no common schedule.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum NoModes {
    /// The description makes no sense: the caller's mistake.
    Nonsense(InvalidDemand),
    /// A mode has no schedule, whatever the others are.
    Mode { mode: usize, refusal: EndpointRefusal },
    /// Each mode has a schedule. No slots were found for this endpoint that let both modes, and the
    /// change between them, keep their promises; both numbers are equal if a single mode lacks room
    /// beside endpoints that have their slots for the sake of others.
    Change { modes: (usize, usize), endpoint: EndpointId },
}

/// Returns the schedules of modes, each a list of the periodic endpoints that run in it.
///
/// # Errors
/// Returns an error for a description that makes no sense, or names a mode or a pair of modes that
/// has no schedule.
pub fn plan_modes(
    bus: &BusInstance,
    periodic: &[PeriodicEndpoint],
    asyncs: &[Async],
    modes: &[&[EndpointId]],
) -> Result<ModePlan, NoModes> {
    check(bus, periodic, asyncs).map_err(NoModes::Nonsense)?;
    let known = |id: &EndpointId| periodic.iter().any(|endpoint| endpoint.id == *id);
    if let Some(id) = modes.iter().flat_map(|ids| ids.iter()).find(|id| !known(id)) {
        return Err(NoModes::Nonsense(InvalidDemand::Unknown(*id)));
    }
    let judge = Judge::new(bus, asyncs);
    if let Err(refusal) = without_periodic(bus, asyncs, &judge) {
        return Err(NoModes::Mode { mode: 0, refusal });
    }
    let attempt = Attempt { bus, judge: &judge, periodic, modes };
    let starts = attempt.starts().map_err(|no| explain(&attempt, asyncs, no))?;
    Ok(attempt.finish(asyncs, &starts))
}

/// Returns the refusal of a single mode if there is one, which says more than `no`.
fn explain(attempt: &Attempt<'_>, asyncs: &[Async], no: NoModes) -> NoModes {
    for (mode, ids) in attempt.modes.iter().enumerate() {
        let runs = attempt.periodic.iter().filter(|endpoint| ids.contains(&endpoint.id));
        let fixed = |endpoint: &PeriodicEndpoint| PeriodicEndpoint {
            criticality: crate::Criticality::High,
            longest_period: endpoint.period,
            ..*endpoint
        };
        let runs: Vec<PeriodicEndpoint> = runs.map(fixed).collect();
        match plan(attempt.bus, &runs, asyncs) {
            Ok(_) => {}
            Err(NoSchedule::Nonsense(nonsense)) => return NoModes::Nonsense(nonsense),
            Err(NoSchedule::Refused(refusal)) => return NoModes::Mode { mode, refusal },
        }
    }
    no
}

/// The search for common slots.
struct Attempt<'a> {
    bus: &'a BusInstance,
    judge: &'a Judge,
    periodic: &'a [PeriodicEndpoint],
    modes: &'a [&'a [EndpointId]],
}

impl Attempt<'_> {
    fn item(&self, index: usize) -> SlotDemand {
        let endpoint = &self.periodic[index];
        let period = if self.bus.starts == Starts::Unknown { 1 } else { endpoint.period };
        SlotDemand::new(endpoint.cost(self.bus).0, period)
    }

    fn runs(&self, index: usize, mode: usize) -> bool {
        self.modes[mode].contains(&self.periodic[index].id)
    }

    /// Returns the modes without endpoints.
    fn empty(&self) -> Vec<Bins> {
        let periods = (0..self.periodic.len()).map(|index| self.item(index).period);
        let slots = periods.max().unwrap_or(1);
        vec![Bins::new(slots, self.bus.periodic_limit().0); self.modes.len()]
    }

    /// Returns the first slot of each endpoint.
    fn starts(&self) -> Result<Vec<u32>, NoModes> {
        // The shortest period first, and then the largest.
        let mut order: Vec<usize> = (0..self.periodic.len()).collect();
        order.sort_by_key(|index| {
            let item = self.item(*index);
            (item.period, u64::MAX - item.cost)
        });
        let mut order: VecDeque<usize> = order.into();
        for _ in 0..ATTEMPTS {
            match self.in_order(&order) {
                Ok(starts) => return Ok(starts),
                Err((index, _)) => {
                    order.retain(|other| *other != index);
                    order.push_front(index);
                }
            }
        }
        self.in_order(&order).map_err(|(_, no)| no)
    }

    /// Gives slots to one endpoint after the other. `Err`: the first that finds none.
    fn in_order(&self, order: &VecDeque<usize>) -> Result<Vec<u32>, (usize, NoModes)> {
        let (mut bins, mut starts) = (self.empty(), vec![0; self.periodic.len()]);
        for &index in order {
            starts[index] = self.place(&mut bins, index).map_err(|no| (index, no))?;
        }
        Ok(starts)
    }

    /// Gives slots to an endpoint: those with least load in its own modes, and among these the ones
    /// that other modes fill most.
    fn place(&self, bins: &mut [Bins], index: usize) -> Result<u32, NoModes> {
        let item = self.item(index);
        let own: Vec<usize> = (0..bins.len()).filter(|mode| self.runs(index, *mode)).collect();
        let peak = |modes: &mut dyn Iterator<Item = &Bins>, start| {
            modes.map(|bins| bins.peak(item.period, start).1).max().unwrap_or(0)
        };
        let mut candidates: Vec<(u64, u64, u32)> = (0..item.period)
            .map(|start| {
                let ours = peak(&mut own.iter().map(|mode| &bins[*mode]), start);
                // Load of the other modes in the same slots makes changes cheap.
                let all = peak(&mut bins.iter(), start);
                (ours, u64::MAX - all, start)
            })
            .collect();
        candidates.sort_unstable();
        let mut why = None;
        for (.., start) in candidates {
            own.iter().for_each(|mode| bins[*mode].put(&item, start));
            match self.broken(bins, &own) {
                None => return Ok(start),
                Some(modes) => {
                    why.get_or_insert(modes);
                }
            }
            own.iter().for_each(|mode| bins[*mode].take(&item, start));
        }
        let (modes, endpoint) = (why.unwrap_or_default(), self.periodic[index].id);
        Err(NoModes::Change { modes, endpoint })
    }

    /// Returns the first pair of modes, one of them among `own`, that breaks something.
    fn broken(&self, bins: &[Bins], own: &[usize]) -> Option<(usize, usize)> {
        let limit = self.bus.periodic_limit().0;
        let full = |mode: &&usize| bins[**mode].load().iter().any(|load| *load > limit);
        if let Some(mode) = own.iter().find(full) {
            return Some((*mode, *mode));
        }
        let pairs = own.iter().flat_map(|mode| (0..bins.len()).map(|other| (*mode, other)));
        let mut broken = pairs.filter(|(mode, other)| {
            let load = larger(&bins[*mode].pattern(), &bins[*other].pattern());
            !self.judge.holds(&load)
        });
        broken.next().map(|(mode, other)| (mode.min(other), mode.max(other)))
    }

    /// Returns the schedules with these first slots.
    fn finish(&self, asyncs: &[Async], starts: &[u32]) -> ModePlan {
        let mut bins = self.empty();
        let mut placed = vec![Vec::new(); bins.len()];
        for (index, endpoint) in self.periodic.iter().enumerate() {
            let (start, period) = (starts[index], endpoint.period);
            for (mode, bins) in bins.iter_mut().enumerate() {
                if self.runs(index, mode) {
                    bins.put(&self.item(index), start);
                    placed[mode].push(Placed { id: endpoint.id, start, period });
                }
            }
        }
        let of = |load: &[Picos]| promises(self.bus, asyncs, load);
        let loads: Vec<Vec<Picos>> = bins.iter().map(Bins::pattern).collect();
        let mut changes = Vec::new();
        for (second, load) in loads.iter().enumerate() {
            for (first, before) in loads[..second].iter().enumerate() {
                let promises = of(&larger(before, load));
                changes.push(ModeChange { modes: (first, second), promises });
            }
        }
        let modes = placed.into_iter().zip(loads).map(|(placed, load)| {
            let promises = of(&load);
            BusPlan { placed, refused: Vec::new(), promises, load }
        });
        ModePlan { modes: modes.collect(), changes, rest: self.judge.window() as u32 }
    }
}

/// Returns the larger load of each slot.
fn larger(one: &[Picos], other: &[Picos]) -> Vec<Picos> {
    one.iter().zip(other).map(|(one, other)| *one.max(other)).collect()
}
