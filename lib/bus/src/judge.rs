//! Whether every guarantee holds on a given pattern of slots.

use crate::endpoint::{Async, BusInstance};
use crate::limits::EndpointId;
use crate::rotation::Rotation;
use crate::time::Picos;
use crate::worst::Pattern;
use alloc::vec::Vec;

/// A ratio of one, in the unit of [`Judge::ratio`].
pub const ONE: u64 = 1_000_000;
/// Patterns that are worse than this are not worth being compared.
pub const HOPELESS: u64 = 4 * ONE;

struct Demand {
    id: EndpointId,
    rotation: Rotation,
    /// The part of the period that is left for the bus.
    limit: Picos,
}

/// The guarantees of a bus instance, ready to be tested against many patterns.
pub(crate) struct Judge {
    demands: Vec<Demand>,
    slot: Picos,
    doorbell: Picos,
}

/// A guarantee that does not hold.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Broken {
    /// The endpoint it belongs to.
    pub id: EndpointId,
    /// How long a transfer may take; `None`: for ever, or more than four periods.
    pub worst: Option<Picos>,
    /// The longest time that the transfer may take.
    pub limit: Picos,
}

impl Judge {
    /// Transfers are followed for so many times their period.
    pub const HORIZON: u64 = 4;

    /// Returns all guarantees of `asyncs`.
    #[must_use]
    pub fn new(bus: &BusInstance, asyncs: &[Async]) -> Judge {
        let slot = bus.speed.slot();
        let mut demands: Vec<Demand> = Vec::new();
        for (index, endpoint) in asyncs.iter().enumerate() {
            let Some(guarantee) = endpoint.guarantee else { continue };
            let limit = slot.times(guarantee.period.into()) - bus.doorbell;
            for rotation in Rotation::all(bus, asyncs, index, guarantee) {
                let same = |d: &Demand| d.rotation == rotation && d.limit == limit;
                if !demands.iter().any(same) {
                    demands.push(Demand { id: endpoint.id, rotation, limit });
                }
            }
        }
        Judge { demands, slot, doorbell: bus.doorbell }
    }

    /// No guaranteed transfer touches more slots than this.
    #[must_use]
    pub fn window(&self) -> usize {
        let slots = self.demands.iter().map(|demand| demand.limit.0.div_ceil(self.slot.0) + 1);
        slots.max().unwrap_or(1) as usize
    }

    /// Returns whether every guarantee holds.
    #[must_use]
    pub fn holds(&self, load: &[Picos]) -> bool {
        let pattern = Pattern { load, slot: self.slot };
        self.demands.iter().all(|d| pattern.worst_time(&d.rotation, d.limit).is_some())
    }

    /// Returns whether the guarantees could hold on some pattern with this mean: the work of a
    /// transfer is not more than what all slots of its period have on average. `sum` is over
    /// `slots` slots.
    #[must_use]
    pub fn is_possible(&self, sum: u128, slots: usize) -> bool {
        let slots = slots.max(1) as u128;
        let left = (u128::from(self.slot.0) * slots).saturating_sub(sum);
        self.demands.iter().all(|d| {
            let work = u128::from(d.rotation.until(d.rotation.items()));
            work * slots * u128::from(self.slot.0) <= left * u128::from(d.limit.0)
        })
    }

    /// Returns the largest worst time in units of what is allowed, in millionths, rounded up; at
    /// most `ONE` if and only if everything holds. `u64::MAX` beyond `most` or [`HOPELESS`], where
    /// the search ends early.
    #[must_use]
    pub fn ratio(&self, load: &[Picos], most: u64) -> u64 {
        let pattern = Pattern { load, slot: self.slot };
        let most = most.min(HOPELESS);
        let mut largest = 0;
        for demand in &self.demands {
            let limit = u128::from(demand.limit.0.max(1));
            let end = (limit * u128::from(most)).div_ceil(u128::from(ONE));
            let end = Picos(u64::try_from(end).unwrap_or(u64::MAX));
            let Some(worst) = pattern.worst_time(&demand.rotation, end) else { return u64::MAX };
            let ratio = (u128::from(worst.0) * u128::from(ONE)).div_ceil(limit);
            largest = largest.max(u64::try_from(ratio).unwrap_or(u64::MAX));
        }
        largest
    }

    /// Returns the first guarantee that does not hold.
    #[must_use]
    pub fn broken(&self, load: &[Picos]) -> Option<Broken> {
        let pattern = Pattern { load, slot: self.slot };
        self.demands.iter().find_map(|demand| {
            let horizon = demand.limit.times(Judge::HORIZON);
            let worst = pattern.worst_time(&demand.rotation, horizon);
            let holds = worst.is_some_and(|worst| worst <= demand.limit);
            (!holds).then_some(Broken {
                id: demand.id,
                worst: worst.map(|worst| worst + self.doorbell),
                limit: demand.limit + self.doorbell,
            })
        })
    }
}
