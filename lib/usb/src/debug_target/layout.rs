//! The layout of the memory that the debug capability reads: context, texts, rings.

use super::LinkDirection;
use crate::setup::descriptor_type::STRING;
use crate::trb::BYTES as BLOCK;
use crate::xhci::Dma;

/// Three contexts of 64 bytes: texts, OUT ring, IN ring.
pub(super) const CONTEXT: u64 = 0x000;
/// Four texts, each with so much room.
const TEXTS: u64 = 0x100;
const TEXT: u64 = 0x40;
/// The table of event rings, with one entry.
pub(super) const TABLE: u64 = 0x200;
/// Blocks of a ring, the last of which leads back to the first.
pub(super) const BLOCKS: u16 = 64;
const RINGS: u64 = 0x400;
/// Events, and where they are.
pub(super) const EVENTS: u16 = 256;
pub(super) const EVENTS_AT: u64 = 0x1000;
/// Bytes of memory it takes.
pub const BYTES: u64 = EVENTS_AT + EVENTS as u64 * BLOCK as u64;

/// Returns where the blocks of a ring begin.
pub(super) const fn ring_at(way: LinkDirection) -> u64 {
    RINGS + way as u64 * BLOCKS as u64 * BLOCK as u64
}

/// The identity that the other computer reads.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TargetIdentity {
    pub vendor: u16,
    pub product: u16,
    pub version: u16,
    /// The protocol number: 0 is the vendor's own.
    pub protocol: u8,
    /// Manufacturer, product and serial number: 31 characters of each.
    pub texts: [&'static str; 3],
}

impl TargetIdentity {
    /// Returns the words as the registers have them.
    pub(super) const fn words(&self) -> [u32; 2] {
        [
            self.protocol as u32 | (self.vendor as u32) << 16,
            self.product as u32 | (self.version as u32) << 16,
        ]
    }
}

/// Writes all but the rings' blocks.
pub(super) fn lay_out<D: Dma>(dma: &mut D, identity: &TargetIdentity, burst: u32) {
    for offset in (0..BYTES).step_by(4) {
        dma.store(offset, 0);
    }
    let mut lengths = 0;
    for (number, text) in (0..).zip([""].iter().chain(&identity.texts)) {
        let at = TEXTS + number * TEXT;
        let length = write_text(dma, at, if number == 0 { None } else { Some(text) });
        dma.store_64(CONTEXT + 8 * number, dma.base() + at);
        lengths |= u32::from(length) << (8 * number);
    }
    dma.store(CONTEXT + 32, lengths);
    for (way, kind) in [(LinkDirection::Out, 2), (LinkDirection::In, 6)] {
        let at = CONTEXT + 64 * (way as u64 + 1);
        dma.store(at + 4, 1024 << 16 | burst << 8 | kind << 3);
        dma.store_64(at + 8, (dma.base() + ring_at(way)) | 1);
        dma.store(at + 16, 1024);
    }
    dma.store_64(TABLE, dma.base() + EVENTS_AT);
    dma.store(TABLE + 8, EVENTS.into());
}

/// Returns a string descriptor, or the table of languages; its length.
fn write_text<D: Dma>(dma: &mut D, at: u64, text: Option<&str>) -> u8 {
    const ENGLISH: u16 = 0x0409;
    let units = text.unwrap_or("").encode_utf16();
    let languages = text.is_none().then_some(ENGLISH).into_iter();
    let mut length = 2;
    for unit in languages.chain(units).take(31) {
        dma.write(at + u64::from(length), &unit.to_le_bytes());
        length += 2;
    }
    dma.write(at, &[length, STRING]);
    length
}
