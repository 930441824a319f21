//! Periodic endpoints with their places so far, and the steps of admission: the high-criticality
//! ones together, the others one by one, and the reason for each endpoint without a place.

use crate::arrange::Ground;
use crate::endpoint::{Async, BusInstance, Criticality, PeriodicEndpoint, Starts};
use crate::judge::Judge;
use crate::limits::PERIOD_MAX;
use crate::place::{Bins, SlotDemand};
use crate::refusal::{EndpointRefusal, FittingDemand, RefusalReason};
use crate::time::Picos;
use crate::uniform::{self, UniformSchedule};
use alloc::vec;
use alloc::vec::Vec;

/// Where an endpoint is: its first slot and its period.
pub type Place = (u32, u32);

/// The state of an admission.
pub(crate) struct Board<'a> {
    pub bus: &'a BusInstance,
    pub judge: &'a Judge,
    pub periodic: &'a [PeriodicEndpoint],
    pub at: Vec<Option<Place>>,
}

impl<'a> Board<'a> {
    /// Returns a board on which no endpoint has a slot.
    pub fn new(
        bus: &'a BusInstance,
        judge: &'a Judge,
        periodic: &'a [PeriodicEndpoint],
    ) -> Board<'a> {
        Board { bus, judge, periodic, at: vec![None; periodic.len()] }
    }

    fn item(&self, index: usize, period: u32) -> SlotDemand {
        let period = if self.bus.starts == Starts::Unknown { 1 } else { period };
        SlotDemand::new(self.periodic[index].cost(self.bus).0, period)
    }

    fn ground<'b>(&'b self, fixed: &'b [(SlotDemand, u32)]) -> Ground<'b> {
        Ground { judge: self.judge, capacity: self.bus.periodic_limit().0, fixed }
    }

    /// Returns all placed endpoints but those that `except` names.
    fn others(&self, except: impl Fn(usize) -> bool) -> Vec<(SlotDemand, u32)> {
        let placed = self.at.iter().enumerate().filter(|(index, _)| !except(*index));
        placed
            .filter_map(|(index, at)| at.map(|(start, period)| (self.item(index, period), start)))
            .collect()
    }

    fn bins(&self) -> Bins {
        let fixed = self.others(|_| false);
        self.ground(&fixed).bins(&[])
    }

    /// Periodic time in each slot.
    pub fn load(&self) -> Vec<Picos> {
        self.bins().pattern()
    }

    /// Returns how many endpoints have slots.
    pub fn count(&self) -> usize {
        self.at.iter().flatten().count()
    }

    /// Finds places for `group` beside all others that are placed.
    fn settle(&mut self, group: &[(usize, u32)]) -> bool {
        let fixed = self.others(|index| group.iter().any(|(member, _)| *member == index));
        let items: Vec<SlotDemand> =
            group.iter().map(|&(i, period)| self.item(i, period)).collect();
        let Some(starts) = self.ground(&fixed).arrange(&items) else { return false };
        for (&(index, period), start) in group.iter().zip(starts) {
            self.at[index] = Some((start, period));
        }
        true
    }

    /// Gives `index` a place at `period`: beside the others, or by moving those that may be moved.
    fn add(&mut self, index: usize, period: u32, movable: &[bool]) -> bool {
        if self.settle(&[(index, period)]) {
            return true;
        }
        let mut group: Vec<(usize, u32)> = Vec::new();
        for (other, at) in self.at.iter().enumerate() {
            if let (true, Some((_, period))) = (movable[other] && other != index, at) {
                group.push((other, *period));
            }
        }
        group.push((index, period));
        group.len() > 1 && self.settle(&group)
    }

    /// Every period from the one asked for to the longest allowed one.
    fn periods(&self, index: usize) -> impl Iterator<Item = u32> + use<> {
        let PeriodicEndpoint { period, longest_period, .. } = self.periodic[index];
        core::iter::successors(Some(period), |period| period.checked_mul(2))
            .take_while(move |period| *period <= longest_period)
    }

    /// Places for all high-criticality endpoints without one.
    pub fn place_high(&mut self, movable: &[bool]) -> Result<(), EndpointRefusal> {
        let mut group: Vec<(usize, u32)> =
            uniform::in_order(self.bus, self.periodic, Criticality::High)
                .into_iter()
                .filter(|index| self.at[*index].is_none())
                .map(|index| (index, self.periodic[index].period))
                .collect();
        if group.is_empty() || self.settle(&group) {
            return Ok(());
        }
        while let Some(at) = self.most_demanding(&group) {
            group[at].1 *= 2;
            if self.settle(&group) {
                return Ok(());
            }
        }
        for (index, _) in group {
            if !self.periods(index).any(|period| self.add(index, period, movable)) {
                return Err(self.explain(index));
            }
        }
        Ok(())
    }

    /// Returns the member that takes most time per slot among those that may run at a longer
    /// period.
    fn most_demanding(&self, group: &[(usize, u32)]) -> Option<usize> {
        let may = |&(index, period): &(usize, u32)| period < self.periodic[index].longest_period;
        let share = |&(index, period): &(usize, u32)| {
            u128::from(self.item(index, 1).cost) * u128::from(PERIOD_MAX / period)
        };
        let candidates = (0..group.len()).filter(|at| may(&group[*at]));
        candidates.max_by_key(|at| share(&group[*at]))
    }

    /// Places for the low-criticality endpoints without one, as far as there is room.
    pub fn place_low(&mut self, movable: &[bool]) {
        for index in uniform::in_order(self.bus, self.periodic, Criticality::Low) {
            if self.at[index].is_none() {
                let _ = self.periods(index).any(|period| self.add(index, period, movable));
            }
        }
    }

    /// Puts `index` where it was, if that is still possible.
    pub fn put_back(&mut self, index: usize, place: Place) {
        self.at[index] = Some(place);
        let bins = self.bins();
        let fits = bins.load().iter().all(|load| *load <= self.bus.periodic_limit().0);
        if !fits || !self.judge.holds(&bins.pattern()) {
            self.at[index] = None;
        }
    }

    /// Returns the schedules with one reservation in every slot that break nothing: with steps of a
    /// tenth, and with the smallest reservation.
    pub fn uniform(&self, asyncs: &[Async]) -> Vec<UniformSchedule> {
        if self.bus.starts == Starts::Unknown {
            return Vec::new();
        }
        let tenth = Picos(self.bus.speed.slot().0 / 10);
        let reservations = [
            uniform::least_enough(self.bus, asyncs, self.periodic),
            uniform::reservation(self.bus, asyncs, self.periodic, tenth),
        ];
        let outcomes = reservations.into_iter().flatten();
        outcomes
            .filter_map(|t_a| uniform::schedule(self.bus, self.periodic, t_a))
            .filter(|outcome| self.judge.holds(&outcome.load))
            .collect()
    }

    /// Takes over a schedule with one reservation in every slot.
    pub fn adopt(&mut self, outcome: &UniformSchedule) {
        for (index, start) in outcome.starts.iter().enumerate() {
            self.at[index] = start.map(|start| (start, self.periodic[index].period));
        }
    }

    /// Moves what may be moved so that the largest worst time becomes small.
    pub fn polish(&mut self, movable: &[bool]) {
        let (mut group, mut items, mut starts) = (Vec::new(), Vec::new(), Vec::new());
        for (index, at) in self.at.iter().enumerate() {
            if let (true, Some((start, period))) = (movable[index], at) {
                group.push((index, *period));
                items.push(self.item(index, *period));
                starts.push(*start);
            }
        }
        let fixed = self.others(|index| movable[index]);
        self.ground(&fixed).descend(&items, &mut starts, 0);
        for ((index, period), start) in group.into_iter().zip(starts) {
            self.at[index] = Some((start, period));
        }
    }

    /// Returns why `index` has no place beside those that have one.
    pub fn explain(&self, index: usize) -> EndpointRefusal {
        let endpoint = &self.periodic[index];
        let item = self.item(index, endpoint.period);
        let mut bins = self.grown(item.period);
        let (start, slot, load) = bins.emptiest(item.period);
        let missing = (load + item.cost).saturating_sub(self.bus.periodic_limit().0);
        bins.put(&item, start);
        let reason = match self.judge.broken(&bins.pattern()) {
            Some(broken) if missing == 0 => RefusalReason::Guarantee(broken),
            _ => RefusalReason::Slot { slot: slot as u32, missing: Picos(missing) },
        };
        EndpointRefusal { id: endpoint.id, reason, would_fit: self.would_fit(index) }
    }

    fn grown(&self, period: u32) -> Bins {
        let fixed = self.others(|_| false);
        self.ground(&fixed).bins(&[SlotDemand::new(0, period)])
    }

    /// Returns whether so much time every `period` slots would fit at the emptiest start.
    fn has_room(&self, item: &SlotDemand) -> bool {
        let mut bins = self.grown(item.period);
        let (start, ..) = bins.emptiest(item.period);
        bins.fits(item, start) && {
            bins.put(item, start);
            self.judge.holds(&bins.pattern())
        }
    }

    fn would_fit(&self, index: usize) -> FittingDemand {
        let endpoint = &self.periodic[index];
        let packet = endpoint.packet_time(self.bus).0;
        let charged = self.item(index, endpoint.period).period;
        let room =
            |packets: u32| self.has_room(&SlotDemand::new(packet * u64::from(packets), charged));
        let packets = (1..endpoint.packets()).rev().find(|packets| room(*packets));
        // No guarantee sees it twice, and it can be in any slot: more makes no difference.
        let window = self.bins().load().len().max(self.judge.window()).next_power_of_two();
        let longest = window.max(2 * endpoint.period as usize).min(PERIOD_MAX as usize) as u32;
        let longer = core::iter::successors(endpoint.period.checked_mul(2), |p| p.checked_mul(2));
        let period = longer
            .take_while(|period| *period <= longest)
            .find(|period| self.has_room(&self.item(index, *period)));
        FittingDemand { amount: packets, period }
    }
}
