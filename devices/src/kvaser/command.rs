//! Commands as they stand on the pipes: headers, numbers, and the stream they come in.
//!
//! A normal command is 32 bytes. An extended one begins with 255 and says how long it is, a
//! multiple of 8 up to 128; those of this device stay within 64.

/// The numbers of commands.
pub mod number {
    #![allow(missing_docs, reason = "the names are the documentation")]
    pub const SET_BUS_PARAMETERS: u8 = 16;
    pub const GET_BUS_PARAMETERS: u8 = 17;
    pub const GET_BUS_PARAMETERS_REPLY: u8 = 18;
    pub const GET_CHIP_STATE: u8 = 19;
    pub const CHIP_STATE: u8 = 20;
    pub const SET_DRIVER_MODE: u8 = 21;
    pub const START_CHIP: u8 = 26;
    pub const START_CHIP_REPLY: u8 = 27;
    pub const STOP_CHIP: u8 = 28;
    pub const STOP_CHIP_REPLY: u8 = 29;
    pub const TRANSMIT: u8 = 33;
    pub const GET_CARD_INFO: u8 = 34;
    pub const GET_CARD_INFO_REPLY: u8 = 35;
    pub const GET_SOFTWARE_INFO: u8 = 38;
    pub const GET_SOFTWARE_INFO_REPLY: u8 = 39;
    pub const ERROR: u8 = 45;
    pub const FLUSH_QUEUE: u8 = 48;
    pub const ACKNOWLEDGE: u8 = 50;
    pub const FLUSH_QUEUE_REPLY: u8 = 66;
    pub const SET_DATA_PARAMETERS: u8 = 69;
    pub const SET_DATA_PARAMETERS_REPLY: u8 = 70;
    pub const SET_BUS_PARAMETERS_REPLY: u8 = 85;
    pub const GET_CAPABILITIES: u8 = 95;
    pub const GET_CAPABILITIES_REPLY: u8 = 96;
    pub const LED_ACTION: u8 = 101;
    pub const LED_ACTION_REPLY: u8 = 102;
    pub const RECEIVED: u8 = 106;
    pub const MAP_CHANNEL: u8 = 200;
    pub const MAP_CHANNEL_REPLY: u8 = 201;
    pub const GET_SOFTWARE_DETAILS: u8 = 202;
    pub const GET_SOFTWARE_DETAILS_REPLY: u8 = 203;
    pub const EXTENDED_TRANSMIT: u8 = 224;
    pub const EXTENDED_ACKNOWLEDGE: u8 = 225;
    pub const EXTENDED_RECEIVED: u8 = 226;
    pub const EXTENDED: u8 = 255;
}

/// Bytes of a normal command.
pub const NORMAL: usize = 32;
/// Bytes of the longest extended command.
const EXTENDED_MAX: usize = 128;
/// Bytes of a message in the device's memory, and of the longest it sends.
pub const MESSAGE: usize = 64;

/// The four bytes that begin each command. Entities of the firmware have 6-bit addresses.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CommandHeader {
    pub number: u8,
    /// The entity it goes to.
    pub to: u8,
    /// The entity it comes from.
    pub from: u8,
    /// Twelve bits that a reply repeats.
    pub transaction: u16,
}

impl CommandHeader {
    /// Decodes the four bytes of the wire.
    #[must_use]
    pub const fn decode(b: [u8; 4]) -> CommandHeader {
        let word = u16::from_le_bytes([b[2], b[3]]);
        CommandHeader {
            number: b[0],
            to: b[1] & 0x3f,
            from: (b[1] & 0xc0) >> 2 | (word >> 12) as u8,
            transaction: word & 0xfff,
        }
    }

    /// Encodes the four bytes of the wire.
    #[must_use]
    pub const fn encode(self) -> [u8; 4] {
        let word = (self.from as u16 & 15) << 12 | self.transaction & 0xfff;
        let [low, high] = word.to_le_bytes();
        [self.number, (self.from >> 4) << 6 | self.to & 0x3f, low, high]
    }
}

/// One complete command of the host.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct KvaserCommand {
    bytes: Vec<u8>,
}

impl KvaserCommand {
    /// Returns the command's header; the number of an extended command is its own, not 255.
    #[must_use]
    pub fn header(&self) -> CommandHeader {
        let header = CommandHeader::decode(self.array(0));
        let extended = header.number == number::EXTENDED;
        if extended { CommandHeader { number: self.byte(6), ..header } } else { header }
    }

    /// Returns whether it came as an extended command.
    #[must_use]
    pub fn is_extended(&self) -> bool {
        self.byte(0) == number::EXTENDED
    }

    /// Returns its bytes on the wire.
    #[must_use]
    pub fn length(&self) -> usize {
        self.bytes.len()
    }

    /// Returns the `N` bytes at `at`; what lies beyond the end is 0.
    #[must_use]
    pub fn array<const N: usize>(&self, at: usize) -> [u8; N] {
        std::array::from_fn(|i| self.bytes.get(at + i).copied().unwrap_or(0))
    }

    /// Returns the byte at `at`.
    #[must_use]
    pub fn byte(&self, at: usize) -> u8 {
        self.array::<1>(at)[0]
    }

    /// Returns the 16 bits at `at`.
    #[must_use]
    pub fn half(&self, at: usize) -> u16 {
        u16::from_le_bytes(self.array(at))
    }

    /// Returns the 32 bits at `at`.
    #[must_use]
    pub fn word(&self, at: usize) -> u32 {
        u32::from_le_bytes(self.array(at))
    }
}

/// The host sent an extended command whose length cannot be.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ImpossibleLength;

/// Commands out of packets, wherever those were cut.
#[derive(Clone, Debug, Default)]
pub struct CommandStream {
    bytes: Vec<u8>,
}

impl CommandStream {
    /// Takes one more packet.
    pub fn push(&mut self, packet: &[u8]) {
        self.bytes.extend_from_slice(packet);
    }

    /// Returns the next complete command. After nonsense everything that came so far is forgotten.
    pub fn pop(&mut self) -> Option<Result<KvaserCommand, ImpossibleLength>> {
        let length = match *self.bytes.as_slice() {
            [] => return None,
            [number::EXTENDED, _, _, _, low, high, ..] => u16::from_le_bytes([low, high]).into(),
            [number::EXTENDED, ..] => return None,
            _ => NORMAL,
        };
        if !length.is_multiple_of(8) || !(NORMAL..=EXTENDED_MAX).contains(&length) {
            self.bytes.clear();
            return Some(Err(ImpossibleLength));
        }
        if self.bytes.len() < length {
            return None;
        }
        Some(Ok(KvaserCommand { bytes: self.bytes.drain(..length).collect() }))
    }
}

/// A command to the host.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct HostCommand {
    bytes: [u8; MESSAGE],
    length: u8,
}

impl HostCommand {
    /// Returns a normal command with an empty body.
    #[must_use]
    pub fn normal(number: u8, from: u8, transaction: u16) -> HostCommand {
        let message = HostCommand { bytes: [0; MESSAGE], length: NORMAL as u8 };
        message.put(0, CommandHeader { number, to: 0, from, transaction }.encode())
    }

    /// Returns an extended command with room for `data` bytes after its fixed part.
    #[must_use]
    pub fn extended(number: u8, from: u8, transaction: u16, data: usize) -> HostCommand {
        let length = (NORMAL + data).next_multiple_of(8).min(MESSAGE) as u8;
        let message = HostCommand { bytes: [0; MESSAGE], length };
        let header = CommandHeader { number: number::EXTENDED, to: 0, from, transaction };
        message.put(0, header.encode()).put(4, [length, 0, number])
    }

    /// Puts `field` at `at`.
    #[must_use]
    pub fn put<const N: usize>(mut self, at: usize, field: [u8; N]) -> HostCommand {
        for (to, from) in self.bytes.iter_mut().skip(at).zip(field) {
            *to = from;
        }
        self
    }

    /// Sets these bits in the byte at `at`.
    #[must_use]
    pub fn mark(mut self, at: usize, bits: u8) -> HostCommand {
        if let Some(byte) = self.bytes.get_mut(at) {
            *byte |= bits;
        }
        self
    }

    /// As it is sent.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        &self.bytes[..usize::from(self.length)]
    }

    /// Returns whether it may be cut over two transfers.
    #[must_use]
    pub fn is_extended(&self) -> bool {
        self.bytes[0] == number::EXTENDED
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entities_with_bits_in_both_halves_go_there_and_back() {
        let header = CommandHeader { number: 20, to: 0x2a, from: 0x17, transaction: 0xabc };
        assert_eq!(header.encode(), [20, 0x6a, 0xbc, 0x7a]);
        for from in 0..64 {
            let header = CommandHeader { from, ..header };
            assert_eq!(CommandHeader::decode(header.encode()), header);
        }
    }

    #[test]
    fn commands_come_out_of_any_cuts_and_nonsense_is_left_behind() {
        let mut all = vec![34u8];
        all.resize(32, 0);
        all.extend([255, 0, 0, 0, 40, 0, 224]);
        all.resize(32 + 40, 7);
        for cut in 1..all.len() {
            let mut stream = CommandStream::default();
            let (mut lengths, mut numbers) = (Vec::new(), Vec::new());
            for part in all.chunks(cut) {
                stream.push(part);
                while let Some(command) = stream.pop() {
                    let command = command.unwrap();
                    lengths.push(command.bytes.len());
                    numbers.push(command.header().number);
                }
            }
            assert_eq!((lengths, numbers), (vec![32, 40], vec![34, 224]));
        }
        for length in [0, 7, 8, 24, 33, 136, 0xfff8u16] {
            let mut stream = CommandStream::default();
            let [low, high] = length.to_le_bytes();
            stream.push(&[255, 0, 0, 0, low, high, 0, 0]);
            assert_eq!(
                (stream.pop(), stream.pop()),
                (Some(Err(ImpossibleLength)), None),
                "{length}"
            );
        }
    }
}
