//! The schedule of a bus instance from scratch: Algorithm 1 with exact tests in place of `t_A`.
//!
//! Guarantees of asynchronous endpoints and high-criticality periodic endpoints hold together or
//! the plan is refused. Low-criticality endpoints follow by period, each at its own
//! period or at a longer one it allows, as long as everything before still holds. If a uniform
//! algorithms keep more endpoints without breaking anything, their schedule is taken.

use crate::board::Board;
use crate::endpoint::{Async, BusInstance, Guarantee, PeriodicEndpoint, check};
use crate::judge::{Broken, Judge};
use crate::limits::{EndpointId, GUARANTEE_SLOTS_MAX};
use crate::nonsense::InvalidDemand;
use crate::refusal::{EndpointRefusal, FittingDemand, NoSchedule, RefusalReason};
use crate::rotation::Rotation;
use crate::time::Picos;
use crate::worst::Pattern;
use alloc::vec;
use alloc::vec::Vec;

/// A periodic endpoint with a place: it transmits in slots `start + a·period`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Placed {
    pub id: EndpointId,
    pub start: u32,
    /// The endpoint's period, which may be longer than the one asked for.
    pub period: u32,
}

/// The promise to an asynchronous endpoint, and what it gets.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Promise {
    pub id: EndpointId,
    /// The guarantee that was requested.
    pub guarantee: Guarantee,
    /// Longest time from the doorbell to the end of the last packet: a least upper bound.
    pub worst: Picos,
    /// The longest time if the order of the round robin is not known; `None`: longer than
    /// guaranteed.
    pub any_order: Option<Picos>,
}

/// A schedule in which everything holds.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct BusPlan {
    /// Periodic endpoints with a place, in their order.
    pub placed: Vec<Placed>,
    pub refused: Vec<EndpointRefusal>,
    /// One per guarantee, in their order.
    pub promises: Vec<Promise>,
    /// Periodic time in each slot of the hyperperiod.
    pub load: Vec<Picos>,
}

/// Returns the schedule of everything on `bus`.
///
/// # Errors
/// Returns an error for a description that makes no sense, or names the first endpoint whose
/// guarantee is impossible.
pub fn plan(
    bus: &BusInstance,
    periodic: &[PeriodicEndpoint],
    asyncs: &[Async],
) -> Result<BusPlan, NoSchedule> {
    check(bus, periodic, asyncs)?;
    let judge = Judge::new(bus, asyncs);
    without_periodic(bus, asyncs, &judge).map_err(NoSchedule::Refused)?;
    let mut board = Board::new(bus, &judge, periodic);
    from_scratch(&mut board, asyncs).map_err(NoSchedule::Refused)?;
    Ok(BusPlan::of(&board, asyncs))
}

/// Checks whether the guarantees hold on an empty bus.
pub(crate) fn without_periodic(
    bus: &BusInstance,
    asyncs: &[Async],
    judge: &Judge,
) -> Result<(), EndpointRefusal> {
    judge.broken(&[]).map_or(Ok(()), |broken| Err(refuse_alone(bus, asyncs, broken)))
}

/// Fills an empty board.
pub(crate) fn from_scratch(board: &mut Board<'_>, asyncs: &[Async]) -> Result<(), EndpointRefusal> {
    let movable = vec![true; board.periodic.len()];
    let outcomes = board.uniform(asyncs);
    match (board.place_high(&movable), outcomes.first()) {
        (Ok(()), _) => board.place_low(&movable),
        (Err(refusal), None) => return Err(refusal),
        (Err(_), Some(outcome)) => board.adopt(outcome),
    }
    for outcome in &outcomes {
        if outcome.starts.iter().flatten().count() > board.count() {
            board.adopt(outcome);
        }
    }
    board.place_low(&movable);
    board.polish(&movable);
    Ok(())
}

impl BusPlan {
    pub(crate) fn of(board: &Board<'_>, asyncs: &[Async]) -> BusPlan {
        let load = board.load();
        let places = board.periodic.iter().zip(&board.at);
        let placed = places.filter_map(|(endpoint, at)| {
            at.map(|(start, period)| Placed { id: endpoint.id, start, period })
        });
        let without = (0..board.at.len()).filter(|index| board.at[*index].is_none());
        BusPlan {
            placed: placed.collect(),
            refused: without.map(|index| board.explain(index)).collect(),
            promises: promises(board.bus, asyncs, &load),
            load,
        }
    }

    /// Longest time for a transfer of `bytes` of the asynchronous endpoint `id` under this
    /// schedule, whatever it is guaranteed; `None`: longer than [`GUARANTEE_SLOTS_MAX`] slots.
    ///
    /// # Errors
    /// If `id` is not among `asyncs`, or the number of bytes is 0 or above [`crate::BYTES_MAX`].
    pub fn worst_time(
        &self,
        bus: &BusInstance,
        asyncs: &[Async],
        id: EndpointId,
        bytes: u32,
    ) -> Result<Option<Picos>, InvalidDemand> {
        check(bus, &[], asyncs)?;
        let index = asyncs.iter().position(|a| a.id == id).ok_or(InvalidDemand::Unknown(id))?;
        let guarantee = Guarantee { bytes, period: GUARANTEE_SLOTS_MAX };
        Async { guarantee: Some(guarantee), ..asyncs[index] }.check(bus)?;
        Ok(worst_of(bus, asyncs, index, guarantee, &self.load, exactly))
    }
}

fn exactly(pattern: &Pattern<'_>, rotation: &Rotation, limit: Picos) -> Option<Picos> {
    pattern.worst_time(rotation, limit)
}

/// Returns the worst over all sequences that the controller may follow.
fn worst_of(
    bus: &BusInstance,
    asyncs: &[Async],
    index: usize,
    guarantee: Guarantee,
    load: &[Picos],
    bound: impl Fn(&Pattern<'_>, &Rotation, Picos) -> Option<Picos>,
) -> Option<Picos> {
    let pattern = Pattern { load, slot: bus.speed.slot() };
    let limit = pattern.slot.times(guarantee.period.into()) - bus.doorbell;
    let rotations = Rotation::all(bus, asyncs, index, guarantee);
    let each = rotations.iter().map(|rotation| bound(&pattern, rotation, limit));
    let worst = each.collect::<Option<Vec<_>>>()?.into_iter().max()?;
    Some(worst + bus.doorbell)
}

pub(crate) fn promises(bus: &BusInstance, asyncs: &[Async], load: &[Picos]) -> Vec<Promise> {
    let guaranteed = asyncs.iter().enumerate();
    let guaranteed = guaranteed.filter_map(|(i, a)| Some((i, a.id, a.guarantee?)));
    guaranteed
        .filter_map(|(index, id, guarantee)| {
            let worst = worst_of(bus, asyncs, index, guarantee, load, exactly)?;
            let any_order = worst_of(bus, asyncs, index, guarantee, load, |p, rotation, limit| {
                p.safe_any_order(rotation, limit)
            });
            Some(Promise { id, guarantee, worst, any_order })
        })
        .collect()
}

/// Returns a guarantee that is too much for an empty bus, and what would not have been.
fn refuse_alone(bus: &BusInstance, asyncs: &[Async], broken: Broken) -> EndpointRefusal {
    let slot = bus.speed.slot();
    let index = asyncs.iter().position(|a| a.id == broken.id).unwrap_or(0);
    let asked = asyncs[index].guarantee.unwrap_or(Guarantee { bytes: 1, period: 1 });
    let worst = |guarantee| worst_of(bus, asyncs, index, guarantee, &[], exactly);
    let longest = Guarantee { period: GUARANTEE_SLOTS_MAX, ..asked };
    let period = worst(longest).map(|worst| worst.0.div_ceil(slot.0) as u32);
    let (mut fits, mut too_many) = (0, asked.bytes);
    while too_many - fits > 1 {
        let bytes = fits + (too_many - fits) / 2;
        if worst(Guarantee { bytes, ..asked }).is_some() { fits = bytes } else { too_many = bytes }
    }
    let amount = (fits > 0).then_some(fits);
    EndpointRefusal {
        id: broken.id,
        reason: RefusalReason::Alone(broken),
        would_fit: FittingDemand { amount, period },
    }
}
