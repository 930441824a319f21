//! From a request to the blocks of a transfer.

use super::access::{Buffer, Dma, Hardware, Mmio};
use super::pipe::{Pipe, Span};
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

/// Most bytes of a transfer, as an event counts them.
pub(super) const COUNTED: u32 = (1 << 24) - 1;

/// The common parts of all blocks of one transfer.
#[derive(Clone, Copy, Debug)]
pub(super) struct Build {
    pub buffer: Buffer,
    pub interrupter: u16,
    /// Report without an interrupt.
    pub quiet: bool,
    pub when: When,
}

/// Cuts a buffer at the next multiple of 64 KiB: what is before it, and the rest.
fn cut(Buffer { address, length }: Buffer) -> (Buffer, Buffer) {
    let room = BUFFER_MAX - (address % u64::from(BUFFER_MAX)) as u32;
    let first = Buffer { address, length: length.min(room) };
    let behind = address.wrapping_add(u64::from(first.length));
    (first, Buffer { address: behind, length: length - first.length })
}

/// Returns how many blocks a buffer needs; one without bytes needs one, too.
pub(super) const fn blocks(buffer: Buffer) -> usize {
    let end = buffer.address % BUFFER_MAX as u64 + buffer.length as u64;
    let touched = end.div_ceil(BUFFER_MAX as u64) as usize;
    if buffer.length == 0 { 1 } else { touched }
}

/// Packets that remain after `through` bytes, as the controller wants them said.
const fn packets_left(total: u32, through: u32, packet: u16) -> u32 {
    let left = total.div_ceil(packet as u32).saturating_sub(through / packet as u32);
    if left > 31 { 31 } else { left }
}

impl Pipe {
    /// Writes a bulk, interrupt or isochronous transfer; its first and last block. The ring holds
    /// it.
    #[inline]
    pub fn write_data<M: Mmio, D: Dma>(
        &mut self,
        hw: &mut Hardware<M, D>,
        build: &Build,
    ) -> (u16, u16) {
        let first = match (self.kind.is_isochronous(), build.when) {
            (false, _) => (Kind::Normal, 0),
            (true, when) => (Kind::Isoch, self.isochronous(build.buffer.length, when)),
        };
        let quiet = if build.quiet { bit::BLOCK_INTERRUPT } else { 0 };
        let short = if self.kind.is_in() { bit::SHORT } else { 0 };
        self.write_pieces(hw, build, first, short | quiet, bit::COMPLETION)
    }

    /// Writes the stages of a control transfer; its first and last block. The ring holds them.
    pub fn write_control<M: Mmio, D: Dma>(
        &mut self,
        hw: &mut Hardware<M, D>,
        setup: Setup,
        build: &Build,
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
        (first, last)
    }

    fn write_pieces<M: Mmio, D: Dma>(
        &mut self,
        hw: &mut Hardware<M, D>,
        build: &Build,
        (mut kind, mut first): (Kind, u32),
        flags: u32,
        end: u32,
    ) -> (u16, u16) {
        let total = build.buffer.length;
        let (mut before, mut start, mut rest) = (0, None, build.buffer);
        loop {
            let (piece, behind) = cut(rest);
            let through = before + piece.length;
            let (left, more) = match behind.length {
                0 => (0, end),
                _ => (packets_left(total, through, self.packet), bit::CHAIN),
            };
            let status = Trb::transfer_status(piece.length, left, build.interrupter);
            let block = Trb::new(kind, piece.address, status, flags | first | more);
            let index = self.push(hw, block, Span { before, length: piece.length });
            let start = *start.get_or_insert(index);
            if behind.length == 0 {
                return (start, index);
            }
            (kind, first, before, rest) = (Kind::Normal, 0, through, behind);
        }
    }

    fn push<M: Mmio, D: Dma>(&mut self, hw: &mut Hardware<M, D>, block: Trb, span: Span) -> u16 {
        let index = self.ring.push(hw, block);
        self.spans[usize::from(index)] = span;
        index
    }

    /// Returns the flags of the first block of an isochronous transfer.
    fn isochronous(&self, length: u32, when: When) -> u32 {
        let packets = length.div_ceil(self.packet.into()).max(1);
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
    use crate::xhci::ring::Ring;

    #[test]
    fn a_buffer_is_cut_where_64_kib_end() {
        let whole = 0x1_0000;
        let cases = [
            (Buffer { address: 0x1_fff0, length: 0x20 }, &[(0x1_fff0, 16), (0x2_0000, 16)][..]),
            (
                Buffer { address: 0x3_0000, length: 0x2_0001 },
                &[(0x3_0000, whole), (0x4_0000, whole), (0x5_0000, 1)],
            ),
            (Buffer { address: 0x1_fff0, length: 0x10 }, &[(0x1_fff0, 16)]),
            (Buffer { address: 0x1_fff0, length: 0 }, &[(0x1_fff0, 0)]),
        ];
        for (buffer, expected) in cases {
            let (mut pieces, mut rest) = (alloc::vec::Vec::new(), buffer);
            loop {
                let (piece, behind) = cut(rest);
                pieces.push((piece.address, piece.length));
                rest = behind;
                if rest.length == 0 {
                    break;
                }
            }
            assert_eq!(pieces, expected);
            assert_eq!(blocks(buffer), expected.len());
        }
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
            let flags = pipe.isochronous(bytes, When::Frame(5));
            (flags >> 7 & 3, flags >> 16 & 0xf, flags >> 20)
        };
        assert_eq!(flags(33 * 1024), (2, 10, 5));
        assert_eq!(flags(12 * 1024), (1, 0, 5));
        assert_eq!(flags(0), (0, 0, 5));
    }
}
