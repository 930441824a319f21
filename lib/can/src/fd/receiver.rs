//! From bits back to a frame of CAN FD, one bit at a time, as a receiver does it.

use super::frame::{FdFrame, length};
use super::wire::{BASE_HEADER, COUNT_BITS, Checksum, EXTENDED_HEADER, FIXED_EACH, FROM_FDF};
use crate::decode::{FrameField, WireError};
use crate::wire::{Bits, DOMINANT, RECESSIVE, RUN_MAX, TRAILER_BITS, WireFrame};
use embedded_can::{ExtendedId, Id, StandardId};

/// The way in which a receiver takes the bit that says that a frame is of CAN FD.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum FdSupport {
    /// The bit is reserved, and has no meaning: no frame of CAN FD comes.
    #[default]
    Unaware,
    /// The bit is an error of form.
    Refuses,
    /// Frames of CAN FD are read.
    Reads,
}

/// A receiver in the middle of a frame of CAN FD.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FdReceiver {
    /// Bits up to the end of the data, without stuff bits.
    plain: Bits,
    /// How many there are, once the header is known.
    total: Option<u32>,
    last: bool,
    run: u8,
    stuffed: u32,
    crcs: [Checksum; 2],
    /// Bits of the stuff count and of the checksum, fixed stuff bits included.
    checked: u32,
    /// Those bits without fixed stuff bits, as a number.
    check: u32,
    /// Bits since the CRC delimiter, it included.
    trailer: u32,
}

impl FdReceiver {
    /// Returns a receiver that has seen the `count` low bits of `raw`, the first of them highest,
    /// and the stuff bits that belong to them.
    pub(crate) fn after(raw: u128, count: u32) -> FdReceiver {
        let mut receiver = FdReceiver {
            plain: Bits::new(),
            total: None,
            last: RECESSIVE,
            run: 0,
            stuffed: 0,
            crcs: [Checksum::SHORT, Checksum::LONG],
            checked: 0,
            check: 0,
            trailer: 0,
        };
        for at in (0..count).rev() {
            if receiver.run == RUN_MAX {
                receiver.take_stuff(!receiver.last);
            }
            receiver.take(raw >> at & 1 != 0);
        }
        receiver
    }

    /// Returns the receiver that has seen all of a frame but its last two bits of end of frame.
    pub(crate) fn near_the_end_of(wire: &WireFrame) -> FdReceiver {
        let mut receiver = FdReceiver::after(0, 0);
        receiver.plain = wire.plain;
        receiver.total = Some(wire.plain.len());
        receiver.trailer = TRAILER_BITS - 2;
        receiver
    }

    fn header(&self) -> u32 {
        if self.is_extended() { EXTENDED_HEADER } else { BASE_HEADER }
    }

    fn is_extended(&self) -> bool {
        self.plain.len() > 13 && self.plain.get(13)
    }

    fn field(&self, from: u32, width: u32) -> u32 {
        (from..from + width).fold(0, |value, at| value << 1 | u32::from(self.plain.get(at)))
    }

    fn code(&self) -> u8 {
        self.field(self.header() - 4, 4) as u8
    }

    fn crc(&self) -> Checksum {
        let width = Checksum::of(length(self.code())).width();
        let [short, long] = self.crcs;
        if short.width() == width { short } else { long }
    }

    /// Returns whether the checksum, with its count, is not over.
    fn is_before_trailer(&self) -> bool {
        if self.trailer > 0 {
            return false;
        }
        let width = COUNT_BITS + self.crc().width();
        self.total != Some(self.plain.len()) || self.checked < width + width.div_ceil(FIXED_EACH)
    }

    /// Returns the field of the next bit.
    pub(crate) fn place(&self) -> FrameField {
        if self.is_before_trailer() { FrameField::Stuffed } else { FrameField::after(self.trailer) }
    }

    /// Returns whether the stuff count and the checksum were right. Meaningful once they are over.
    pub(crate) fn crc_holds(&self) -> bool {
        self.check == self.crc().sequence(self.stuffed)
    }

    /// Takes one more bit before the CRC delimiter.
    pub(crate) fn push_stuffed(&mut self, bit: bool) -> Result<(), WireError> {
        if self.total == Some(self.plain.len()) {
            return self.push_check(bit);
        }
        if self.run == RUN_MAX {
            if bit == self.last {
                return Err(WireError::Stuff);
            }
            self.take_stuff(bit);
            return Ok(());
        }
        self.take(bit);
        let (count, header) = (self.plain.len(), self.header());
        if count == header - FROM_FDF + 2 && bit != DOMINANT {
            // The bit behind FDF is for formats to come.
            return Err(WireError::Form);
        }
        if count == header {
            self.total = Some(header + 8 * length(self.code()) as u32);
        }
        Ok(())
    }

    fn take(&mut self, bit: bool) {
        self.run = if bit == self.last && !self.plain.is_empty() { self.run + 1 } else { 1 };
        self.last = bit;
        self.plain.push(bit);
        self.crcs.iter_mut().for_each(|crc| crc.push(bit));
    }

    fn take_stuff(&mut self, bit: bool) {
        (self.last, self.run) = (bit, 1);
        self.stuffed += 1;
        self.crcs.iter_mut().for_each(|crc| crc.push(bit));
    }

    fn push_check(&mut self, bit: bool) -> Result<(), WireError> {
        if !self.checked.is_multiple_of(FIXED_EACH + 1) {
            self.check = self.check << 1 | u32::from(bit);
        } else if bit == self.last {
            return Err(WireError::Form);
        }
        self.last = bit;
        self.checked += 1;
        Ok(())
    }

    /// Notes that a bit from the CRC delimiter on was right.
    pub(crate) fn pass(&mut self) {
        self.trailer += 1;
    }

    /// Returns the frame, once its data is over.
    pub(crate) fn frame(&self) -> Option<FdFrame> {
        if self.total != Some(self.plain.len()) {
            return None;
        }
        let header = self.header();
        let id = match self.is_extended() {
            true => Id::Extended(ExtendedId::new(self.field(1, 11) << 18 | self.field(14, 18))?),
            false => Id::Standard(StandardId::new(self.field(1, 11) as u16)?),
        };
        let mut bytes = [0; super::FD_BYTES_MAX as usize];
        let data = bytes.get_mut(..length(self.code()))?;
        for (at, byte) in (0..).zip(data.iter_mut()) {
            *byte = self.field(header + 8 * at, 8) as u8;
        }
        let frame = FdFrame::new(id, data).ok()?;
        Some(frame.with_fast(self.plain.get(header - 6)).with_passive(self.plain.get(header - 5)))
    }
}
