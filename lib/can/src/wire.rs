//! A frame as the bits on the wire: CRC, stuffing, exact and worst-case lengths.
//!
//! ```text
//! standard  SOF ID11 RTR IDE r0 DLC4                  | data | CRC15 |  CRC) ACK ACK) EOF7 | IFS3
//! extended  SOF ID11 SRR IDE ID18 RTR r1 r0 DLC4      | data | CRC15 |  CRC) ACK ACK) EOF7 | IFS3
//!           '------------- stuffed: after five equal bits one more ---'  '-- fixed form ---'
//! ```
//!
//! A bit is `true` when recessive (1). The length of a frame counts from start of frame (SOF) to
//! the end of frame (EOF); the interframe space (IFS) that must follow it is named where counted.

use crate::frame::Frame;
use embedded_can::Id;

/// The level that wins.
pub const DOMINANT: bool = false;
/// The level of an idle bus.
pub const RECESSIVE: bool = true;
/// Bits of the CRC sequence.
pub const CRC_BITS: u32 = 15;
/// Bits after the CRC sequence: its delimiter, the ACK slot and delimiter, seven of end of frame.
pub const TRAILER_BITS: u32 = 10;
/// Recessive bits between two frames.
pub const INTERFRAME_BITS: u32 = 3;
/// Bits of a standard frame before its data.
pub const STANDARD_HEADER: u32 = 19;
/// Bits of an extended frame before its data.
pub const EXTENDED_HEADER: u32 = 39;
/// Equal bits after which the transmitter inserts one of the other level.
pub const RUN_MAX: u8 = 5;

/// The CRC of CAN: x^15 + x^14 + x^10 + x^8 + x^7 + x^4 + x^3 + 1, one bit at a time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Crc15(u16);

impl Crc15 {
    /// Take one more bit in.
    pub fn push(&mut self, bit: bool) {
        let feedback = bit != (self.0 & 0x4000 != 0);
        self.0 = (self.0 << 1) & 0x7fff;
        if feedback {
            self.0 ^= 0x4599;
        }
    }

    /// The CRC of the bits so far; 0 after a message followed by its own CRC.
    #[must_use]
    pub fn value(self) -> u16 {
        self.0
    }
}

/// Bits in a row: at most 192, enough for every frame on the wire (157, or 160 with its space).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Bits {
    words: [u64; 3],
    len: u32,
}

impl Bits {
    /// No bits.
    #[must_use]
    pub fn new() -> Bits {
        Bits::default()
    }

    /// Add one at the end.
    ///
    /// # Panics
    /// Beyond 192 bits, which no frame has.
    pub fn push(&mut self, bit: bool) {
        self.words[(self.len / 64) as usize] |= u64::from(bit) << (self.len % 64);
        self.len += 1;
    }

    /// The `width` low bits of `value`, the highest first.
    pub fn push_number(&mut self, value: u32, width: u32) {
        for at in (0..width).rev() {
            self.push(value >> at & 1 != 0);
        }
    }

    /// How many.
    #[must_use]
    pub fn len(&self) -> u32 {
        self.len
    }

    /// Are there none?
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The bit at `index`; recessive from the end on, as the bus is.
    #[must_use]
    pub fn get(&self, index: u32) -> bool {
        index >= self.len || self.words[(index / 64) as usize] >> (index % 64) & 1 != 0
    }

    /// All of them in order.
    pub fn iter(&self) -> impl Iterator<Item = bool> + '_ {
        (0..self.len).map(|index| self.get(index))
    }
}

/// A frame on the wire, from start of frame to end of frame, the ACK slot recessive as its
/// transmitter sends it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wire {
    /// Every bit.
    pub bits: Bits,
    /// How many come before the CRC delimiter: the stuffed part, stuff bits included.
    pub stuffed: u32,
    /// The index after the last bit of the arbitration field (identifier and RTR).
    pub arbitration: u32,
    /// Which of the bits are stuff bits.
    stuff: Bits,
}

impl Wire {
    /// Is the bit at `index` a stuff bit?
    #[must_use]
    pub fn is_stuff(&self, index: u32) -> bool {
        index < self.stuff.len() && self.stuff.get(index)
    }

    /// The index of the ACK slot.
    #[must_use]
    pub fn ack_slot(&self) -> u32 {
        self.stuffed + 1
    }
}

/// The bits before stuffing: SOF to the last bit of the CRC sequence.
#[must_use]
pub fn unstuffed(frame: &Frame) -> Bits {
    let mut bits = Bits::new();
    bits.push(DOMINANT);
    match frame.id() {
        Id::Standard(id) => {
            bits.push_number(id.as_raw().into(), 11);
            bits.push(frame.is_remote());
            bits.push_number(0, 2);
        }
        Id::Extended(id) => {
            bits.push_number(id.as_raw() >> 18, 11);
            bits.push_number(0b11, 2);
            bits.push_number(id.as_raw(), 18);
            bits.push(frame.is_remote());
            bits.push_number(0, 2);
        }
    }
    bits.push_number(frame.code().into(), 4);
    for byte in frame.bytes() {
        bits.push_number((*byte).into(), 8);
    }
    let mut crc = Crc15::default();
    bits.iter().for_each(|bit| crc.push(bit));
    bits.push_number(crc.value().into(), CRC_BITS);
    bits
}

/// The frame as it is transmitted.
#[must_use]
pub fn encode(frame: &Frame) -> Wire {
    let raw = unstuffed(frame);
    let arbitration_raw = if frame.is_extended() { 33 } else { 13 };
    let mut wire = Wire { bits: Bits::new(), stuffed: 0, arbitration: 0, stuff: Bits::new() };
    let (mut last, mut run) = (RECESSIVE, 0);
    for (index, bit) in raw.iter().enumerate() {
        run = if bit == last { run + 1 } else { 1 };
        last = bit;
        wire.bits.push(bit);
        wire.stuff.push(false);
        if index + 1 == arbitration_raw {
            wire.arbitration = wire.bits.len();
        }
        if run == RUN_MAX {
            (last, run) = (!bit, 1);
            wire.bits.push(last);
            wire.stuff.push(true);
        }
    }
    wire.stuffed = wire.bits.len();
    (0..TRAILER_BITS).for_each(|_| wire.bits.push(RECESSIVE));
    wire
}

/// Exact length on the wire in bits, without the interframe space.
#[must_use]
pub fn length(frame: &Frame) -> u32 {
    encode(frame).bits.len()
}

/// Length of a frame of `bytes` bytes without stuff bits and without the interframe space.
#[must_use]
pub const fn shortest(extended: bool, bytes: u32) -> u32 {
    header(extended) + 8 * bytes + CRC_BITS + TRAILER_BITS
}

/// No frame of `bytes` bytes is longer, whatever is in it; without the interframe space.
///
/// The first stuff bit needs five bits before it, and each further one four: `⌊(n − 1) / 4⌋` of
/// them in `n` stuffed bits.
#[must_use]
pub const fn longest(extended: bool, bytes: u32) -> u32 {
    let stuffed = header(extended) + 8 * bytes + CRC_BITS;
    stuffed + (stuffed - 1) / 4 + TRAILER_BITS
}

/// The longest frame of `bytes` bytes (at most 8) that any identifier, content, data length code
/// and remote bit make, its CRC sequence included; without the interframe space.
///
/// The closed form [`longest`] is up to three bits too long: no content has the CRC it would need.
#[must_use]
pub const fn worst(extended: bool, bytes: u32) -> u32 {
    const STANDARD: [u32; 9] = [50, 59, 69, 80, 90, 99, 110, 121, 130];
    const EXTENDED: [u32; 9] = [75, 85, 95, 105, 115, 125, 135, 145, 156];
    let index = if bytes > 8 { 8 } else { bytes as usize };
    if extended { EXTENDED[index] } else { STANDARD[index] }
}

const fn header(extended: bool) -> u32 {
    if extended { EXTENDED_HEADER } else { STANDARD_HEADER }
}

// What the papers count with: 47 and 111 bits with the interframe space, 108 and 128 without;
// 135 bits at worst.
const _: () = {
    assert!(shortest(false, 0) + INTERFRAME_BITS == 47);
    assert!(shortest(false, 8) == 108 && shortest(false, 8) + INTERFRAME_BITS == 111);
    assert!(shortest(true, 8) == 128);
    assert!(longest(false, 8) + INTERFRAME_BITS == 135);
    assert!(longest(true, 8) + INTERFRAME_BITS == 160);
};

/// What arbitration among frames that start together comes to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Contest {
    /// One frame (or several that are equal, bit for bit) gets through.
    Won {
        /// The index of the first that does.
        by: usize,
    },
    /// Two frames with the same identifier go on together until they differ: an error.
    Clash {
        /// Bit at which the first of them sees another level than its own.
        at: u32,
    },
}

/// Wired-AND, bit by bit: who sends recessive and sees dominant in the arbitration field falls
/// silent.
///
/// # Panics
/// Without a contender.
#[must_use]
pub fn contest(wires: &[Wire]) -> Contest {
    assert!(!wires.is_empty(), "arbitration needs a contender");
    let mut silent = alloc::vec![false; wires.len()];
    let end = wires.iter().map(|wire| wire.bits.len()).max().unwrap_or(0);
    for at in 0..end {
        let sending = || wires.iter().enumerate().filter(|(index, _)| !silent[*index]);
        let level = sending().fold(RECESSIVE, |level, (_, wire)| level & wire.bits.get(at));
        let mut losers = alloc::vec::Vec::new();
        for (index, wire) in sending().filter(|(_, wire)| wire.bits.get(at) != level) {
            if at >= wire.arbitration || wire.is_stuff(at) {
                return Contest::Clash { at };
            }
            losers.push(index);
        }
        losers.into_iter().for_each(|index| silent[index] = true);
    }
    let by = silent.iter().position(|silent| !silent).unwrap_or(0);
    Contest::Won { by }
}
