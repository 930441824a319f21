//! The fields of a packet, and what can be wrong with them.

use super::PacketStatus;

/// Why bytes are no packets.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Malformed {
    /// The first packet is no hello, or a later one is.
    Hello,
    /// The other side lacks capabilities that are needed.
    Capabilities(u32),
    /// A packet longer than anybody would send.
    Length(u32),
    /// A packet too short for what it says it is.
    Short(u32),
    /// A field has a value that makes no sense.
    Content,
    /// A packet of a kind that nobody announced.
    Kind(u32),
}

impl core::fmt::Display for Malformed {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            Malformed::Hello => write!(f, "usbredir: hello is not the first packet"),
            Malformed::Capabilities(c) => write!(f, "usbredir: capabilities {c:#x} do not do"),
            Malformed::Length(l) => write!(f, "usbredir: a packet of {l} bytes"),
            Malformed::Short(k) => write!(f, "usbredir: a packet of kind {k} is too short"),
            Malformed::Content => write!(f, "usbredir: a field makes no sense"),
            Malformed::Kind(k) => write!(f, "usbredir: a packet of unknown kind {k}"),
        }
    }
}

impl std::error::Error for Malformed {}

/// The fields of a packet, one after the other, and the packet's kind.
pub(super) struct Fields<'a>(&'a [u8], u32);

impl<'a> Fields<'a> {
    pub(super) fn new(bytes: &'a [u8], kind: u32) -> Fields<'a> {
        Fields(bytes, kind)
    }

    pub(super) fn bytes<const N: usize>(&mut self) -> Result<[u8; N], Malformed> {
        let (field, rest) = self.0.split_first_chunk::<N>().ok_or(Malformed::Short(self.1))?;
        self.0 = rest;
        Ok(*field)
    }

    pub(super) fn byte(&mut self) -> Result<u8, Malformed> {
        self.bytes().map(|[byte]| byte)
    }

    pub(super) fn half(&mut self) -> Result<u16, Malformed> {
        self.bytes().map(u16::from_le_bytes)
    }

    pub(super) fn word(&mut self) -> Result<u32, Malformed> {
        self.bytes().map(u32::from_le_bytes)
    }

    pub(super) fn long(&mut self) -> Result<u64, Malformed> {
        self.bytes().map(u64::from_le_bytes)
    }

    pub(super) fn status(&mut self) -> Result<PacketStatus, Malformed> {
        self.byte().map(PacketStatus::decode)
    }

    /// Returns all bytes that are left.
    pub(super) fn left(&self) -> Vec<u8> {
        self.0.to_vec()
    }

    /// Returns the rest: nothing, or as many bytes as announced.
    pub(super) fn rest(&mut self, announced: usize) -> Result<Vec<u8>, Malformed> {
        let rest = std::mem::take(&mut self.0);
        if rest.is_empty() || rest.len() == announced {
            Ok(rest.to_vec())
        } else {
            Err(Malformed::Content)
        }
    }
}
