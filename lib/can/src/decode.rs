//! From bits back to a frame, one bit at a time, as a receiver does it.

use crate::fd::{AnyFrame, FdReceiver, FdSupport};
use crate::frame::{BYTES_MAX, CanFrame};
use crate::wire::{
    Bits, CRC_BITS, Crc15, DOMINANT, EXTENDED_HEADER, RECESSIVE, RUN_MAX, STANDARD_HEADER,
    TRAILER_BITS, WireFrame,
};
use alloc::boxed::Box;
use embedded_can::{ErrorKind, ExtendedId, Id, StandardId};

/// A violation of the protocol on the wire. The world is to blame, not the caller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WireError {
    /// A transmitter sees another level than it sends.
    Bit,
    /// Six equal bits where stuffing allows five.
    Stuff,
    /// The CRC sequence is not that of the bits before it.
    Crc,
    /// A dominant bit where the form of a frame has a recessive one.
    Form,
    Acknowledge,
    /// The bits end before the frame does.
    Short,
}

impl embedded_can::Error for WireError {
    fn kind(&self) -> ErrorKind {
        match self {
            WireError::Bit => ErrorKind::Bit,
            WireError::Stuff => ErrorKind::Stuff,
            WireError::Crc => ErrorKind::Crc,
            WireError::Form => ErrorKind::Form,
            WireError::Acknowledge => ErrorKind::Acknowledge,
            WireError::Short => ErrorKind::Other,
        }
    }
}

/// The field of a frame that the next bit belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FrameField {
    /// SOF to CRC sequence, stuff bits included.
    Stuffed,
    /// The delimiter after the CRC sequence.
    CrcDelimiter,
    /// Where receivers say that the CRC was right.
    AckSlot,
    /// The delimiter after it; the CRC's verdict is acted upon after this bit.
    AckDelimiter,
    /// Bit 0 to 6 of end of frame.
    EndOfFrame(u8),
    Done,
}

impl FrameField {
    /// Returns the field of the next bit when so many from the CRC delimiter on have come.
    pub(crate) const fn after(trailer: u32) -> FrameField {
        match trailer {
            0 => FrameField::CrcDelimiter,
            1 => FrameField::AckSlot,
            2 => FrameField::AckDelimiter,
            n @ 3..TRAILER_BITS => FrameField::EndOfFrame((n - 3) as u8),
            _ => FrameField::Done,
        }
    }
}

/// Bits of a standard and of an extended frame up to the one that says whether it is of CAN FD.
const TO_FDF: [u32; 2] = [15, 34];

/// A receiver in the middle of a frame.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FrameDecoder {
    /// Destuffed bits so far, the last one lowest: at most 118.
    raw: u128,
    count: u32,
    /// Bits of the stuffed part once the header is known.
    total: Option<u32>,
    last: bool,
    run: u8,
    crc: Crc15,
    /// Bits since the CRC delimiter, it included.
    trailer: u32,
    support: FdSupport,
    /// The receiver of a frame that turned out to be of CAN FD.
    fd: Option<Box<FdReceiver>>,
}

impl Default for FrameDecoder {
    fn default() -> FrameDecoder {
        FrameDecoder::new()
    }
}

impl FrameDecoder {
    /// Returns a decoder of classic frames, before start of frame.
    #[must_use]
    pub fn new() -> FrameDecoder {
        FrameDecoder::supporting(FdSupport::Unaware)
    }

    /// Returns a decoder that knows so much of CAN FD, before start of frame.
    #[must_use]
    pub fn supporting(support: FdSupport) -> FrameDecoder {
        FrameDecoder {
            raw: 0,
            count: 0,
            total: None,
            last: RECESSIVE,
            run: 0,
            crc: Crc15::default(),
            trailer: 0,
            support,
            fd: None,
        }
    }

    /// Returns the decoder that has seen all of a frame but its last two bits of end of frame.
    #[must_use]
    pub(crate) fn near_the_end_of(wire: &WireFrame) -> FrameDecoder {
        if wire.is_fd {
            let fd = Some(Box::new(FdReceiver::near_the_end_of(wire)));
            return FrameDecoder { fd, ..FrameDecoder::new() };
        }
        let raw = wire.plain;
        let number = raw.number().reverse_bits() >> (u128::BITS - raw.len());
        let mut decoder = FrameDecoder::new();
        (decoder.raw, decoder.count, decoder.total) = (number, raw.len(), Some(raw.len()));
        decoder.trailer = TRAILER_BITS - 2;
        decoder
    }

    /// Returns the field of the next bit.
    #[must_use]
    pub fn place(&self) -> FrameField {
        if let Some(fd) = &self.fd {
            return fd.place();
        }
        if self.total != Some(self.count) || self.run == RUN_MAX {
            return FrameField::Stuffed;
        }
        FrameField::after(self.trailer)
    }

    /// The CRC sequence was right. Meaningful once it is over.
    #[must_use]
    pub fn crc_holds(&self) -> bool {
        self.fd.as_ref().map_or(self.crc.value() == 0, |fd| fd.crc_holds())
    }

    /// Takes one more bit.
    ///
    /// # Errors
    /// Takes one more bit. A wrong CRC is found at the ACK delimiter. A dominant last bit of end of
    /// frame is for the caller to judge: a receiver accepts the frame all the same.
    pub fn push(&mut self, bit: bool) -> Result<(), WireError> {
        match self.place() {
            FrameField::Stuffed => return self.push_stuffed(bit),
            FrameField::CrcDelimiter | FrameField::EndOfFrame(0..=5) if bit == DOMINANT => {
                return Err(WireError::Form);
            }
            FrameField::AckDelimiter if !self.crc_holds() => return Err(WireError::Crc),
            FrameField::AckDelimiter if bit == DOMINANT => return Err(WireError::Form),
            FrameField::Done => return Ok(()),
            _ => match &mut self.fd {
                Some(fd) => fd.pass(),
                None => self.trailer += 1,
            },
        }
        Ok(())
    }

    fn push_stuffed(&mut self, bit: bool) -> Result<(), WireError> {
        if let Some(fd) = &mut self.fd {
            return fd.push_stuffed(bit);
        }
        if self.run == RUN_MAX {
            if bit == self.last {
                return Err(WireError::Stuff);
            }
            (self.last, self.run) = (bit, 1);
            return Ok(());
        }
        if self.count == 0 && bit == RECESSIVE {
            return Err(WireError::Form);
        }
        self.run = if bit == self.last && self.count > 0 { self.run + 1 } else { 1 };
        self.last = bit;
        self.raw = self.raw << 1 | u128::from(bit);
        self.count += 1;
        self.crc.push(bit);
        let header = if self.is_extended() { EXTENDED_HEADER } else { STANDARD_HEADER };
        if self.count == header {
            let bytes = if self.is_remote() { 0 } else { self.code().min(BYTES_MAX as u8) };
            self.total = Some(header + 8 * u32::from(bytes) + CRC_BITS);
        }
        if self.support != FdSupport::Unaware
            && bit == RECESSIVE
            && self.count == TO_FDF[usize::from(self.is_extended())]
        {
            return self.meet_fd();
        }
        Ok(())
    }

    /// The frame turns out to be of CAN FD.
    fn meet_fd(&mut self) -> Result<(), WireError> {
        if self.support == FdSupport::Refuses {
            return Err(WireError::Form);
        }
        self.fd = Some(Box::new(FdReceiver::after(self.raw, self.count)));
        Ok(())
    }

    /// Returns the bits `from..from + width` of the frame, counted from SOF and without stuff bits.
    fn field(&self, from: u32, width: u32) -> u32 {
        let below = self.count - from - width;
        (self.raw >> below) as u32 & ((1u64 << width) - 1) as u32
    }

    fn is_extended(&self) -> bool {
        self.count > 13 && self.field(13, 1) == 1
    }

    fn is_remote(&self) -> bool {
        self.field(if self.is_extended() { 32 } else { 12 }, 1) == 1
    }

    fn code(&self) -> u8 {
        let at = if self.is_extended() { EXTENDED_HEADER } else { STANDARD_HEADER } - 4;
        self.field(at, 4) as u8
    }

    /// Returns the frame of either format, once its CRC sequence is over.
    #[must_use]
    pub fn any_frame(&self) -> Option<AnyFrame> {
        match &self.fd {
            Some(fd) => fd.frame().map(AnyFrame::Fd),
            None => self.frame().map(AnyFrame::Classic),
        }
    }

    /// Returns the classic frame, once its CRC sequence is over.
    #[must_use]
    pub fn frame(&self) -> Option<CanFrame> {
        if self.total != Some(self.count) {
            return None;
        }
        let (id, header) = if self.is_extended() {
            let raw = self.field(1, 11) << 18 | self.field(14, 18);
            (ExtendedId::new(raw).map(Id::Extended)?, EXTENDED_HEADER)
        } else {
            (StandardId::new(self.field(1, 11) as u16).map(Id::Standard)?, STANDARD_HEADER)
        };
        if self.is_remote() {
            return CanFrame::remote(id, self.code().into()).ok();
        }
        let mut bytes = [0; BYTES_MAX];
        let len = usize::from(self.code()).min(BYTES_MAX);
        for (index, byte) in bytes[..len].iter_mut().enumerate() {
            *byte = self.field(header + 8 * index as u32, 8) as u8;
        }
        CanFrame::data(id, &bytes[..len]).and_then(|frame| frame.with_code(self.code())).ok()
    }
}

/// Returns the classic frame in `bits`, which begin with start of frame; what follows end of frame
/// is not read.
///
/// # Errors
/// Returns the violation and the bit at which it was found. A recessive ACK slot is an error here:
/// nobody received it.
pub fn decode(bits: impl IntoIterator<Item = bool>) -> Result<CanFrame, (u32, WireError)> {
    let (frame, at) = read(FrameDecoder::new(), bits)?;
    frame.classic().ok_or((at, WireError::Short))
}

/// Returns the frame of either format in `bits`, as [`decode`] does.
///
/// # Errors
/// Returns the violation and the bit at which it was found.
pub fn decode_any(bits: impl IntoIterator<Item = bool>) -> Result<AnyFrame, (u32, WireError)> {
    read(FrameDecoder::supporting(FdSupport::Reads), bits).map(|(frame, _)| frame)
}

fn read(
    mut decoder: FrameDecoder,
    bits: impl IntoIterator<Item = bool>,
) -> Result<(AnyFrame, u32), (u32, WireError)> {
    let mut at = 0;
    for bit in bits {
        let place = decoder.place();
        if place == FrameField::Done {
            break;
        }
        if place == FrameField::AckSlot && bit == RECESSIVE && decoder.crc_holds() {
            return Err((at, WireError::Acknowledge));
        }
        if place == FrameField::EndOfFrame(6) && bit == DOMINANT {
            return Err((at, WireError::Form));
        }
        decoder.push(bit).map_err(|error| (at, error))?;
        at += 1;
    }
    match (decoder.place(), decoder.any_frame()) {
        (FrameField::Done, Some(frame)) => Ok((frame, at)),
        _ => Err((at, WireError::Short)),
    }
}

/// Returns the frame as it is seen on the wire once somebody acknowledged it.
#[must_use]
pub fn acknowledged(wire: &WireFrame) -> Bits {
    let mut bits = Bits::new();
    for (index, bit) in wire.bits.iter().enumerate() {
        bits.push(bit && index as u32 != wire.ack_slot());
    }
    bits
}
