//! The smallest uniform reservation `t_A`, exactly: what must be left in every slot so that every
//! guarantee holds, for packets that are not divided.
//!
//! `worst_time` only falls when slots get more room (the lemma), so bisection finds the smallest
//! picosecond. A reservation in every slot is what [USB 2023] calculates with; [`fn@crate::plan`]
//! does not need one, it asks for the pattern of slots as it is. Endpoints are those that
//! [`crate::check`] accepts.

use crate::endpoint::{Async, BusInstance};
use crate::rotation::Rotation;
use crate::time::Picos;
use crate::worst::Pattern;
use alloc::vec::Vec;

/// From when a transfer is counted.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Start {
    /// Queued at the start of a slot.
    Slot,
    /// Queued at any instant.
    Any,
}

/// Returns the smallest `t_A` with which every guarantee holds. `None`: not even with the whole
/// slot.
#[must_use]
pub fn least_reservation(bus: &BusInstance, asyncs: &[Async], start: Start) -> Option<Picos> {
    let slot = bus.speed.slot();
    let demands: Vec<(Rotation, Picos)> = asyncs
        .iter()
        .enumerate()
        .filter_map(|(index, endpoint)| Some((index, endpoint.guarantee?)))
        .flat_map(|(index, guarantee)| {
            let limit = slot.times(guarantee.period.into()) - bus.doorbell;
            let all = Rotation::all(bus, asyncs, index, guarantee);
            all.into_iter().map(move |rotation| (rotation, limit))
        })
        .collect();
    let holds = |t_a: Picos| {
        let load = [slot - t_a];
        let pattern = Pattern { load: &load, slot };
        demands.iter().all(|(rotation, limit)| match start {
            Start::Slot => pattern.worst_at_slot_starts(rotation, *limit).is_some(),
            Start::Any => pattern.worst_time(rotation, *limit).is_some(),
        })
    };
    if !holds(slot) {
        return None;
    }
    let (mut fails, mut enough) = (0, slot.0);
    if holds(Picos::ZERO) {
        return Some(Picos::ZERO);
    }
    while enough - fails > 1 {
        let middle = fails + (enough - fails) / 2;
        if holds(Picos(middle)) { enough = middle } else { fails = middle }
    }
    Some(Picos(enough))
}
