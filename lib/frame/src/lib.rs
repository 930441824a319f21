//! The head of a message between two computers, by which its reader notices lost, damaged or
//! repeated messages. Cables and debug devices keep no order of their own and check nothing from
//! end to end.
//!
//! | bytes | |
//! |---|---|
//! | 0–3 | number of the message, from 0 at the start of its sender |
//! | 4–5 | bytes behind the head |
//! | 6 | 1 in the first message after a start, else 0 |
//! | 7 | the label of its flow, by which routers know it; 0: none |
//! | 8–11 | CRC-32C of the eight bytes before and all that follow |
//!
//! All numbers are little-endian.
#![no_std]
#![forbid(unsafe_code)]

#[cfg(test)]
extern crate alloc;

mod patience;

pub use patience::Patience;

/// Bytes of a head.
pub const HEAD: usize = 12;

/// CRC-32C (Castagnoli), four bytes at a time where there are so many.
#[derive(Clone, Copy, Debug)]
pub struct Crc(u32);

const TABLES: [[u32; 256]; 4] = tables();

impl Crc {
    /// Returns the checksum of no bytes.
    #[must_use]
    pub const fn new() -> Crc {
        Crc(u32::MAX)
    }

    /// Takes in four bytes, the first in the lowest bits.
    #[must_use]
    #[inline]
    pub const fn word(self, word: u32) -> Crc {
        let [a, b, c, d] = (self.0 ^ word).to_le_bytes();
        Crc(TABLES[3][a as usize]
            ^ TABLES[2][b as usize]
            ^ TABLES[1][c as usize]
            ^ TABLES[0][d as usize])
    }

    /// Takes in one byte.
    #[must_use]
    #[inline]
    pub const fn byte(self, byte: u8) -> Crc {
        Crc(self.0 >> 8 ^ TABLES[0][(self.0 as u8 ^ byte) as usize])
    }

    /// Returns the checksum so far.
    #[must_use]
    pub const fn sum(self) -> u32 {
        !self.0
    }
}

impl Default for Crc {
    fn default() -> Crc {
        Crc::new()
    }
}

const fn tables() -> [[u32; 256]; 4] {
    let mut tables = [[0; 256]; 4];
    let mut byte = 0;
    while byte < 256 {
        let (mut value, mut bit) = (byte as u32, 0);
        while bit < 8 {
            value = if value & 1 != 0 { value >> 1 ^ 0x82f6_3b78 } else { value >> 1 };
            bit += 1;
        }
        tables[0][byte] = value;
        byte += 1;
    }
    let mut table = 1;
    while table < 4 {
        let mut byte = 0;
        while byte < 256 {
            let before: u32 = tables[table - 1][byte];
            tables[table][byte] = before >> 8 ^ tables[0][(before & 0xff) as usize];
            byte += 1;
        }
        table += 1;
    }
    tables
}

/// Number, length and flag of a message.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Head {
    pub number: u32,
    /// Bytes behind the head.
    pub bytes: u16,
    /// The message's sender has just begun.
    pub first: bool,
    /// The label of its flow; 0: none.
    pub label: u8,
}

impl Head {
    /// Returns the first two words of a head; the third is the checksum.
    #[must_use]
    pub const fn words(self) -> [u32; 2] {
        [self.number, self.bytes as u32 | (self.first as u32) << 16 | (self.label as u32) << 24]
    }

    /// Returns the label in the second word of a head, whatever else the word says.
    #[must_use]
    pub const fn label_of(word: u32) -> u8 {
        (word >> 24) as u8
    }

    /// Decodes two words; returns `None` if they are no head.
    #[must_use]
    pub const fn of([number, word]: [u32; 2]) -> Option<Head> {
        let label = Head::label_of(word);
        match word >> 16 & 0xff {
            flag @ 0..=1 => Some(Head { number, bytes: word as u16, first: flag == 1, label }),
            _ => None,
        }
    }
}

/// The number of a sender's first message. Numbers wrap after a thousand messages, in nearly every
/// run, and not for the first time in the field.
const FIRST_NUMBER: u32 = u32::MAX - 999;

/// Numbers messages for one reader.
#[derive(Clone, Copy, Debug)]
pub struct Numbering {
    next: u32,
    begun: bool,
}

impl Default for Numbering {
    fn default() -> Self {
        Numbering { next: FIRST_NUMBER, begun: false }
    }
}

impl Numbering {
    /// Returns the head of the next message, with `bytes` bytes behind it and without a label.
    pub const fn head(&mut self, bytes: u16) -> Head {
        let head = Head { number: self.next, bytes, first: !self.begun, label: 0 };
        self.next = self.next.wrapping_add(1);
        self.begun = true;
        head
    }
}

/// The judgement of a message by its reader.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Continuity {
    Next,
    /// The number of messages that are missing before it.
    Lost(u32),
    /// The first of a sender that starts or restarts; its earlier messages may be lost.
    Begun,
    /// The message was here before.
    Again,
}

/// A message with a number at most so far back was sent twice; one farther back is of a sender that
/// began anew.
const BACK: u32 = 1 << 8;

/// Counts messages of one sender.
#[derive(Clone, Copy, Debug, Default)]
pub struct SequenceTracker {
    /// The number that comes next; `None` before the first.
    expected: Option<u32>,
}

impl SequenceTracker {
    /// Judges a message that arrived.
    pub const fn arrived(&mut self, head: Head) -> Continuity {
        let before = self.expected;
        let next = Some(head.number.wrapping_add(1));
        let Some(expected) = before else {
            self.expected = next;
            return Continuity::Begun;
        };
        let ahead = head.number.wrapping_sub(expected);
        if head.first && ahead != u32::MAX {
            self.expected = next;
            return Continuity::Begun;
        }
        if ahead > u32::MAX - BACK {
            return Continuity::Again;
        }
        self.expected = next;
        match ahead {
            0 => Continuity::Next,
            gap if gap < 1 << 31 => Continuity::Lost(gap),
            _ => Continuity::Begun,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;

    fn sum(bytes: &[u8], from: usize) -> u32 {
        // Bytes up to `from`, then words, then the rest.
        let (before, rest) = bytes.split_at(from);
        let (words, after) = rest.as_chunks();
        let crc = before.iter().fold(Crc::new(), |crc, byte| crc.byte(*byte));
        let crc = words.iter().fold(crc, |crc, word| crc.word(u32::from_le_bytes(*word)));
        after.iter().fold(crc, |crc, byte| crc.byte(*byte)).sum()
    }

    /// The check value of the catalogue, and two of RFC 3720, however they are cut.
    #[test]
    fn checksums_are_castagnolis() {
        for from in 0..9 {
            assert_eq!(sum(b"123456789", from), 0xe306_9283);
            assert_eq!(sum(&[0; 32], from), 0x8a91_36aa);
            assert_eq!(sum(&[0xff; 32], from), 0x62a8_ab43);
        }
    }

    #[test]
    fn heads_say_what_they_mean() {
        for head in [
            Head { number: 0, bytes: 0, first: true, label: 0 },
            Head { number: 7, bytes: u16::MAX, first: false, label: u8::MAX },
        ] {
            assert_eq!(Head::of(head.words()), Some(head));
            assert_eq!(Head::label_of(head.words()[1]), head.label);
        }
        assert_eq!(Head::of([0, 2 << 16]), None);
    }

    #[test]
    fn what_is_missing_is_counted() {
        let mut numbering = Numbering::default();
        let heads: Vec<Head> = (0..1_000).map(|_| numbering.head(4)).collect();
        let mut order = SequenceTracker::default();
        let mut hear = |number: usize| order.arrived(heads[number]);
        assert_eq!(
            [hear(0), hear(1), hear(4)],
            [Continuity::Begun, Continuity::Next, Continuity::Lost(2)]
        );
        assert_eq!(
            [hear(3), hear(4), hear(5)],
            [Continuity::Again, Continuity::Again, Continuity::Next]
        );
        assert_eq!(hear(900), Continuity::Lost(894));
        // The sender restarts, with its first message and without.
        assert_eq!(
            [hear(0), hear(1), hear(999)],
            [Continuity::Begun, Continuity::Next, Continuity::Lost(997)]
        );
        assert_eq!([hear(2), hear(3)], [Continuity::Begun, Continuity::Next]);
        // The very first message twice.
        let mut order = SequenceTracker::default();
        assert_eq!(order.arrived(heads[0]), Continuity::Begun);
        assert_eq!(order.arrived(heads[0]), Continuity::Again);
    }
}
