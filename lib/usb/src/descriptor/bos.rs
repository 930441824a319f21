//! Further capabilities of a device (binary object store).

use super::{DescriptorFlaw, DescriptorRefusal, Raw, Walk};
use crate::setup::descriptor_type::BOS;

/// The capability types that the specifications define.
pub mod capability {
    /// Type of a capability's descriptor.
    pub const DESCRIPTOR: u8 = 16;
    /// Link power management of USB 2.
    pub const USB2_EXTENSION: u8 = 2;
    /// Speeds and exit latencies of super speed.
    pub const SUPERSPEED: u8 = 3;
    /// A number that is the same on both halves of a connector.
    pub const CONTAINER: u8 = 4;
}

/// Bytes of the first descriptor.
const BYTES: usize = 5;

/// All capabilities of a device.
#[derive(Clone, Copy, Debug)]
pub struct Bos<'a> {
    bytes: &'a [u8],
}

/// One capability descriptor of the store.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Capability<'a> {
    /// The capability's kind, see [`capability`].
    pub kind: u8,
    /// The bytes that follow.
    pub data: &'a [u8],
}

impl<'a> Bos<'a> {
    /// Bytes of the whole, from its first five.
    ///
    /// # Errors
    /// It is something else, or shorter than itself.
    pub fn total(bytes: &[u8]) -> Result<u16, DescriptorRefusal> {
        let raw = Raw::first(bytes)?.expect(BOS, BYTES)?;
        match raw.half(2) {
            total if usize::from(total) >= BYTES => Ok(total),
            total => Err(raw.refuse(DescriptorFlaw::Short { length: total.into(), needed: BYTES })),
        }
    }

    /// Parses the binary object store in `bytes`.
    ///
    /// # Errors
    /// It is cut, or holds something else than what it says.
    pub fn parse(bytes: &'a [u8]) -> Result<Bos<'a>, DescriptorRefusal> {
        let length = usize::from(Bos::total(bytes)?);
        let refusal = DescriptorRefusal {
            offset: 0,
            reason: DescriptorFlaw::PastEnd { length, left: bytes.len() },
        };
        let bytes = bytes.get(..length).ok_or(refusal)?;
        let mut found = 0u8;
        for raw in Walk::new(bytes).skip(1) {
            raw?.expect(capability::DESCRIPTOR, 3)?;
            found = found.saturating_add(1);
        }
        let said = bytes.get(4).copied().unwrap_or(0);
        if said != found {
            return Err(DescriptorRefusal {
                offset: 0,
                reason: DescriptorFlaw::Capabilities { said, found },
            });
        }
        Ok(Bos { bytes })
    }

    /// Returns the capabilities in order.
    pub fn capabilities(&self) -> impl Iterator<Item = Capability<'a>> + use<'a> {
        let all = Walk::new(self.bytes).skip(1).map_while(Result::ok);
        all.map(|raw| Capability { kind: raw.byte(2), data: raw.bytes.get(3..).unwrap_or(&[]) })
    }
}
