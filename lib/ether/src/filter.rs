//! The filter: which program a received frame is for, by fields at fixed offsets and without any
//! code of a protocol.
//!
//! The time is bounded: a fixed number of fields, and a binary search among the listeners. A frame
//! bypasses the layers only if it is exactly what a sender of plain datagrams writes: no options,
//! no fragment, lengths that agree, a correct header and no checksum of the data. Everything else
//! goes through the full stack in the receiver's time.

use crate::checksum::OnesSum;
use crate::stack::{payload_offset, sends};
use crate::{Discard, ETHERNET_HEAD, FRAME_MIN, IPV4, IPV4_HEAD, TAG_BYTES, UDP_HEAD};
use crate::{UDP_PAYLOAD, VLAN};
use core::net::Ipv4Addr;

/// The protocol number of UDP.
pub const UDP: u8 = 17;
/// The protocol number of TCP.
pub const TCP: u8 = 6;

/// A program that wants frames, and how many of them it may hold.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Listener {
    /// The IP protocol.
    pub protocol: u8,
    /// The address that frames are for: one of this host, or a group.
    pub address: Ipv4Addr,
    /// The port that frames are for.
    pub port: u16,
    /// Whether the program reads in real time. Only then may its frames bypass the layers.
    pub real_time: bool,
    /// The most frames that may wait for it.
    pub quota: u16,
}

impl Listener {
    /// Returns a listener to UDP in real time.
    #[must_use]
    pub const fn udp(address: Ipv4Addr, port: u16, quota: u16) -> Listener {
        Listener { protocol: UDP, address, port, real_time: true, quota }
    }

    /// Returns the number that frames for this listener have in the same fields.
    const fn key(&self) -> u64 {
        key(self.protocol, self.address.to_bits(), self.port)
    }
}

#[inline(always)]
const fn key(protocol: u8, address: u32, port: u16) -> u64 {
    (protocol as u64) << 48 | (address as u64) << 16 | port as u64
}

/// The decision of the filter about a frame.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Match {
    /// The payload of the frame is what the listener wants. No layer has to look at it.
    Exact {
        /// The number of the listener.
        listener: u8,
        /// The place of the payload in the frame.
        at: u16,
        /// The bytes of the payload.
        length: u16,
    },
    /// The frame is for the listener, after the full stack looked at it.
    Full {
        /// The number of the listener.
        listener: u8,
    },
    /// Nobody registered for the frame.
    Nobody(Discard),
}

/// The reason why a listener is refused.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ListenerRefusal {
    /// There are as many listeners as the table has room for.
    Full,
    /// Another listener has this protocol, address and port.
    Taken,
    /// Port 0 belongs to nobody.
    PortZero,
    /// The quota is 0, or larger than an inbox.
    Quota,
}

/// The registered listeners: up to `N`, sorted by what frames are compared with.
#[derive(Clone, Debug)]
pub struct Listeners<const N: usize> {
    /// Sorted; those behind `count` are larger than any frame's.
    keys: [u64; N],
    /// The number of the listener and whether it reads in real time, in the order of `keys`.
    owners: [(u8, bool); N],
    count: usize,
    /// The listener that gets what nobody registered for.
    rest: Option<u8>,
}

impl<const N: usize> Default for Listeners<N> {
    fn default() -> Self {
        const { assert!(N <= 64, "listeners are numbered in a byte, and searched") };
        Listeners { keys: [u64::MAX; N], owners: [(0, false); N], count: 0, rest: None }
    }
}

impl<const N: usize> Listeners<N> {
    /// Registers a listener under a number that its inbox has, too.
    ///
    /// # Errors
    /// If there is no room, another listener has its address, or a value is out of range.
    pub fn add(&mut self, number: u8, listener: &Listener) -> Result<(), ListenerRefusal> {
        if listener.port == 0 {
            return Err(ListenerRefusal::PortZero);
        }
        if listener.quota == 0 || usize::from(listener.quota) > crate::INBOX_DEPTH {
            return Err(ListenerRefusal::Quota);
        }
        if self.count == N {
            return Err(ListenerRefusal::Full);
        }
        let key = listener.key();
        let place = self.keys.partition_point(|other| *other < key);
        if self.keys.get(place) == Some(&key) {
            return Err(ListenerRefusal::Taken);
        }
        let (from, to) = (place..self.count, place + 1);
        self.keys.copy_within(from.clone(), to);
        self.owners.copy_within(from, to);
        self.keys[place] = key;
        self.owners[place] = (number, listener.real_time);
        self.count += 1;
        Ok(())
    }

    /// Sends to this listener what nobody registered for. It gets whole frames.
    pub const fn set_rest(&mut self, number: u8) {
        self.rest = Some(number);
    }

    /// Returns the decision about a frame.
    #[must_use]
    #[inline]
    pub fn classify(&self, frame: &[u8]) -> Match {
        let Some(head) = frame.first_chunk::<UDP_PAYLOAD>() else {
            return self.nobody(Discard::Short);
        };
        match be16(head, 12) {
            IPV4 => self.packet(frame, head, 0),
            VLAN => {
                let frame = frame.get(TAG_BYTES..).unwrap_or(&[]);
                let Some(head) = frame.first_chunk() else { return self.nobody(Discard::Short) };
                if be16(head, 12) == IPV4 {
                    self.packet(frame, head, TAG_BYTES)
                } else {
                    self.nobody(Discard::EtherType)
                }
            }
            _ => self.nobody(Discard::EtherType),
        }
    }

    /// Returns the decision about an IPv4 frame with this head, where `tag` bytes are left out.
    #[inline(always)]
    fn packet(&self, frame: &[u8], head: &[u8; UDP_PAYLOAD], tag: usize) -> Match {
        if be16(head, 20) & 0xbfff != 0 {
            return self.nobody(Discard::Fragment);
        }
        if head[14] != 0x45 {
            return self.with_options(frame, head);
        }
        let wanted = key(head[23], be32(head, 30), be16(head, 36));
        let Some((listener, real_time)) = self.find(wanted) else {
            return self.nobody(Discard::Unregistered);
        };
        let (total, datagram) = (usize::from(be16(head, 16)), be16(head, 38));
        let exact = real_time
            && head[23] == UDP
            && be16(head, 40) == 0
            && usize::from(datagram) >= UDP_HEAD
            && total == IPV4_HEAD + usize::from(datagram)
            && total <= frame.len() - ETHERNET_HEAD
            && sends(head[26])
            && header_is_right(head);
        if exact {
            let at = (UDP_PAYLOAD + tag) as u16;
            Match::Exact { listener, at, length: datagram - UDP_HEAD as u16 }
        } else {
            Match::Full { listener }
        }
    }

    /// Decides about a packet whose port is behind options. The full stack looks at all of it.
    #[cold]
    fn with_options(&self, frame: &[u8], head: &[u8; UDP_PAYLOAD]) -> Match {
        if head[14] >> 4 != 4 {
            return self.nobody(Discard::Version);
        }
        let header = usize::from(head[14] & 0x0f) * 4;
        if header < IPV4_HEAD {
            return self.nobody(Discard::HeaderLength);
        }
        let ports = frame.get(ETHERNET_HEAD + header..).and_then(|rest| rest.first_chunk::<4>());
        let Some([_, _, high, low]) = ports else { return self.nobody(Discard::Short) };
        let wanted = key(head[23], be32(head, 30), u16::from_be_bytes([*high, *low]));
        match self.find(wanted) {
            Some((listener, _)) => Match::Full { listener },
            None => self.nobody(Discard::Unregistered),
        }
    }

    #[inline(always)]
    fn nobody(&self, reason: Discard) -> Match {
        match self.rest {
            Some(listener) => Match::Full { listener },
            None => Match::Nobody(reason),
        }
    }

    /// Returns the number of the listener with this key, and whether it reads in real time.
    #[inline(always)]
    fn find(&self, wanted: u64) -> Option<(u8, bool)> {
        let keys = self.keys.get(..self.count)?;
        let place = keys.binary_search(&wanted).ok()?;
        self.owners.get(place).copied()
    }
}

#[inline(always)]
const fn be16(head: &[u8; UDP_PAYLOAD], at: usize) -> u16 {
    u16::from_be_bytes([head[at], head[at + 1]])
}

#[inline(always)]
const fn be32(head: &[u8; UDP_PAYLOAD], at: usize) -> u32 {
    u32::from_be_bytes([head[at], head[at + 1], head[at + 2], head[at + 3]])
}

/// Returns whether the checksum of a header without options is correct.
#[inline(always)]
const fn header_is_right(head: &[u8; UDP_PAYLOAD]) -> bool {
    let sum = OnesSum::new().word(be32(head, 14)).word(be32(head, 18)).word(be32(head, 22));
    sum.word(be32(head, 26)).word(be32(head, 30)).folded() == 0xffff
}

const _: () = assert!(UDP_PAYLOAD + TAG_BYTES <= FRAME_MIN);
const _: () = assert!(UDP_PAYLOAD == payload_offset(false, IPV4_HEAD));
