//! A configuration with everything in it: interfaces, their settings, endpoints, and what belongs
//! to a class.

use super::interface::{Association, ConfigurationHeader, Interface};
use super::{DescriptorFlaw, DescriptorRefusal, Raw, Walk, check};
use crate::Speed;
use crate::setup::descriptor_type::{INTERFACE, INTERFACE_ASSOCIATION};

/// A configuration that was checked as a whole.
#[derive(Clone, Copy, Debug)]
pub struct Configuration<'a> {
    bytes: &'a [u8],
    header: ConfigurationHeader,
    speed: Speed,
}

impl<'a> Configuration<'a> {
    /// Reads and checks the whole set, from a device at this speed. `first` is what was read to
    /// know its length: a device that says something else now is refused.
    ///
    /// # Errors
    /// The first thing in it that makes no sense.
    pub fn parse(
        first: ConfigurationHeader,
        bytes: &'a [u8],
        speed: Speed,
    ) -> Result<Configuration<'a>, DescriptorRefusal> {
        let header = ConfigurationHeader::parse(bytes)?;
        if header != first {
            return Err(DescriptorRefusal { offset: 0, reason: DescriptorFlaw::Changed });
        }
        let (length, left) = (usize::from(header.total), bytes.len());
        let refusal =
            DescriptorRefusal { offset: 0, reason: DescriptorFlaw::PastEnd { length, left } };
        let bytes = bytes.get(..length).ok_or(refusal)?;
        check::configuration(&header, bytes, speed)?;
        Ok(Configuration { bytes, header, speed })
    }

    /// Takes apart the bytes of a configuration that were read at once.
    ///
    /// # Errors
    /// The first thing in it that makes no sense.
    pub fn parse_once(
        bytes: &'a [u8],
        speed: Speed,
    ) -> Result<Configuration<'a>, DescriptorRefusal> {
        Configuration::parse(ConfigurationHeader::parse(bytes)?, bytes, speed)
    }

    /// Returns the first descriptor.
    #[must_use]
    pub const fn header(&self) -> ConfigurationHeader {
        self.header
    }

    /// Returns how fast its device is.
    #[must_use]
    pub const fn speed(&self) -> Speed {
        self.speed
    }

    /// Returns all descriptors, itself first.
    pub fn descriptors(&self) -> impl Iterator<Item = Raw<'a>> + use<'a> {
        Walk::new(self.bytes).map_while(Result::ok)
    }

    /// Returns all settings of all interfaces, as they come.
    pub fn interfaces(&self) -> impl Iterator<Item = Interface<'a>> + use<'a> {
        let (bytes, speed) = (self.bytes, self.speed);
        let begin = self.descriptors().filter(|raw| raw.kind() == INTERFACE);
        begin.map(move |raw| Interface::new(raw, bytes, speed))
    }

    /// Returns one setting of one interface.
    #[must_use]
    pub fn interface(&self, number: u8, alternate: u8) -> Option<Interface<'a>> {
        self.interfaces().find(|i| (i.number, i.alternate) == (number, alternate))
    }

    /// Interfaces that belong together.
    pub fn associations(&self) -> impl Iterator<Item = Association> + use<'a> {
        let all = self.descriptors().filter(|raw| raw.kind() == INTERFACE_ASSOCIATION);
        all.map(|raw| Association::new(&raw))
    }
}
