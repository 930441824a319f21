//! The content of transfers, from their first block to their last packet, for captures.
//!
//! A transfer begins when the controller takes it in hand: when it was put on the ring nobody but
//! the driver knows. The content of a transfer to the device is known when it ends, so its
//! beginning is told late. [`Tape::settled`] is the time before which everything has been told.

use crate::Xhc;
use crate::endpoint::Td;
use crate::schedule::{Load, Place};
use crate::trace::PacketOutcome;
use diapason_abi::Nanos;
use diapason_usb::context::EndpointKind;
use diapason_usb::setup::{IN, Setup};
use diapason_usb::trb::{Completion, Kind, bit, endpoint_address};
use std::collections::BTreeMap;

/// The beginning or the end of a transfer.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TransferRecord {
    pub time: Nanos,
    /// Where its first block is: tells it from others under way.
    pub id: u64,
    /// The slot of the device.
    pub slot: u8,
    /// The endpoint's address, with the direction of the data in the highest bit.
    pub endpoint: u8,
    pub kind: EndpointKind,
    /// The request, if it is a control transfer.
    pub setup: Option<Setup>,
    /// The interrupter that tells its end.
    pub vector: u16,
    /// Bytes wanted, at its beginning; bytes moved, at its end.
    pub length: u32,
    /// At its beginning what the device got, at its end what the device gave.
    pub data: Vec<u8>,
    /// The status of the transfer, if this is its end.
    pub end: Option<Completion>,
}

/// A transfer under way.
#[derive(Clone, Debug)]
struct Open {
    begun: Nanos,
    id: u64,
    endpoint: u8,
    kind: EndpointKind,
    setup: Option<Setup>,
    vector: u16,
    /// The stage of a control transfer.
    stage: Option<Kind>,
    wanted: u64,
    data: Vec<u8>,
    /// True if its beginning has been told.
    told: bool,
}

impl Open {
    fn is_in(&self) -> bool {
        self.endpoint & IN != 0
    }

    fn event(&self, slot: u8, time: Nanos, end: Option<Completion>) -> TransferRecord {
        let with_data = self.is_in() == end.is_some();
        let length = if end.is_some() { self.data.len() } else { self.wanted as usize };
        TransferRecord {
            time,
            id: self.id,
            slot,
            endpoint: self.endpoint,
            kind: self.kind,
            setup: self.setup,
            vector: self.vector,
            length: length as u32,
            data: if with_data { self.data.clone() } else { Vec::new() },
            end,
        }
    }
}

/// Transfers under way, and what was told of them since somebody looked.
#[derive(Clone, Debug, Default)]
pub(crate) struct Tape {
    told: Vec<TransferRecord>,
    open: BTreeMap<Place, Open>,
}

impl Tape {
    /// The controller has (more of) a transfer in hand.
    fn begin(&mut self, now: Nanos, place: Place, kind: EndpointKind, td: &Td) {
        let Some(first) = td.pieces.first() else { return };
        let (id, stage) = (first.at.pointer, td.kind());
        if matches!(stage, Some(Kind::NoOp | Kind::EventData)) {
            return;
        }
        let later = matches!(stage, Some(Kind::Data | Kind::Status));
        match self.open.get_mut(&place) {
            Some(open) if kind == EndpointKind::Control && later => {
                open.stage = stage;
                return;
            }
            Some(open) if open.id == id => {
                open.wanted = td.total;
                return;
            }
            _ => self.end(now, place, Completion::Stopped),
        }
        let request = first.block.parameter.to_le_bytes();
        let setup = (stage == Some(Kind::Setup) && first.block.has(bit::IMMEDIATE))
            .then(|| Setup::decode(request));
        let input = setup.map_or(kind.is_in(), |setup| setup.is_in() && setup.length > 0);
        let (number, way) = (endpoint_address(place.1) & !IN, if input { IN } else { 0 });
        let wanted = setup.map_or(td.total, |setup| u64::from(setup.length));
        let mut open = Open {
            begun: now,
            id,
            endpoint: number | way,
            kind,
            setup,
            vector: first.block.interrupter(),
            stage,
            wanted,
            data: Vec::new(),
            told: false,
        };
        if wanted == 0 || input && !td.open {
            open.told = true;
            self.told.push(open.event(place.0, now, None));
        }
        self.open.insert(place, open);
    }

    /// A packet of a transfer is through.
    fn packet(&mut self, place: Place, load: &Load, bytes: u32) {
        let Some(open) = self.open.get_mut(&place) else { return };
        match load {
            Load::In(_, data) => open.data.extend(data.iter().take(bytes as usize)),
            Load::Out(data) if open.stage != Some(Kind::Setup) => open.data.extend(data),
            Load::Out(_) | Load::Failed => {}
        }
    }

    /// The transfer of an endpoint, or a stage of it, is over.
    fn end(&mut self, now: Nanos, place: Place, code: Completion) {
        let goes_on = |open: &Open| {
            let well = matches!(code, Completion::Success | Completion::ShortPacket);
            well && matches!(open.stage, Some(Kind::Setup | Kind::Data))
        };
        if self.open.get(&place).is_none_or(goes_on) {
            return;
        }
        if let Some(open) = self.open.remove(&place) {
            if !open.told {
                self.told.push(open.event(place.0, open.begun, None));
            }
            self.told.push(open.event(place.0, now, Some(code)));
        }
    }

    /// Returns a time before which nothing will be told any more.
    fn settled(&self, now: Nanos) -> Nanos {
        let late = self.open.values().filter(|open| !open.told);
        late.map(|open| open.begun).min().unwrap_or(now)
    }
}

impl Xhc {
    /// Records what transfers carry from now on, or no longer.
    pub fn record_transfers(&mut self, on: bool) {
        self.tape = on.then(Tape::default);
    }

    /// The beginnings and ends recorded since the last call, in the order in which they became
    /// known, and the time before which nothing will be added.
    pub fn take_transfers(&mut self) -> (Vec<TransferRecord>, Nanos) {
        let now = self.now;
        let taken = |tape: &mut Tape| (core::mem::take(&mut tape.told), tape.settled(now));
        self.tape.as_mut().map_or((Vec::new(), now), taken)
    }

    /// An endpoint has (more of) a transfer in hand.
    pub(crate) fn tape_begin(&mut self, place: Place) {
        let Some(tape) = &mut self.tape else { return };
        let slot = self.slots.get(usize::from(place.0));
        let endpoint = slot.and_then(|slot| slot.endpoints.get(usize::from(place.1))?.as_deref());
        if let Some((kind, td)) = endpoint.and_then(|e| Some((e.kind, e.td.as_ref()?))) {
            tape.begin(self.now, place, kind, td);
        }
    }

    /// A packet is through.
    pub(crate) fn tape_packet(
        &mut self,
        place: Place,
        load: &Load,
        outcome: PacketOutcome,
        bytes: u32,
    ) {
        if let Some(tape) = self.tape.as_mut().filter(|_| outcome == PacketOutcome::Moved) {
            tape.packet(place, load, bytes);
        }
    }

    /// The transfer of an endpoint is over, if there was one.
    pub(crate) fn tape_end(&mut self, place: Place, code: Completion) {
        if let Some(tape) = &mut self.tape {
            tape.end(self.now, place, code);
        }
    }

    /// Everything under way is forgotten.
    pub(crate) fn tape_end_all(&mut self) {
        let Some(tape) = &mut self.tape else { return };
        let places: Vec<Place> = tape.open.keys().copied().collect();
        places.into_iter().for_each(|place| tape.end(self.now, place, Completion::Stopped));
    }
}
