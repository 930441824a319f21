//! Hubs of both kinds.

use super::{DescriptorFlaw, DescriptorRefusal, HUB_PORTS_MAX, Raw};
use crate::setup::descriptor_type::{HUB, SUPERSPEED_HUB};
use diapason_abi::Nanos;

/// The fields of a hub descriptor.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct HubDescriptor {
    pub superspeed: bool,
    /// How many ports, from 1.
    pub ports: u8,
    /// Power switching, over-current protection, think time.
    pub characteristics: u16,
    /// From switching a port on until it may be used.
    pub power_good: Nanos,
    /// Bit n: what is at port n cannot be unplugged.
    pub fixed: u16,
}

impl HubDescriptor {
    /// Bytes of the descriptor of a SuperSpeed hub.
    pub const SUPERSPEED_BYTES: usize = 12;
    /// Most bytes of the descriptor of a USB 2 hub that is accepted.
    pub const BYTES_MAX: usize = 7 + 2 * (HUB_PORTS_MAX as usize / 8 + 1);

    /// Parses a hub descriptor.
    ///
    /// # Errors
    /// It is no hub, or one with more ports than a route can name.
    pub fn parse(bytes: &[u8]) -> Result<HubDescriptor, DescriptorRefusal> {
        let raw = Raw::first(bytes)?;
        let ports = raw.byte(2);
        let bitmap = usize::from(ports) / 8 + 1;
        let (superspeed, needed) = match raw.kind() {
            // The second bitmap is not used any more, and some are a byte short of it.
            HUB => (false, 7 + bitmap),
            SUPERSPEED_HUB => (true, HubDescriptor::SUPERSPEED_BYTES),
            kind => return Err(raw.refuse(DescriptorFlaw::Kind(kind))),
        };
        if ports == 0 || ports > HUB_PORTS_MAX {
            return Err(raw.refuse(DescriptorFlaw::Ports(ports)));
        }
        let raw = raw.at_least(needed)?;
        let fixed = match (superspeed, bitmap) {
            (true, _) => raw.half(10),
            (false, 1) => raw.byte(7).into(),
            (false, _) => raw.half(7),
        };
        let power_good = Nanos::from_millis(2 * u64::from(raw.byte(5)));
        Ok(HubDescriptor { superspeed, ports, characteristics: raw.half(3), power_good, fixed })
    }

    /// Think time of its transaction translator, as a slot context has it.
    #[must_use]
    pub const fn think_time(&self) -> u32 {
        (self.characteristics >> 5 & 3) as u32
    }
}
