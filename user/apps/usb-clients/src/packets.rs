//! The packets of the models of a sensor and of an instrument: what is missing among them, and
//! what is damaged.

use diapason_usblib::sensor::{PACKET, Packet};

/// Begins a packet; its number and its time follow.
const SIGNATURE: [u8; 8] = *b"DIAPASON";
/// Bytes of the three; the rest counts up.
const HEAD: usize = 24;

/// The packets so far.
pub struct PacketTally {
    /// The length that a packet must have.
    bytes: usize,
    pub packets: u64,
    pub missing: u64,
    pub damaged: u64,
    /// The session, and the number that comes next in it.
    next: Option<(u32, u64)>,
}

impl Default for PacketTally {
    /// Returns the tally of a sensor.
    fn default() -> PacketTally {
        PacketTally::of(PACKET)
    }
}

impl PacketTally {
    /// Returns a tally of packets of so many bytes.
    pub const fn of(bytes: usize) -> PacketTally {
        PacketTally { bytes, packets: 0, missing: 0, damaged: 0, next: None }
    }

    /// Counts a packet, and returns how many are missing before it.
    pub fn count(&mut self, packet: &Packet) -> u64 {
        let number = packet.data.get(8..16).and_then(|bytes| bytes.try_into().ok());
        let number = number.map_or(0, u64::from_le_bytes);
        let rest = packet.data.iter().take(self.bytes).enumerate().skip(HEAD);
        let counts_up = rest.into_iter().all(|(at, byte)| *byte == (at as u64 + number) as u8);
        let whole = packet.length as usize == self.bytes;
        if !whole || !packet.data.starts_with(&SIGNATURE) || !counts_up {
            self.damaged += 1;
            return 0;
        }
        self.packets += 1;
        let mut missing = 0;
        // A sensor that is plugged in again goes on with any number.
        match self.next.filter(|(session, _)| *session == packet.session) {
            Some((_, next)) if number >= next => missing = number - next,
            Some(_) => self.damaged += 1,
            None => {}
        }
        self.missing += missing;
        self.next = Some((packet.session, number + 1));
        missing
    }
}
