//! The checksum of IPv4 and UDP: the complement of the sum of all 16-bit words, in ones'
//! complement.

/// A sum of 16-bit words that has not been folded yet.
#[derive(Clone, Copy, Debug, Default)]
pub struct OnesSum(u64);

impl OnesSum {
    /// Returns the sum of nothing.
    #[must_use]
    pub const fn new() -> OnesSum {
        OnesSum(0)
    }

    /// Adds one word of 32 bits, which counts as two of 16.
    #[must_use]
    #[inline(always)]
    pub const fn word(self, word: u32) -> OnesSum {
        OnesSum(self.0 + word as u64)
    }

    /// Adds bytes in the order of the network. An odd last byte is the upper half of a word.
    #[must_use]
    pub fn bytes(self, bytes: &[u8]) -> OnesSum {
        let (words, rest) = bytes.as_chunks::<4>();
        let sum = words.iter().fold(self, |sum, word| sum.word(u32::from_be_bytes(*word)));
        let mut last = [0; 4];
        last.iter_mut().zip(rest).for_each(|(to, from)| *to = *from);
        sum.word(u32::from_be_bytes(last))
    }

    /// Returns the folded sum: `0xffff` if the words contain a correct checksum.
    #[must_use]
    #[inline(always)]
    pub const fn folded(self) -> u16 {
        // 2^32 is 1 in ones' complement of 16 bits, and so is 2^16.
        let sum = (self.0 >> 32) + (self.0 & 0xffff_ffff);
        let sum = (sum >> 16) + (sum & 0xffff);
        let sum = (sum >> 16) + (sum & 0xffff);
        ((sum >> 16) + (sum & 0xffff)) as u16
    }

    /// Returns the checksum that makes the folded sum `0xffff`.
    #[must_use]
    pub const fn checksum(self) -> u16 {
        !self.folded()
    }
}

/// Adds the pseudo header of UDP: both addresses, the protocol, the length of the datagram.
#[must_use]
pub fn pseudo_header(addresses: &[u8; 8], protocol: u8, length: u16) -> OnesSum {
    OnesSum::new().bytes(addresses).word(u32::from(protocol)).word(u32::from(length))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The example of RFC 1071, section 3.
    #[test]
    fn the_sum_of_rfc_1071() {
        let sum = OnesSum::new().bytes(&[0x00, 0x01, 0xf2, 0x03, 0xf4, 0xf5, 0xf6, 0xf7]);
        assert_eq!((sum.folded(), sum.checksum()), (0xddf2, 0x220d));
    }

    #[test]
    fn an_odd_byte_is_an_upper_half_and_carries_are_kept() {
        assert_eq!(OnesSum::new().bytes(&[0x12]).folded(), 0x1200);
        assert_eq!(OnesSum::new().bytes(&[0x12, 0x34, 0x56]).folded(), 0x6834);
        assert_eq!(OnesSum::new().bytes(&[0xff; 65_535]).folded(), 0xff00);
        assert_eq!(OnesSum::new().bytes(&[0xff; 8]).folded(), 0xffff);
    }
}
