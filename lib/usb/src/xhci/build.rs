//! From a request to the blocks of a transfer.

use super::access::{Buffer, Dma, Hardware, Mmio};
use super::pipe::{Pipe, Span};
use super::ring::Ring;
use crate::Setup;
use crate::trb::{BUFFER_MAX, Kind, Trb, bit};

/// When an isochronous transfer goes.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum When {
    /// In the next service interval.
    #[default]
    Soon,
    /// In this frame (eleven bits of the frame counter).
    Frame(u16),
}

/// The common parts of all blocks of one transfer.
#[derive(Clone, Copy, Debug)]
pub(super) struct Build<'a> {
    pub buffers: &'a [Buffer],
    pub interrupter: u16,
    /// Report without an interrupt.
    pub quiet: bool,
    pub when: When,
}

/// The buffers cut at multiples of 64 KiB.
#[derive(Clone, Debug)]
struct Pieces<'a> {
    rest: &'a [Buffer],
    current: Buffer,
}

impl Iterator for Pieces<'_> {
    type Item = Buffer;

    fn next(&mut self) -> Option<Buffer> {
        while self.current.length == 0 {
            let (first, rest) = self.rest.split_first()?;
            (self.current, self.rest) = (*first, rest);
        }
        let Buffer { address, length } = self.current;
        let room = BUFFER_MAX - (address % u64::from(BUFFER_MAX)) as u32;
        let piece = Buffer { address, length: length.min(room) };
        self.current = Buffer {
            address: address.wrapping_add(u64::from(piece.length)),
            length: length - piece.length,
        };
        Some(piece)
    }
}

fn pieces(buffers: &[Buffer]) -> Pieces<'_> {
    Pieces { rest: buffers, current: Buffer::default() }
}

/// Bytes of all buffers; `None` if that is more than an event can count.
pub(super) fn total(buffers: &[Buffer]) -> Option<u32> {
    let sum = buffers.iter().try_fold(0u32, |sum, buffer| sum.checked_add(buffer.length))?;
    (sum < 1 << 24).then_some(sum)
}

/// Blocks that data of these buffers needs; a transfer without data needs one, too.
pub(super) fn blocks(buffers: &[Buffer], ring: &Ring) -> usize {
    pieces(buffers).take(usize::from(ring.most()) + 1).count().max(1)
}

/// Packets that remain after `through` bytes, as the controller wants them said.
const fn packets_left(total: u32, through: u32, packet: u16) -> u32 {
    let left = total.div_ceil(packet as u32).saturating_sub(through / packet as u32);
    if left > 31 { 31 } else { left }
}

impl Pipe {
    /// Writes a bulk, interrupt or isochronous transfer; its first and last block.
    pub fn write_data<M: Mmio, D: Dma>(
        &mut self,
        hw: &mut Hardware<M, D>,
        build: &Build<'_>,
    ) -> (u16, u16) {
        let first = match (self.kind.is_isochronous(), build.when) {
            (false, _) => (Kind::Normal, 0),
            (true, when) => (Kind::Isoch, self.isochronous(total(build.buffers), when)),
        };
        let quiet = if build.quiet { bit::BLOCK_INTERRUPT } else { 0 };
        let short = if self.kind.is_in() { bit::SHORT } else { 0 };
        let ends = self.write_pieces(hw, build, first, short | quiet, bit::COMPLETION);
        self.ring.commit(hw);
        ends
    }

    /// Writes the stages of a control transfer; its first and last block.
    pub fn write_control<M: Mmio, D: Dma>(
        &mut self,
        hw: &mut Hardware<M, D>,
        setup: Setup,
        build: &Build<'_>,
    ) -> (u16, u16) {
        let (data, inward) = (setup.length > 0, setup.is_in());
        let stage = match (data, inward) {
            (false, _) => 0,
            (true, false) => 2 << 16,
            (true, true) => 3 << 16,
        };
        let target = Trb::transfer_status(8, 0, build.interrupter);
        let parameter = u64::from_le_bytes(setup.encode());
        let block = Trb::new(Kind::Setup, parameter, target, bit::IMMEDIATE | stage);
        let first = self.push(hw, block, Span::default());
        if data {
            let flags = if inward { bit::SHORT } else { 0 };
            let stage = (Kind::Data, if inward { bit::IN } else { 0 });
            self.write_pieces(hw, build, stage, flags, 0);
        }
        let direction = if data && inward { 0 } else { bit::IN };
        let status = Trb::transfer_status(0, 0, build.interrupter);
        let block = Trb::new(Kind::Status, 0, status, bit::COMPLETION | direction);
        let last = self.push(hw, block, Span { before: setup.length.into(), length: 0 });
        self.ring.commit(hw);
        (first, last)
    }

    fn write_pieces<M: Mmio, D: Dma>(
        &mut self,
        hw: &mut Hardware<M, D>,
        build: &Build<'_>,
        (mut kind, mut first): (Kind, u32),
        flags: u32,
        end: u32,
    ) -> (u16, u16) {
        let total = total(build.buffers).unwrap_or(0);
        let (mut before, mut ends) = (0, None);
        let mut pieces = pieces(build.buffers);
        let mut next = pieces.next().or(Some(Buffer::default()));
        while let Some(piece) = next {
            next = pieces.next();
            let through = before + piece.length;
            let (left, more) = match next {
                Some(_) => (packets_left(total, through, self.packet), bit::CHAIN),
                None => (0, end),
            };
            let status = Trb::transfer_status(piece.length, left, build.interrupter);
            let block = Trb::new(kind, piece.address, status, flags | first | more);
            let index = self.push(hw, block, Span { before, length: piece.length });
            ends = Some((ends.map_or(index, |(start, _)| start), index));
            (kind, first, before) = (Kind::Normal, 0, through);
        }
        ends.unwrap_or_default()
    }

    fn push<M: Mmio, D: Dma>(&mut self, hw: &mut Hardware<M, D>, block: Trb, span: Span) -> u16 {
        let index = self.ring.push(hw, block);
        self.spans[usize::from(index)] = span;
        index
    }

    /// Returns the flags of the first block of an isochronous transfer.
    fn isochronous(&self, length: Option<u32>, when: When) -> u32 {
        let packets = length.unwrap_or(0).div_ceil(self.packet.into()).max(1);
        let burst = u32::from(self.burst) + 1;
        let (bursts, last) = match packets % burst {
            0 => (packets / burst - 1, burst - 1),
            rest => (packets / burst, rest - 1),
        };
        let time = match when {
            When::Soon => bit::ASAP,
            When::Frame(frame) => u32::from(frame & 0x7ff) << 20,
        };
        time | (last & 0xf) << 16 | (bursts & 3) << 7
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buffers_are_cut_where_64_kib_end() {
        let buffers = [
            Buffer { address: 0x1_fff0, length: 0x20 },
            Buffer::default(),
            Buffer { address: 0x3_0000, length: 0x2_0001 },
        ];
        let cut: alloc::vec::Vec<(u64, u32)> =
            pieces(&buffers).map(|piece| (piece.address, piece.length)).collect();
        let whole = 0x1_0000;
        assert_eq!(
            cut,
            [(0x1_fff0, 16), (0x2_0000, 16), (0x3_0000, whole), (0x4_0000, whole), (0x5_0000, 1)]
        );
    }

    #[test]
    fn packets_left_are_those_of_the_specification() {
        assert_eq!(packets_left(3000, 1024, 1024), 2);
        assert_eq!(packets_left(3000, 1023, 1024), 3);
        assert_eq!(packets_left(3000, 3000, 1024), 1);
        assert_eq!(packets_left(100_000, 0, 512), 31);
    }

    #[test]
    fn bursts_of_an_isochronous_transfer() {
        let mut pipe = Pipe::new(Ring::new(0, 16), 16, 1);
        (pipe.packet, pipe.burst) = (1024, 10);
        let flags = |bytes| {
            let flags = pipe.isochronous(Some(bytes), When::Frame(5));
            (flags >> 7 & 3, flags >> 16 & 0xf, flags >> 20)
        };
        assert_eq!(flags(33 * 1024), (2, 10, 5));
        assert_eq!(flags(12 * 1024), (1, 0, 5));
        assert_eq!(flags(0), (0, 0, 5));
    }
}
