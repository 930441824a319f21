//! The full stack for one received frame: every check of Ethernet, IPv4 and UDP in the order of
//! the layers. The first that fails names the error.

use crate::checksum::{OnesSum, pseudo_header};
use crate::{Discard, ETHERNET_HEAD, IPV4, IPV4_HEAD, TAG_BYTES, UDP, UDP_HEAD, VLAN};
use core::net::{Ipv4Addr, SocketAddrV4};

/// The content of a VLAN tag (802.1Q).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct VlanTag {
    /// The priority, 0 to 7.
    pub priority: u8,
    /// Whether the frame may be dropped first.
    pub drop_eligible: bool,
    /// The number of the network, 0 to 4,095.
    pub network: u16,
}

impl VlanTag {
    /// Returns the tag of these 16 bits.
    #[must_use]
    pub const fn from_bits(bits: u16) -> VlanTag {
        VlanTag {
            priority: (bits >> 13) as u8,
            drop_eligible: bits & 0x1000 != 0,
            network: bits & 0x0fff,
        }
    }

    /// Returns the 16 bits of the tag. Bits that do not fit are left out.
    #[must_use]
    pub const fn bits(self) -> u16 {
        let flag = if self.drop_eligible { 0x1000 } else { 0 };
        (self.priority as u16 & 7) << 13 | flag | self.network & 0x0fff
    }
}

/// A datagram in a frame that passed every check.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Datagram<'a> {
    /// The address and port that sent it.
    pub source: SocketAddrV4,
    /// The address and port that it is for.
    pub destination: SocketAddrV4,
    /// The tag of its frame, if it has one.
    pub tag: Option<VlanTag>,
    /// The data of the datagram.
    pub payload: &'a [u8],
}

/// A packet of IPv4 whose header passed every check.
struct Packet4<'a> {
    addresses: [u8; 8],
    protocol: u8,
    content: &'a [u8],
}

/// Returns the datagram in `frame`, or the first error in it.
///
/// # Errors
/// If a check of Ethernet, IPv4 or UDP fails. Fragments are not put together.
pub fn receive(frame: &[u8]) -> Result<Datagram<'_>, Discard> {
    let (tag, packet) = ethernet(frame)?;
    let packet = ipv4(packet)?;
    if packet.protocol != UDP {
        return Err(Discard::Protocol);
    }
    let (ports, payload) = udp(&packet)?;
    let [a, b, c, d, e, f, g, h] = packet.addresses;
    Ok(Datagram {
        source: SocketAddrV4::new(Ipv4Addr::new(a, b, c, d), ports[0]),
        destination: SocketAddrV4::new(Ipv4Addr::new(e, f, g, h), ports[1]),
        tag,
        payload,
    })
}

/// Returns the tag, if there is one, and what follows the head of an IPv4 frame.
fn ethernet(frame: &[u8]) -> Result<(Option<VlanTag>, &[u8]), Discard> {
    let (_, rest) = frame.split_at_checked(ETHERNET_HEAD - 2).ok_or(Discard::Short)?;
    let (kind, rest) = word(rest)?;
    let (tag, kind, rest) = if kind == VLAN {
        let (bits, rest) = word(rest)?;
        let (kind, rest) = word(rest)?;
        (Some(VlanTag::from_bits(bits)), kind, rest)
    } else {
        (None, kind, rest)
    };
    if kind == IPV4 { Ok((tag, rest)) } else { Err(Discard::EtherType) }
}

/// Returns the first 16 bits, and the rest.
fn word(bytes: &[u8]) -> Result<(u16, &[u8]), Discard> {
    let (word, rest) = bytes.split_first_chunk::<2>().ok_or(Discard::Short)?;
    Ok((u16::from_be_bytes(*word), rest))
}

/// Checks the header. Bytes of the frame behind the packet are padding, and are left out.
fn ipv4(bytes: &[u8]) -> Result<Packet4<'_>, Discard> {
    let head = bytes.first_chunk::<IPV4_HEAD>().ok_or(Discard::Short)?;
    if head[0] >> 4 != 4 {
        return Err(Discard::Version);
    }
    let head_bytes = usize::from(head[0] & 0x0f) * 4;
    let total = usize::from(u16::from_be_bytes([head[2], head[3]]));
    if head_bytes < IPV4_HEAD || head_bytes > total {
        return Err(Discard::HeaderLength);
    }
    let packet = bytes.get(..total).ok_or(Discard::TotalLength)?;
    let (header, content) = packet.split_at_checked(head_bytes).ok_or(Discard::TotalLength)?;
    if OnesSum::new().bytes(header).folded() != 0xffff {
        return Err(Discard::HeaderChecksum);
    }
    options(header.get(IPV4_HEAD..).unwrap_or(&[]))?;
    // Bit 15 is reserved, and 14 forbids fragments; the others belong to fragments.
    if u16::from_be_bytes([head[6], head[7]]) & 0xbfff != 0 {
        return Err(Discard::Fragment);
    }
    if !sends(head[12]) {
        return Err(Discard::Source);
    }
    let [.., a, b, c, d, e, f, g, h] = *head;
    Ok(Packet4 { addresses: [a, b, c, d, e, f, g, h], protocol: head[9], content })
}

/// Returns whether an address with this first byte can send: multicast, reserved, broadcast and
/// loopback addresses cannot.
#[must_use]
#[inline(always)]
pub(crate) const fn sends(first: u8) -> bool {
    first < 224 && first != 127
}

/// Looks through the options. Source routes (131, 137) are refused, and all others are skipped.
fn options(mut rest: &[u8]) -> Result<(), Discard> {
    loop {
        match rest {
            [] | [0, ..] => return Ok(()),
            [1, tail @ ..] => rest = tail,
            [131 | 137, ..] => return Err(Discard::Options),
            [_, length, ..] if *length >= 2 => {
                rest = rest.get(usize::from(*length)..).ok_or(Discard::Options)?;
            }
            _ => return Err(Discard::Options),
        }
    }
}

/// Returns both ports and the payload.
fn udp<'a>(packet: &Packet4<'a>) -> Result<([u16; 2], &'a [u8]), Discard> {
    let (head, payload) =
        packet.content.split_first_chunk::<UDP_HEAD>().ok_or(Discard::UdpLength)?;
    let [a, b, c, d, e, f, g, h] = *head;
    let length = u16::from_be_bytes([e, f]);
    if usize::from(length) != packet.content.len() {
        return Err(Discard::UdpLength);
    }
    // No checksum is zero: the sender left it out.
    if [g, h] != [0, 0] {
        let sum = pseudo_header(&packet.addresses, UDP, length).bytes(packet.content);
        if sum.folded() != 0xffff {
            return Err(Discard::UdpChecksum);
        }
    }
    let ports = [u16::from_be_bytes([a, b]), u16::from_be_bytes([c, d])];
    if ports[1] == 0 { Err(Discard::Port) } else { Ok((ports, payload)) }
}

/// Returns the bytes before the payload in a frame with this tag and this IP header.
#[must_use]
pub const fn payload_offset(tagged: bool, ip_head: usize) -> usize {
    ETHERNET_HEAD + if tagged { TAG_BYTES } else { 0 } + ip_head + UDP_HEAD
}
