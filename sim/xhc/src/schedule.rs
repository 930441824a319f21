//! The bus instances and their two schedulers.
//!
//! In each slot (a microframe, or a frame of full and low speed) periodic endpoints that are due
//! come first, as far as their share reaches; then a round robin of bursts over endpoints with
//! asynchronous work. A packet begins only if it ends inside the slot; nobody overtakes it.

use crate::{Memory, Xhc};
use diapason_abi::Nanos;
use diapason_bus::{Coding, Picos, Speed};
use diapason_devices::Answer;
use diapason_usb::context;
use diapason_usb::trb::Completion;
use std::collections::VecDeque;

/// Slot and context index of an endpoint.
pub(crate) type Place = (u8, u8);

pub(crate) const NEVER: Picos = Picos(u64::MAX);

/// The content of a packet under way.
#[derive(Debug)]
pub(crate) enum Load {
    /// The answer of the device, and its bytes.
    In(Answer, Vec<u8>),
    /// Bytes for the device.
    Out(Vec<u8>),
    /// The packet does not arrive.
    Failed,
}

/// A packet under way.
#[derive(Debug)]
pub(crate) struct Flight {
    pub place: Place,
    pub start: Picos,
    pub end: Picos,
    pub wanted: u32,
    pub load: Load,
    /// How often the device had been let go on when it said what it sends.
    pub asked: u64,
}

#[derive(Debug)]
pub(crate) struct Bus {
    pub speed: Speed,
    pub coding: Coding,
    /// Most of a slot for periodic packets, if the standard's limit does not hold.
    pub percent: Option<u8>,
    /// Behind a hub that translates.
    pub is_translator: bool,
    /// Asynchronous endpoints with work, the next one first.
    pub round: VecDeque<Place>,
    /// Periodic endpoints with work, in order.
    pub periodic: Vec<Place>,
    pub flight: Option<Flight>,
    /// The last packet ended then.
    pub free: Picos,
    /// When to look again.
    pub wake: Picos,
}

/// The result of a periodic endpoint's turn.
enum Turn {
    Started,
    Later(Picos),
    Left,
}

impl Bus {
    /// Returns a bus without endpoints.
    pub fn new(speed: Speed, coding: Coding, is_translator: bool) -> Bus {
        Bus {
            speed,
            coding,
            percent: None,
            is_translator,
            round: VecDeque::new(),
            periodic: Vec::new(),
            flight: None,
            free: Picos::ZERO,
            wake: NEVER,
        }
    }

    /// Most time of a slot for periodic packets.
    pub fn limit(&self) -> Picos {
        let percent = self.percent.map_or(self.speed.periodic_percent(), u32::from);
        Picos(self.speed.slot().0 / 100 * u64::from(percent))
    }

    /// Returns when something happens next.
    pub fn next(&self) -> Picos {
        self.flight.as_ref().map_or(self.wake, |flight| flight.end)
    }

    /// Returns when something happens next, on the clock of the world.
    pub fn next_nanos(&self) -> Nanos {
        if self.next() == NEVER { Nanos::FOREVER } else { self.next().nanos() }
    }

    /// The slot an instant is in.
    pub fn slot_at(&self, t: Picos) -> u64 {
        t.0 / self.speed.slot().0
    }

    /// Returns when a slot begins.
    pub fn start_of(&self, slot: u64) -> Picos {
        self.speed.slot().times(slot)
    }
}

impl Xhc {
    /// Returns the bus instance of a root port at a speed.
    pub(crate) fn root_bus(&self, port: u8, speed: Speed) -> Option<usize> {
        let group = self.config.group(port)?;
        let first = self.group_buses[group];
        match (self.buses[first].speed, speed) {
            (Speed::Super, Speed::Super) | (Speed::High, Speed::High) => Some(first),
            (Speed::High, Speed::Full | Speed::Low) => Some(first + 1),
            _ => None,
        }
    }

    /// The bus instance of a device; a translator's begins with its first device.
    pub(crate) fn bus_of(&mut self, words: &context::Slot, speed: Speed) -> Option<usize> {
        let slow = matches!(speed, Speed::Full | Speed::Low);
        if !slow || words.parent_slot() == 0 {
            return self.root_bus(words.root_port() as u8, speed);
        }
        let port = if words.multi_tt() == 1 { words.parent_port() } else { 0 };
        let key = (words.parent_slot() as u8, port as u8);
        let (next, coding) = (self.buses.len(), self.config.coding);
        let bus = *self.translators.entry(key).or_insert(next);
        if bus == next {
            self.buses.push(Bus::new(Speed::Full, coding, true));
        }
        Some(bus)
    }

    /// An endpoint leaves its schedule; its packet under way is forgotten.
    pub(crate) fn leave(&mut self, slot: u8, index: u8) {
        let place = (slot, index);
        self.tape_end(place, Completion::Stopped);
        self.lent.leave(place);
        let Some(endpoint) = self.endpoint(slot, index) else { return };
        endpoint.lent_to = None;
        let bus = endpoint.bus;
        let (bus, now) = (&mut self.buses[bus], Picos::from_nanos(self.now.0));
        bus.round.retain(|&other| other != place);
        bus.periodic.retain(|&other| other != place);
        if bus.flight.as_ref().is_some_and(|flight| flight.place == place) {
            bus.wake = bus.flight.take().map_or(now, |flight| flight.end);
        }
    }

    /// A packet ends, or it is time to look again.
    pub(crate) fn run_bus(&mut self, memory: &mut dyn Memory, bus: usize) {
        let t = self.buses[bus].next();
        if let Some(flight) = self.buses[bus].flight.take() {
            self.buses[bus].free = flight.end;
            self.finish(memory, bus, flight);
        }
        self.choose(memory, bus, t);
    }

    /// Returns whether the end of the packet under way changes nothing by itself: the device said
    /// "not now" and did not go on since, and no other endpoint waits for the bus. The endpoint
    /// asks again when the device goes on, which is a step of its own.
    pub(crate) fn ends_unseen(&self, bus: &Bus) -> bool {
        let Some(flight) = &bus.flight else { return false };
        let Flight { place, load: Load::In(Answer::Nak, _), asked, .. } = flight else {
            return false;
        };
        let alone = bus.round.iter().chain(&bus.periodic).all(|other| other == place);
        let slot = self.slots.get(usize::from(place.0));
        let endpoint = slot.and_then(|slot| slot.endpoints.get(usize::from(place.1))?.as_deref());
        let asks_again = endpoint.is_some_and(|endpoint| !endpoint.kind.is_isochronous());
        alone && asks_again && self.advances(place.0) == *asked
    }

    /// Ends the packets that ended unseen before `until`, the first one first.
    pub fn end_unseen(&mut self, memory: &mut dyn Memory, until: Nanos) {
        let first = |xhc: &Xhc| {
            let unseen = xhc.buses.iter().enumerate().filter(|(_, bus)| xhc.ends_unseen(bus));
            let ended = unseen.filter(|(_, bus)| bus.next_nanos() < until);
            ended.min_by_key(|(_, bus)| bus.next()).map(|(index, _)| index)
        };
        while let Some(bus) = first(self) {
            self.run_bus(memory, bus);
        }
    }

    /// Something changed: if the bus is free, look what is next.
    pub(crate) fn kick(&mut self, memory: &mut dyn Memory, bus: usize) {
        let t = self.buses[bus].free.max(Picos::from_nanos(self.now.0));
        self.choose(memory, bus, t);
    }

    /// Goes on after a pause.
    pub(crate) fn resume(&mut self, memory: &mut dyn Memory) {
        self.next_command(memory);
        for bus in 0..self.buses.len() {
            self.kick(memory, bus);
        }
    }

    fn choose(&mut self, memory: &mut dyn Memory, bus: usize, t: Picos) {
        if self.buses[bus].flight.is_some() {
            return;
        }
        self.buses[bus].wake = NEVER;
        if !self.operational.runs() || self.is_blocked() {
            return;
        }
        if !self.serve_periodic(memory, bus, t) {
            self.serve_round(memory, bus, t);
        }
    }

    /// Begins a packet of a periodic endpoint that is due. If none begins, the bus knows when to
    /// look again.
    fn serve_periodic(&mut self, memory: &mut dyn Memory, bus: usize, t: Picos) -> bool {
        let mut i = 0;
        while let Some(&place) = self.buses[bus].periodic.get(i) {
            match self.turn(memory, bus, place, t) {
                Turn::Started => return true,
                Turn::Left => {
                    self.buses[bus].periodic.retain(|&other| other != place);
                }
                Turn::Later(at) => {
                    self.buses[bus].wake = self.buses[bus].wake.min(at);
                    i += 1;
                }
            }
        }
        false
    }

    fn turn(&mut self, memory: &mut dyn Memory, bus: usize, place: Place, t: Picos) -> Turn {
        let slot = self.buses[bus].slot_at(t);
        let Some(endpoint) = self.endpoint(place.0, place.1) else { return Turn::Left };
        if endpoint.waiting {
            return Turn::Left;
        }
        if endpoint.due > slot {
            let due = endpoint.due;
            return Turn::Later(self.buses[bus].start_of(due));
        }
        if endpoint.due < slot {
            return self.pass_over(memory, bus, place, slot);
        }
        if endpoint.td.is_none() && endpoint.kind.is_isochronous() {
            return self.starve(memory, bus, place);
        }
        let Some(bytes) = endpoint.next_packet() else { return Turn::Left };
        let time = self.time_of(place, bytes);
        let limit = self.buses[bus].start_of(slot) + self.buses[bus].limit();
        if t + time > limit {
            return self.pass_over(memory, bus, place, slot + 1);
        }
        match self.start(memory, bus, place, t, bytes) {
            Some(()) => Turn::Started,
            None => Turn::Left,
        }
    }

    /// Its slot went by: the next one from `slot` on, and an isochronous transfer is lost.
    fn pass_over(&mut self, memory: &mut dyn Memory, bus: usize, place: Place, slot: u64) -> Turn {
        let Some(endpoint) = self.endpoint(place.0, place.1) else { return Turn::Left };
        endpoint.due = endpoint.next_service(slot);
        endpoint.quota = endpoint.quantum();
        if endpoint.kind.is_isochronous() && endpoint.td.is_some() {
            self.miss(memory, place);
            if !self.arm(memory, place) {
                return self.starve(memory, bus, place);
            }
        }
        let due = self.endpoint(place.0, place.1).map_or(0, |endpoint| endpoint.due);
        Turn::Later(self.buses[bus].start_of(due))
    }

    /// An isochronous endpoint is to be served and its ring was empty when we last looked.
    fn starve(&mut self, memory: &mut dyn Memory, bus: usize, place: Place) -> Turn {
        if !self.arm(memory, place) {
            self.run_dry(memory, place);
            return Turn::Left;
        }
        let due = self.endpoint(place.0, place.1).map_or(0, |endpoint| endpoint.due);
        Turn::Later(self.buses[bus].start_of(due))
    }

    /// Begins a packet of the round, or finds out when there is room for it.
    fn serve_round(&mut self, memory: &mut dyn Memory, bus: usize, t: Picos) {
        while let Some(&place) = self.buses[bus].round.front() {
            let bytes = self.endpoint(place.0, place.1).and_then(|e| e.next_packet());
            let length = self.buses[bus].speed.slot();
            let time = bytes.map_or(NEVER, |bytes| self.time_of(place, bytes));
            let Some(bytes) = bytes.filter(|_| time <= length) else {
                self.buses[bus].round.pop_front();
                continue;
            };
            let end = self.buses[bus].start_of(self.buses[bus].slot_at(t) + 1);
            if t + time > end {
                self.buses[bus].wake = self.buses[bus].wake.min(end);
                return;
            }
            if self.start(memory, bus, place, t, bytes).is_some() {
                return;
            }
            self.buses[bus].round.pop_front();
        }
    }

    /// Returns how long a packet of this endpoint takes.
    fn time_of(&mut self, place: Place, bytes: u32) -> Picos {
        let coding = self.config.coding;
        self.endpoint(place.0, place.1).map_or(NEVER, |e| e.packet_time(coding, bytes))
    }

    /// Puts a packet on the bus. Data for the device is read now; the device says now what it
    /// sends, so how long that takes is known.
    fn start(
        &mut self,
        memory: &mut dyn Memory,
        bus: usize,
        place: Place,
        t: Picos,
        wanted: u32,
    ) -> Option<()> {
        let load = self.load_packet(memory, place, wanted)?;
        let bytes = match &load {
            Load::In(Answer::Data(n), _) => (*n).min(wanted as usize) as u32,
            Load::In(Answer::Nak | Answer::Stall, _) => 0,
            _ => wanted,
        };
        let end = t + self.time_of(place, bytes);
        let asked = self.advances(place.0);
        self.buses[bus].flight = Some(Flight { place, start: t, end, wanted, load, asked });
        Some(())
    }
}
