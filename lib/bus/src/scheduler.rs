//! The same schedule while devices come and go: what runs is left where it is as far as possible.
//!
//! A new device first gets what is left. If that is not enough for what it must have, endpoints of
//! low criticality make room; if that does not help either and moves are allowed, everything is
//! planned again. Either the whole device gets in or nothing changes.

use crate::board::{Board, Place};
use crate::endpoint::{Async, BusInstance, Criticality, PeriodicEndpoint, check};
use crate::judge::Judge;
use crate::limits::EndpointId;
use crate::nonsense::InvalidDemand;
use crate::plan::{BusPlan, Placed, from_scratch, plan, without_periodic};
use crate::refusal::{EndpointRefusal, NoSchedule};
use alloc::vec;
use alloc::vec::Vec;

/// Whether running endpoints may be given other slots. The driver has to stop them for that.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Moves {
    /// Never: a high-criticality endpoint keeps its slots, a low one keeps them or stops.
    Never,
    /// If that lets more endpoints in.
    Allowed,
}

/// The difference after a device came or went.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct ScheduleChange {
    /// Endpoints that run now and did not before.
    pub started: Vec<Placed>,
    /// Endpoints that have other slots, or another period, than before.
    pub moved: Vec<Placed>,
    /// Endpoints that ran before and do not now, though they are still there.
    pub stopped: Vec<EndpointId>,
    /// Everybody who has no place, and why.
    pub refused: Vec<EndpointRefusal>,
}

/// A bus instance and what is on it.
#[derive(Clone, Debug)]
pub struct BusScheduler {
    bus: BusInstance,
    periodic: Vec<PeriodicEndpoint>,
    asyncs: Vec<Async>,
    at: Vec<Option<Place>>,
    plan: BusPlan,
}

impl BusScheduler {
    /// Returns an empty bus.
    ///
    /// # Errors
    /// If the bus makes no sense.
    pub fn new(bus: BusInstance) -> Result<BusScheduler, NoSchedule> {
        let plan = plan(&bus, &[], &[])?;
        Ok(BusScheduler { bus, periodic: vec![], asyncs: vec![], at: vec![], plan })
    }

    /// Returns the bus instance.
    #[must_use]
    pub fn bus(&self) -> &BusInstance {
        &self.bus
    }

    /// Returns the schedule as it is.
    #[must_use]
    pub fn plan(&self) -> &BusPlan {
        &self.plan
    }

    /// Returns the asynchronous endpoints, in the order of the round robin.
    #[must_use]
    pub fn asyncs(&self) -> &[Async] {
        &self.asyncs
    }

    /// Returns the periodic endpoints, with and without a place.
    #[must_use]
    pub fn periodic(&self) -> &[PeriodicEndpoint] {
        &self.periodic
    }

    /// A device with these endpoints was configured.
    ///
    /// # Errors
    /// Returns an error for an endpoint that makes no sense, or names the one whose guarantee is
    /// impossible. The schedule is then unchanged.
    pub fn attach(
        &mut self,
        periodic: &[PeriodicEndpoint],
        asyncs: &[Async],
        moves: Moves,
    ) -> Result<ScheduleChange, NoSchedule> {
        let all = [self.periodic.as_slice(), periodic].concat();
        let every = [self.asyncs.as_slice(), asyncs].concat();
        check(&self.bus, &all, &every)?;
        let judge = Judge::new(&self.bus, &every);
        without_periodic(&self.bus, &every, &judge).map_err(NoSchedule::Refused)?;
        let mut at = self.at.clone();
        at.resize(all.len(), None);
        let kept = keep(&self.bus, &judge, &all, &at);
        let planned = match (moves, &kept) {
            (Moves::Never, _) => None,
            (_, Ok(board)) if board.count() == all.len() => None,
            _ => {
                let mut board = Board::new(&self.bus, &judge, &all);
                from_scratch(&mut board, &every).ok().map(|()| board)
            }
        };
        let board = match (kept, planned) {
            (Err(_), Some(board)) => board,
            (Ok(kept), Some(planned)) if planned.count() > kept.count() => planned,
            (kept, _) => kept.map_err(NoSchedule::Refused)?,
        };
        let plan = BusPlan::of(&board, &every);
        let now = board.at;
        let change = difference(&all, &at, &now, &plan);
        *self = BusScheduler { bus: self.bus, periodic: all, asyncs: every, at: now, plan };
        Ok(change)
    }

    /// A device with these endpoints is gone; endpoints that waited for room may start.
    ///
    /// # Errors
    /// If one of them is not on the bus; nothing changes then.
    pub fn detach(&mut self, ids: &[EndpointId]) -> Result<ScheduleChange, InvalidDemand> {
        let is_here = |id: &EndpointId| {
            self.periodic.iter().any(|p| p.id == *id) || self.asyncs.iter().any(|a| a.id == *id)
        };
        if let Some(id) = ids.iter().find(|id| !is_here(id)) {
            return Err(InvalidDemand::Unknown(*id));
        }
        self.asyncs.retain(|endpoint| !ids.contains(&endpoint.id));
        let stays = |endpoint: &PeriodicEndpoint| !ids.contains(&endpoint.id);
        let places = self.periodic.iter().zip(&self.at).filter(|(endpoint, _)| stays(endpoint));
        let (periodic, before): (Vec<PeriodicEndpoint>, Vec<Option<Place>>) = places.unzip();
        let judge = Judge::new(&self.bus, &self.asyncs);
        let mut board = Board::new(&self.bus, &judge, &periodic);
        board.at.clone_from(&before);
        board.place_low(&vec![false; periodic.len()]);
        let plan = BusPlan::of(&board, &self.asyncs);
        let now = board.at;
        let change = difference(&periodic, &before, &now, &plan);
        (self.periodic, self.at, self.plan) = (periodic, now, plan);
        Ok(change)
    }

    /// The documented invariants, as far as they can be checked again.
    ///
    /// # Panics
    /// If one does not hold: our own bug.
    pub fn check_invariants(&self) {
        assert!(check(&self.bus, &self.periodic, &self.asyncs).is_ok());
        assert_eq!(self.at.len(), self.periodic.len());
        let judge = Judge::new(&self.bus, &self.asyncs);
        let mut board = Board::new(&self.bus, &judge, &self.periodic);
        board.at.clone_from(&self.at);
        let load = board.load();
        assert_eq!(load, self.plan.load);
        assert!(load.iter().all(|load| *load <= self.bus.periodic_limit()), "a slot is too full");
        assert!(judge.holds(&load), "a guarantee does not hold");
        let guarantees = self.asyncs.iter().filter(|endpoint| endpoint.guarantee.is_some());
        assert_eq!(self.plan.promises.len(), guarantees.count(), "a guarantee without a promise");
        for (endpoint, at) in self.periodic.iter().zip(&self.at) {
            match at {
                Some((start, period)) => {
                    assert!(start < period, "the first slot is in the first period");
                    assert!((endpoint.period..=endpoint.longest_period).contains(period));
                }
                None => assert_eq!(endpoint.criticality, Criticality::Low),
            }
        }
    }
}

/// New endpoints beside those that run, which stay where they are; low ones make room if they must.
fn keep<'a>(
    bus: &'a BusInstance,
    judge: &'a Judge,
    periodic: &'a [PeriodicEndpoint],
    at: &[Option<Place>],
) -> Result<Board<'a>, EndpointRefusal> {
    let fixed = vec![false; periodic.len()];
    let mut board = Board::new(bus, judge, periodic);
    board.at = at.to_vec();
    let enough = judge.holds(&board.load()) && board.place_high(&fixed).is_ok();
    if !enough {
        let is_high = |index: usize| periodic[index].criticality == Criticality::High;
        let high = |index: usize| at[index].filter(|_| is_high(index));
        board.at = (0..at.len()).map(high).collect();
        if !judge.holds(&board.load()) {
            return Err(board_too_full(&mut board));
        }
        board.place_high(&fixed)?;
        for (index, place) in at.iter().enumerate() {
            if let (false, Some(place)) = (is_high(index), place) {
                board.put_back(index, *place);
            }
        }
    }
    board.place_low(&fixed);
    Ok(board)
}

/// Returns the refusal of a new guarantee that cannot be kept beside the high-criticality endpoints
/// that run: the reason is what the last of them would be told.
fn board_too_full(board: &mut Board<'_>) -> EndpointRefusal {
    let last = (0..board.at.len()).rev().find(|index| board.at[*index].is_some()).unwrap_or(0);
    board.at[last] = None;
    board.explain(last)
}

fn difference(
    periodic: &[PeriodicEndpoint],
    before: &[Option<Place>],
    now: &[Option<Place>],
    plan: &BusPlan,
) -> ScheduleChange {
    let mut change = ScheduleChange { refused: plan.refused.clone(), ..ScheduleChange::default() };
    for ((endpoint, before), now) in periodic.iter().zip(before).zip(now) {
        let placed = |&(start, period): &Place| Placed { id: endpoint.id, start, period };
        match (before, now) {
            (None, Some(place)) => change.started.push(placed(place)),
            (Some(old), Some(new)) if old != new => change.moved.push(placed(new)),
            (Some(_), None) => change.stopped.push(endpoint.id),
            _ => {}
        }
    }
    change
}
