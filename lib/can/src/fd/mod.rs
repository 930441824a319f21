//! CAN FD: frames, their bits on the wire, and how long they are at worst.
//!
//! | file | topic |
//! |---|---|
//! | `frame` | a frame as a value, and a frame of either format |
//! | `wire` | the bits of a frame: stuffing, stuff count, checksums |
//! | `receiver` | from bits back to a frame |
//!
//! The longest frames have these bits at each of the two rates:
//!
//! | | base | extended |
//! |---|---|---|
//! | at the rate of arbitration, to the bit that switches and after the data | 26 | 45 |
//! | stuff bits in it at most | 3 | 7 |
//! | at the rate of the data, with up to 16 bytes | 33 + 8n | 33 + 8n |
//! | with more bytes: the checksum is longer | 38 + 8n | 38 + 8n |
//!
//! The stuff bits of the data follow from its length. Both maxima can come together. The checksum
//! has stuff bits at fixed places, which are counted above.

mod frame;
mod receiver;
mod wire;

pub use frame::{AnyFrame, FdFrame};
pub use receiver::{FdReceiver, FdSupport};
pub use wire::{Checksum, stuff_count};

use crate::timing::BitRate;

/// Most bytes of a frame.
pub const FD_BYTES_MAX: u32 = 64;
/// Lengths of data that a frame can have, and how many stuff bits there are at most from the error
/// state indicator to the last bit of the data.
pub const LENGTHS: [(u32, u32); 16] = [
    (0, 0),
    (1, 1),
    (2, 3),
    (3, 6),
    (4, 8),
    (5, 9),
    (6, 11),
    (7, 14),
    (8, 16),
    (12, 23),
    (16, 31),
    (20, 40),
    (24, 48),
    (32, 63),
    (48, 97),
    (64, 128),
];
/// Bytes up to which the checksum has 17 bits.
const SHORT: u32 = 16;
/// Bits by which receivers may lengthen the delimiter of the checksum and the acknowledgement: one
/// each, of the rate of arbitration.
const LATE: u32 = 2;

/// The longest frame with some bytes of data: bits at the two rates, without the interframe space.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FdLength {
    /// Bits at the rate of arbitration.
    pub nominal: u32,
    /// Bits at the rate of the data.
    pub data: u32,
}

impl FdLength {
    /// Returns the longest frame with up to `bytes` bytes of anything, which are padded to the next
    /// length that there is; more than 64 count as 64.
    #[must_use]
    pub fn worst(extended: bool, bytes: u32) -> FdLength {
        let fits = |(length, _): &&(u32, u32)| *length >= bytes;
        let (length, stuff) = LENGTHS.iter().find(fits).copied().unwrap_or(LENGTHS[15]);
        let rest = if length <= SHORT { 33 } else { 38 };
        let nominal = LATE + if extended { 45 + 7 } else { 26 + 3 };
        FdLength { nominal, data: rest + 8 * length + stuff }
    }

    /// Returns as how many bits at the rate of arbitration the frame counts. A part of a bit counts
    /// as a whole one.
    #[must_use]
    pub fn as_nominal(self, rate: BitRate, data_rate: u32) -> u32 {
        let scaled = u64::from(self.data) * u64::from(rate.hertz());
        let scaled = scaled.div_ceil(u64::from(data_rate.max(1)));
        self.nominal.saturating_add(u32::try_from(scaled).unwrap_or(u32::MAX))
    }
}
