//! Memory that the driver has given away: what its transfers carry, from the doorbell that
//! announces them until their end is told, or their endpoint stops. A write of the controller
//! elsewhere happens behind the driver's back. Memory that is lent a second time was taken back too
//! soon. Hardware would do both without a word, so the model only notes them.

use crate::endpoint::Endpoint;
use crate::ring::{BLOCKS_MAX, Cursor, LINKS_MAX};
use crate::schedule::Place;
use crate::{Memory, Xhc};
use diapason_usb::context::EndpointKind;
use diapason_usb::trb::{Kind, Trb, bit};
use std::collections::BTreeSet;

/// A misuse of memory, or of the purpose it was lent for.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Misuse {
    /// The controller wrote where no transfer is any more, or never was.
    GivenBack,
    /// The driver gave it away for one transfer while it was in another, which writes to it.
    LentTwice,
}

/// The memory of one block.
#[derive(Clone, Copy, Debug)]
struct Loan {
    place: Place,
    /// Where the block is.
    block: u64,
    address: u64,
    length: u64,
    /// True if the controller writes to it.
    input: bool,
}

impl Loan {
    fn overlaps(&self, other: &Loan) -> bool {
        let ends = (self.address + self.length, other.address + other.length);
        self.address < ends.1 && other.address < ends.0
    }
}

/// Everything that is given away, and what was wrong.
#[derive(Default)]
pub(crate) struct Lent {
    loans: Vec<Loan>,
    /// The memory that a transfer from a device gave back last: address and length.
    last: Option<(u64, u64)>,
    misuses: Vec<(Misuse, u64)>,
    /// All there ever were: each is told once.
    told: BTreeSet<(Misuse, u64)>,
}

impl Lent {
    fn tell(&mut self, misuse: Misuse, address: u64) {
        if self.told.insert((misuse, address)) {
            self.misuses.push((misuse, address));
        }
    }

    /// All that an endpoint has is the driver's again.
    pub fn leave(&mut self, place: Place) {
        self.loans.retain(|loan| loan.place != place);
    }

    /// The controller is reset: all of it is.
    pub fn forget(&mut self) {
        self.loans.clear();
    }

    fn add(&mut self, loan: Loan) {
        let clash = |other: &Loan| other.overlaps(&loan) && (other.input || loan.input);
        if self.loans.iter().any(clash) {
            self.tell(Misuse::LentTwice, loan.address);
        }
        self.loans.push(loan);
    }

    /// A block is through.
    fn end(&mut self, place: Place, block: u64) {
        let is_it = |loan: &Loan| (loan.place, loan.block) == (place, block);
        if let Some(at) = self.loans.iter().position(is_it) {
            let loan = self.loans.swap_remove(at);
            if loan.input {
                self.last = Some((loan.address, loan.length));
            }
        }
    }

    /// Returns whether all of this range is given away now.
    fn covers(&self, address: u64, bytes: u64) -> bool {
        let within =
            |loan: &Loan| loan.address <= address && address + bytes <= loan.address + loan.length;
        self.loans.iter().any(within)
    }
}

impl Xhc {
    /// The driver says that there is more on a ring.
    pub(crate) fn lend(&mut self, memory: &mut dyn Memory, place: Place) {
        let Some(endpoint) = self.endpoint(place.0, place.1) else { return };
        let begin = endpoint.td.as_ref().map_or(endpoint.cursor, |td| td.tail);
        let mut cursor = endpoint.lent_to.unwrap_or(begin);
        for _ in 0..BLOCKS_MAX {
            let Some((at, block)) = peek(memory, &mut cursor) else { break };
            self.lend_block(place, at, block);
        }
        if let Some(endpoint) = self.endpoint(place.0, place.1) {
            endpoint.lent_to = Some(cursor);
        }
    }

    /// The controller has found a block, perhaps before it was told of it.
    pub(crate) fn found(&mut self, place: Place, before: Cursor, after: Cursor, found: (u64, Trb)) {
        let Some(endpoint) = self.endpoint(place.0, place.1) else { return };
        if endpoint.lent_to.is_none_or(|to| to == before) {
            endpoint.lent_to = Some(after);
            self.lend_block(place, found.0, found.1);
        }
    }

    fn lend_block(&mut self, place: Place, at: u64, block: Trb) {
        let Some(endpoint) = self.endpoint(place.0, place.1) else { return };
        let data = matches!(block.kind(), Some(Kind::Normal | Kind::Data | Kind::Isoch));
        let (address, length) = (block.parameter, u64::from(block.length()));
        // An end beyond all memory is refused when it is used.
        if data && !block.has(bit::IMMEDIATE) && length > 0 && address < u64::MAX - length {
            let input = is_input(endpoint, block);
            self.counts.lent += 1;
            self.lent.add(Loan { place, block: at, address, length, input });
        }
    }

    /// A block of a transfer is through.
    pub(crate) fn give_back(&mut self, place: Place, block: u64) {
        self.lent.end(place, block);
    }

    /// Data is about to be written here.
    pub(crate) fn check_loan(&mut self, address: u64, bytes: usize) {
        if bytes > 0 && !self.lent.covers(address, bytes as u64) {
            self.lent.tell(Misuse::GivenBack, address);
        }
    }

    /// A broken controller: what came last comes once more, when its memory is the driver's again.
    pub fn write_late(&mut self, memory: &mut dyn Memory) {
        if let Some((address, length)) = self.lent.last {
            self.check_loan(address, length as usize);
            self.store(memory, address, &vec![0xff; length as usize]);
        }
    }

    /// Returns the misuses since the last call, and their addresses.
    pub fn take_misuses(&mut self) -> Vec<(Misuse, u64)> {
        core::mem::take(&mut self.lent.misuses)
    }
}

fn is_input(endpoint: &Endpoint, block: Trb) -> bool {
    match endpoint.kind {
        EndpointKind::Control => block.kind() == Some(Kind::Data) && block.has(bit::IN),
        kind => kind.is_in(),
    }
}

/// The next block on a ring, where it is, as somebody sees it who only looks.
fn peek(memory: &mut dyn Memory, cursor: &mut Cursor) -> Option<(u64, Trb)> {
    let mut next = *cursor;
    for _ in 0..=LINKS_MAX {
        let mut bytes = [0; 16];
        memory.read(next.pointer, &mut bytes).ok()?;
        let (words, _) = bytes.as_chunks::<4>();
        let block = Trb::from_words(core::array::from_fn(|i| u32::from_le_bytes(words[i])));
        if block.cycle() != next.cycle {
            return None;
        }
        if block.kind() != Some(Kind::Link) {
            let at = next.pointer;
            *cursor = Cursor { pointer: at.wrapping_add(16), cycle: next.cycle };
            return Some((at, block));
        }
        next.pointer = block.parameter & !0xf;
        next.cycle ^= block.has(bit::TOGGLE);
    }
    None
}
