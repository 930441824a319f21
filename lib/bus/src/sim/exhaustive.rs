//! Every choice of starting slots, one after another: what a search may miss.

use crate::endpoint::{Async, BusInstance, PeriodicEndpoint};
use crate::judge::Judge;
use crate::place::{Bins, SlotDemand};
use alloc::vec::Vec;

/// Returns whether some choice of starts fits all of `periodic` at their own periods and keeps
/// every guarantee. Only for small sets: the time grows with the product of the periods.
#[must_use]
pub fn exhaustive(bus: &BusInstance, periodic: &[PeriodicEndpoint], asyncs: &[Async]) -> bool {
    let judge = Judge::new(bus, asyncs);
    let item = |endpoint: &PeriodicEndpoint| SlotDemand::new(endpoint.cost(bus).0, endpoint.period);
    let mut items: Vec<SlotDemand> = periodic.iter().map(item).collect();
    items.sort_by_key(|item| core::cmp::Reverse((item.period, item.cost)));
    let slots = items.first().map_or(1, |item| item.period);
    let mut bins = Bins::new(slots, bus.periodic_limit().0);
    search(&judge, &mut bins, &items, 0, 0)
}

/// Patterns that are rotations of each other are equal, so the first item starts at 0; equal items
/// are interchangeable, so each starts no earlier than the one before.
fn search(judge: &Judge, bins: &mut Bins, items: &[SlotDemand], at: usize, from: u32) -> bool {
    let Some(item) = items.get(at) else { return judge.holds(&bins.pattern()) };
    let starts = if at == 0 { 0..1 } else { from..item.period };
    for start in starts {
        if bins.fits(item, start) {
            bins.put(item, start);
            let same = items.get(at + 1).is_some_and(|next| next == item);
            let found = search(judge, bins, items, at + 1, if same { start } else { 0 });
            bins.take(item, start);
            if found {
                return true;
            }
        }
    }
    false
}
