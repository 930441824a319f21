//! Frames that are sent: the caller's payload with its heads, in the caller's time.

use crate::checksum::{OnesSum, pseudo_header};
use crate::stack::payload_offset;
use crate::{FRAME_MIN, IPV4, IPV4_HEAD, TAG_BYTES, UDP, UDP_HEAD, VLAN, VlanTag};
use core::net::SocketAddrV4;

/// The heads of the UDP frames of one flow.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct UdpFrame {
    /// The adapter that sends.
    pub source_mac: [u8; 6],
    /// The adapter that receives, or a group.
    pub destination_mac: [u8; 6],
    /// The tag, if frames have one.
    pub tag: Option<VlanTag>,
    /// The address and port that send.
    pub source: SocketAddrV4,
    /// The address and port that receive.
    pub destination: SocketAddrV4,
    /// Whether datagrams have a checksum.
    pub checksum: bool,
}

/// Returns the bytes of the frame of a datagram with so much payload, with a tag or without one.
#[must_use]
pub fn datagram_frame(payload: usize, has_tag: bool) -> usize {
    payload_offset(has_tag, IPV4_HEAD).saturating_add(payload).max(FRAME_MIN)
}

impl UdpFrame {
    /// Writes a frame with `payload` into `frame`, padded to the shortest frame. Returns its bytes,
    /// or `None` if there is no room, or the payload does not fit a datagram.
    pub fn write(&self, payload: &[u8], frame: &mut [u8]) -> Option<usize> {
        let start = payload_offset(self.tag.is_some(), IPV4_HEAD);
        let bytes = datagram_frame(payload.len(), self.tag.is_some());
        let datagram = u16::try_from(UDP_HEAD + payload.len()).ok()?;
        let total = datagram.checked_add(IPV4_HEAD as u16)?;
        let frame = frame.get_mut(..bytes)?;
        let (heads, rest) = frame.split_at_mut_checked(start)?;
        let (data, padding) = rest.split_at_mut_checked(payload.len())?;
        data.copy_from_slice(payload);
        padding.fill(0);
        let mut heads = Cursor(heads);
        heads.put(&self.destination_mac)?;
        heads.put(&self.source_mac)?;
        if let Some(tag) = self.tag {
            heads.put(&VLAN.to_be_bytes())?;
            heads.put(&tag.bits().to_be_bytes())?;
        }
        heads.put(&IPV4.to_be_bytes())?;
        heads.put(&self.ipv4(total))?;
        heads.put(&self.udp(datagram, payload))?;
        Some(bytes)
    }

    /// Returns the bytes of both addresses.
    fn addresses(&self) -> [u8; 8] {
        let ([a, b, c, d], [e, f, g, h]) =
            (self.source.ip().octets(), self.destination.ip().octets());
        [a, b, c, d, e, f, g, h]
    }

    /// Returns the header of a packet with `total` bytes that may not be fragmented.
    fn ipv4(&self, total: u16) -> [u8; IPV4_HEAD] {
        let [high, low] = total.to_be_bytes();
        let mut head = [0; IPV4_HEAD];
        let start = [0x45, 0, high, low, 0, 0, 0x40, 0, 64, UDP, 0, 0];
        let content = start.into_iter().chain(self.addresses());
        head.iter_mut().zip(content).for_each(|(to, from)| *to = from);
        [head[10], head[11]] = OnesSum::new().bytes(&head).checksum().to_be_bytes();
        head
    }

    fn udp(&self, length: u16, payload: &[u8]) -> [u8; UDP_HEAD] {
        let ([a, b], [c, d]) =
            (self.source.port().to_be_bytes(), self.destination.port().to_be_bytes());
        let [e, f] = length.to_be_bytes();
        let mut head = [a, b, c, d, e, f, 0, 0];
        if self.checksum {
            let sum = pseudo_header(&self.addresses(), UDP, length).bytes(&head).bytes(payload);
            // A checksum that is zero is sent as all ones, because zero says that there is none.
            let checksum = match sum.checksum() {
                0 => u16::MAX,
                other => other,
            };
            [head[6], head[7]] = checksum.to_be_bytes();
        }
        head
    }

    /// Returns the bytes of the heads of this flow's frames.
    #[must_use]
    pub const fn heads(&self) -> usize {
        let tag = if self.tag.is_some() { TAG_BYTES } else { 0 };
        crate::UDP_PAYLOAD + tag
    }
}

/// Writes pieces one behind the other.
struct Cursor<'a>(&'a mut [u8]);

impl Cursor<'_> {
    fn put(&mut self, bytes: &[u8]) -> Option<()> {
        let (here, rest) = core::mem::take(&mut self.0).split_at_mut_checked(bytes.len())?;
        here.copy_from_slice(bytes);
        self.0 = rest;
        Some(())
    }
}
