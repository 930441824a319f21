//! Schedules with the same reservation in every slot: [USB 2023], equations 4 to 8 and Algorithms 1
//! to 3.
//!
//! Nothing here is a promise: `t_A` is treated as time that can be divided, transfers as if they
//! were queued at the start of a slot. `docs/bus.md` shows sets that break it. It is here so that
//! these figures can be printed beside the exact ones, and so that nothing that such a schedule
//! rightly accepts is refused by [`crate::plan`](fn@crate::plan). The limit for periodic endpoints
//! is that of the bus, which need not be 90 % as there. Endpoints are those that
//! [`crate::check`] accepts.

use crate::endpoint::{Async, BusInstance, Criticality, PeriodicEndpoint};
use crate::place::{Bins, Fit, SlotDemand};
use crate::time::Picos;
use alloc::vec;
use alloc::vec::Vec;

/// Returns one pass over the round robin, `Σ (n + 1)·w`.
#[must_use]
pub fn pass(bus: &BusInstance, asyncs: &[Async]) -> Picos {
    asyncs.iter().fold(Picos::ZERO, |sum, endpoint| sum + endpoint.visit(bus))
}

/// Equation 5: time for the budget of an endpoint when the bus has no periodic traffic.
#[must_use]
pub fn latency_alone(bus: &BusInstance, asyncs: &[Async], endpoint: &Async) -> Picos {
    pass(bus, asyncs).times(endpoint.guarantee.map_or(0, |g| endpoint.visits(g.bytes)).into())
}

/// Equation 6: `c` of an endpoint in slots when each slot has `t_a` for asynchronous traffic.
/// Returns `None` if `t_a` is zero.
#[must_use]
pub fn latency_slots(
    bus: &BusInstance,
    asyncs: &[Async],
    endpoint: &Async,
    t_a: Picos,
) -> Option<u64> {
    (t_a > Picos::ZERO).then(|| latency_alone(bus, asyncs, endpoint).0.div_ceil(t_a.0))
}

/// Returns the part of a slot that is never periodic and that asynchronous traffic always has.
#[must_use]
pub fn least_reservation(bus: &BusInstance) -> Picos {
    bus.speed.slot() - bus.periodic_limit()
}

/// Equation 7: most that can be reserved beside the high-criticality endpoints in one slot.
#[must_use]
pub fn most_reservation(bus: &BusInstance, periodic: &[PeriodicEndpoint]) -> Picos {
    let high = periodic.iter().filter(|endpoint| endpoint.criticality == Criticality::High);
    let taken = high.fold(Picos::ZERO, |sum, endpoint| sum + endpoint.cost(bus));
    (bus.speed.slot() - taken).max(least_reservation(bus))
}

/// Equation 8 with equation 6.
#[must_use]
pub fn is_enough(bus: &BusInstance, asyncs: &[Async], t_a: Picos) -> bool {
    asyncs.iter().all(|endpoint| {
        let slots = latency_slots(bus, asyncs, endpoint, t_a);
        endpoint.guarantee.is_none_or(|g| slots.is_some_and(|c| c <= u64::from(g.period)))
    })
}

/// Algorithm 2: the first reservation that is enough, in steps. `None` where it returns −1.
///
/// # Panics
/// If `step` is 0.
#[must_use]
pub fn reservation(
    bus: &BusInstance,
    asyncs: &[Async],
    periodic: &[PeriodicEndpoint],
    step: Picos,
) -> Option<Picos> {
    assert!(step > Picos::ZERO, "a search in steps of nothing does not end");
    let most = most_reservation(bus, periodic);
    if !is_enough(bus, asyncs, most) {
        return None;
    }
    let mut t_a = least_reservation(bus);
    while t_a <= most {
        if is_enough(bus, asyncs, t_a) {
            return Some(t_a);
        }
        t_a = t_a + step;
    }
    None
}

/// Returns the least `t_A` that satisfies equations 6 and 8, in closed form: `⌈k·t_r / T⌉`, and at
/// least the least reservation. `None` if it is more than equation 7 allows.
#[must_use]
pub fn least_enough(
    bus: &BusInstance,
    asyncs: &[Async],
    periodic: &[PeriodicEndpoint],
) -> Option<Picos> {
    let needs = asyncs.iter().filter_map(|endpoint| {
        let guarantee = endpoint.guarantee?;
        let work = latency_alone(bus, asyncs, endpoint).0;
        Some(Picos(work.div_ceil(u64::from(guarantee.period))))
    });
    let t_a = needs.fold(least_reservation(bus), Picos::max);
    (t_a <= most_reservation(bus, periodic)).then_some(t_a)
}

/// A schedule, if it is one.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct UniformSchedule {
    /// The reservation in every slot.
    pub t_a: Picos,
    /// The first slot of each periodic endpoint, in their order; `None`: refused.
    pub starts: Vec<Option<u32>>,
    /// Periodic time in each slot of the hyperperiod.
    pub load: Vec<Picos>,
}

/// Algorithm 1 with a given reservation. `None` where it returns FALSE: a high-criticality endpoint
/// does not fit.
#[must_use]
pub fn schedule(
    bus: &BusInstance,
    periodic: &[PeriodicEndpoint],
    t_a: Picos,
) -> Option<UniformSchedule> {
    let slots = periodic.iter().map(|endpoint| endpoint.period).max().unwrap_or(1);
    let mut bins = Bins::new(slots, (bus.speed.slot() - t_a).0);
    let mut starts = vec![None; periodic.len()];
    for criticality in [Criticality::High, Criticality::Low] {
        for index in in_order(bus, periodic, criticality) {
            let item = SlotDemand::new(periodic[index].cost(bus).0, periodic[index].period);
            starts[index] = bins.place(&item, Fit::First);
            if starts[index].is_none() && criticality == Criticality::High {
                return None;
            }
        }
    }
    Some(UniformSchedule { t_a, starts, load: bins.pattern() })
}

/// Algorithms 1 to 3 with steps of `step`.
#[must_use]
pub fn algorithm(
    bus: &BusInstance,
    periodic: &[PeriodicEndpoint],
    asyncs: &[Async],
    step: Picos,
) -> Option<UniformSchedule> {
    schedule(bus, periodic, reservation(bus, asyncs, periodic, step)?)
}

/// Returns the order of Algorithm 3: shortest period first, ties by longest transfer.
#[must_use]
pub fn in_order(
    bus: &BusInstance,
    periodic: &[PeriodicEndpoint],
    criticality: Criticality,
) -> Vec<usize> {
    let chosen = |index: &usize| periodic[*index].criticality == criticality;
    let mut order: Vec<usize> = (0..periodic.len()).filter(chosen).collect();
    let key = |index: &usize| (periodic[*index].period, u64::MAX - periodic[*index].cost(bus).0);
    order.sort_by_key(key);
    order
}

/// Computes the reading under which table 5 comes out as printed: an endpoint is charged `q / T` in
/// every slot, as if it were spread. Returns whether each endpoint is kept, and the mean time that
/// is left of a slot. `None` if a high-criticality endpoint does not fit.
#[must_use]
pub fn amortised(
    bus: &BusInstance,
    periodic: &[PeriodicEndpoint],
    t_a: Picos,
) -> Option<(Vec<bool>, Picos)> {
    let slot = u128::from(bus.speed.slot().0);
    let room = u128::from((bus.speed.slot() - t_a).0);
    // In units of 1/PERIOD_MAX ps: all periods divide it.
    let scale = u128::from(crate::PERIOD_MAX);
    let mut used = 0u128;
    let mut kept = vec![false; periodic.len()];
    for criticality in [Criticality::High, Criticality::Low] {
        for index in in_order(bus, periodic, criticality) {
            let endpoint = &periodic[index];
            let share = u128::from(endpoint.cost(bus).0) * (scale / u128::from(endpoint.period));
            kept[index] = used + share <= room * scale;
            match (kept[index], criticality) {
                (true, _) => used += share,
                (false, Criticality::High) => return None,
                (false, Criticality::Low) => {}
            }
        }
    }
    Some((kept, Picos(((slot * scale - used) / scale) as u64)))
}

/// Places endpoints as Linux does: in the order of enumeration, at the first slot that has room,
/// and with nothing reserved for guarantees. Returns the place of each endpoint.
#[must_use]
pub fn linux_first_fit(bus: &BusInstance, periodic: &[PeriodicEndpoint]) -> Vec<Option<u32>> {
    let slots = periodic.iter().map(|endpoint| endpoint.period).max().unwrap_or(1);
    let mut bins = Bins::new(slots, bus.periodic_limit().0);
    let item = |endpoint: &PeriodicEndpoint| SlotDemand::new(endpoint.cost(bus).0, endpoint.period);
    periodic.iter().map(|endpoint| bins.place(&item(endpoint), Fit::First)).collect()
}
