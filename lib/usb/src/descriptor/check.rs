//! Checks that a device can have a configuration. One pass, in constant space.

use super::interface::{Association, ConfigurationHeader, Interface};
use super::{
    ALTERNATES_MAX, DescriptorFlaw, DescriptorRefusal, EndpointDescriptor, INTERFACES_MAX, Raw,
    Walk,
};
use crate::Speed;
use crate::setup::descriptor_type::{
    CONFIGURATION, ENDPOINT, INTERFACE, INTERFACE_ASSOCIATION, SUPERSPEED_COMPANION,
};
use crate::trb::context_index;

/// The setting that is being read.
#[derive(Clone, Copy)]
struct Setting<'a> {
    raw: Raw<'a>,
    interface: u8,
    /// Bit n: the endpoint with index n.
    endpoints: u32,
}

/// The descriptors seen so far.
struct Seen<'a> {
    header: &'a ConfigurationHeader,
    speed: Speed,
    /// Alternate settings of each interface: bit n is setting n.
    alternates: [u64; INTERFACES_MAX],
    /// Bit n: interface n belongs to an association.
    associated: u32,
    /// The interface that owns the endpoint with this index.
    owners: [Option<u8>; 32],
    setting: Option<Setting<'a>>,
}

/// Checks the whole set; `bytes` begins with `header` and is as long as that says.
pub(super) fn configuration(
    header: &ConfigurationHeader,
    bytes: &[u8],
    speed: Speed,
) -> Result<(), DescriptorRefusal> {
    let count = header.interfaces;
    if count == 0 || usize::from(count) > INTERFACES_MAX {
        return Err(DescriptorRefusal { offset: 0, reason: DescriptorFlaw::InterfaceCount(count) });
    }
    let mut seen = Seen {
        header,
        speed,
        alternates: [0; INTERFACES_MAX],
        associated: 0,
        owners: [None; 32],
        setting: None,
    };
    let mut all = Walk::new(bytes).skip(1).peekable();
    while let Some(raw) = all.next() {
        let raw = raw?;
        match raw.kind() {
            CONFIGURATION => return Err(raw.refuse(DescriptorFlaw::Kind(CONFIGURATION))),
            INTERFACE_ASSOCIATION => seen.association(raw)?,
            INTERFACE => seen.interface(raw)?,
            ENDPOINT => {
                let next =
                    all.next_if(|next| next.is_ok_and(|next| next.kind() == SUPERSPEED_COMPANION));
                seen.endpoint(raw, next.and_then(Result::ok))?;
            }
            SUPERSPEED_COMPANION => return Err(raw.refuse(DescriptorFlaw::Companion)),
            _ => {}
        }
    }
    seen.end()
}

impl<'a> Seen<'a> {
    fn association(&mut self, raw: Raw<'a>) -> Result<(), DescriptorRefusal> {
        let Association { first, count, .. } = Association::new(&raw.at_least(Association::BYTES)?);
        let end = u32::from(first) + u32::from(count);
        let fits = count > 0 && end <= self.header.interfaces.into();
        let members = if fits { (((1u64 << count) - 1) << first) as u32 } else { 0 };
        if !fits || self.associated & members != 0 {
            return Err(raw.refuse(DescriptorFlaw::Association(first)));
        }
        self.associated |= members;
        Ok(())
    }

    fn interface(&mut self, raw: Raw<'a>) -> Result<(), DescriptorRefusal> {
        self.end_setting()?;
        let raw = raw.at_least(Interface::BYTES)?;
        let (interface, alternate) = (raw.byte(2), raw.byte(3));
        if interface >= self.header.interfaces {
            return Err(raw.refuse(DescriptorFlaw::InterfaceNumber(interface)));
        }
        let alternates = &mut self.alternates[usize::from(interface)];
        let new = if usize::from(alternate) < ALTERNATES_MAX { 1 << alternate } else { 0 };
        if new == 0 || *alternates & new != 0 {
            return Err(raw.refuse(DescriptorFlaw::Alternate(alternate)));
        }
        *alternates |= new;
        self.setting = Some(Setting { raw, interface, endpoints: 0 });
        Ok(())
    }

    fn endpoint(
        &mut self,
        raw: Raw<'a>,
        companion: Option<Raw<'a>>,
    ) -> Result<(), DescriptorRefusal> {
        let Some(setting) = &mut self.setting else {
            return Err(raw.refuse(DescriptorFlaw::Orphan));
        };
        let endpoint = EndpointDescriptor::read(raw, companion, self.speed)?;
        if endpoint.packet == 0 && setting.raw.byte(3) != 0 {
            return Err(raw.refuse(DescriptorFlaw::PacketSize(0)));
        }
        let index = context_index(endpoint.address);
        let owner = self.owners[usize::from(index)].get_or_insert(setting.interface);
        if setting.endpoints & 1 << index != 0 || *owner != setting.interface {
            return Err(raw.refuse(DescriptorFlaw::EndpointTwice(endpoint.address)));
        }
        setting.endpoints |= 1 << index;
        Ok(())
    }

    /// Checks that the setting has as many endpoints as it said.
    fn end_setting(&self) -> Result<(), DescriptorRefusal> {
        let Some(setting) = self.setting else { return Ok(()) };
        let (said, found) = (setting.raw.byte(4), setting.endpoints.count_ones() as u8);
        if said == found {
            return Ok(());
        }
        Err(setting.raw.refuse(DescriptorFlaw::EndpointCount { said, found }))
    }

    /// Checks that everything is there that was said.
    fn end(&self) -> Result<(), DescriptorRefusal> {
        self.end_setting()?;
        let refuse = |reason| Err(DescriptorRefusal { offset: 0, reason });
        let said = self.header.interfaces;
        let found = self.alternates.iter().filter(|alternates| **alternates != 0).count() as u8;
        if said != found {
            return refuse(DescriptorFlaw::InterfacesMissing { said, found });
        }
        // Settings 0 to n and no others: one more is a power of two, or none at all.
        let gap = self.alternates.iter().position(|bits| bits & bits.wrapping_add(1) != 0);
        match gap {
            Some(interface) => refuse(DescriptorFlaw::AlternatesMissing(interface as u8)),
            None => Ok(()),
        }
    }
}
