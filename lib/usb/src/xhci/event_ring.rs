//! A ring the controller writes and the driver reads: one segment without a link.

use super::access::{Dma, Hardware, Mmio};
use crate::register::interrupter;
use crate::trb::{BYTES, Trb};

/// The result of a call of [`handle_interrupt`](super::Controller::handle_interrupt).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Handled {
    /// Events taken off the ring.
    pub events: u32,
    /// The budget is used up and the ring is not empty: call again, no interrupt will come.
    pub more: bool,
}

/// Where the driver reads.
#[derive(Clone, Debug)]
pub(super) struct EventRing {
    interrupter: u16,
    offset: u64,
    table: u64,
    blocks: u16,
    index: u16,
    cycle: bool,
    /// Events taken off the ring that the controller does not know of.
    pub unacknowledged: u32,
    /// Moderation interval in units of 250 ns.
    pub moderation: u16,
}

impl EventRing {
    /// Returns the empty event ring of an interrupter.
    pub fn new(interrupter: u16, offset: u64, table: u64, blocks: u16) -> EventRing {
        EventRing {
            interrupter,
            offset,
            table,
            blocks,
            index: 0,
            cycle: true,
            unacknowledged: 0,
            moderation: 0,
        }
    }

    /// Returns the number of its interrupter.
    pub const fn interrupter(&self) -> u16 {
        self.interrupter
    }

    /// An empty ring, and an interrupter that knows it.
    pub fn install<M: Mmio, D: Dma>(&mut self, hw: &mut Hardware<M, D>) {
        (self.index, self.cycle, self.unacknowledged) = (0, true, 0);
        hw.zero(self.offset, u64::from(self.blocks) * BYTES as u64);
        let ring = hw.address(self.offset);
        hw.dma.store_64(self.table, ring);
        hw.dma.store(self.table + 8, self.blocks.into());
        hw.dma.store(self.table + 12, 0);
        let table = hw.address(self.table);
        hw.set_interrupter(self.interrupter, interrupter::TABLE_SIZE, 1);
        hw.set_event_dequeue(self.interrupter, ring, false);
        // The table comes last: controllers begin to use the ring when they get it.
        hw.set_interrupter_64(self.interrupter, interrupter::TABLE, table);
        hw.set_interrupter(self.interrupter, interrupter::MODERATION, self.moderation.into());
        let on = interrupter::PENDING | interrupter::ENABLE;
        hw.set_interrupter(self.interrupter, interrupter::MANAGEMENT, on);
    }

    /// Returns the next event, if there is one; it stays.
    pub fn peek<M: Mmio, D: Dma>(&self, hw: &Hardware<M, D>) -> Option<Trb> {
        hw.dma.load_block(self.offset + u64::from(self.index) * BYTES as u64, self.cycle)
    }

    /// Takes the next event off the ring.
    pub fn pass(&mut self) {
        self.unacknowledged += 1;
        self.index += 1;
        if self.index == self.blocks {
            (self.index, self.cycle) = (0, !self.cycle);
        }
    }

    /// Tells the controller how far the driver got; `done` lets it interrupt again.
    pub fn acknowledge<M: Mmio, D: Dma>(&self, hw: &mut Hardware<M, D>, done: bool) {
        let at = hw.address(self.offset + u64::from(self.index) * BYTES as u64);
        hw.set_event_dequeue(self.interrupter, at, done);
    }
}
