//! A frame of CAN FD as the bits on the wire.
//!
//! ```text
//! base      SOF ID11 RRS IDE          FDF res BRS | ESI DLC4 data | count4 CRC | CRC) ACK ACK) EOF
//! extended  SOF ID11 SRR IDE ID18 RRS FDF res BRS | ESI DLC4 data | count4 CRC | CRC) ACK ACK) EOF
//!           '----------- stuffed after five equal bits ----------'  '- fixed -'
//!                                                 '----- at the rate of the data ----'
//! ```
//!
//! The stuff bits of the second part are at fixed places: one before the count, and one after each
//! four bits. The count is of the stuff bits before it.

use super::frame::{FdFrame, length};
use crate::wire::{Bits, DOMINANT, RECESSIVE, RUN_MAX, TRAILER_BITS, WireFrame};
use embedded_can::Id;

/// Bits of a base frame before its data.
pub(super) const BASE_HEADER: u32 = 22;
/// Bits of an extended frame before its data.
pub(super) const EXTENDED_HEADER: u32 = 41;
/// Bits of the header from the one that says that the frame is of CAN FD to the last.
pub(super) const FROM_FDF: u32 = 8;
/// Bits of the stuff count, its parity included.
pub(super) const COUNT_BITS: u32 = 4;
/// Bits between two fixed stuff bits.
pub(super) const FIXED_EACH: u32 = 4;
/// Bytes up to which the checksum has 17 bits.
const SHORT: usize = 16;

/// The register of one of the two checksums of CAN FD.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Checksum {
    value: u32,
    generator: u32,
    width: u32,
}

impl Checksum {
    /// The checksum of frames with up to 16 bytes, before the first bit.
    pub const SHORT: Checksum = Checksum { value: 1 << 16, generator: 0x1685b, width: 17 };
    /// The checksum of longer frames, before the first bit.
    pub const LONG: Checksum = Checksum { value: 1 << 20, generator: 0x10_2899, width: 21 };

    /// Returns the checksum of frames with so many bytes, before the first bit.
    #[must_use]
    pub const fn of(bytes: usize) -> Checksum {
        if bytes <= SHORT { Checksum::SHORT } else { Checksum::LONG }
    }

    /// Takes one more bit in. Stuff bits count, except fixed ones.
    pub fn push(&mut self, bit: bool) {
        let feedback = bit != (self.value >> (self.width - 1) & 1 != 0);
        self.value = (self.value << 1) & ((1 << self.width) - 1);
        if feedback {
            self.value ^= self.generator;
        }
    }

    /// Returns the checksum of the bits so far.
    #[must_use]
    pub const fn value(self) -> u32 {
        self.value
    }

    /// Returns how many bits the checksum has.
    #[must_use]
    pub const fn width(self) -> u32 {
        self.width
    }

    /// Returns the stuff count and the checksum behind it, as one number.
    pub(super) fn sequence(mut self, stuffed: u32) -> u32 {
        let count = stuff_count(stuffed);
        for bit in (0..COUNT_BITS).rev() {
            self.push(count >> bit & 1 != 0);
        }
        count << self.width | self.value
    }
}

/// Returns the field that says how many stuff bits there are: modulo eight in Gray code, and a bit
/// that makes the parity even.
#[must_use]
pub const fn stuff_count(stuffed: u32) -> u32 {
    let count = stuffed % 8;
    let gray = count ^ (count / 2);
    gray << 1 | gray.count_ones() & 1
}

impl FdFrame {
    /// Returns the bits before stuffing: SOF to the last bit of the data.
    pub(crate) fn plain(&self) -> Bits {
        let mut bits = Bits::new();
        bits.push(DOMINANT);
        match self.id() {
            Id::Standard(id) => {
                bits.push_number(id.as_raw().into(), 11);
                bits.push_number(0b00, 2);
            }
            Id::Extended(id) => {
                bits.push_number(id.as_raw() >> 18, 11);
                bits.push_number(0b11, 2);
                bits.push_number(id.as_raw(), 18);
                bits.push(DOMINANT);
            }
        }
        bits.push_number(0b10, 2);
        bits.push(self.is_fast());
        bits.push(self.is_passive());
        bits.push_number(self.code().into(), 4);
        for byte in self.bytes() {
            bits.push_number((*byte).into(), 8);
        }
        bits
    }

    /// Returns the frame as it is transmitted.
    #[must_use]
    pub fn encode(&self) -> WireFrame {
        let plain = self.plain();
        let header =
            if matches!(self.id(), Id::Extended(_)) { EXTENDED_HEADER } else { BASE_HEADER };
        // A sender that sees a dominant bit in place of FDF has lost to a classic frame.
        let (fdf, switch) = (header - FROM_FDF, header - FROM_FDF + 2);
        let mut wire = WireFrame::fd(plain);
        let mut crc = Checksum::of(length(self.code()));
        let (mut last, mut run, mut count, mut fast) = (RECESSIVE, 0, 0, 0);
        for (index, bit) in (0..).zip(plain.iter()) {
            if run == RUN_MAX {
                (last, run, count) = (!last, 1, count + 1);
                wire.stuff(last);
                crc.push(last);
            }
            wire.bits.push(bit);
            crc.push(bit);
            run = if bit == last { run + 1 } else { 1 };
            last = bit;
            if index == fdf {
                wire.arbitration = wire.bits.len();
            }
            if index == switch {
                fast = wire.bits.len();
            }
        }
        let width = COUNT_BITS + crc.width();
        let sequence = crc.sequence(count);
        for index in 0..width {
            if index % FIXED_EACH == 0 {
                wire.bits.push(!last);
            }
            last = sequence >> (width - 1 - index) & 1 != 0;
            wire.bits.push(last);
        }
        wire.stuffed = wire.bits.len();
        if self.is_fast() {
            wire.fast = (fast, wire.stuffed + 1);
        }
        wire.bits.push_number((1 << TRAILER_BITS) - 1, TRAILER_BITS);
        wire
    }
}
