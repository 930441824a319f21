//! Starting slots by heuristics: Algorithm 3's first fit decreasing, and a portfolio that never
//! does worse because it begins with it.

use crate::time::Picos;
use alloc::vec;
use alloc::vec::Vec;

/// A periodic transfer to be placed: so much time every `period` slots.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SlotDemand {
    pub cost: u64,
    /// Slots, a power of two.
    pub period: u32,
}

/// The slot that is taken among those with room.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Fit {
    First,
    Best,
    Worst,
}

/// The slots of a hyperperiod and how much of each is taken.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Bins {
    load: Vec<u64>,
    capacity: u64,
}

impl SlotDemand {
    /// Returns an item that takes this time every `period` slots.
    #[must_use]
    pub const fn new(cost: u64, period: u32) -> SlotDemand {
        SlotDemand { cost, period }
    }
}

impl Bins {
    /// `slots` empty slots that may be filled up to `capacity`.
    #[must_use]
    pub fn new(slots: u32, capacity: u64) -> Bins {
        Bins { load: vec![0; slots as usize], capacity }
    }

    /// Returns the used part of each slot.
    #[must_use]
    pub fn load(&self) -> &[u64] {
        &self.load
    }

    /// Returns the used part of each slot as a pattern for bulk.
    #[must_use]
    pub fn pattern(&self) -> Vec<Picos> {
        self.load.iter().map(|load| Picos(*load)).collect()
    }

    /// Returns the fullest slot of those that an item at `start` would use, and what is taken of
    /// it.
    #[must_use]
    pub fn peak(&self, period: u32, start: u32) -> (usize, u64) {
        let slots = (start as usize..self.load.len()).step_by(period as usize);
        let peaks = slots.map(|f| (f, self.load[f]));
        peaks.fold((start as usize, 0), |most, slot| if slot.1 > most.1 { slot } else { most })
    }

    /// Returns the start whose fullest slot has most room, that slot, and what is taken of it.
    #[must_use]
    pub fn emptiest(&self, period: u32) -> (u32, usize, u64) {
        let peaks = (0..period.min(self.load.len() as u32)).map(|start| {
            let (slot, load) = self.peak(period, start);
            (start, slot, load)
        });
        peaks.min_by_key(|(_, _, load)| *load).unwrap_or((0, 0, 0))
    }

    /// Takes the time of `item` from `start` on; the caller has looked whether it fits.
    pub fn put(&mut self, item: &SlotDemand, start: u32) {
        for f in (start as usize..self.load.len()).step_by(item.period as usize) {
            self.load[f] += item.cost;
        }
    }

    /// Gives back what [`Bins::put`] took.
    pub fn take(&mut self, item: &SlotDemand, start: u32) {
        for f in (start as usize..self.load.len()).step_by(item.period as usize) {
            self.load[f] -= item.cost;
        }
    }

    /// Returns whether `item` fits at `start`.
    #[must_use]
    pub fn fits(&self, item: &SlotDemand, start: u32) -> bool {
        self.peak(item.period, start).1.saturating_add(item.cost) <= self.capacity
    }

    /// Finds a start for `item` and takes it.
    pub fn place(&mut self, item: &SlotDemand, fit: Fit) -> Option<u32> {
        let mut found: Option<(u32, u64)> = None;
        for start in 0..item.period.min(self.load.len() as u32) {
            let peak = self.peak(item.period, start).1;
            if peak.saturating_add(item.cost) > self.capacity {
                continue;
            }
            let better = match (fit, found) {
                (_, None) => true,
                (Fit::First, Some(_)) => false,
                (Fit::Best, Some((_, other))) => peak > other,
                (Fit::Worst, Some((_, other))) => peak < other,
            };
            if better {
                found = Some((start, peak));
                if fit == Fit::First {
                    break;
                }
            }
        }
        let (start, _) = found?;
        self.put(item, start);
        Some(start)
    }
}

/// Places `items` in `order` into `bins`. `Err`: the first that does not fit.
///
/// # Errors
/// The index of the first item without room.
pub fn place_all(
    mut bins: Bins,
    items: &[SlotDemand],
    order: &[usize],
    fit: Fit,
) -> Result<Vec<u32>, usize> {
    let mut starts = vec![0; items.len()];
    for &index in order {
        starts[index] = bins.place(&items[index], fit).ok_or(index)?;
    }
    Ok(starts)
}

/// Returns the orders that are tried, Algorithm 3's first.
#[must_use]
pub fn orders(items: &[SlotDemand]) -> Vec<Vec<usize>> {
    type Key = fn(&SlotDemand) -> (u64, u64);
    let keys: [Key; 4] = [
        |item| (item.period.into(), u64::MAX - item.cost),
        |item| (item.period.into(), item.cost),
        |item| (u64::MAX - item.cost, item.period.into()),
        |item| (u64::MAX - (item.cost << 8) / u64::from(item.period), 0),
    ];
    let mut orders: Vec<Vec<usize>> = Vec::new();
    for key in keys {
        let mut order: Vec<usize> = (0..items.len()).collect();
        order.sort_by_key(|index| key(&items[*index]));
        if !orders.contains(&order) {
            orders.push(order);
        }
    }
    orders
}

/// How often the order is changed after all fixed ones have failed.
const SQUEAKS: usize = 60;

/// Placements of all items on top of what `bins` holds, the simple ones first; `accept` says when
/// one is good enough. `None`: none was.
pub fn portfolio(
    bins: &Bins,
    items: &[SlotDemand],
    mut accept: impl FnMut(&[u32]) -> bool,
) -> Option<Vec<u32>> {
    let orders = orders(items);
    let mut fitted = false;
    for fit in [Fit::First, Fit::Worst, Fit::Best] {
        for order in &orders {
            if let Ok(starts) = place_all(bins.clone(), items, order, fit) {
                fitted = true;
                if accept(&starts) {
                    return Some(starts);
                }
            }
        }
    }
    if fitted {
        return None;
    }
    // The one that failed goes first: it squeaks.
    let mut order = orders[0].clone();
    for _ in 0..SQUEAKS {
        match place_all(bins.clone(), items, &order, Fit::Best) {
            Ok(starts) => return accept(&starts).then_some(starts),
            Err(index) => {
                let at = order.iter().position(|i| *i == index).unwrap_or(0);
                order[..=at].rotate_right(1);
            }
        }
    }
    None
}
