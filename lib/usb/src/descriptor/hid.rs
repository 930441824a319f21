//! Human interface devices: the descriptor, and the items of a report's layout.

use super::{DescriptorFlaw, DescriptorRefusal, Raw};
use crate::setup::descriptor_type::HID_REPORT;

/// Type of the descriptor inside an interface.
const HID: u8 = 0x21;
/// Most bits of a report: what fits into a transfer of 64 KiB.
const BITS_MAX: u64 = 8 << 16;
/// Most collections inside each other.
const DEPTH_MAX: u32 = 64;

/// The descriptor that a human interface device has in its interface.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Hid {
    /// Version, two digits each.
    pub version: u16,
    /// Country of the layout; 0 is none.
    pub country: u8,
    /// Bytes of the report descriptor.
    pub report: u16,
}

impl Hid {
    /// Reads it from what an interface holds.
    ///
    /// # Errors
    /// It is another descriptor, is cut, or has no report.
    pub fn parse(raw: Raw<'_>) -> Result<Hid, DescriptorRefusal> {
        let raw = raw.expect(HID, 9)?;
        let raw = raw.at_least(6 + 3 * usize::from(raw.byte(5)))?;
        let all = raw.bytes.get(6..).unwrap_or(&[]).as_chunks::<3>().0.iter();
        let mut reports = all.take(raw.byte(5).into()).filter(|[kind, ..]| *kind == HID_REPORT);
        let Some([_, low, high]) = reports.next() else {
            return Err(raw.refuse(DescriptorFlaw::Report));
        };
        let report = u16::from_le_bytes([*low, *high]);
        Ok(Hid { version: raw.half(2), country: raw.byte(4), report })
    }
}

/// An item of a report's layout.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ReportItem {
    /// Tag and type, without the size.
    pub tag: u8,
    pub value: u32,
}

/// Tags, with the two bits of size left out.
mod tag {
    pub const INPUT: u8 = 0x80;
    pub const OUTPUT: u8 = 0x90;
    pub const FEATURE: u8 = 0xb0;
    pub const COLLECTION: u8 = 0xa0;
    pub const END_COLLECTION: u8 = 0xc0;
    pub const REPORT_SIZE: u8 = 0x74;
    pub const REPORT_COUNT: u8 = 0x94;
    pub const LONG: u8 = 0xfe;
}

/// The items of a layout.
#[derive(Clone, Debug)]
pub struct Items<'a> {
    rest: &'a [u8],
}

impl<'a> Items<'a> {
    /// Reads a layout: all items are whole, collections close, no report is larger than a transfer.
    /// Returns the items and the bits of all input, output and feature fields.
    ///
    /// # Errors
    /// A layout that no device can have.
    pub fn parse(bytes: &'a [u8]) -> Result<(Items<'a>, [u32; 3]), DescriptorRefusal> {
        let (mut size, mut count, mut depth) = (0u64, 0u64, 0u32);
        let mut bits = [0u64; 3];
        let mut items = Items { rest: bytes };
        loop {
            let offset = bytes.len() - items.rest.len();
            let refusal = DescriptorRefusal { offset, reason: DescriptorFlaw::Report };
            let Some(item) = items.next() else {
                let closed = items.rest.is_empty() && depth == 0;
                let all = Items { rest: bytes };
                return if closed { Ok((all, bits.map(|n| n as u32))) } else { Err(refusal) };
            };
            let value = u64::from(item.value);
            match item.tag {
                tag::REPORT_SIZE => size = value,
                tag::REPORT_COUNT => count = value,
                tag::COLLECTION if depth < DEPTH_MAX => depth += 1,
                tag::COLLECTION => return Err(refusal),
                tag::END_COLLECTION => depth = depth.checked_sub(1).ok_or(refusal)?,
                tag::INPUT | tag::OUTPUT | tag::FEATURE => {
                    let kinds = [tag::INPUT, tag::OUTPUT, tag::FEATURE];
                    let kind = kinds.iter().position(|kind| *kind == item.tag);
                    let field = &mut bits[kind.unwrap_or(0)];
                    *field = field.saturating_add(size.saturating_mul(count));
                    if *field > BITS_MAX {
                        return Err(refusal);
                    }
                }
                _ => {}
            }
        }
    }
}

impl Iterator for Items<'_> {
    type Item = ReportItem;

    /// Long items are passed over: none is defined.
    fn next(&mut self) -> Option<ReportItem> {
        loop {
            let (&prefix, body) = self.rest.split_first()?;
            if prefix == tag::LONG {
                let length = usize::from(*body.first()?);
                self.rest = body.get(2 + length..)?;
                continue;
            }
            let size = [0, 1, 2, 4][usize::from(prefix & 3)];
            let data = body.get(..size)?;
            self.rest = body.get(size..)?;
            let value = data.iter().rev().fold(0, |value, byte| value << 8 | u32::from(*byte));
            return Some(ReportItem { tag: prefix & !3, value });
        }
    }
}
