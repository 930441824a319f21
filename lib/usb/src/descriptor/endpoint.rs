//! An endpoint with its companion, as numbers that mean the same at every speed.

use super::{DescriptorFlaw, DescriptorRefusal, Raw};
use crate::Speed;
use crate::setup::IN;
use diapason_bus::{Direction, Transfer};

/// Most streams of a bulk endpoint, as a power of two.
const STREAMS_MAX: u8 = 16;

/// An endpoint that its speed allows.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct EndpointDescriptor {
    /// Number, and [`IN`] if its data goes to the host.
    pub address: u8,
    /// The transfer type; never control.
    pub transfer: Transfer,
    /// The speed of the endpoint's device.
    pub speed: Speed,
    /// Bytes of a packet; 0 only for an isochronous endpoint that is switched off.
    pub packet: u16,
    /// Packets of a burst (super speed) or of an interval (high speed), less one.
    pub burst: u8,
    /// Bursts of an interval, less one.
    pub mult: u8,
    /// The interval as the device says it.
    pub interval: u8,
    /// Most bytes of an interval; 0 for bulk.
    pub interval_bytes: u32,
    /// Streams as a power of two; 0 is none.
    pub streams: u8,
}

impl EndpointDescriptor {
    /// Reads an endpoint, and its companion if the speed has them.
    pub(super) fn read(
        raw: Raw<'_>,
        companion: Option<Raw<'_>>,
        speed: Speed,
    ) -> Result<EndpointDescriptor, DescriptorRefusal> {
        let raw = raw.at_least(7)?;
        let (address, attributes, size) = (raw.byte(2), raw.byte(3), raw.half(4));
        if address & 0xf == 0 || address & 0x70 != 0 {
            return Err(raw.refuse(DescriptorFlaw::EndpointAddress(address)));
        }
        let transfer = transfer(attributes, speed).map_err(|reason| raw.refuse(reason))?;
        let (packet, burst) = packet(transfer, speed, size).map_err(|reason| raw.refuse(reason))?;
        let interval = raw.byte(6);
        if transfer != Transfer::Bulk && speed.period(transfer, interval).is_none() {
            return Err(raw.refuse(DescriptorFlaw::Interval(interval)));
        }
        let interval_bytes = match transfer {
            Transfer::Interrupt | Transfer::Isochronous => {
                u32::from(packet) * (u32::from(burst) + 1)
            }
            Transfer::Bulk | Transfer::Control => 0,
        };
        let (mult, streams) = (0, 0);
        let alone = EndpointDescriptor {
            address,
            transfer,
            speed,
            packet,
            burst,
            mult,
            interval,
            interval_bytes,
            streams,
        };
        match (speed, companion) {
            (Speed::Super, Some(companion)) => alone.with(companion),
            (Speed::Super, None) => Err(raw.refuse(DescriptorFlaw::Companion)),
            (_, Some(companion)) => Err(companion.refuse(DescriptorFlaw::Companion)),
            (_, None) => Ok(alone),
        }
    }

    /// Adds what the companion of the endpoint says.
    fn with(self, raw: Raw<'_>) -> Result<EndpointDescriptor, DescriptorRefusal> {
        let raw = raw.at_least(6)?;
        let (burst, attributes, bytes) = (raw.byte(2), raw.byte(3), u32::from(raw.half(4)));
        let refuse = |reason| Err(raw.refuse(reason));
        let most = if self.transfer == Transfer::Interrupt { 2 } else { 15 };
        if burst > most {
            return refuse(DescriptorFlaw::Burst(burst));
        }
        let (mult, streams) = match self.transfer {
            Transfer::Isochronous if attributes <= 2 && (burst > 0 || attributes == 0) => {
                (attributes, 0)
            }
            Transfer::Bulk if attributes <= STREAMS_MAX => (0, attributes),
            Transfer::Interrupt if attributes == 0 => (0, 0),
            _ => return refuse(DescriptorFlaw::Burst(attributes)),
        };
        if burst > 0 && self.packet != 1024 {
            return refuse(DescriptorFlaw::PacketSize(self.packet));
        }
        let room = u32::from(self.packet) * (u32::from(burst) + 1) * (u32::from(mult) + 1);
        let interval_bytes = match self.transfer {
            Transfer::Bulk | Transfer::Control => 0,
            _ if bytes > room || (bytes == 0 && room > 0) => {
                return refuse(DescriptorFlaw::IntervalBytes(bytes));
            }
            _ => bytes,
        };
        Ok(EndpointDescriptor { burst, mult, streams, interval_bytes, ..self })
    }

    /// Returns where its data goes.
    #[must_use]
    pub const fn direction(&self) -> Direction {
        if self.is_in() { Direction::In } else { Direction::Out }
    }

    /// Returns whether the endpoint transfers to the host.
    #[must_use]
    pub const fn is_in(&self) -> bool {
        self.address & IN != 0
    }
}

/// Decodes the attributes at this speed.
fn transfer(attributes: u8, speed: Speed) -> Result<Transfer, DescriptorFlaw> {
    let transfer = match attributes & 3 {
        1 => Transfer::Isochronous,
        2 => Transfer::Bulk,
        3 => Transfer::Interrupt,
        _ => return Err(DescriptorFlaw::EndpointType(attributes)),
    };
    match speed.largest_packet(transfer) {
        0 => Err(DescriptorFlaw::EndpointType(attributes)),
        _ => Ok(transfer),
    }
}

/// Bytes of a packet, and further packets of an interval at high speed.
fn packet(transfer: Transfer, speed: Speed, size: u16) -> Result<(u16, u8), DescriptorFlaw> {
    let (bytes, more) = (size & 0x7ff, (size >> 11) as u8);
    let largest = speed.largest_packet(transfer) as u16;
    let further =
        matches!((speed, transfer), (Speed::High, Transfer::Interrupt | Transfer::Isochronous));
    let possible = match (speed, transfer) {
        (Speed::Full, Transfer::Bulk) => matches!(bytes, 8 | 16 | 32 | 64),
        (_, Transfer::Bulk) => bytes == largest,
        (_, Transfer::Isochronous) => bytes <= largest && (bytes > 0 || more == 0),
        _ => bytes > 0 && bytes <= largest,
    };
    let most = if further { 2 } else { 0 };
    if possible && more <= most { Ok((bytes, more)) } else { Err(DescriptorFlaw::PacketSize(size)) }
}
