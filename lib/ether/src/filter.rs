//! The filter: which program a received frame is for, by fields at fixed offsets and without any
//! code of a protocol.
//!
//! The time is bounded: a fixed number of fields, and a binary search among the listeners. A frame
//! bypasses the layers only if it is exactly what a sender of plain datagrams writes: no options,
//! no fragment, lengths that agree, a correct header and no checksum of the data. Everything else
//! goes through the full stack in the receiver's time.

use crate::stack::{payload_offset, sends};
use crate::{Discard, ETHERNET_HEAD, FRAME_MIN, IPV4, IPV4_HEAD, TAG_BYTES, UDP_HEAD};
use crate::{UDP_PAYLOAD, VLAN};
use core::net::Ipv4Addr;

/// The number by which IP packets name UDP.
pub const UDP: u8 = 17;
/// The number by which IP packets name TCP.
pub const TCP: u8 = 6;

/// A program that wants frames, and how many of them it may hold.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Listener {
    /// Frames of another protocol of IP are not for it.
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
        key(self.protocol, self.address.octets(), self.port.to_be_bytes())
    }
}

/// The bytes are compared as they are in a frame. No frame has the key `u64::MAX`.
#[inline(always)]
const fn key(protocol: u8, address: [u8; 4], port: [u8; 2]) -> u64 {
    let address = u32::from_le_bytes(address) as u64;
    (protocol as u64) << 48 | address << 16 | u16::from_le_bytes(port) as u64
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

/// A listener, as the search finds it.
#[derive(Clone, Copy, Debug, Default)]
struct Owner {
    listener: u8,
    /// Whether the owner's frames may bypass the layers: it reads UDP in real time.
    bypasses: bool,
}

/// The registered listeners: up to `N`, a power of two, sorted by what frames are compared with.
#[derive(Clone, Debug)]
pub struct Listeners<const N: usize> {
    /// Sorted; those behind `count` are larger than any frame's.
    keys: [u64; N],
    /// The listeners in the order of `keys`.
    owners: [Owner; N],
    count: usize,
    /// The listener that gets what nobody registered for.
    rest: Option<u8>,
}

impl<const N: usize> Default for Listeners<N> {
    fn default() -> Self {
        const { assert!(N.is_power_of_two() && N <= 64, "the search halves the table") };
        Listeners { keys: [u64::MAX; N], owners: [Owner::default(); N], count: 0, rest: None }
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
        in_range(listener.quota)?;
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
        let bypasses = listener.real_time && listener.protocol == UDP;
        self.owners[place] = Owner { listener: number, bypasses };
        self.count += 1;
        Ok(())
    }

    /// Sends to this listener what nobody registered for. It gets whole frames.
    ///
    /// # Errors
    /// If the quota is out of range.
    pub fn set_rest(&mut self, number: u8, quota: u16) -> Result<(), ListenerRefusal> {
        in_range(quota)?;
        self.rest = Some(number);
        Ok(())
    }

    /// Returns the decision about a frame.
    #[must_use]
    #[inline(always)]
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
        let words = Words::of(head);
        if words.first & PLAIN_MASK != PLAIN {
            return self.odd(frame, head);
        }
        let Some(owner) = self.find(words.key()) else {
            return self.nobody(Discard::Unregistered);
        };
        let (total, datagram) = (words.total(), words.datagram());
        let exact = owner.bypasses
            && words.udp >> 16 == 0
            && datagram >= UDP_HEAD
            && total == IPV4_HEAD + datagram
            && total <= frame.len() - ETHERNET_HEAD
            && sends(words.sender())
            && words.header_is_right();
        let listener = owner.listener;
        if exact {
            let (at, length) = ((UDP_PAYLOAD + tag) as u16, (datagram - UDP_HEAD) as u16);
            Match::Exact { listener, at, length }
        } else {
            Match::Full { listener }
        }
    }

    /// Decides about a fragment, another version, and a packet whose port is behind options.
    #[cold]
    fn odd(&self, frame: &[u8], head: &[u8; UDP_PAYLOAD]) -> Match {
        if be16(head, 20) & 0xbfff != 0 {
            return self.nobody(Discard::Fragment);
        }
        if head[14] >> 4 != 4 {
            return self.nobody(Discard::Version);
        }
        let header = usize::from(head[14] & 0x0f) * 4;
        if header < IPV4_HEAD {
            return self.nobody(Discard::HeaderLength);
        }
        let ports = frame.get(ETHERNET_HEAD + header..).and_then(|rest| rest.first_chunk::<4>());
        let Some([_, _, high, low]) = ports else { return self.nobody(Discard::Short) };
        let wanted = key(head[23], bytes(head, 30), [*high, *low]);
        match self.find(wanted) {
            Some(owner) => Match::Full { listener: owner.listener },
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

    /// Returns the listener with this key.
    #[inline(always)]
    fn find(&self, wanted: u64) -> Option<Owner> {
        let (mut place, mut half) = (0, N / 2);
        while half > 0 {
            // The place is below N: each half is added once.
            if self.keys[(place + half) % N] <= wanted {
                place += half;
            }
            half /= 2;
        }
        let found = self.keys[place % N] == wanted;
        if found { Some(self.owners[place % N]) } else { None }
    }
}

/// Checks that an inbox can hold so many frames.
fn in_range(quota: u16) -> Result<(), ListenerRefusal> {
    let fits = quota > 0 && usize::from(quota) <= crate::INBOX_DEPTH;
    fits.then_some(()).ok_or(ListenerRefusal::Quota)
}

/// Returns the bytes from `at` on, as one load.
#[inline(always)]
fn bytes<const K: usize>(head: &[u8; UDP_PAYLOAD], at: usize) -> [u8; K] {
    head.get(at..).and_then(|rest| rest.first_chunk()).copied().unwrap_or([0; K])
}

#[inline(always)]
fn be16(head: &[u8; UDP_PAYLOAD], at: usize) -> u16 {
    u16::from_be_bytes(bytes(head, at))
}

/// The bits of a header's first eight bytes that say: version 4, no options, no fragment.
const PLAIN_MASK: u64 = 0xffbf_0000_0000_00ff;
const PLAIN: u64 = 0x45;

/// A header without options and the UDP header behind it, as words whose first byte is lowest. So
/// each byte is loaded once.
struct Words {
    /// Version and length of the header, service, total length, number, fragment.
    first: u64,
    /// Time to live, protocol, checksum, sender.
    second: u64,
    receiver: u32,
    ports: u32,
    /// Length and checksum of the datagram.
    udp: u32,
}

impl Words {
    #[inline(always)]
    fn of(head: &[u8; UDP_PAYLOAD]) -> Words {
        Words {
            first: u64::from_le_bytes(bytes(head, 14)),
            second: u64::from_le_bytes(bytes(head, 22)),
            receiver: u32::from_le_bytes(bytes(head, 30)),
            ports: u32::from_le_bytes(bytes(head, 34)),
            udp: u32::from_le_bytes(bytes(head, 38)),
        }
    }

    #[inline(always)]
    const fn key(&self) -> u64 {
        let protocol = self.second >> 8 & 0xff;
        protocol << 48 | (self.receiver as u64) << 16 | (self.ports >> 16) as u64
    }

    #[inline(always)]
    const fn total(&self) -> usize {
        ((self.first >> 16) as u16).swap_bytes() as usize
    }

    #[inline(always)]
    const fn datagram(&self) -> usize {
        (self.udp as u16).swap_bytes() as usize
    }

    /// Returns the first byte of the sender's address.
    #[inline(always)]
    const fn sender(&self) -> u8 {
        (self.second >> 32) as u8
    }

    /// Returns whether the checksum of the header is correct. The order of bytes makes no
    /// difference to that. A sum is correct if it is a multiple of 65,535 and not zero, and the
    /// version keeps it from being zero. 2^64 is 1 modulo 65,535, so carries are added again.
    #[inline(always)]
    const fn header_is_right(&self) -> bool {
        let (sum, carry) = self.first.overflowing_add(self.second);
        let (sum, more) = (sum + carry as u64).overflowing_add(self.receiver as u64);
        (sum + more as u64).is_multiple_of(0xffff)
    }
}

const _: () = assert!(UDP_PAYLOAD + TAG_BYTES <= FRAME_MIN);
const _: () = assert!(UDP_PAYLOAD == payload_offset(false, IPV4_HEAD));
