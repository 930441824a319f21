//! Configure Endpoint: which endpoints a device gets, and whether the schedule has room for them.

use crate::endpoint::Endpoint;
use crate::slot::{Slot, speed_of};
use crate::{Memory, Xhc};
use diapason_bus::{Picos, Speed};
use diapason_usb::context::{self, Control, SlotState};
use diapason_usb::trb::{Completion, Trb, bit};

/// An endpoint that is to be added.
struct Added {
    index: u8,
    endpoint: Endpoint,
    words: context::EndpointContext,
}

impl Xhc {
    pub(crate) fn configure_endpoint(
        &mut self,
        memory: &mut dyn Memory,
        slot: u8,
        block: Trb,
    ) -> Completion {
        self.try_configure(memory, slot, block).unwrap_or_else(|completion| completion)
    }

    fn try_configure(
        &mut self,
        memory: &mut dyn Memory,
        slot: u8,
        block: Trb,
    ) -> Result<Completion, Completion> {
        let state = self.slots[usize::from(slot)].state;
        if !matches!(state, SlotState::Addressed | SlotState::Configured) {
            return Err(Completion::ContextState);
        }
        if block.has(bit::DECONFIGURE) {
            (2..32).for_each(|index| self.clear_endpoint(memory, slot, index));
            return Ok(self.settle(memory, slot));
        }
        let (control, words) = self.input(memory, block)?;
        if control.added() & 3 != 1 || control.dropped() & 3 != 0 {
            return Err(Completion::Parameter);
        }
        let mut added = self.read_added(memory, slot, block, control, &words)?;
        self.admit(slot, control.dropped(), &mut added)?;
        for index in (2..32).filter(|index| control.dropped() & 1 << index != 0) {
            self.clear_endpoint(memory, slot, index);
        }
        for Added { index, endpoint, words } in added {
            self.slots[usize::from(slot)].endpoints[usize::from(index)] = Some(Box::new(endpoint));
            self.write_endpoint(memory, slot, index, Some(words));
        }
        self.take_hub_fields(slot, &words);
        Ok(self.settle(memory, slot))
    }

    fn read_added(
        &mut self,
        memory: &mut dyn Memory,
        slot: u8,
        block: Trb,
        control: Control,
        words: &context::Slot,
    ) -> Result<Vec<Added>, Completion> {
        let own = self.slots[usize::from(slot)].words;
        let speed = speed_of(own.speed()).ok_or(Completion::Parameter)?;
        let mut added = Vec::new();
        for index in (2..32u8).filter(|index| control.added() & 1 << index != 0) {
            let present = self.slots[usize::from(slot)].endpoints[usize::from(index)].is_some();
            let beyond = u32::from(index) > words.entries();
            if beyond || present && control.dropped() & 1 << index == 0 {
                return Err(Completion::Parameter);
            }
            let words = self.input_endpoint(memory, block, index)?;
            let mut endpoint = Endpoint::new(index, &words, speed).ok_or(Completion::Parameter)?;
            endpoint.bus = self.bus_of(&own, speed).ok_or(Completion::Parameter)?;
            added.push(Added { index, endpoint, words });
        }
        Ok(added)
    }

    fn take_hub_fields(&mut self, slot: u8, words: &context::Slot) {
        let own = &mut self.slots[usize::from(slot)].words;
        own.set_hub(words.hub());
        own.set_ports(words.ports());
        own.set_multi_tt(words.multi_tt());
        own.set_think_time(words.think_time());
    }

    /// State and number of entries follow from which endpoints there are.
    fn settle(&mut self, memory: &mut dyn Memory, slot: u8) -> Completion {
        let known = &mut self.slots[usize::from(slot)];
        let last = (1..32).rev().find(|&index| known.endpoints[index].is_some()).unwrap_or(1);
        known.state = if last > 1 { SlotState::Configured } else { SlotState::Addressed };
        known.words.set_entries(last as u32);
        self.write_slot(memory, slot).map_or(Completion::Trb, |()| Completion::Success)
    }

    /// Finds a phase for each periodic endpoint, the least loaded one; nothing changes if there is
    /// none for one of them.
    fn admit(&self, slot: u8, dropped: u32, added: &mut [Added]) -> Result<(), Completion> {
        for i in 0..added.len() {
            let (placed, rest) = added.split_at_mut(i);
            let endpoint = &mut rest[0].endpoint;
            if !endpoint.kind.is_periodic() {
                continue;
            }
            let stays = |place: (u8, u8)| place.0 != slot || dropped & 1 << place.1 == 0;
            let present = self.reserved(endpoint.bus).filter(|&(place, _)| stays(place));
            let others: Vec<&Endpoint> = present
                .map(|(_, other)| other)
                .chain(placed.iter().map(|other| &other.endpoint))
                .filter(|other| other.bus == endpoint.bus && other.kind.is_periodic())
                .collect();
            let bus = &self.buses[endpoint.bus];
            let load = load(&others, endpoint.period, bus.coding);
            let least = (0..).zip(&load).min_by_key(|&(_, load)| load);
            let (phase, least) = least.unwrap_or((0, &Picos::ZERO));
            if *least + endpoint.cost(bus.coding) > bus.limit() {
                let secondary = bus.is_translator;
                let code = [Completion::Bandwidth, Completion::SecondaryBandwidth];
                return Err(code[usize::from(secondary)]);
            }
            endpoint.phase = phase;
        }
        Ok(())
    }

    /// The endpoints configured on a bus, and where they are.
    fn reserved(&self, bus: usize) -> impl Iterator<Item = ((u8, u8), &Endpoint)> {
        let of_slot = |(slot, known)| endpoints(known).map(move |(i, e)| ((slot, i), e));
        (0..).zip(&self.slots).flat_map(of_slot).filter(move |(_, e)| e.bus == bus)
    }

    /// Get Port Bandwidth: percent of a slot still free for periodic endpoints, a byte per port.
    pub(crate) fn port_bandwidth(&mut self, memory: &mut dyn Memory, block: Trb) -> Completion {
        let Some(speed) = speed_of(u32::from(block.endpoint())) else { return Completion::Trb };
        let hub = self.slots.get(usize::from(block.slot())).filter(|_| block.slot() > 0);
        let mut bytes = vec![0];
        match hub.map(|hub| (hub.enabled, hub.words)) {
            None if block.slot() == 0 => {
                let ports = 1..=self.ports.len() as u8;
                bytes.extend(ports.map(|port| self.free_percent(self.root_bus(port, speed))));
            }
            Some((true, words)) => {
                let bus = match speed {
                    Speed::Full | Speed::Low => {
                        self.translators.get(&(block.slot(), 0)).copied().or(None)
                    }
                    _ => self.root_bus(words.root_port() as u8, speed),
                };
                bytes.extend((0..words.ports()).map(|_| self.free_percent(bus)));
            }
            _ => return Completion::SlotNotEnabled,
        }
        match self.store(memory, block.parameter & !0xf, &bytes) {
            Some(()) => Completion::Success,
            None => Completion::Trb,
        }
    }

    fn free_percent(&self, bus: Option<usize>) -> u8 {
        let Some(index) = bus else { return 0 };
        let bus = &self.buses[index];
        let others: Vec<&Endpoint> = self
            .reserved(index)
            .map(|(_, endpoint)| endpoint)
            .filter(|endpoint| endpoint.kind.is_periodic())
            .collect();
        let most = load(&others, 1, bus.coding)[0];
        ((bus.limit() - most).0 * 100 / bus.speed.slot().0) as u8
    }
}

fn endpoints(slot: &Slot) -> impl Iterator<Item = (u8, &Endpoint)> {
    (0..).zip(&slot.endpoints).filter_map(|(i, e)| e.as_deref().map(|e| (i, e)))
}

/// For each phase of a period the most that any of its slots carries already.
fn load(others: &[&Endpoint], period: u64, coding: diapason_bus::Coding) -> Vec<Picos> {
    let longest = others.iter().map(|other| other.period).fold(period, u64::max);
    let mut slots = vec![Picos::ZERO; longest as usize];
    for other in others {
        let cost = other.cost(coding);
        for slot in (other.phase as usize..slots.len()).step_by(other.period as usize) {
            slots[slot] = slots[slot] + cost;
        }
    }
    let most = |phase| slots.iter().skip(phase).step_by(period as usize).max();
    (0..period as usize).map(|phase| most(phase).copied().unwrap_or_default()).collect()
}
