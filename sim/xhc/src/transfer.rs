//! Transfer rings: from blocks to transfers, from transfers to events.

use crate::endpoint::{Endpoint, Piece, Resume, Td};
use crate::ring::{BLOCKS_MAX, Cursor, Found};
use crate::schedule::Place;
use crate::{Memory, Xhc};
use diapason_bus::{Direction, Picos};
use diapason_usb::context::{EndpointKind, EndpointState};
use diapason_usb::setup::request;
use diapason_usb::trb::{BUFFER_MAX, Completion, Kind, Trb, bit};

impl Xhc {
    /// The doorbell of an endpoint.
    pub(crate) fn ring_endpoint(&mut self, memory: &mut dyn Memory, slot: u8, index: u8) {
        let Some(endpoint) = self.endpoint(slot, index) else {
            self.counts.idle_doorbells += 1;
            let enabled = self.slots.get(usize::from(slot)).is_some_and(|known| known.enabled);
            if enabled && (1..32).contains(&index) {
                let status = Trb::event_status(Completion::EndpointNotEnabled, 0);
                let event = Trb::new(Kind::TransferEvent, 0, status, Trb::place(slot, index));
                self.post(memory, 0, event, false);
            }
            return;
        };
        let bus = endpoint.bus;
        match endpoint.state {
            EndpointState::Running => {}
            EndpointState::Stopped => {
                endpoint.state = EndpointState::Running;
                self.update_endpoint(memory, slot, index);
            }
            _ => {
                self.counts.idle_doorbells += 1;
                return;
            }
        }
        self.lend(memory, (slot, index));
        self.activate(memory, (slot, index));
        self.kick(memory, bus);
    }

    /// Takes part in the schedule if there is something to do.
    pub(crate) fn activate(&mut self, memory: &mut dyn Memory, place: Place) {
        let now = Picos::from_nanos(self.now.0);
        let Some(endpoint) = self.endpoint(place.0, place.1) else { return };
        let (bus, isochronous) = (endpoint.bus, endpoint.kind.is_isochronous());
        let listed = self.buses[bus].periodic.contains(&place) && isochronous;
        if listed {
            return;
        }
        let ready = if isochronous { self.arm(memory, place) } else { self.read_td(memory, place) };
        let slot = now.0.div_ceil(self.buses[bus].speed.slot().0);
        let Some(endpoint) = self.endpoint(place.0, place.1).filter(|_| ready) else { return };
        if endpoint.waiting {
            return;
        }
        let periodic = endpoint.kind.is_periodic();
        let listed = match periodic {
            true => self.buses[bus].periodic.contains(&place),
            false => self.buses[bus].round.contains(&place),
        };
        if listed {
            return;
        }
        if let Some(endpoint) = self.endpoint(place.0, place.1) {
            endpoint.quota = endpoint.quantum();
            if periodic && !isochronous {
                endpoint.due = endpoint.next_service(slot.max(endpoint.due));
            }
        }
        if periodic {
            self.buses[bus].periodic.push(place);
            self.buses[bus].periodic.sort_unstable();
        } else {
            self.buses[bus].round.push_back(place);
        }
    }

    /// Makes sure that the endpoint has a transfer in hand whose next packet is known.
    pub(crate) fn read_td(&mut self, memory: &mut dyn Memory, place: Place) -> bool {
        for _ in 0..BLOCKS_MAX {
            let Some(endpoint) = self.endpoint(place.0, place.1) else { return false };
            if endpoint.state != EndpointState::Running {
                return false;
            }
            let fresh = Td { tail: endpoint.cursor, open: true, ..Td::default() };
            let mut td = endpoint.td.take().unwrap_or(fresh);
            if let Err(at) = self.extend(memory, place, &mut td) {
                self.trb_error(memory, place, at);
                return false;
            }
            let Some(endpoint) = self.endpoint(place.0, place.1) else { return false };
            if td.pieces.is_empty() {
                return false;
            }
            take_up(endpoint.resume.take(), &mut td);
            let packets = !td.short && td.pieces[td.current..].iter().any(needs_packet);
            endpoint.td = Some(td);
            self.tape_begin(place);
            if packets {
                let ready = |endpoint: &mut Endpoint| endpoint.next_packet().is_some();
                return self.endpoint(place.0, place.1).is_some_and(ready);
            }
            self.complete(memory, place, false);
            let open = |endpoint: &mut Endpoint| endpoint.td.is_some();
            if self.endpoint(place.0, place.1).is_some_and(open) {
                return false;
            }
        }
        false
    }

    /// Adds the blocks that are there to a transfer. The error is where the ring makes no sense.
    fn extend(&mut self, memory: &mut dyn Memory, place: Place, td: &mut Td) -> Result<(), Cursor> {
        while td.open {
            let mut cursor = td.tail;
            let (at, block) = match self.next_block(memory, &mut cursor) {
                Found::Nothing => break,
                Found::Broken => return Err(td.tail),
                Found::Block(at, block) => (at, block),
            };
            self.found(place, td.tail, cursor, (at.pointer, block));
            let Some(endpoint) = self.endpoint(place.0, place.1) else { break };
            if td.pieces.len() == BLOCKS_MAX || !is_sane(endpoint, td, block) {
                return Err(at);
            }
            let piece = Piece { at, block, begin: td.total };
            td.total = piece.end();
            td.pieces.push(piece);
            td.tail = cursor;
            td.open = block.has(bit::CHAIN);
        }
        Ok(())
    }

    /// Bytes of a packet moved, of those that were wanted.
    pub(crate) fn moved(
        &mut self,
        memory: &mut dyn Memory,
        place: Place,
        (bytes, wanted): (u32, u32),
    ) {
        let Some(endpoint) = self.endpoint(place.0, place.1) else { return };
        let Some(td) = &mut endpoint.td else { return };
        td.done += u64::from(bytes);
        td.counted += u64::from(bytes);
        self.complete(memory, place, bytes < wanted);
        let Some(endpoint) = self.endpoint(place.0, place.1) else { return };
        let ended = endpoint.td.is_none();
        if ended && endpoint.kind.is_isochronous() {
            self.next_service(memory, place);
        } else if ended {
            if endpoint.kind.is_periodic() || bytes < wanted {
                endpoint.quota = 0;
            }
            self.read_td(memory, place);
        } else if endpoint.td.as_ref().is_some_and(|td| td.open) {
            self.read_td(memory, place);
        }
    }

    /// Reports the pieces that are through, and the one that was cut short; if nothing is left, the
    /// transfer is over.
    fn complete(&mut self, memory: &mut dyn Memory, place: Place, mut cut: bool) {
        loop {
            let Some(endpoint) = self.endpoint(place.0, place.1) else { return };
            let Some(td) = &mut endpoint.td else { return };
            let Some(piece) = td.piece().copied() else { break };
            let short = td.short;
            if piece.block.kind() == Some(Kind::EventData) {
                let counted = core::mem::take(&mut td.counted);
                td.current += 1;
                self.report_cookie(memory, place, &piece, short, counted);
                continue;
            }
            let through = !short && piece.end() <= td.done;
            if !through && !short && !cut {
                return;
            }
            td.current += 1;
            td.short |= !through;
            let residual = piece.end().saturating_sub(td.done.max(piece.begin)) as u32;
            let wanted = bit::COMPLETION | if through || short { 0 } else { bit::SHORT };
            cut &= through;
            self.give_back(place, piece.at.pointer);
            if piece.block.has(wanted) {
                let code = if through { Completion::Success } else { Completion::ShortPacket };
                self.report(memory, place, &piece, code, residual);
            }
        }
        let Some(endpoint) = self.endpoint(place.0, place.1) else { return };
        if let Some(td) = endpoint.td.take_if(|td| !td.open) {
            endpoint.cursor = td.tail;
            self.tape_end(place, Completion::Success);
        }
    }

    /// The transfer in hand is over, for this reason, wherever it stands.
    pub(crate) fn end_td(&mut self, memory: &mut dyn Memory, place: Place, code: Completion) {
        let Some(endpoint) = self.endpoint(place.0, place.1) else { return };
        let Some(td) = endpoint.td.take() else { return };
        endpoint.cursor = td.tail;
        td.pieces.iter().for_each(|piece| self.give_back(place, piece.at.pointer));
        self.tape_end(place, code);
        if let Some(piece) = td.piece() {
            let residual = piece.end().saturating_sub(td.done) as u32;
            self.report(memory, place, piece, code, residual);
        }
        self.next_service(memory, place);
    }

    /// The endpoint halts within its transfer.
    pub(crate) fn halt(&mut self, memory: &mut dyn Memory, place: Place, code: Completion) {
        self.interrupt_td(memory, place, Some(code), EndpointState::Halted);
    }

    /// Stops within a transfer: reports it, remembers how far it came, shows the state.
    fn interrupt_td(
        &mut self,
        memory: &mut dyn Memory,
        place: Place,
        code: Option<Completion>,
        state: EndpointState,
    ) {
        let Some(endpoint) = self.endpoint(place.0, place.1) else { return };
        let td = endpoint.td.clone();
        endpoint.drop_td();
        endpoint.state = state;
        self.tape_end(place, code.unwrap_or(Completion::Stopped));
        if let Some(td) = td {
            self.report_interrupted(memory, place, &td, code);
        }
        self.leave(place.0, place.1);
        self.update_endpoint(memory, place.0, place.1);
    }

    fn report_interrupted(
        &mut self,
        memory: &mut dyn Memory,
        place: Place,
        td: &Td,
        code: Option<Completion>,
    ) {
        let Some(endpoint) = self.endpoint(place.0, place.1) else { return };
        let Some(piece) = td.piece() else {
            // Passed over after a short packet, the rest of the chain is not there yet.
            endpoint.cursor = td.tail;
            if let Some(last) = td.pieces.last() {
                let code = code.unwrap_or(Completion::StoppedShortPacket);
                self.report(memory, place, last, code, td.counted as u32);
            }
            return;
        };
        let moved = td.done.saturating_sub(piece.begin);
        endpoint.resume = Some(Resume { pointer: piece.at.pointer, moved, counted: td.counted });
        let stopped = match piece.has_data() {
            true => Completion::Stopped,
            false => Completion::StoppedLengthInvalid,
        };
        let residual = piece.length().saturating_sub(moved) as u32;
        self.report(memory, place, piece, code.unwrap_or(stopped), residual);
    }

    /// A ring that makes no sense.
    fn trb_error(&mut self, memory: &mut dyn Memory, place: Place, at: Cursor) {
        let Some(endpoint) = self.endpoint(place.0, place.1) else { return };
        endpoint.drop_td();
        endpoint.cursor = at;
        endpoint.state = EndpointState::Error;
        self.report_at(memory, place, at.pointer, Completion::Trb);
        self.leave(place.0, place.1);
        self.update_endpoint(memory, place.0, place.1);
    }

    pub(crate) fn stop_endpoint(
        &mut self,
        memory: &mut dyn Memory,
        slot: u8,
        index: u8,
    ) -> Completion {
        let Some(endpoint) = self.endpoint(slot, index) else {
            return Completion::EndpointNotEnabled;
        };
        endpoint.stopping = false;
        if endpoint.state != EndpointState::Running {
            return Completion::ContextState;
        }
        self.interrupt_td(memory, (slot, index), None, EndpointState::Stopped);
        Completion::Success
    }
}

/// Returns whether the wire carries something for this piece, if only an empty packet.
fn needs_packet(piece: &Piece) -> bool {
    piece.has_data() || piece.block.kind() == Some(Kind::Status)
}

/// Goes on with a stopped transfer where it was, if it still begins there.
fn take_up(resume: Option<Resume>, td: &mut Td) {
    let Some(resume) = resume else { return };
    let same = |piece: &Piece| piece.at.pointer == resume.pointer && piece.length() > resume.moved;
    if td.done == 0 && td.pieces.first().is_some_and(same) {
        (td.done, td.counted) = (resume.moved, resume.counted);
    }
}

/// Returns whether this block may stand here.
fn is_sane(endpoint: &Endpoint, td: &Td, block: Trb) -> bool {
    let first = td.kind();
    let place = match (endpoint.kind, block.kind()) {
        (_, Some(Kind::EventData)) => true,
        (_, Some(Kind::NoOp)) => first.is_none(),
        (EndpointKind::Control, Some(Kind::Setup | Kind::Data | Kind::Status)) => first.is_none(),
        (EndpointKind::Control, Some(Kind::Normal)) => first == Some(Kind::Data),
        (EndpointKind::IsochIn | EndpointKind::IsochOut, Some(kind)) => match kind {
            Kind::Isoch => first.is_none(),
            Kind::Normal => first == Some(Kind::Isoch),
            _ => false,
        },
        (_, Some(Kind::Normal)) => true,
        _ => false,
    };
    place && has_sane_buffer(endpoint, td, block)
}

fn has_sane_buffer(endpoint: &Endpoint, td: &Td, block: Trb) -> bool {
    match block.kind() {
        Some(Kind::Setup) => {
            let [kind, number, ..] = block.parameter.to_le_bytes();
            let address = kind == 0 && number == request::SET_ADDRESS;
            block.length() == 8 && block.has(bit::IMMEDIATE) && !block.has(bit::CHAIN) && !address
        }
        Some(Kind::Normal | Kind::Data | Kind::Isoch) if block.has(bit::IMMEDIATE) => {
            let input = match td.pieces.first().map_or(block, |first| first.block) {
                first if endpoint.kind == EndpointKind::Control => first.has(bit::IN),
                _ => endpoint.direction() == Direction::In,
            };
            !input && block.length() <= 8 && td.pieces.is_empty()
        }
        Some(Kind::Normal | Kind::Data | Kind::Isoch) => {
            let begin = block.parameter % u64::from(BUFFER_MAX);
            let alone = td.pieces.first().is_none_or(|first| !first.block.has(bit::IMMEDIATE));
            alone && begin + u64::from(block.length()) <= u64::from(BUFFER_MAX)
        }
        _ => true,
    }
}
