//! The frames that a program may send. A driver thread looks at fixed places of each, so that no
//! program speaks for another host or for another program of this one, or to anybody but its peer.

use crate::build::datagram_frame;
use crate::{
    ETHERNET_HEAD, FRAME_MIN, IPV4, IPV4_HEAD, TAG_BYTES, UDP, UDP_PAYLOAD, VLAN, VlanTag,
};
use core::net::SocketAddrV4;

/// The EtherType of ARP, and the first bytes of each of its packets: Ethernet and IPv4.
const ARP: u16 = 0x0806;
const ARP_HEAD: [u8; 6] = [0, 1, 8, 0, 6, 4];
/// Bytes of a frame with an ARP packet.
const ARP_FRAME: usize = ETHERNET_HEAD + 28;
const _: () = assert!(ARP_FRAME <= FRAME_MIN && UDP_PAYLOAD + TAG_BYTES <= FRAME_MIN);

/// The addresses of an adapter.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Own {
    pub mac: [u8; 6],
    pub address: [u8; 4],
}

/// The datagrams that a socket may send: all of them go to one place.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct OwnDatagrams {
    /// The port that they come from.
    pub port: u16,
    /// The most bytes of a payload.
    pub most: usize,
    /// The tag of their frames, which have none without it.
    pub tag: Option<VlanTag>,
    /// The adapter that is the next on the way.
    pub to_mac: [u8; 6],
    pub to: SocketAddrV4,
}

impl Own {
    /// Returns whether a frame is one of these UDP datagrams of the adapter. The way of a frame
    /// follows from where it goes, and so does whom it delays.
    #[must_use]
    pub fn sends_datagram(&self, frame: &[u8], own: &OwnDatagrams) -> bool {
        let OwnDatagrams { port, most, tag, to_mac, to } = *own;
        if frame.len() > datagram_frame(most, tag.is_some()) || !frame.starts_with(&to_mac) {
            return false;
        }
        let (kind, skipped) = match tag {
            None => (IPV4, 0),
            Some(tag) => {
                let written = [VLAN.to_be_bytes(), tag.bits().to_be_bytes()];
                if frame.get(12..16) != Some(written.as_flattened()) {
                    return false;
                }
                (VLAN, TAG_BYTES)
            }
        };
        let head = self.head_of(frame, kind).and_then(|_| frame.get(skipped..)?.first_chunk());
        head.is_some_and(|head: &[u8; UDP_PAYLOAD]| {
            head[12..14] == IPV4.to_be_bytes()
                && head[14] == 0x45
                && head[23] == UDP
                && head[26..30] == self.address
                && head[30..34] == to.ip().octets()
                && head[34..36] == port.to_be_bytes()
                && head[36..38] == to.port().to_be_bytes()
        })
    }

    /// Returns whether a frame is of the adapter and of nobody's socket: an ARP packet that names
    /// the adapter as its sender, or an IPv4 packet from its address. A datagram from a port that
    /// is taken belongs to another program, and a fragment may be a part of one.
    #[must_use]
    pub fn sends_rest(&self, frame: &[u8], is_taken: impl FnOnce(u16) -> bool) -> bool {
        if let Some(head) = self.head_of(frame, ARP) {
            return head[14..20] == ARP_HEAD
                && head[22..28] == self.mac
                && (head[28..32] == self.address || head[28..32] == [0; 4]);
        }
        let Some(head) = self.head_of(frame, IPV4) else { return false };
        let length = usize::from(head[14] & 0x0f) * 4;
        let is_whole = u16::from_be_bytes([head[20], head[21]]) & 0xbfff == 0;
        if head[14] >> 4 != 4 || length < IPV4_HEAD || !is_whole || head[26..30] != self.address {
            return false;
        }
        let ports = frame.get(ETHERNET_HEAD + length..).and_then(|rest| rest.first_chunk());
        head[23] != UDP || ports.is_some_and(|port| !is_taken(u16::from_be_bytes(*port)))
    }

    /// Returns the shortest frame's bytes of a frame that comes from the adapter and has this type.
    fn head_of<'f>(&self, frame: &'f [u8], kind: u16) -> Option<&'f [u8; FRAME_MIN]> {
        let head = frame.first_chunk()?;
        (head[6..12] == self.mac && head[12..14] == kind.to_be_bytes()).then_some(head)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::UdpFrame;
    use core::net::Ipv4Addr;

    /// The most bytes of a payload of a socket.
    const MOST: usize = 64;
    const OWN: Own = Own { mac: [2, 0, 0, 0, 0, 1], address: [10, 0, 0, 1] };

    const PEER_MAC: [u8; 6] = [2, 0, 0, 0, 0, 2];
    const PEER: SocketAddrV4 = SocketAddrV4::new(Ipv4Addr::new(10, 0, 0, 2), 5_000);

    const fn from(port: u16, most: usize, tag: Option<VlanTag>) -> OwnDatagrams {
        OwnDatagrams { port, most, tag, to_mac: PEER_MAC, to: PEER }
    }

    fn datagram(own: Own, port: u16) -> [u8; FRAME_MIN] {
        let mut frame = [0; FRAME_MIN];
        let flow = UdpFrame {
            source_mac: own.mac,
            destination_mac: PEER_MAC,
            tag: None,
            source: SocketAddrV4::new(Ipv4Addr::from(own.address), port),
            destination: PEER,
            checksum: false,
        };
        assert_eq!(flow.write(&[7; 8], &mut frame), Some(FRAME_MIN));
        frame
    }

    fn arp(sender: [u8; 4]) -> [u8; FRAME_MIN] {
        let mut frame = [0; FRAME_MIN];
        frame[..6].fill(0xff);
        frame[6..12].copy_from_slice(&OWN.mac);
        frame[12..14].copy_from_slice(&ARP.to_be_bytes());
        frame[14..20].copy_from_slice(&ARP_HEAD);
        frame[21] = 1;
        frame[22..28].copy_from_slice(&OWN.mac);
        frame[28..32].copy_from_slice(&sender);
        frame
    }

    #[test]
    fn a_socket_sends_its_own_datagrams() {
        let frame = datagram(OWN, 4_000);
        assert!(OWN.sends_datagram(&frame, &from(4_000, MOST, None)));
        assert!(!OWN.sends_datagram(&frame, &from(4_001, MOST, None)));
        assert!(!OWN.sends_datagram(&frame[..FRAME_MIN - 1], &from(4_000, MOST, None)));
        let [mac, address] = [Own { mac: [4; 6], ..OWN }, Own { address: [10, 0, 0, 3], ..OWN }];
        assert!(!OWN.sends_datagram(&datagram(mac, 4_000), &from(4_000, MOST, None)));
        assert!(!OWN.sends_datagram(&datagram(address, 4_000), &from(4_000, MOST, None)));
    }

    #[test]
    fn a_socket_sends_to_its_peer_alone() {
        let own = from(4_000, MOST, None);
        let frame = datagram(OWN, 4_000);
        assert!(OWN.sends_datagram(&frame, &own));
        let [mac, address, port] = [0..6, 30..34, 36..38];
        for byte in mac.chain(address).chain(port) {
            let mut other = frame;
            other[byte] ^= 1;
            assert!(!OWN.sends_datagram(&other, &own), "byte {byte}");
        }
    }

    #[test]
    fn a_socket_has_the_priority_of_its_description() {
        let tag = |priority| VlanTag { priority, drop_eligible: false, network: 0 };
        let mut frame = [0; FRAME_MIN];
        let flow = UdpFrame {
            source_mac: OWN.mac,
            destination_mac: PEER_MAC,
            tag: Some(tag(5)),
            source: SocketAddrV4::new(Ipv4Addr::from(OWN.address), 4_000),
            destination: PEER,
            checksum: false,
        };
        assert_eq!(flow.write(&[7; 8], &mut frame), Some(FRAME_MIN));
        assert!(OWN.sends_datagram(&frame, &from(4_000, MOST, Some(tag(5)))));
        assert!(!OWN.sends_datagram(&frame, &from(4_001, MOST, Some(tag(5)))));
        assert!(!OWN.sends_datagram(&frame, &from(4_000, MOST, Some(tag(6)))));
        assert!(!OWN.sends_datagram(&frame, &from(4_000, MOST, None)));
        assert!(!OWN.sends_datagram(&datagram(OWN, 4_000), &from(4_000, MOST, Some(tag(5)))));
        assert!(!OWN.sends_rest(&frame, |_| false));
        frame[16..18].copy_from_slice(&VLAN.to_be_bytes());
        assert!(
            !OWN.sends_datagram(&frame, &from(4_000, MOST, Some(tag(5)))),
            "a tag within a tag"
        );
    }

    #[test]
    fn no_datagram_is_longer_than_its_socket_says() {
        let vlan = VlanTag { priority: 5, drop_eligible: false, network: 0 };
        for (tag, tag_bytes) in [(None, 0), (Some(vlan), TAG_BYTES)] {
            let of = |payload: usize| {
                let mut frame = [0; 256];
                let flow = UdpFrame {
                    source_mac: OWN.mac,
                    destination_mac: PEER_MAC,
                    tag,
                    source: SocketAddrV4::new(Ipv4Addr::from(OWN.address), 4_000),
                    destination: PEER,
                    checksum: false,
                };
                let bytes = flow.write(&[7; 128][..payload], &mut frame).unwrap();
                (frame, bytes)
            };
            assert_eq!(of(MOST).1, UDP_PAYLOAD + tag_bytes + MOST);
            for most in 0..=MOST {
                let sends = |(frame, bytes): &([u8; 256], usize)| {
                    OWN.sends_datagram(&frame[..*bytes], &from(4_000, most, tag))
                };
                assert!(sends(&of(most)));
                let longer = of(most + 1);
                assert_eq!(sends(&longer), longer.1 == FRAME_MIN, "{most} bytes");
            }
        }
    }

    #[test]
    fn the_rest_is_what_no_socket_sends() {
        let is_taken = |port| port == 4_000;
        assert!(!OWN.sends_rest(&datagram(OWN, 4_000), is_taken));
        assert!(OWN.sends_rest(&datagram(OWN, 4_001), is_taken));
        let mut with_options = datagram(OWN, 4_001);
        // The ports are four bytes later: there are the numbers of another port.
        with_options[14] = 0x46;
        with_options[38..40].copy_from_slice(&4_000_u16.to_be_bytes());
        assert!(!OWN.sends_rest(&with_options, is_taken));
        let mut fragment = datagram(OWN, 4_001);
        fragment[21] = 1;
        assert!(!OWN.sends_rest(&fragment, is_taken));
        let mut tcp = datagram(OWN, 4_000);
        tcp[23] = crate::TCP;
        assert!(OWN.sends_rest(&tcp, is_taken));
        tcp[29] = 9;
        assert!(!OWN.sends_rest(&tcp, is_taken));
        assert!(OWN.sends_rest(&arp(OWN.address), is_taken));
        assert!(OWN.sends_rest(&arp([0; 4]), is_taken));
        assert!(!OWN.sends_rest(&arp([10, 0, 0, 2]), is_taken));
        let mut of_another = arp(OWN.address);
        of_another[27] = 2;
        assert!(!OWN.sends_rest(&of_another, is_taken));
        let mut ipv6 = arp(OWN.address);
        ipv6[12..14].copy_from_slice(&0x86dd_u16.to_be_bytes());
        assert!(!OWN.sends_rest(&ipv6, is_taken));
    }

    #[test]
    fn whatever_a_program_writes_it_speaks_for_itself() {
        let mut random = diapason_random::Random::new(21);
        let mut sent = 0;
        for _ in 0..200_000 {
            let mut frame = if random.below(2) == 0 { datagram(OWN, 4_000) } else { arp([0; 4]) };
            for _ in 0..1 + random.below(4) {
                frame[random.below(FRAME_MIN as u64) as usize] = random.below(256) as u8;
            }
            if OWN.sends_rest(&frame, |port| port == 4_000) {
                sent += 1;
                assert_eq!(frame[6..12], OWN.mac);
                let datagram = crate::stack::receive(&frame).map(|it| it.source);
                let is_own = |it: &SocketAddrV4| it.ip().octets() == OWN.address;
                assert!(
                    datagram.is_err() || datagram.is_ok_and(|it| is_own(&it) && it.port() != 4_000)
                );
            }
        }
        assert!(sent > 1_000);
    }
}
