//! The accesses of a driver to the registers of a TouCAN: to start it, load a buffer, take one
//! back, look at flags. Each function is a fixed sequence of accesses.

use super::register::{BUFFER, CTRL2, ESTAT, ICR, IFLAG, MCR, RX14, RX15, RXG, TIMER};
use super::{
    BUFFERS, BufferedFrame, CLOCK_HZ, LIMITS, WORDS, code, code_of, estat, id_words, mcr, pack,
    timing_words, unpack,
};
use crate::frame::CanFrame;
use crate::timing::{BitRate, BitTiming, TimingRefusal};
use embedded_can::{Id, StandardId};

/// The registers of a TouCAN, by longwords.
pub trait ToucanRegisters {
    /// Reads the longword at this offset.
    fn read(&self, offset: usize) -> u32;
    /// Writes the longword at this offset.
    fn write(&self, offset: usize, value: u32);
}

/// Where a frame is sampled, in tenths of a per cent of the bit.
const SAMPLE_POINT: u32 = 750;
/// A mask that compares each bit of an identifier.
const EXACT: u32 = 0xffff_fffe;
/// A mask that compares the class and the code of a high-speed message under MTS, and not the
/// region of its deadline: bits 5 to 9 of a standard identifier, which begins at bit 21 here.
const CODES: u32 = EXACT & !(0x1f << (21 + 5));

/// A TouCAN that was started.
#[derive(Clone, Copy, Debug)]
pub struct ToucanDriver<R> {
    registers: R,
    /// The words of its bit timing.
    timing: (u16, u16),
    /// The mask of all buffers but the last two.
    mask: u32,
}

const fn long(high: u16, low: u16) -> u32 {
    (high as u32) << 16 | low as u32
}

/// Returns the offset of a longword of a message buffer.
const fn place(buffer: usize, longword: usize) -> usize {
    BUFFER + (buffer % BUFFERS) * 2 * WORDS + 4 * longword
}

impl<R: ToucanRegisters> ToucanDriver<R> {
    /// Resets the module and starts it at `rate`, with all buffers inactive, no interrupt, and
    /// masks that compare whole identifiers.
    ///
    /// # Errors
    /// The clock of the module gives no such rate.
    pub fn start(registers: R, rate: BitRate) -> Result<ToucanDriver<R>, TimingRefusal> {
        let timing = BitTiming::find(CLOCK_HZ, rate, SAMPLE_POINT, &LIMITS)?;
        let driver = ToucanDriver { registers, timing: timing_words(&timing), mask: EXACT };
        driver.restart();
        Ok(driver)
    }

    /// Resets the module and starts it again, as [`ToucanDriver::start`] does.
    pub fn restart(&self) {
        let (registers, (ctrl01, ctrl2)) = (&self.registers, self.timing);
        let still = mcr::FREEZE | mcr::HALT | mcr::SUPERVISOR;
        registers.write(MCR, long(still | mcr::SOFT_RESET, 0));
        registers.write(MCR, long(still, 0));
        registers.write(ICR, long(0x000f, ctrl01));
        registers.write(CTRL2, long(ctrl2, 0));
        for (place, mask) in [(RXG, self.mask), (RX14, EXACT), (RX15, EXACT)] {
            registers.write(place, mask);
        }
        for buffer in 0..BUFFERS {
            registers.write(place(buffer, 0), long(u16::from(code::INACTIVE) << 4, 0));
        }
        self.interrupts(0);
        registers.write(MCR, long(mcr::FREEZE | mcr::SUPERVISOR, 0));
    }

    /// Starts the module again so that all buffers but the last two hear high-speed messages under
    /// MTS by their codes, whatever the deadline in their identifiers. Buffers for other messages
    /// hear some that they are not for.
    pub fn ignore_regions(&mut self) {
        self.mask = CODES;
        self.restart();
    }

    /// Returns whether the module takes part in its bus.
    #[must_use]
    pub fn is_ready(&self) -> bool {
        (self.registers.read(MCR) >> 16) as u16 & mcr::NOT_READY == 0
    }

    /// Lets a buffer send `frame`. Its frame before that is withdrawn: it goes out all the
    /// same if it is on the wire already, and no flag says so.
    pub fn load(&self, buffer: usize, frame: &CanFrame) {
        let words = pack(code::IDLE, frame);
        self.registers.write(place(buffer, 0), long(words[0], words[1]));
        let used = 1 + (2 + frame.bytes().len().next_multiple_of(2)).div_ceil(4);
        for longword in 1..used {
            let value = long(words[2 * longword], words[2 * longword + 1]);
            self.registers.write(place(buffer, longword), value);
        }
        let [control, high, ..] = pack(code::SEND, frame);
        self.registers.write(place(buffer, 0), long(control, high));
    }

    /// Gives the frame in a buffer that sends another identifier, and lets it send again. Returns
    /// false if the frame is through: then nothing happens but that its flag stays. A frame that is
    /// on the wire already goes out all the same, and no flag says so.
    #[must_use]
    pub fn rename(&self, buffer: usize, id: StandardId) -> bool {
        let length = (self.registers.read(place(buffer, 0)) >> 16) as u16 & 15;
        let (high, _) = id_words(id.into(), false);
        let control = |code: u8| long(u16::from(code) << 4 | length, high);
        // From here on the buffer gets no flag. One that it has is of the frame that it had.
        self.withdraw(buffer);
        if self.registers.read(IFLAG) >> 16 & 1 << buffer != 0 {
            return false;
        }
        self.registers.write(place(buffer, 0), control(code::IDLE));
        self.registers.write(place(buffer, 0), control(code::SEND));
        true
    }

    /// Takes back what a buffer has to send or receives for. A frame that is on the wire already
    /// goes out all the same, and no flag says so.
    pub fn withdraw(&self, buffer: usize) {
        self.registers.write(place(buffer, 0), long(u16::from(code::INACTIVE) << 4, 0));
    }

    /// Lets a buffer receive data frames of exactly this identifier, its own ones included.
    pub fn expect(&self, buffer: usize, id: Id) {
        let (high, low) = id_words(id, false);
        let control = u16::from(code::INACTIVE) << 4;
        self.registers.write(place(buffer, 0), long(control, high));
        self.registers.write(place(buffer, 1), long(low, 0));
        self.registers.write(place(buffer, 0), long(u16::from(code::EMPTY) << 4, high));
    }

    /// Returns whether a frame came for a buffer that [`ToucanDriver::expect`] set up.
    #[must_use]
    pub fn came(&self, buffer: usize) -> bool {
        let control = (self.registers.read(place(buffer, 0)) >> 16) as u16;
        // Reading the timer unlocks the buffer.
        let _ = self.timer();
        matches!((control >> 4 & 15) as u8, code::FULL | code::OVERRUN)
    }

    /// Returns the frame that came for a buffer that [`ToucanDriver::expect`] set up, and whether
    /// another was there before it that nobody has read.
    #[must_use]
    pub fn received(&self, buffer: usize) -> Option<(BufferedFrame, bool)> {
        let mut words = [0; WORDS];
        // Reading the first word locks the buffer, and reading the timer unlocks it.
        for (longword, pair) in words.as_chunks_mut::<2>().0.iter_mut().enumerate() {
            let read = self.registers.read(place(buffer, longword));
            *pair = [(read >> 16) as u16, read as u16];
        }
        let _ = self.timer();
        let overran = match code_of(&words) {
            code::FULL => false,
            code::OVERRUN => true,
            _ => return None,
        };
        let frame = unpack(&words)?;
        let begun = if frame.is_extended() { words[0] & 0xff00 } else { words[2] };
        Some((BufferedFrame { frame, begun }, overran))
    }

    /// Returns whether the module is sending at this moment.
    #[must_use]
    pub fn sends(&self) -> bool {
        (self.registers.read(ESTAT) >> 16) as u16 & estat::SENDING != 0
    }

    /// Returns the flags of all buffers, one bit each, and clears them.
    #[must_use]
    pub fn take_flags(&self) -> u16 {
        let flags = (self.registers.read(IFLAG) >> 16) as u16;
        if flags != 0 {
            self.registers.write(IFLAG, long(!flags, 0));
        }
        flags
    }

    /// Lets these buffers interrupt, one bit each, and no others.
    pub fn interrupts(&self, buffers: u16) {
        self.registers.write(ESTAT, long(u16::MAX, buffers));
    }

    /// Returns the timer, which counts bits.
    #[must_use]
    pub fn timer(&self) -> u16 {
        self.registers.read(TIMER & !3) as u16
    }

    /// Returns the timer when the frame that a buffer sent last, or received, began: under an
    /// extended identifier at most 255 bits later than that, and no later than now. For such
    /// frames the module keeps the upper half of the timer only.
    #[must_use]
    pub fn stamp(&self, buffer: usize, id: Id) -> u16 {
        if let Id::Standard(_) = id {
            return (self.registers.read(place(buffer, 1)) >> 16) as u16;
        }
        let latest = (self.registers.read(place(buffer, 0)) >> 16) as u16 | 0xff;
        let now = self.timer();
        if latest.wrapping_sub(now) <= 0xff { now } else { latest }
    }

    /// Returns whether there were errors on the bus since the last call, and whether the module was
    /// bus-off. `interrupts` are the buffers that may interrupt.
    #[must_use]
    pub fn take_errors(&self, interrupts: u16) -> (bool, bool) {
        let status = (self.registers.read(ESTAT) >> 16) as u16;
        let flags = status & (estat::ERROR_FLAG | estat::BUS_OFF_FLAG);
        if flags != 0 {
            self.registers.write(ESTAT, long(!flags, interrupts));
        }
        (flags & estat::ERROR_FLAG != 0, flags & estat::BUS_OFF_FLAG != 0)
    }

    /// Returns the error counters: of reception, and of transmission.
    #[must_use]
    pub fn errors(&self) -> (u8, u8) {
        let [_, _, receive, transmit] = self.registers.read(IFLAG).to_be_bytes();
        (receive, transmit)
    }
}
