//! A ring the driver writes and the controller reads: one segment that ends in a link to its
//! beginning.

use super::access::{Dma, Hardware, Mmio};
use crate::trb::{BYTES, Kind, Trb, bit};

/// Where blocks are written, and which the controller still has.
#[derive(Clone, Debug)]
pub(super) struct Ring {
    offset: u64,
    blocks: u16,
    enqueue: u16,
    cycle: bool,
    dequeue: u16,
    /// The first of the blocks that were pushed since the last [`Ring::commit`]: it is held back,
    /// so that the controller sees none of them.
    held: Option<(u16, Trb)>,
}

impl Ring {
    /// Returns a ring of `blocks` blocks, the link included.
    pub fn new(offset: u64, blocks: u16) -> Ring {
        Ring { offset, blocks: blocks - 1, enqueue: 0, cycle: true, dequeue: 0, held: None }
    }

    /// Empty, as if it had never been used.
    pub fn clear<M: Mmio, D: Dma>(&mut self, hw: &mut Hardware<M, D>) {
        *self = Ring::new(self.offset, self.blocks + 1);
        hw.zero(self.offset, (u64::from(self.blocks) + 1) * BYTES as u64);
    }

    /// Blocks that can be written; one always stays free, so that full and empty differ.
    pub fn free(&self) -> u16 {
        self.blocks - 1 - self.distance(self.dequeue, self.enqueue)
    }

    /// The most blocks a transfer can have.
    pub fn most(&self) -> u16 {
        self.blocks - 1
    }

    /// Returns how far `to` is after `from`.
    pub fn distance(&self, from: u16, to: u16) -> u16 {
        if to >= from { to - from } else { to + self.blocks - from }
    }

    /// Returns the index of the next free block.
    pub fn enqueue(&self) -> u16 {
        self.enqueue
    }

    /// Everything before this block is the driver's again.
    pub fn release_to(&mut self, index: u16) {
        self.dequeue = index;
    }

    /// Returns the index after this one.
    pub fn after(&self, index: u16) -> u16 {
        if index + 1 == self.blocks { 0 } else { index + 1 }
    }

    /// The cycle bit with which this block was, or will be, written.
    pub fn cycle_at(&self, index: u16) -> bool {
        self.cycle == (index <= self.enqueue)
    }

    /// Returns where this block is in the shared memory.
    pub fn offset_of(&self, index: u16) -> u64 {
        self.offset + u64::from(index) * BYTES as u64
    }

    /// Returns the block at a bus address; `None` if it is the link or no block of this ring.
    pub fn index_of(&self, base: u64, address: u64) -> Option<u16> {
        let at = address.checked_sub(base)?.checked_sub(self.offset)?;
        let index = at / BYTES as u64;
        let whole = at.is_multiple_of(BYTES as u64) && index < u64::from(self.blocks);
        if whole { u16::try_from(index).ok() } else { None }
    }

    /// Writes the next block; nothing is the controller's before [`Ring::commit`]. The caller has
    /// looked at [`Ring::free`].
    pub fn push<M: Mmio, D: Dma>(&mut self, hw: &mut Hardware<M, D>, block: Trb) -> u16 {
        let (index, block) = (self.enqueue, block.with_cycle(self.cycle));
        if self.held.is_none() {
            self.held = Some((index, block));
            hw.dma.store_block(self.offset_of(index), block.with_cycle(!self.cycle));
        } else {
            hw.dma.store_block(self.offset_of(index), block);
        }
        self.enqueue = self.after(index);
        if self.enqueue == 0 {
            let flags = bit::TOGGLE | block.control & bit::CHAIN;
            let link = Trb::new(Kind::Link, hw.address(self.offset), 0, flags);
            hw.dma.store_block(self.offset_of(self.blocks), link.with_cycle(self.cycle));
            self.cycle = !self.cycle;
        }
        index
    }

    /// Returns whether something was pushed that is not the controller's yet.
    pub fn holds(&self) -> bool {
        self.held.is_some()
    }

    /// Hands over what was pushed, all at once.
    pub fn commit<M: Mmio, D: Dma>(&mut self, hw: &mut Hardware<M, D>) {
        if let Some((index, block)) = self.held.take() {
            hw.dma.store(self.offset_of(index) + 12, block.control);
        }
    }
}
