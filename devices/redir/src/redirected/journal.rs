//! The packets between a device and its guest as one number, and word by word if requested.

use crate::protocol::AddressedPacket;
use diapason_abi::Nanos;

const BASIS: u64 = 0xcbf2_9ce4_8422_2325;
const PRIME: u64 = 0x0000_0100_0000_01b3;

/// The direction of a packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PacketDirection {
    FromGuest = 0,
    ToGuest = 1,
}

/// A message of a device or of its guest.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Spoken {
    pub time: Nanos,
    pub way: PacketDirection,
    pub message: AddressedPacket,
}

/// A hash over every packet and its time, and how many there were.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Journal {
    pub hash: u64,
    /// Packets from the guest.
    pub from_guest: u64,
    /// Packets to the guest.
    pub to_guest: u64,
}

impl Default for Journal {
    fn default() -> Journal {
        Journal { hash: BASIS, from_guest: 0, to_guest: 0 }
    }
}

impl Journal {
    pub(super) fn note(&mut self, time: Nanos, way: PacketDirection, packet: &[u8]) {
        match way {
            PacketDirection::FromGuest => self.from_guest += 1,
            PacketDirection::ToGuest => self.to_guest += 1,
        }
        self.mix(&time.0.to_le_bytes());
        self.mix(&[way as u8]);
        self.mix(&(packet.len() as u64).to_le_bytes());
        self.mix(packet);
    }

    /// Returns one number for several devices, in their order.
    pub(crate) fn join<'a>(journals: impl Iterator<Item = &'a Journal>) -> u64 {
        let mut all = Journal::default();
        for journal in journals {
            all.mix(&journal.hash.to_le_bytes());
        }
        all.hash
    }

    fn mix(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.hash = (self.hash ^ u64::from(*byte)).wrapping_mul(PRIME);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_hash_is_the_published_one_and_sees_everything() {
        let mut plain = Journal::default();
        plain.mix(b"foobar");
        assert_eq!(plain.hash, 0x8594_4171_f739_67e8);
        let of = |time, way, packet: &[u8]| {
            let mut journal = Journal::default();
            journal.note(Nanos(time), way, packet);
            journal.hash
        };
        let one = of(1, PacketDirection::ToGuest, b"x");
        assert_eq!(one, of(1, PacketDirection::ToGuest, b"x"));
        for other in [
            of(2, PacketDirection::ToGuest, b"x"),
            of(1, PacketDirection::FromGuest, b"x"),
            of(1, PacketDirection::ToGuest, b"y"),
        ] {
            assert_ne!(one, other);
        }
    }
}
