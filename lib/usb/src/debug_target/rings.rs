//! A ring of the debug capability: blocks that wait, in their order.

use super::layout::{BLOCKS, ring_at};
use super::{LinkDirection, TargetEvent};
use crate::trb::{BUFFER_MAX, BYTES as BLOCK, Kind, Trb, bit};
use crate::xhci::{Buffer, Dma};

/// Blocks for data: the last leads back.
pub const ROOM: u16 = BLOCKS - 1;

/// A block that waits.
#[derive(Clone, Copy, Debug, Default)]
struct Waiting {
    buffer: Buffer,
    cookie: u64,
}

#[derive(Debug)]
pub(super) struct Ring {
    way: LinkDirection,
    blocks: [Waiting; ROOM as usize],
    /// The first that waits, and how many do.
    first: u16,
    count: u16,
    /// The cycle bit of the next that is written.
    cycle: bool,
    /// The ring's doorbell is to be rung.
    pub bell: bool,
}

impl Ring {
    /// Returns an empty ring.
    pub const fn new(way: LinkDirection) -> Ring {
        let blocks =
            [Waiting { buffer: Buffer { address: 0, length: 0 }, cookie: 0 }; ROOM as usize];
        Ring { way, blocks, first: 0, count: 0, cycle: true, bell: false }
    }

    /// Returns whether no transfer waits.
    pub const fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// One is always free, so that full and empty differ.
    pub fn push<D: Dma>(&mut self, dma: &mut D, buffer: Buffer, cookie: u64) -> bool {
        let begin = buffer.address % u64::from(BUFFER_MAX);
        let whole = begin + u64::from(buffer.length) <= u64::from(BUFFER_MAX);
        if self.count + 1 >= ROOM || !whole || buffer.length == 0 {
            return false;
        }
        let index = (self.first + self.count) % ROOM;
        self.blocks[usize::from(index)] = Waiting { buffer, cookie };
        self.count += 1;
        self.write(dma, index);
        self.bell = true;
        true
    }

    /// Writes a block; the word with its cycle bit last. Behind the last the ring leads back.
    fn write<D: Dma>(&mut self, dma: &mut D, index: u16) {
        let Buffer { address, length } = self.blocks[usize::from(index)].buffer;
        let short = if self.way == LinkDirection::In { bit::SHORT } else { 0 };
        let status = Trb::transfer_status(length, 0, 0);
        let block = Trb::new(Kind::Normal, address, status, bit::COMPLETION | short);
        dma.store_block(self.at(index), block.with_cycle(self.cycle));
        if index + 1 == ROOM {
            let back = Trb::new(Kind::Link, dma.base() + ring_at(self.way), 0, bit::TOGGLE);
            dma.store_block(self.at(ROOM), back.with_cycle(self.cycle));
            self.cycle = !self.cycle;
        }
    }

    /// Writes all that wait into memory that is zero, from the first block on.
    pub fn lay_out<D: Dma>(&mut self, dma: &mut D) {
        let first = usize::from(self.first);
        self.blocks.rotate_left(first);
        (self.first, self.cycle, self.bell) = (0, true, false);
        (0..self.count).for_each(|index| self.write(dma, index));
    }

    const fn at(&self, index: u16) -> u64 {
        ring_at(self.way) + index as u64 * BLOCK as u64
    }

    /// Returns whether this offset is one of its blocks.
    pub fn has(&self, offset: u64) -> bool {
        (self.at(0)..self.at(ROOM)).contains(&offset) && offset.is_multiple_of(BLOCK as u64)
    }

    /// The block at this offset is done, but for so many bytes, or lost; blocks before it whose
    /// events are missing are lost. One that does not wait is nobody's.
    pub fn end(&mut self, offset: u64, left: Option<u32>, tell: &mut dyn FnMut(TargetEvent)) {
        let index = ((offset - self.at(0)) / BLOCK as u64) as u16;
        let before = (index + ROOM - self.first) % ROOM;
        if before >= self.count {
            return;
        }
        for number in 0..=before {
            let Waiting { buffer, cookie } = self.blocks[usize::from(self.first)];
            let left = left.filter(|_| number == before);
            let moved = left.map(|left| buffer.length.saturating_sub(left));
            self.first = (self.first + 1) % ROOM;
            self.count -= 1;
            tell(TargetEvent::Done { way: self.way, cookie, moved });
        }
    }
}
