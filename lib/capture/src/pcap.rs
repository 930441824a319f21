//! The classic pcap file, little-endian, with times in nanoseconds.

use alloc::vec::Vec;
use diapason_abi::Nanos;

/// The kind of packets in a file.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum LinkType {
    /// Ethernet frames without their checksum.
    Ethernet = 1,
    /// USB transfers with the 64-byte header of Linux's usbmon.
    Usb = 220,
    /// CAN frames as SocketCAN has them, the identifier big-endian.
    Can = 227,
}

/// Says that times are nanoseconds; read in the other order, that bytes are swapped.
const MAGIC: u32 = 0xa1b2_3c4d;
const VERSION: (u16, u16) = (2, 4);
/// Most bytes of a packet that are kept: readers refuse more.
pub const KEPT_MAX: usize = 262_144;

/// Returns the beginning of a file.
#[must_use]
pub fn header(link: LinkType) -> [u8; 24] {
    let mut bytes = [0; 24];
    bytes[0..4].copy_from_slice(&MAGIC.to_le_bytes());
    bytes[4..6].copy_from_slice(&VERSION.0.to_le_bytes());
    bytes[6..8].copy_from_slice(&VERSION.1.to_le_bytes());
    // Eight bytes of zeros: the time zone and its accuracy, which nobody uses.
    bytes[16..20].copy_from_slice(&(KEPT_MAX as u32).to_le_bytes());
    bytes[20..24].copy_from_slice(&(link as u32).to_le_bytes());
    bytes
}

/// Returns one packet with its header, cut to [`KEPT_MAX`].
#[must_use]
pub fn packet(time: Nanos, bytes: &[u8]) -> Vec<u8> {
    let kept = &bytes[..bytes.len().min(KEPT_MAX)];
    let words = [
        u32::try_from(time.0 / 1_000_000_000).unwrap_or(u32::MAX),
        (time.0 % 1_000_000_000) as u32,
        kept.len() as u32,
        u32::try_from(bytes.len()).unwrap_or(u32::MAX),
    ];
    let head = words.iter().flat_map(|word| word.to_le_bytes());
    head.chain(kept.iter().copied()).collect()
}
