//! The description of a device that the host sends to the guest: identity, interfaces, endpoints.

use super::fields::{Fields, Malformed};

/// Endpoints that can be described: OUT 0 to 15, then IN 0 to 15.
pub const SLOTS: usize = 32;

/// Returns where the endpoint with this address is described.
#[must_use]
pub const fn slot(address: u8) -> usize {
    (((address & 0x80) >> 3) | (address & 0x0f)) as usize
}

/// Kind of an endpoint.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[repr(u8)]
pub enum TransferType {
    /// A control endpoint: both directions, in stages.
    Control = 0,
    /// Guaranteed time, no retries.
    Isochronous = 1,
    Bulk = 2,
    Interrupt = 3,
    #[default]
    Absent = 255,
}

impl TransferType {
    /// From the wire, or from `bmAttributes` of an endpoint.
    #[must_use]
    pub const fn decode(number: u8) -> TransferType {
        match number {
            0 => TransferType::Control,
            1 => TransferType::Isochronous,
            2 => TransferType::Bulk,
            3 => TransferType::Interrupt,
            _ => TransferType::Absent,
        }
    }
}

/// The description of one endpoint.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct EndpointInfo {
    pub kind: TransferType,
    pub interval: u8,
    /// The interface it belongs to.
    pub interface: u8,
    /// Bytes per packet, or per service interval if it is periodic.
    pub bytes: u16,
}

/// Interfaces: number, class, subclass, protocol.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Interfaces(pub Vec<[u8; 4]>);

/// The identity of the device.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Connect {
    /// 0 low, 1 full, 2 high, 3 super.
    pub speed: u8,
    pub class: [u8; 3],
    pub vendor: u16,
    pub product: u16,
    /// Version of the device, binary-coded decimal.
    pub version: u16,
}

impl Connect {
    pub(super) fn decode(fields: &mut Fields<'_>) -> Result<Connect, Malformed> {
        Ok(Connect {
            speed: fields.byte()?,
            class: fields.bytes()?,
            vendor: fields.half()?,
            product: fields.half()?,
            version: fields.half()?,
        })
    }

    pub(super) fn encode(&self, out: &mut Vec<u8>) {
        out.push(self.speed);
        out.extend_from_slice(&self.class);
        for half in [self.vendor, self.product, self.version] {
            out.extend_from_slice(&half.to_le_bytes());
        }
    }
}

impl Interfaces {
    pub(super) fn decode(fields: &mut Fields<'_>) -> Result<Interfaces, Malformed> {
        let count = fields.word()? as usize;
        let columns: [[u8; SLOTS]; 4] =
            [fields.bytes()?, fields.bytes()?, fields.bytes()?, fields.bytes()?];
        if count > SLOTS {
            return Err(Malformed::Content);
        }
        Ok(Interfaces((0..count).map(|i| columns.map(|column| column[i])).collect()))
    }

    /// Interfaces beyond the 32nd have no place and are left out.
    pub(super) fn encode(&self, out: &mut Vec<u8>) {
        let count = self.0.len().min(SLOTS);
        out.extend_from_slice(&(count as u32).to_le_bytes());
        for column in 0..4 {
            let known = self.0.iter().take(count).map(|interface| interface[column]);
            out.extend(known.chain(std::iter::repeat_n(0, SLOTS - count)));
        }
    }
}

pub(super) fn decode_endpoints(
    fields: &mut Fields<'_>,
) -> Result<Box<[EndpointInfo; SLOTS]>, Malformed> {
    let kinds: [u8; SLOTS] = fields.bytes()?;
    let intervals: [u8; SLOTS] = fields.bytes()?;
    let interfaces: [u8; SLOTS] = fields.bytes()?;
    let mut endpoints = Box::new([EndpointInfo::default(); SLOTS]);
    for (i, endpoint) in endpoints.iter_mut().enumerate() {
        *endpoint = EndpointInfo {
            kind: TransferType::decode(kinds[i]),
            interval: intervals[i],
            interface: interfaces[i],
            bytes: fields.half()?,
        };
    }
    Ok(endpoints)
}

pub(super) fn encode_endpoints(endpoints: &[EndpointInfo; SLOTS], out: &mut Vec<u8>) {
    out.extend(endpoints.iter().map(|endpoint| endpoint.kind as u8));
    out.extend(endpoints.iter().map(|endpoint| endpoint.interval));
    out.extend(endpoints.iter().map(|endpoint| endpoint.interface));
    out.extend(endpoints.iter().flat_map(|endpoint| endpoint.bytes.to_le_bytes()));
}
