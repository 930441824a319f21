//! Isochronous service: which slot a transfer is for, and what is reported if it missed it.

use crate::endpoint::Endpoint;
use crate::ring::BLOCKS_MAX;
use crate::schedule::Place;
use crate::{Memory, Xhc};
use diapason_bus::{Picos, Speed};
use diapason_usb::trb::{Completion, bit};

/// Frame ids wrap here.
const FRAMES: u64 = 2048;
/// Frames ahead that can be named.
const HORIZON: u64 = 895;

impl Endpoint {
    /// Returns the first slot from `slot` on in which it is served.
    pub(crate) fn next_service(&self, slot: u64) -> u64 {
        slot + (self.phase + self.period - slot % self.period) % self.period
    }

    /// Slots of its bus in a frame.
    fn slots_of_frame(&self) -> u64 {
        if matches!(self.speed, Speed::Full | Speed::Low) { 1 } else { 8 }
    }
}

impl Xhc {
    /// Takes a transfer in hand that can still be in time and decides its slot.
    pub(crate) fn arm(&mut self, memory: &mut dyn Memory, place: Place) -> bool {
        for _ in 0..BLOCKS_MAX {
            if !self.read_td(memory, place) {
                return false;
            }
            let earliest = self.earliest(place);
            let Some(endpoint) = self.endpoint(place.0, place.1) else { return false };
            let Some(td) = &endpoint.td else { return false };
            if td.total > endpoint.payload {
                self.skip(memory, place, Completion::BandwidthOverrun);
                continue;
            }
            let first = td.pieces[0].block;
            let frame = u64::from(first.control >> 20 & 0x7ff);
            let due = match first.has(bit::ASAP) {
                true => Some(endpoint.next_service(earliest)),
                false => slot_of_frame(endpoint, frame, earliest),
            };
            if let Some(due) = due {
                endpoint.due = due;
                endpoint.quota = endpoint.quantum();
                endpoint.streaming = true;
                return true;
            }
            self.skip(memory, place, Completion::MissedService);
        }
        false
    }

    /// The first slot that a transfer can have: the next service, or, if the controller was not
    /// busy with the endpoint, one beyond the scheduling threshold.
    fn earliest(&mut self, place: Place) -> u64 {
        let now = Picos::from_nanos(self.now.0);
        let threshold = u64::from(self.config.threshold);
        let Some(endpoint) = self.endpoint(place.0, place.1) else { return 0 };
        let microframe = now.0 / Speed::High.slot().0 + threshold + 1;
        let per_slot = 8 / endpoint.slots_of_frame();
        match endpoint.streaming {
            true => endpoint.due,
            false => microframe.div_ceil(per_slot).max(endpoint.due),
        }
    }

    /// The transfer in hand is not done, for this reason.
    fn skip(&mut self, memory: &mut dyn Memory, place: Place, code: Completion) {
        let Some(endpoint) = self.endpoint(place.0, place.1) else { return };
        let Some(td) = endpoint.td.take() else { return };
        endpoint.cursor = td.tail;
        td.pieces.iter().for_each(|piece| self.give_back(place, piece.at.pointer));
        self.tape_end(place, code);
        let pointer = td.pieces.first().map_or(0, |piece| piece.at.pointer);
        self.report_at(memory, place, pointer, code);
    }

    /// The slot of the transfer in hand went by.
    pub(crate) fn miss(&mut self, memory: &mut dyn Memory, place: Place) {
        self.skip(memory, place, Completion::MissedService);
    }

    /// A transfer is over: what is next has the next service.
    pub(crate) fn next_service(&mut self, memory: &mut dyn Memory, place: Place) {
        if let Some(endpoint) = self.endpoint(place.0, place.1) {
            endpoint.due += endpoint.period;
            self.arm(memory, place);
        }
    }

    /// Nothing to do at a service: reported once.
    pub(crate) fn run_dry(&mut self, memory: &mut dyn Memory, place: Place) {
        let Some(endpoint) = self.endpoint(place.0, place.1) else { return };
        if core::mem::take(&mut endpoint.streaming) {
            let input = endpoint.kind.is_in();
            let codes = [Completion::RingUnderrun, Completion::RingOverrun];
            self.report_at(memory, place, 0, codes[usize::from(input)]);
        }
    }
}

/// The slot from `earliest` on in which a frame's transfer is served; `None` if it is too late.
fn slot_of_frame(endpoint: &Endpoint, frame: u64, earliest: u64) -> Option<u64> {
    let per_frame = endpoint.slots_of_frame();
    let now = earliest / per_frame;
    let ahead = (frame + FRAMES - now % FRAMES) % FRAMES;
    if ahead > HORIZON {
        return None;
    }
    let target = now + ahead;
    let due = endpoint.next_service(earliest.max(target * per_frame));
    let in_time = due < (target + 1) * per_frame || endpoint.period > per_frame;
    in_time.then_some(due)
}
