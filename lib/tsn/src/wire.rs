//! How long frames occupy a link.

use crate::GateRefusal;

/// Bytes of the preamble and the start of a frame.
pub const PREAMBLE: u64 = 8;
/// Bytes of the gap between frames.
pub const GAP: u64 = 12;
/// Bytes of the checksum.
pub(crate) const CHECKSUM: u64 = 4;
/// Bytes of addresses and type, and of the checksum.
const ENVELOPE: u64 = 14 + CHECKSUM;
/// Bytes of a tag of IEEE 802.1Q.
const TAG: u64 = 4;
/// Bytes of the shortest frame, from the addresses to the checksum.
pub(crate) const SHORTEST: u64 = 64;
/// Bytes of the longest payload.
const LONGEST_PAYLOAD: u64 = 1_500;
/// Nanoseconds of a second.
const SECOND: u64 = 1_000_000_000;

/// Returns the bytes that a payload occupies on the wire, from the preamble to the end of the gap.
///
/// # Errors
/// If the payload is longer than a frame takes.
pub const fn wire_bytes(payload: u64, tagged: bool) -> Result<u64, GateRefusal> {
    if payload > LONGEST_PAYLOAD {
        return Err(GateRefusal::Payload { bytes: payload });
    }
    let frame = payload + ENVELOPE + if tagged { TAG } else { 0 };
    let frame = if frame < SHORTEST { SHORTEST } else { frame };
    Ok(PREAMBLE + frame + GAP)
}

/// The bit rate of a link.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct LinkRate(u64);

impl LinkRate {
    /// The rate of Gigabit Ethernet.
    pub const GIGABIT: LinkRate = LinkRate(1_000_000_000);
    /// The rate of Fast Ethernet.
    pub const FAST: LinkRate = LinkRate(100_000_000);

    /// Returns a rate in bit/s, at least 1 and at most 1 Tbit/s.
    #[must_use]
    pub const fn new(bits_per_second: u64) -> LinkRate {
        let most = 1_000 * SECOND;
        LinkRate(if bits_per_second == 0 {
            1
        } else if bits_per_second > most {
            most
        } else {
            bits_per_second
        })
    }

    /// Returns the rate in bit/s.
    #[must_use]
    pub const fn bits_per_second(self) -> u64 {
        self.0
    }

    /// Returns the time in which so many bytes pass, in ns, rounded up.
    #[must_use]
    pub const fn time_ns(self, bytes: u64) -> u64 {
        let bits = bytes as u128 * 8 * SECOND as u128;
        bits.div_ceil(self.0 as u128) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_take_the_times_of_the_standard() {
        let time =
            |payload, tagged| LinkRate::GIGABIT.time_ns(wire_bytes(payload, tagged).unwrap());
        assert_eq!(time(1_500, true), 12_336);
        assert_eq!(time(1_500, false), 12_304);
        assert_eq!(time(0, false), 672);
        assert_eq!(time(46, true), 704);
        assert_eq!(LinkRate::FAST.time_ns(84), 6_720);
        assert_eq!(LinkRate::new(2_500_000_000).time_ns(84), 269, "268.8 is rounded up");
    }

    #[test]
    fn jumbo_frames_are_refused_by_their_length() {
        assert_eq!(wire_bytes(9_000, true), Err(GateRefusal::Payload { bytes: 9_000 }));
    }
}
