//! Reads the device descriptor.

use super::{DescriptorFlaw, DescriptorRefusal, Raw};
use crate::Speed;
use crate::setup::descriptor_type::DEVICE;

/// The fields of a device descriptor.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct DeviceDescriptor {
    /// Version of USB, two digits each: 0x0210 is 2.1.
    pub usb: u16,
    /// Class; 0 if the interfaces say it.
    pub class: u8,
    pub subclass: u8,
    pub protocol: u8,
    /// Bytes of a packet of the control endpoint.
    pub packet: u16,
    pub vendor: u16,
    /// The product id that the vendor assigned.
    pub product: u16,
    pub version: u16,
    /// Text indices of manufacturer, product and serial number; 0 is none.
    pub texts: [u8; 3],
    /// The number of the device's configurations.
    pub configurations: u8,
}

impl DeviceDescriptor {
    /// Bytes of the descriptor.
    pub const BYTES: usize = 18;

    /// Reads it, from a device at this speed.
    ///
    /// # Errors
    /// A value that no device of this speed may state is refused.
    pub fn parse(bytes: &[u8], speed: Speed) -> Result<DeviceDescriptor, DescriptorRefusal> {
        let raw = Raw::first(bytes)?.expect(DEVICE, DeviceDescriptor::BYTES)?;
        let packet = DeviceDescriptor::packet(bytes, speed)?;
        let configurations = raw.byte(17);
        if configurations == 0 {
            return Err(raw.refuse(DescriptorFlaw::Configurations(0)));
        }
        Ok(DeviceDescriptor {
            usb: raw.half(2),
            class: raw.byte(4),
            subclass: raw.byte(5),
            protocol: raw.byte(6),
            packet,
            vendor: raw.half(8),
            product: raw.half(10),
            version: raw.half(12),
            texts: [raw.byte(14), raw.byte(15), raw.byte(16)],
            configurations,
        })
    }

    /// Returns the packet size of the control endpoint, from the first eight bytes: all that can be
    /// read before it is known.
    ///
    /// # Errors
    /// A size that this speed does not have.
    pub fn packet(bytes: &[u8], speed: Speed) -> Result<u16, DescriptorRefusal> {
        let refuse = |reason| Err(DescriptorRefusal { offset: 0, reason });
        let &[_, kind, _, _, _, _, _, size, ..] = bytes else {
            return refuse(DescriptorFlaw::Short { length: bytes.len(), needed: 8 });
        };
        if kind != DEVICE {
            return refuse(DescriptorFlaw::Kind(kind));
        }
        match (speed, size) {
            (Speed::Low, 8) | (Speed::Full, 8 | 16 | 32 | 64) | (Speed::High, 64) => {
                Ok(size.into())
            }
            (Speed::Super, 9) => Ok(512),
            _ => refuse(DescriptorFlaw::PacketSize(size.into())),
        }
    }
}
