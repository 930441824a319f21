//! From one descriptor to the next.

use super::{DescriptorFlaw, DescriptorRefusal};

/// A descriptor of whatever kind: as many bytes as it says, all of them there.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Raw<'a> {
    /// The place at which the descriptor begins, from the first byte given.
    pub offset: usize,
    /// All its bytes, length and kind first: at least two.
    pub bytes: &'a [u8],
}

impl<'a> Raw<'a> {
    /// Returns its kind, see [`crate::setup::descriptor_type`].
    #[must_use]
    pub fn kind(&self) -> u8 {
        self.byte(1)
    }

    /// Returns a byte of it; 0 beyond its end.
    #[must_use]
    pub fn byte(&self, at: usize) -> u8 {
        self.bytes.get(at).copied().unwrap_or(0)
    }

    /// Two bytes of it; 0 beyond its end.
    #[must_use]
    pub fn half(&self, at: usize) -> u16 {
        u16::from_le_bytes([self.byte(at), self.byte(at + 1)])
    }

    /// Four bytes of it; 0 beyond its end.
    #[must_use]
    pub fn word(&self, at: usize) -> u32 {
        u32::from(self.half(at)) | u32::from(self.half(at + 2)) << 16
    }

    pub(super) fn refuse(&self, reason: DescriptorFlaw) -> DescriptorRefusal {
        DescriptorRefusal { offset: self.offset, reason }
    }

    /// Itself, if it is of this kind and has so many bytes.
    pub(super) fn expect(self, kind: u8, needed: usize) -> Result<Raw<'a>, DescriptorRefusal> {
        if self.kind() != kind {
            return Err(self.refuse(DescriptorFlaw::Kind(self.kind())));
        }
        self.at_least(needed)
    }

    pub(super) fn at_least(self, needed: usize) -> Result<Raw<'a>, DescriptorRefusal> {
        let length = self.bytes.len();
        if length < needed {
            return Err(self.refuse(DescriptorFlaw::Short { length, needed }));
        }
        Ok(self)
    }

    /// Returns the first descriptor of `bytes`.
    pub(super) fn first(bytes: &'a [u8]) -> Result<Raw<'a>, DescriptorRefusal> {
        let none = DescriptorRefusal {
            offset: 0,
            reason: DescriptorFlaw::Short { length: bytes.len(), needed: 2 },
        };
        Walk::new(bytes).next().unwrap_or(Err(none))
    }
}

/// The descriptors in a row of bytes, up to the first that makes no sense.
#[derive(Clone, Copy, Debug)]
pub struct Walk<'a> {
    rest: &'a [u8],
    offset: usize,
}

impl<'a> Walk<'a> {
    /// Returns a walk from the first byte.
    #[must_use]
    pub fn new(bytes: &'a [u8]) -> Walk<'a> {
        Walk { rest: bytes, offset: 0 }
    }

    /// Returns a walk in bytes that begin at `offset` of something larger.
    pub(super) fn at(bytes: &'a [u8], offset: usize) -> Walk<'a> {
        Walk { rest: bytes, offset }
    }
}

impl<'a> Iterator for Walk<'a> {
    type Item = Result<Raw<'a>, DescriptorRefusal>;

    fn next(&mut self) -> Option<Self::Item> {
        let (offset, rest) = (self.offset, self.rest);
        let length = usize::from(*rest.first()?);
        // Therefore the next step always begins later or not at all.
        self.rest = rest.get(length.max(2)..).unwrap_or(&[]);
        self.offset += length;
        let refuse = |reason| Some(Err(DescriptorRefusal { offset, reason }));
        if length < 2 {
            self.rest = &[];
            return refuse(DescriptorFlaw::Short { length, needed: 2 });
        }
        match rest.get(..length) {
            Some(bytes) => Some(Ok(Raw { offset, bytes })),
            None => refuse(DescriptorFlaw::PastEnd { length, left: rest.len() }),
        }
    }
}
