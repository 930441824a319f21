//! One frame of CAN FD as a value that is always valid, and a frame of either format.
//!
//! A classic frame has 20 bytes and a frame of CAN FD 76, so they are two types. Only what can meet
//! both has an [`AnyFrame`]: buses, their models, and logs.

use super::LENGTHS;
use crate::frame::{CanFrame, FrameRefusal};
use embedded_can::Id;

const BYTES: usize = super::FD_BYTES_MAX as usize;

/// A frame of CAN FD.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct FdFrame {
    id: Id,
    fast: bool,
    passive: bool,
    code: u8,
    /// Zero from `len` on, so that equal frames are equal values.
    bytes: [u8; BYTES],
}

impl FdFrame {
    /// Returns a frame whose data goes at the rate of arbitration.
    ///
    /// # Errors
    /// A number of bytes that no frame has: 9 to 11, for example.
    pub fn new(id: impl Into<Id>, data: &[u8]) -> Result<FdFrame, FrameRefusal> {
        let code = LENGTHS.iter().position(|(length, _)| *length as usize == data.len());
        let code = code.ok_or(FrameRefusal::FdLength { bytes: data.len() })? as u8;
        let mut bytes = [0; BYTES];
        bytes[..data.len()].copy_from_slice(data);
        Ok(FdFrame { id: id.into(), fast: false, passive: false, code, bytes })
    }

    /// Returns the same frame with its data at the rate of the data, or at that of arbitration.
    #[must_use]
    pub fn with_fast(self, fast: bool) -> FdFrame {
        FdFrame { fast, ..self }
    }

    /// Returns the same frame from a sender that is error-passive, or from one that is not.
    #[must_use]
    pub fn with_passive(self, passive: bool) -> FdFrame {
        FdFrame { passive, ..self }
    }

    /// Returns the same frame under another identifier.
    #[must_use]
    pub fn with_id(self, id: impl Into<Id>) -> FdFrame {
        FdFrame { id: id.into(), ..self }
    }

    /// Returns the identifier; the smaller wins.
    #[must_use]
    pub fn id(&self) -> Id {
        self.id
    }

    /// Returns whether the data goes at the rate of the data (BRS).
    #[must_use]
    pub const fn is_fast(&self) -> bool {
        self.fast
    }

    /// Returns whether its sender is error-passive (ESI).
    #[must_use]
    pub fn is_passive(&self) -> bool {
        self.passive
    }

    /// Returns the data length code on the wire, 0 to 15.
    #[must_use]
    pub fn code(&self) -> u8 {
        self.code
    }

    /// Returns the data, with the bytes that pad it.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        &self.bytes[..length(self.code)]
    }
}

/// Returns the bytes of data that a data length code means; codes above 15 mean what 15 does.
pub(super) fn length(code: u8) -> usize {
    LENGTHS[usize::from(code).min(15)].0 as usize
}

/// A classic frame or a frame of CAN FD.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum AnyFrame {
    Classic(CanFrame),
    Fd(FdFrame),
}

impl From<CanFrame> for AnyFrame {
    fn from(frame: CanFrame) -> AnyFrame {
        AnyFrame::Classic(frame)
    }
}

impl From<FdFrame> for AnyFrame {
    fn from(frame: FdFrame) -> AnyFrame {
        AnyFrame::Fd(frame)
    }
}

impl AnyFrame {
    /// Returns the classic frame, if it is one.
    #[must_use]
    pub fn classic(self) -> Option<CanFrame> {
        match self {
            AnyFrame::Classic(frame) => Some(frame),
            AnyFrame::Fd(_) => None,
        }
    }

    /// Returns the identifier; the smaller wins.
    #[must_use]
    pub fn id(&self) -> Id {
        match self {
            AnyFrame::Classic(frame) => frame.id(),
            AnyFrame::Fd(frame) => frame.id(),
        }
    }

    /// Returns the identifier as a number.
    #[must_use]
    pub fn raw_id(&self) -> u32 {
        match self.id() {
            Id::Standard(id) => id.as_raw().into(),
            Id::Extended(id) => id.as_raw(),
        }
    }

    /// Returns whether the identifier has 29 bits.
    #[must_use]
    pub fn is_extended(&self) -> bool {
        matches!(self.id(), Id::Extended(_))
    }

    /// Returns whether the frame is of CAN FD.
    #[must_use]
    pub fn is_fd(&self) -> bool {
        matches!(self, AnyFrame::Fd(_))
    }

    /// Returns whether it asks for data instead of carrying some. No frame of CAN FD does.
    #[must_use]
    pub fn is_remote(&self) -> bool {
        matches!(self, AnyFrame::Classic(frame) if frame.is_remote())
    }

    /// Returns the data length code on the wire, 0 to 15.
    #[must_use]
    pub fn code(&self) -> u8 {
        match self {
            AnyFrame::Classic(frame) => frame.code(),
            AnyFrame::Fd(frame) => frame.code(),
        }
    }

    /// Returns the data; nothing for a remote frame.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        match self {
            AnyFrame::Classic(frame) => frame.bytes(),
            AnyFrame::Fd(frame) => frame.bytes(),
        }
    }

    /// Returns the same frame under another identifier.
    #[must_use]
    pub fn with_id(self, id: impl Into<Id>) -> AnyFrame {
        match self {
            AnyFrame::Classic(frame) => frame.with_id(id).into(),
            AnyFrame::Fd(frame) => frame.with_id(id).into(),
        }
    }

    /// Returns the key of arbitration: the smaller one wins, and equal keys mean that the frames
    /// collide. Of equal identifiers classic data comes first, and a remote frame last.
    #[must_use]
    pub fn priority(&self) -> (Id, u8) {
        let rank = match self {
            AnyFrame::Classic(frame) => 2 * u8::from(frame.is_remote()),
            AnyFrame::Fd(_) => 1,
        };
        (self.id(), rank)
    }
}
