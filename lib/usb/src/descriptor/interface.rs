//! The parts of a configuration: its first descriptor, associations, settings of interfaces.

use super::{DescriptorFlaw, DescriptorRefusal, EndpointDescriptor, Raw, Walk};
use crate::Speed;
use crate::setup::descriptor_type::{
    CONFIGURATION, ENDPOINT, INTERFACE, INTERFACE_ASSOCIATION, SUPERSPEED_COMPANION,
};

/// The first nine bytes, which say how many there are in all.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ConfigurationHeader {
    /// Bytes of the whole set.
    pub total: u16,
    pub interfaces: u8,
    /// The value that selects it.
    pub value: u8,
    /// Text index; 0 is none.
    pub text: u8,
    /// Bit 6: self-powered; bit 5: can wake the host.
    pub attributes: u8,
    /// Current from the bus, in units of 2 mA (8 mA at super speed).
    pub power: u8,
}

impl ConfigurationHeader {
    /// Bytes of the descriptor.
    pub const BYTES: usize = 9;

    /// Parses the first descriptor of a configuration.
    ///
    /// # Errors
    /// It is no configuration, or one that cannot have an interface.
    pub fn parse(bytes: &[u8]) -> Result<ConfigurationHeader, DescriptorRefusal> {
        let raw = Raw::first(bytes)?.expect(CONFIGURATION, ConfigurationHeader::BYTES)?;
        let total = raw.half(2);
        let needed = 2 * ConfigurationHeader::BYTES;
        if usize::from(total) < needed {
            return Err(raw.refuse(DescriptorFlaw::Short { length: total.into(), needed }));
        }
        Ok(ConfigurationHeader {
            total,
            interfaces: raw.byte(4),
            value: raw.byte(5),
            text: raw.byte(6),
            attributes: raw.byte(7),
            power: raw.byte(8),
        })
    }
}

/// Interfaces that belong together.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Association {
    /// The first of them.
    pub first: u8,
    pub count: u8,
    /// Class, subclass and protocol of the whole.
    pub class: [u8; 3],
}

impl Association {
    /// Bytes of the descriptor.
    pub(super) const BYTES: usize = 8;

    pub(super) fn new(raw: &Raw<'_>) -> Association {
        let class = [raw.byte(4), raw.byte(5), raw.byte(6)];
        Association { first: raw.byte(2), count: raw.byte(3), class }
    }
}

/// One setting of an interface.
#[derive(Clone, Copy, Debug)]
pub struct Interface<'a> {
    pub number: u8,
    pub alternate: u8,
    /// Class, subclass and protocol.
    pub class: [u8; 3],
    /// Text index; 0 is none.
    pub text: u8,
    body: &'a [u8],
    offset: usize,
    speed: Speed,
}

impl<'a> Interface<'a> {
    /// Bytes of the descriptor.
    pub(super) const BYTES: usize = 9;

    /// Returns the interface that begins with `raw`; it goes on until another, or an association,
    /// begins.
    pub(super) fn new(raw: Raw<'a>, bytes: &'a [u8], speed: Speed) -> Interface<'a> {
        let offset = raw.offset + raw.bytes.len();
        let rest = bytes.get(offset..).unwrap_or(&[]);
        let mut after = Walk::new(rest).map_while(Result::ok);
        let next = after.find(|raw| matches!(raw.kind(), INTERFACE | INTERFACE_ASSOCIATION));
        let length = next.map_or(rest.len(), |next| next.offset);
        Interface {
            number: raw.byte(2),
            alternate: raw.byte(3),
            class: [raw.byte(5), raw.byte(6), raw.byte(7)],
            text: raw.byte(8),
            body: rest.get(..length).unwrap_or(rest),
            offset,
            speed,
        }
    }

    /// Everything in it, endpoints and what belongs to its class.
    pub fn descriptors(&self) -> impl Iterator<Item = Raw<'a>> + use<'a> {
        Walk::at(self.body, self.offset).map_while(Result::ok)
    }

    /// Returns the descriptors that are neither endpoints nor companions.
    pub fn extras(&self) -> impl Iterator<Item = Raw<'a>> + use<'a> {
        self.descriptors().filter(|raw| !matches!(raw.kind(), ENDPOINT | SUPERSPEED_COMPANION))
    }

    /// Returns the endpoints in order.
    pub fn endpoints(&self) -> impl Iterator<Item = EndpointDescriptor> + use<'a> {
        let speed = self.speed;
        let mut all = self.descriptors().peekable();
        core::iter::from_fn(move || {
            let raw = all.find(|raw| raw.kind() == ENDPOINT)?;
            let companion = all.next_if(|next| next.kind() == SUPERSPEED_COMPANION);
            EndpointDescriptor::read(raw, companion, speed).ok()
        })
    }

    /// Returns its first endpoint of this kind.
    #[must_use]
    pub fn endpoint(&self, kind: crate::context::EndpointKind) -> Option<EndpointDescriptor> {
        self.endpoints().find(|endpoint| endpoint.kind() == kind)
    }
}
