//! Events that report transfers.

use crate::endpoint::Piece;
use crate::schedule::Place;
use crate::{Memory, Xhc};
use diapason_usb::trb::{Completion, Kind, Trb, bit};

impl Xhc {
    /// An event about a piece of a transfer.
    pub(crate) fn report(
        &mut self,
        memory: &mut dyn Memory,
        place: Place,
        piece: &Piece,
        code: Completion,
        residual: u32,
    ) {
        let status = Trb::event_status(code, residual);
        let at = piece.at.pointer;
        let event = Trb::new(Kind::TransferEvent, at, status, Trb::place(place.0, place.1));
        let stages = matches!(piece.block.kind(), Some(Kind::Normal | Kind::Isoch));
        let quiet = stages && code == Completion::Success && piece.block.has(bit::BLOCK_INTERRUPT);
        self.post(memory, piece.block.interrupter(), event, quiet);
    }

    pub(crate) fn report_cookie(
        &mut self,
        memory: &mut dyn Memory,
        place: Place,
        piece: &Piece,
        short: bool,
        counted: u64,
    ) {
        if !piece.block.has(bit::COMPLETION) {
            return;
        }
        let code = if short { Completion::ShortPacket } else { Completion::Success };
        let flags = bit::EVENT_DATA | Trb::place(place.0, place.1);
        let status = Trb::event_status(code, counted as u32);
        let event = Trb::new(Kind::TransferEvent, piece.block.parameter, status, flags);
        let quiet = piece.block.has(bit::BLOCK_INTERRUPT);
        self.post(memory, piece.block.interrupter(), event, quiet);
    }

    /// An event about an endpoint, not about a piece of a transfer.
    pub(crate) fn report_at(
        &mut self,
        memory: &mut dyn Memory,
        place: Place,
        pointer: u64,
        code: Completion,
    ) {
        let target = self.slots[usize::from(place.0)].words.interrupter() as u16;
        let status = Trb::event_status(code, 0);
        let event = Trb::new(Kind::TransferEvent, pointer, status, Trb::place(place.0, place.1));
        self.post(memory, target, event, false);
    }
}
