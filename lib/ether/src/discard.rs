//! Reasons to discard a frame, each with a name and a count, so that what was offered is what was
//! delivered and what was counted.

use core::fmt;

/// The reason why a frame does not reach a program.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum Discard {
    /// The frame ends within a header.
    Short,
    /// The frame is longer than a buffer.
    Long,
    /// The adapter found an error in the frame.
    Damaged,
    /// The frame has an EtherType that nobody listens to.
    EtherType,
    /// Nobody listens to this protocol, address and port.
    Unregistered,
    /// The listener holds as many buffers as its quota allows.
    Quota,
    /// No buffer is free for the adapter.
    NoBuffer,
    /// The listener's inbox holds what only a program at fault writes. It gets nothing any more.
    Broken,
    /// The IP version is not 4.
    Version,
    /// The IP header is shorter than 20 bytes, or longer than the packet.
    HeaderLength,
    /// The packet is shorter than its header, or longer than the frame.
    TotalLength,
    /// The checksum of the IP header is wrong.
    HeaderChecksum,
    /// An IP option is malformed, or routes by the sender's choice.
    Options,
    /// The packet is a fragment.
    Fragment,
    /// The sender's address is no address of one host.
    Source,
    /// The protocol is not UDP.
    Protocol,
    /// The packet is for another address.
    Address,
    /// The datagram is for another port.
    Port,
    /// The length of the datagram is not that of the packet.
    UdpLength,
    /// The checksum of the datagram is wrong.
    UdpChecksum,
    /// The payload is longer than the memory that the receiver gave.
    Room,
}

impl Discard {
    /// All reasons, in the order of their counts.
    pub const ALL: [Discard; 21] = [
        Discard::Short,
        Discard::Long,
        Discard::Damaged,
        Discard::EtherType,
        Discard::Unregistered,
        Discard::Quota,
        Discard::NoBuffer,
        Discard::Broken,
        Discard::Version,
        Discard::HeaderLength,
        Discard::TotalLength,
        Discard::HeaderChecksum,
        Discard::Options,
        Discard::Fragment,
        Discard::Source,
        Discard::Protocol,
        Discard::Address,
        Discard::Port,
        Discard::UdpLength,
        Discard::UdpChecksum,
        Discard::Room,
    ];

    /// Returns the name of the reason, as reports show it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Discard::Short => "short",
            Discard::Long => "long",
            Discard::Damaged => "damaged",
            Discard::EtherType => "ether-type",
            Discard::Unregistered => "unregistered",
            Discard::Quota => "quota",
            Discard::NoBuffer => "no-buffer",
            Discard::Broken => "broken",
            Discard::Version => "version",
            Discard::HeaderLength => "header-length",
            Discard::TotalLength => "total-length",
            Discard::HeaderChecksum => "header-checksum",
            Discard::Options => "options",
            Discard::Fragment => "fragment",
            Discard::Source => "source",
            Discard::Protocol => "protocol",
            Discard::Address => "address",
            Discard::Port => "port",
            Discard::UdpLength => "udp-length",
            Discard::UdpChecksum => "udp-checksum",
            Discard::Room => "room",
        }
    }
}

impl fmt::Display for Discard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Counts of the frames that one part of the way was offered: passed on, or discarded.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct FrameCounts {
    /// Frames that this part was offered.
    pub offered: u64,
    /// Frames that it passed on.
    pub passed: u64,
    discarded: [u64; Discard::ALL.len()],
}

impl FrameCounts {
    /// Counts a frame that was offered and passed on.
    #[inline(always)]
    pub const fn pass(&mut self) {
        self.offered += 1;
        self.passed += 1;
    }

    /// Counts a frame that was offered and discarded.
    #[inline(always)]
    pub const fn discard(&mut self, reason: Discard) {
        self.offered += 1;
        self.discarded[reason as usize] += 1;
    }

    /// Counts so many frames that were offered and discarded.
    pub const fn discard_all(&mut self, reason: Discard, frames: u64) {
        self.offered += frames;
        self.discarded[reason as usize] += frames;
    }

    /// Returns how many frames were discarded for `reason`.
    #[must_use]
    pub const fn discarded(&self, reason: Discard) -> u64 {
        self.discarded[reason as usize]
    }

    /// Returns how many frames were discarded, by reason in the order of [`Discard::ALL`].
    #[must_use]
    pub const fn discards(&self) -> &[u64; Discard::ALL.len()] {
        &self.discarded
    }

    /// Returns how many frames were discarded for any reason.
    #[must_use]
    pub fn all_discarded(&self) -> u64 {
        self.discarded.iter().sum()
    }

    /// Returns each reason for which frames were discarded, with its count.
    pub fn reasons(&self) -> impl Iterator<Item = (Discard, u64)> + '_ {
        let counted = Discard::ALL.into_iter().map(|reason| (reason, self.discarded(reason)));
        counted.filter(|(_, count)| *count > 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_reason_has_a_count_and_a_name_of_its_own() {
        let mut counts = FrameCounts::default();
        for (place, reason) in Discard::ALL.into_iter().enumerate() {
            assert_eq!(reason as usize, place);
            counts.discard(reason);
            assert!(Discard::ALL[..place].iter().all(|other| other.name() != reason.name()));
        }
        counts.pass();
        assert!(counts.reasons().all(|(_, count)| count == 1));
        assert_eq!((counts.offered, counts.passed, counts.all_discarded()), (22, 1, 21));
    }
}
