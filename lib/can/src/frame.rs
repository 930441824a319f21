//! One classic CAN frame as a value that is always valid: an identifier, and data or a request.

use core::fmt;
use embedded_can::{ExtendedId, Id, StandardId};

/// Most bytes of data in a classic frame.
pub const BYTES_MAX: usize = 8;
/// Largest data length code: four bits. Codes 9 to 15 mean eight bytes, too.
pub const CODE_MAX: u8 = 15;

/// A data frame or a remote frame, standard or extended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct CanFrame {
    id: Id,
    remote: bool,
    code: u8,
    /// Zero from `len` on, so that equal frames are equal values.
    bytes: [u8; BYTES_MAX],
}

/// Why a frame cannot be built: the caller's mistake.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FrameRefusal {
    /// More data than a frame carries.
    TooLong { bytes: usize },
    /// A number of bytes that no frame of CAN FD has.
    FdLength { bytes: usize },
    /// A data length code that needs more than four bits.
    Code { code: usize },
    /// A data length code above eight with fewer than eight bytes, or another length than it says.
    CodeAndData { code: u8, bytes: usize },
    /// An identifier that its format cannot carry.
    Id {
        raw: u32,
        /// The largest that fits.
        max: u32,
    },
}

impl fmt::Display for FrameRefusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            FrameRefusal::TooLong { bytes } => {
                write!(f, "{bytes} bytes of data: a CAN frame carries at most 8; send several")
            }
            FrameRefusal::FdLength { bytes } => {
                write!(f, "{bytes} bytes of data: a frame of CAN FD has 0 to 8, 12, 16, 20, 24, ")?;
                write!(f, "32, 48 or 64; add bytes up to the next of these")
            }
            FrameRefusal::Code { code } => {
                write!(f, "data length code {code}: it has four bits, at most 15")
            }
            FrameRefusal::CodeAndData { code, bytes } => {
                let fits = code.min(BYTES_MAX as u8);
                write!(f, "data length code {code} with {bytes} bytes: it needs {fits} bytes")
            }
            FrameRefusal::Id { raw, max } => {
                write!(f, "identifier {raw:#x}: this format carries at most {max:#x}")
            }
        }
    }
}

/// Returns the standard identifier `raw`.
///
/// # Errors
/// More than eleven bits.
pub fn standard(raw: u32) -> Result<Id, FrameRefusal> {
    let id = u16::try_from(raw).ok().and_then(StandardId::new);
    id.map(Id::Standard).ok_or(FrameRefusal::Id { raw, max: 0x7ff })
}

/// Returns the extended identifier `raw`.
///
/// # Errors
/// More than 29 bits.
pub fn extended(raw: u32) -> Result<Id, FrameRefusal> {
    ExtendedId::new(raw).map(Id::Extended).ok_or(FrameRefusal::Id { raw, max: 0x1fff_ffff })
}

impl CanFrame {
    /// Returns a data frame.
    ///
    /// # Errors
    /// More than eight bytes.
    pub fn data(id: impl Into<Id>, data: &[u8]) -> Result<CanFrame, FrameRefusal> {
        if data.len() > BYTES_MAX {
            return Err(FrameRefusal::TooLong { bytes: data.len() });
        }
        let mut bytes = [0; BYTES_MAX];
        bytes[..data.len()].copy_from_slice(data);
        Ok(CanFrame { id: id.into(), remote: false, code: data.len() as u8, bytes })
    }

    /// Returns a remote frame: asks for the data frame of this identifier, of `code` bytes.
    ///
    /// # Errors
    /// A code above 15.
    pub fn remote(id: impl Into<Id>, code: usize) -> Result<CanFrame, FrameRefusal> {
        if code > usize::from(CODE_MAX) {
            return Err(FrameRefusal::Code { code });
        }
        Ok(CanFrame { id: id.into(), remote: true, code: code as u8, bytes: [0; BYTES_MAX] })
    }

    /// Returns the same frame with another data length code. A code above eight is legal on the
    /// wire and still means eight bytes: MTS signals with it.
    ///
    /// # Errors
    /// A code that does not fit the data.
    pub fn with_code(self, code: u8) -> Result<CanFrame, FrameRefusal> {
        if code > CODE_MAX {
            return Err(FrameRefusal::Code { code: code.into() });
        }
        let bytes = self.bytes().len();
        if !self.remote && usize::from(code).min(BYTES_MAX) != bytes {
            return Err(FrameRefusal::CodeAndData { code, bytes });
        }
        Ok(CanFrame { code, ..self })
    }

    /// Returns the same frame under another identifier.
    #[must_use]
    pub fn with_id(self, id: impl Into<Id>) -> CanFrame {
        CanFrame { id: id.into(), ..self }
    }

    /// Returns the identifier; the smaller wins.
    #[must_use]
    pub fn id(&self) -> Id {
        self.id
    }

    /// Returns the identifier as a number.
    #[must_use]
    pub fn raw_id(&self) -> u32 {
        match self.id {
            Id::Standard(id) => id.as_raw().into(),
            Id::Extended(id) => id.as_raw(),
        }
    }

    /// Returns whether the identifier has 29 bits.
    #[must_use]
    pub fn is_extended(&self) -> bool {
        matches!(self.id, Id::Extended(_))
    }

    /// Returns whether it asks for data instead of carrying some.
    #[must_use]
    pub fn is_remote(&self) -> bool {
        self.remote
    }

    /// Returns the data length code on the wire, 0 to 15.
    #[must_use]
    pub fn code(&self) -> u8 {
        self.code
    }

    /// Returns the data; nothing for a remote frame.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        let len = if self.remote { 0 } else { usize::from(self.code).min(BYTES_MAX) };
        &self.bytes[..len]
    }

    /// Returns the data with zeros behind it.
    #[must_use]
    pub fn padded(&self) -> &[u8; BYTES_MAX] {
        &self.bytes
    }

    /// Returns the key of arbitration: the smaller one wins, and equal keys mean that the frames
    /// collide.
    #[must_use]
    pub fn priority(&self) -> (Id, bool) {
        (self.id, self.remote)
    }
}

impl embedded_can::Frame for CanFrame {
    fn new(id: impl Into<Id>, data: &[u8]) -> Option<CanFrame> {
        CanFrame::data(id, data).ok()
    }

    fn new_remote(id: impl Into<Id>, dlc: usize) -> Option<CanFrame> {
        if dlc > BYTES_MAX { None } else { CanFrame::remote(id, dlc).ok() }
    }

    fn is_extended(&self) -> bool {
        CanFrame::is_extended(self)
    }

    fn is_remote_frame(&self) -> bool {
        self.remote
    }

    fn id(&self) -> Id {
        self.id
    }

    fn dlc(&self) -> usize {
        usize::from(self.code).min(BYTES_MAX)
    }

    fn data(&self) -> &[u8] {
        self.bytes()
    }
}
