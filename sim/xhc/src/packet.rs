//! One packet: what it carries, what the device makes of it, and what follows for the endpoint.

use crate::endpoint::Control;
use crate::port::Port;
use crate::schedule::{Flight, Load, Place};
use crate::slot::{Slot, follow};
use crate::trace::{BusPacket, PacketOutcome};
use crate::{Memory, Xhc};
use diapason_bus::Direction;
use diapason_devices::{Answer, Handshake, Stall, UsbDevice};
use diapason_usb::Setup;
use diapason_usb::context::{EndpointKind, EndpointState, SlotState};
use diapason_usb::trb::{Completion, Kind, bit, endpoint_address};

impl Xhc {
    /// The device of a slot, if it can be talked to.
    fn device(&mut self, slot: u8) -> Option<&mut dyn UsbDevice> {
        let known = self.slots.get(usize::from(slot))?;
        let port = self.ports.get_mut(usize::from(known.port()).checked_sub(1)?)?;
        if known.state == SlotState::Disabled || port.generation != known.generation {
            return None;
        }
        follow(port.partner()?, known.words.route())
    }

    /// Returns the bytes of the next packet of an endpoint; `None` if memory refuses.
    pub(crate) fn load_packet(
        &mut self,
        memory: &mut dyn Memory,
        place: Place,
        wanted: u32,
    ) -> Option<Load> {
        let endpoint = self.endpoint(place.0, place.1)?;
        if endpoint.failing > 0 {
            endpoint.failing -= 1;
            return Some(Load::Failed);
        }
        let (direction, kind) = (endpoint.direction(), endpoint.kind);
        let stage = endpoint.td.as_ref()?.kind();
        match (kind, stage, direction) {
            (EndpointKind::Control, Some(Kind::Status), _) => Some(Load::Out(Vec::new())),
            (EndpointKind::Control, _, Direction::In) => Some(self.answer_part(place, wanted)),
            (_, _, Direction::Out) => Some(Load::Out(self.outgoing(memory, place, wanted)?)),
            (_, _, Direction::In) => {
                let mut bytes = core::mem::take(&mut self.spare);
                bytes.clear();
                bytes.resize(wanted as usize, 0);
                let now = self.now;
                let answer = match self.device(place.0) {
                    Some(device) => device.send(now, endpoint_address(place.1), &mut bytes),
                    None => Answer::Error,
                };
                Some(Load::In(answer, bytes))
            }
        }
    }

    /// A packet of the answer to a control request.
    fn answer_part(&mut self, place: Place, wanted: u32) -> Load {
        if self.device(place.0).is_none() {
            return Load::Failed;
        }
        let Some(endpoint) = self.endpoint(place.0, place.1) else { return Load::Failed };
        let control = &mut endpoint.control;
        match &control.answer {
            Some(Ok(answer)) => {
                let rest = answer.get(control.sent..).unwrap_or(&[]);
                let part = rest[..rest.len().min(wanted as usize)].to_vec();
                Load::In(Answer::Data(part.len()), part)
            }
            _ => Load::In(Answer::Stall, Vec::new()),
        }
    }

    /// Bytes for the device, from memory or from the block itself.
    fn outgoing(&mut self, memory: &mut dyn Memory, place: Place, wanted: u32) -> Option<Vec<u8>> {
        let td = self.endpoint(place.0, place.1)?.td.as_ref()?;
        let parts: Vec<_> = td
            .spread(u64::from(wanted))
            .into_iter()
            .map(|(index, offset, length)| (td.pieces[index].block, offset, length as usize))
            .collect();
        let mut bytes = Vec::with_capacity(wanted as usize);
        for (block, offset, length) in parts {
            if block.has(bit::IMMEDIATE) {
                let own = block.parameter.to_le_bytes();
                bytes.extend(own.iter().skip(offset as usize).take(length));
            } else {
                let from = bytes.len();
                bytes.resize(from + length, 0);
                let address = block.parameter.wrapping_add(offset);
                self.load(memory, address, &mut bytes[from..])?;
            }
        }
        Some(bytes)
    }

    /// A packet is through.
    pub(crate) fn finish(&mut self, memory: &mut dyn Memory, bus: usize, flight: Flight) {
        let Flight { place, start, end, wanted, load, asked } = flight;
        let (outcome, bytes) = match &load {
            Load::Failed => (PacketOutcome::Error, 0),
            Load::Out(data) => (self.hand_over(place, data), data.len() as u32),
            Load::In(Answer::Data(n), _) if *n > wanted as usize => (PacketOutcome::Babble, wanted),
            Load::In(Answer::Data(n), data) => match self.take_in(memory, place, &data[..*n]) {
                Some(()) => (PacketOutcome::Moved, *n as u32),
                None => return,
            },
            Load::In(Answer::Nak, _) => (PacketOutcome::Nak, 0),
            Load::In(Answer::Stall, _) => (PacketOutcome::Stall, 0),
            Load::In(Answer::Error, _) => (PacketOutcome::Error, 0),
        };
        self.counts.packets += 1;
        self.tape_packet(place, &load, outcome, bytes);
        let kind = self.endpoint(place.0, place.1).map(|endpoint| endpoint.kind);
        if let (Some(records), Some(kind)) = (&mut self.records, kind) {
            let (slot, endpoint) = place;
            records.push(BusPacket { start, end, bus, slot, endpoint, kind, bytes, outcome });
        }
        self.conclude(memory, place, outcome, (bytes, wanted));
        let not_now = matches!(load, Load::In(Answer::Nak, _));
        if let Load::In(_, bytes) = load {
            self.spare = bytes;
        }
        if not_now && self.advances(place.0) != asked {
            // Its last answer may no longer be true.
            self.wake(memory, place.0);
        }
    }

    /// Returns how often the device of a slot was let go on.
    pub(crate) fn advances(&self, slot: u8) -> u64 {
        let port = self.slots.get(usize::from(slot)).map_or(0, Slot::port);
        let port = self.ports.get(usize::from(port).wrapping_sub(1));
        port.map_or(0, Port::advances)
    }

    fn take_in(&mut self, memory: &mut dyn Memory, place: Place, data: &[u8]) -> Option<()> {
        let endpoint = self.endpoint(place.0, place.1)?;
        endpoint.control.sent += data.len();
        let td = endpoint.td.as_ref()?;
        let parts: Vec<_> = td
            .spread(data.len() as u64)
            .into_iter()
            .map(|(index, offset, length)| (td.pieces[index].block.parameter + offset, length))
            .collect();
        let mut rest = data;
        for (address, length) in parts {
            let (part, behind) = rest.split_at(length as usize);
            self.check_loan(address, part.len());
            self.store(memory, address, part)?;
            rest = behind;
        }
        Some(())
    }

    /// Gives the device what was sent to it.
    fn hand_over(&mut self, place: Place, data: &[u8]) -> PacketOutcome {
        let now = self.now;
        let kind = self.endpoint(place.0, place.1).map(|endpoint| endpoint.kind);
        if kind == Some(EndpointKind::Control) {
            return self.hand_over_stage(place, data);
        }
        let Some(device) = self.device(place.0) else { return PacketOutcome::Error };
        match device.receive(now, endpoint_address(place.1), data) {
            Handshake::Ack => PacketOutcome::Moved,
            Handshake::Nak => PacketOutcome::Nak,
            Handshake::Stall => PacketOutcome::Stall,
            Handshake::Error => PacketOutcome::Error,
        }
    }

    /// Set-up, data to the device, or status of a control transfer. The device acts when the
    /// set-up is through if data comes back, else when the status stage is.
    fn hand_over_stage(&mut self, place: Place, data: &[u8]) -> PacketOutcome {
        if self.device(place.0).is_none() {
            return PacketOutcome::Error;
        }
        let Some(endpoint) = self.endpoint(place.0, place.1) else { return PacketOutcome::Error };
        let stage = endpoint.td.as_ref().and_then(|td| td.kind());
        match stage {
            Some(Kind::Setup) => {
                let bytes = data.first_chunk().copied().unwrap_or_default();
                let setup = Setup::decode(bytes);
                endpoint.control = Control { setup: Some(setup), ..Control::default() };
                if setup.is_in() && setup.length > 0 {
                    let _ = self.ask(place);
                }
                PacketOutcome::Moved
            }
            Some(Kind::Status) => match self.ask(place) {
                Ok(()) => PacketOutcome::Moved,
                Err(Stall) => PacketOutcome::Stall,
            },
            _ => {
                endpoint.control.data.extend(data);
                PacketOutcome::Moved
            }
        }
    }

    /// The device does what the request says, once.
    fn ask(&mut self, place: Place) -> Result<(), Stall> {
        let now = self.now;
        let control = self.endpoint(place.0, place.1).map(|endpoint| &mut endpoint.control);
        let Some(control) = control else { return Err(Stall) };
        if let Some(answer) = &control.answer {
            return answer.as_ref().map(|_| ()).map_err(|stall| *stall);
        }
        let data = core::mem::take(&mut control.data);
        let setup = control.setup.ok_or(Stall)?;
        let device = self.device(place.0).ok_or(Stall)?;
        let mut answer = device.control(now, setup, &data);
        if let Ok(bytes) = &mut answer {
            bytes.truncate(usize::from(setup.length));
        }
        let result = answer.as_ref().map(|_| ()).map_err(|stall| *stall);
        if let Some(endpoint) = self.endpoint(place.0, place.1) {
            endpoint.control.answer = Some(answer);
        }
        result
    }

    /// Applies the end of a packet to its endpoint and to the schedule.
    fn conclude(
        &mut self,
        memory: &mut dyn Memory,
        place: Place,
        outcome: PacketOutcome,
        (bytes, wanted): (u32, u32),
    ) {
        let Some(endpoint) = self.endpoint(place.0, place.1) else { return };
        let isochronous = endpoint.kind.is_isochronous();
        endpoint.quota = endpoint.quota.saturating_sub(1);
        match outcome {
            PacketOutcome::Moved => {
                endpoint.errors = 0;
                self.moved(memory, place, (bytes, wanted));
                self.wake(memory, place.0);
            }
            PacketOutcome::Nak if isochronous => self.moved(memory, place, (0, wanted)),
            PacketOutcome::Nak => {
                endpoint.waiting = true;
                if let Err(at) = self.put_off.binary_search(&place) {
                    self.put_off.insert(at, place);
                }
            }
            PacketOutcome::Stall | PacketOutcome::Error if isochronous => {
                self.end_td(memory, place, Completion::Transaction);
            }
            PacketOutcome::Babble if isochronous => {
                self.end_td(memory, place, Completion::IsochBufferOverrun);
            }
            PacketOutcome::Stall => self.halt(memory, place, Completion::Stall),
            PacketOutcome::Babble => self.halt(memory, place, Completion::Babble),
            PacketOutcome::Error => {
                endpoint.errors += 1;
                if endpoint.attempts > 0 && endpoint.errors >= endpoint.attempts {
                    self.halt(memory, place, Completion::Transaction);
                }
            }
        }
        self.rotate(place);
    }

    /// Moves the endpoint to its place in the schedule after its packet.
    fn rotate(&mut self, place: Place) {
        let Some(endpoint) = self.endpoint(place.0, place.1) else { return };
        let bus = endpoint.bus;
        let more = !endpoint.waiting && endpoint.next_packet().is_some();
        if endpoint.kind.is_isochronous() {
            return;
        }
        if endpoint.kind.is_periodic() {
            if endpoint.quota == 0 {
                endpoint.due += endpoint.period;
                endpoint.quota = endpoint.quantum();
            }
            return;
        }
        let again = endpoint.quota > 0;
        if !again || !more {
            endpoint.quota = endpoint.quantum();
        }
        let round = &mut self.buses[bus].round;
        if round.front() == Some(&place) {
            round.pop_front();
        }
        round.retain(|&other| other != place);
        match (more, again) {
            (true, true) => round.push_front(place),
            (true, false) => round.push_back(place),
            _ => {}
        }
    }

    /// The endpoints of a device that were told "not now" may ask again.
    pub(crate) fn wake(&mut self, memory: &mut dyn Memory, slot: u8) {
        while let Some(at) = self.put_off.iter().position(|place| place.0 == slot) {
            let place = self.put_off.remove(at);
            let Some(endpoint) = self.endpoint(place.0, place.1) else { continue };
            let waited = core::mem::take(&mut endpoint.waiting);
            if waited && endpoint.state == EndpointState::Running {
                self.activate(memory, place);
            }
        }
    }
}
