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

use crate::frame::CanFrame;
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
/// Bits of an overload frame at least: its flag and its delimiter.
pub const OVERLOAD_BITS: u32 = 14;
/// Overload frames in a row by which a node with a slow program holds its senders back.
pub const OVERLOADS: u8 = 4;
/// Bits of a standard frame before its data.
pub const STANDARD_HEADER: u32 = 19;
/// Bits of an extended frame before its data.
pub const EXTENDED_HEADER: u32 = 39;
/// Equal bits after which the transmitter inserts one of the other level.
pub const RUN_MAX: u8 = 5;

/// The generator of the CRC without its x^15.
const POLYNOMIAL: u16 = 0x4599;

/// The CRC of CAN: x^15 + x^14 + x^10 + x^8 + x^7 + x^4 + x^3 + 1, one bit at a time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Crc15(u16);

impl Crc15 {
    /// Takes one more bit in.
    pub fn push(&mut self, bit: bool) {
        let feedback = bit != (self.0 & 0x4000 != 0);
        self.0 = (self.0 << 1) & 0x7fff;
        if feedback {
            self.0 ^= POLYNOMIAL;
        }
    }

    /// Returns the CRC of the bits so far; 0 after a message followed by its own CRC.
    #[must_use]
    pub fn value(self) -> u16 {
        self.0
    }
}

const WORDS: usize = 12;

/// Bits in a row: at most 768, enough for every frame on the wire. The longest frame of CAN FD has
/// 730, and the longest classic one 157.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Bits {
    words: [u64; WORDS],
    len: u32,
}

impl Bits {
    /// Returns an empty sequence of bits.
    #[must_use]
    pub fn new() -> Bits {
        Bits::default()
    }

    /// Adds one at the end.
    ///
    /// # Panics
    /// Beyond 768 bits, which no frame has.
    pub fn push(&mut self, bit: bool) {
        self.append(u64::from(bit), 1);
    }

    /// The `width` low bits of `value`, the highest first.
    ///
    /// # Panics
    /// Panics beyond 768 bits.
    pub fn push_number(&mut self, value: u32, width: u32) {
        self.append(u64::from(value.reverse_bits()) >> (32 - width), width);
    }

    /// The `width` low bits of `value`, the lowest first; the others are zero.
    fn append(&mut self, value: u64, width: u32) {
        let (word, at) = ((self.len / 64) as usize, self.len % 64);
        self.words[word] |= value << at;
        if at + width > 64 {
            self.words[word + 1] |= value >> (64 - at);
        }
        self.len += width;
    }

    /// Returns the first 128, the first of them lowest.
    pub(crate) fn number(&self) -> u128 {
        u128::from(self.words[1]) << 64 | u128::from(self.words[0])
    }

    /// Returns the number of bits.
    #[must_use]
    pub fn len(&self) -> u32 {
        self.len
    }

    /// Returns whether there are no bits.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The bit at `index`; recessive from the end on, as the bus is.
    #[must_use]
    pub fn get(&self, index: u32) -> bool {
        index >= self.len || self.words[(index / 64) as usize] >> (index % 64) & 1 != 0
    }

    /// Returns all of them in order.
    pub fn iter(&self) -> impl Iterator<Item = bool> + '_ {
        (0..self.len).map(|index| self.get(index))
    }
}

/// A frame on the wire, from start of frame to end of frame, the ACK slot recessive as its
/// transmitter sends it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WireFrame {
    pub bits: Bits,
    /// How many come before the CRC delimiter: the stuffed part, stuff bits included.
    pub stuffed: u32,
    /// The index after the last bit of the arbitration field: identifier and RTR, and in CAN FD the
    /// bit that says so.
    pub arbitration: u32,
    /// The bits at the rate of the data: from the first index to before the second. None in a
    /// classic frame.
    pub fast: (u32, u32),
    /// Whether the frame is of CAN FD.
    pub is_fd: bool,
    /// A mask of the stuff bits.
    stuff: Bits,
    /// The bits before stuffing.
    pub(crate) plain: Bits,
}

impl WireFrame {
    /// Returns a frame of CAN FD before its first bit.
    pub(crate) fn fd(plain: Bits) -> WireFrame {
        let (bits, stuff) = (Bits::new(), Bits::new());
        let (stuffed, arbitration, fast) = (0, 0, (0, 0));
        WireFrame { bits, stuffed, arbitration, fast, is_fd: true, stuff, plain }
    }

    /// Returns whether the bit at `index` goes at the rate of the data.
    #[must_use]
    pub fn is_fast(&self, index: u32) -> bool {
        (self.fast.0..self.fast.1).contains(&index)
    }

    /// Returns how many bits go at the rate of the data.
    #[must_use]
    pub fn fast_bits(&self) -> u32 {
        self.fast.1 - self.fast.0
    }

    /// Returns whether the bit at `index` is a stuff bit.
    #[must_use]
    pub fn is_stuff(&self, index: u32) -> bool {
        index < self.stuff.len() && self.stuff.get(index)
    }

    /// Returns the index of the ACK slot.
    #[must_use]
    pub fn ack_slot(&self) -> u32 {
        self.stuffed + 1
    }

    /// Adds the bits `from..to` of `bits`, the lowest first.
    fn extend(&mut self, bits: u128, to: u32, from: u32) {
        let (bits, width) = ((bits & ((1 << to) - 1)) >> from, to - from);
        self.bits.append(bits as u64, width.min(64));
        if width > 64 {
            self.bits.append((bits >> 64) as u64, width - 64);
        }
    }

    /// Adds a stuff bit.
    pub(crate) fn stuff(&mut self, bit: bool) {
        self.stuff.len = self.bits.len;
        self.stuff.push(true);
        self.bits.push(bit);
    }
}

/// Returns the bits before stuffing: SOF to the last bit of the CRC sequence.
#[must_use]
pub fn unstuffed(frame: &CanFrame) -> Bits {
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
    bits.append(sequence(&bits).into(), CRC_BITS);
    bits
}

/// The generator of [`Crc15`], its highest coefficient lowest.
const GENERATOR: u16 = POLYNOMIAL.reverse_bits() >> (16 - CRC_BITS);

/// The CRC that eight bits make of an empty one.
const OF_BYTE: [u16; 256] = {
    let mut table = [0; 256];
    let mut byte = 0;
    while byte < 256 {
        let (mut crc, mut bit) = (byte as u16, 0);
        while bit < 8 {
            crc = crc >> 1 ^ if crc & 1 != 0 { GENERATOR } else { 0 };
            bit += 1;
        }
        table[byte] = crc;
        byte += 1;
    }
    table
};

/// Returns the CRC sequence of at most 128 bits, what is sent first lowest: [`Crc15`] by bytes.
/// Zeros in front change no CRC, so they fill up the first.
fn sequence(bits: &Bits) -> u16 {
    let bytes = (bits.number() << (bits.len().wrapping_neg() % 8)).to_le_bytes();
    let bytes = &bytes[..bits.len().div_ceil(8) as usize];
    bytes.iter().fold(0, |crc, byte| crc >> 8 ^ OF_BYTE[usize::from(crc as u8 ^ byte)])
}

/// Returns the frame as it is transmitted.
#[must_use]
pub fn encode(frame: &CanFrame) -> WireFrame {
    let plain = unstuffed(frame);
    let arbitration = if frame.is_extended() { 33 } else { 13 };
    let (bits, stuff) = (Bits::new(), Bits::new());
    let (fast, is_fd) = ((0, 0), false);
    let mut wire = WireFrame { bits, stuffed: 0, arbitration, fast, is_fd, stuff, plain };
    // The unsent rest, the next bit lowest. It begins with the last stuff bit, which counts as the
    // first of a run and was sent.
    let (mut rest, mut left, mut sent) = (plain.number(), plain.len(), 0);
    while let Some(end) = end_of_run(rest, left) {
        wire.extend(rest, end, sent);
        let stuff = rest >> (end - 1) & 1 ^ 1;
        let begun = plain.len() - (left - end);
        wire.arbitration += u32::from(begun < arbitration);
        wire.stuff(stuff != 0);
        (rest, left, sent) = (rest >> end << 1 | stuff, left - end + 1, 1);
    }
    wire.extend(rest, left, sent);
    wire.stuffed = wire.bits.len();
    wire.bits.append((1 << TRAILER_BITS) - 1, TRAILER_BITS);
    wire
}

/// Returns where the first five equal bits in a row end among the `left` low bits of `rest`.
fn end_of_run(rest: u128, left: u32) -> Option<u32> {
    let same = !(rest ^ rest >> 1);
    let two = same & same >> 1;
    let end = (two & two >> 2).trailing_zeros() + u32::from(RUN_MAX);
    (end <= left).then_some(end)
}

/// Exact length on the wire in bits, without the interframe space.
#[must_use]
pub fn length(frame: &CanFrame) -> u32 {
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

/// Returns the longest frame of `bytes` bytes (at most 8) that any identifier, content, data length
/// code and remote bit make, its CRC sequence included; without the interframe space.
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

// The lengths in the literature: 47 and 111 bits with the interframe space, 108 and 128 without;
// 135 bits at worst.
const _: () = {
    assert!(shortest(false, 0) + INTERFRAME_BITS == 47);
    assert!(shortest(false, 8) == 108 && shortest(false, 8) + INTERFRAME_BITS == 111);
    assert!(shortest(true, 8) == 128);
    assert!(longest(false, 8) + INTERFRAME_BITS == 135);
    assert!(longest(true, 8) + INTERFRAME_BITS == 160);
};

/// The result of arbitration among frames that start together.
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

/// Wired-AND, bit by bit: a node that sends recessive and sees dominant in the arbitration field
/// falls silent.
///
/// # Panics
/// Returns `Idle` without a contender.
#[must_use]
pub fn contest(wires: &[WireFrame]) -> Contest {
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
