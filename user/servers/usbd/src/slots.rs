//! Memory of transfers: a fixed place for each that may be pending.

use crate::hardware::{copy_in, copy_out};
use crate::policy::{SEND_BYTES, SENDING};
use diapason_rt::memory::Dma;
use diapason_usb::class::kvaser::TRANSFER;
use diapason_usb::xhci::{Buffer, Window};

/// Bytes of a place to receive into, and how many there are.
const RECEIVE_BYTES: usize = TRANSFER.0;
const RECEIVING: usize = TRANSFER.1;

/// Which way a transfer goes.
#[derive(Clone, Copy)]
pub enum Way {
    /// From the device.
    In,
    /// To it.
    Out,
}

/// The places. One that was taken is the controller's until it is given back.
pub struct Slots {
    memory: Dma,
    busy: [bool; RECEIVING + SENDING],
}

impl Slots {
    /// None is in use. `None` if the memory is too small.
    pub fn new(memory: Dma) -> Option<Slots> {
        let needed = place(RECEIVING + SENDING - 1).0 + SEND_BYTES;
        (memory.bytes() >= needed).then_some(Slots { memory, busy: [false; _] })
    }

    /// All of the memory.
    pub fn window(&self) -> Window {
        Window { base: self.memory.bus_address(0), length: self.memory.bytes() as u64 }
    }

    /// A free place for `bytes`.
    pub fn take(&mut self, way: Way, bytes: usize) -> Option<usize> {
        let range = match way {
            Way::In => 0..RECEIVING,
            Way::Out => RECEIVING..RECEIVING + SENDING,
        };
        let slot = range.into_iter().find(|slot| !self.busy[*slot] && place(*slot).1 >= bytes)?;
        self.busy[slot] = true;
        Some(slot)
    }

    /// A place is free again.
    pub fn give_back(&mut self, slot: usize) {
        if let Some(busy) = self.busy.get_mut(slot) {
            *busy = false;
        }
    }

    /// Are all of them free?
    pub fn are_free(&self) -> bool {
        !self.busy.contains(&true)
    }

    /// What the controller is told.
    pub fn buffer(&self, slot: usize, bytes: usize) -> Buffer {
        Buffer { address: self.memory.bus_address(place(slot).0), length: bytes as u32 }
    }

    /// Put in what is sent.
    pub fn fill(&self, slot: usize, bytes: &[u8]) {
        copy_in(&self.memory, place(slot).0, bytes);
    }

    /// What is in a place now.
    pub fn copy<'a>(&self, slot: usize, bytes: usize, into: &'a mut [u8]) -> &'a [u8] {
        let (at, most) = place(slot);
        let count = bytes.min(most).min(into.len());
        let into = &mut into[..count];
        copy_out(&self.memory, at, into);
        into
    }
}

/// Where a place begins, and its bytes.
const fn place(slot: usize) -> (usize, usize) {
    match slot.checked_sub(RECEIVING) {
        None => (slot * RECEIVE_BYTES, RECEIVE_BYTES),
        Some(nth) => (RECEIVING * RECEIVE_BYTES + nth * SEND_BYTES, SEND_BYTES),
    }
}
