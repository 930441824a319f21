//! Commands of the hydra protocol: numbers, headers, and their bytes.

/// A normal command always has so many bytes.
pub(super) const NORMAL: usize = 32;
/// No command has more.
pub(super) const LONGEST: usize = 128;
/// Most bytes of a command that this side sends: a classic frame as an extended command.
pub const SENT_MAX: usize = 40;
/// Address of the router, known from the start.
pub(super) const ROUTER: u8 = 0;
/// Address for what is nobody's in particular, and the answer for channels that do not exist.
pub(super) const NOBODY: u8 = 0x3e;

pub(super) mod number {
    pub const SET_BUSPARAMS: u8 = 16;
    pub const GET_BUSPARAMS: u8 = 17;
    pub const BUSPARAMS: u8 = 18;
    pub const GET_CHIP_STATE: u8 = 19;
    pub const CHIP_STATE: u8 = 20;
    pub const SET_DRIVERMODE: u8 = 21;
    pub const START_CHIP: u8 = 26;
    pub const STARTED: u8 = 27;
    pub const STOP_CHIP: u8 = 28;
    pub const STOPPED: u8 = 29;
    pub const TRANSMIT: u8 = 33;
    pub const GET_CARD: u8 = 34;
    pub const CARD: u8 = 35;
    pub const GET_SOFTWARE: u8 = 38;
    pub const SOFTWARE: u8 = 39;
    pub const ERROR: u8 = 45;
    pub const FLUSH: u8 = 48;
    pub const ACKNOWLEDGE: u8 = 50;
    pub const FLUSHED: u8 = 66;
    pub const BUSPARAMS_SET: u8 = 85;
    pub const GET_CAPABILITIES: u8 = 95;
    pub const CAPABILITIES: u8 = 96;
    pub const RECEIVE: u8 = 106;
    pub const MAP: u8 = 200;
    pub const MAPPED: u8 = 201;
    pub const GET_DETAILS: u8 = 202;
    pub const DETAILS: u8 = 203;
    pub const EXTENDED: u8 = 255;
    /// Extended commands, at byte 6.
    pub const TRANSMIT_EXTENDED: u8 = 224;
    pub const ACKNOWLEDGE_EXTENDED: u8 = 225;
    pub const RECEIVE_EXTENDED: u8 = 226;
}

/// A command to the device.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Command {
    bytes: [u8; SENT_MAX],
    length: usize,
}

impl Command {
    pub(super) const EMPTY: Command = Command { bytes: [0; SENT_MAX], length: 0 };

    pub(super) fn new(number: u8, to: u8, transaction: u16) -> Command {
        let [low, high] = (transaction & 0xfff).to_le_bytes();
        let mut bytes = [0; SENT_MAX];
        bytes[..4].copy_from_slice(&[number, to & 0x3f, low, high]);
        Command { bytes, length: NORMAL }
    }

    /// Returns an extended command of `length` bytes.
    pub(super) fn extended(number: u8, to: u8, transaction: u16, length: usize) -> Command {
        let length = length.next_multiple_of(8).min(SENT_MAX);
        let command = Command { length, ..Command::new(number::EXTENDED, to, transaction) };
        let [low, high] = (length as u16).to_le_bytes();
        command.put(4, &[low, high, number, 0])
    }

    /// Puts these bytes at this place; what does not fit is left out.
    pub(super) fn put(mut self, at: usize, bytes: &[u8]) -> Command {
        if let Some(place) = self.bytes.get_mut(at..at + bytes.len()) {
            place.copy_from_slice(bytes);
        }
        self
    }

    pub(super) fn bytes(&self) -> &[u8] {
        &self.bytes[..self.length]
    }
}

/// A command from the device, whole, as it stands in the stream.
#[derive(Clone, Copy, Debug)]
pub(super) struct Received<'a>(pub &'a [u8]);

impl Received<'_> {
    /// Returns a byte of it; 0 beyond its end.
    pub(super) fn byte(&self, at: usize) -> u8 {
        self.0.get(at).copied().unwrap_or(0)
    }

    pub(super) fn half(&self, at: usize) -> u16 {
        u16::from_le_bytes([self.byte(at), self.byte(at + 1)])
    }

    pub(super) fn word(&self, at: usize) -> u32 {
        u32::from(self.half(at)) | u32::from(self.half(at + 2)) << 16
    }

    pub(super) fn long(&self, at: usize) -> u64 {
        u64::from(self.word(at)) | u64::from(self.word(at + 4)) << 32
    }

    /// Three halves, the least significant first.
    pub(super) fn ticks(&self, at: usize) -> u64 {
        u64::from(self.word(at)) | u64::from(self.half(at + 4)) << 32
    }

    pub(super) fn is_extended(&self) -> bool {
        self.byte(0) == number::EXTENDED
    }

    /// Returns its number; of an extended command, the one inside.
    pub(super) fn number(&self) -> u8 {
        if self.is_extended() { self.byte(6) } else { self.byte(0) }
    }

    pub(super) fn source(&self) -> u8 {
        (self.byte(1) & 0xc0) >> 2 | (self.half(2) >> 12) as u8
    }

    pub(super) fn transaction(&self) -> u16 {
        self.half(2) & 0xfff
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_have_their_bits() {
        let command = Command::new(number::START_CHIP, 0x13, 0x7ff).put(4, &[9]);
        assert_eq!(command.bytes()[..5], [26, 0x13, 0xff, 7, 9]);
        assert_eq!(command.bytes().len(), 32);
        // Source 0x2a: upper two bits in byte 1, lower four above the transaction.
        let bytes = [27, 0x80, 5, 0xa0];
        let received = Received(&bytes);
        assert_eq!((received.number(), received.source(), received.transaction()), (27, 0x2a, 5));
        assert_eq!(received.word(2), 0xa005);
        let long = Command::extended(number::TRANSMIT_EXTENDED, 0x13, 3, 37);
        assert_eq!(long.bytes()[..8], [255, 0x13, 3, 0, 40, 0, 224, 0]);
        assert_eq!(long.bytes().len(), 40);
    }
}
