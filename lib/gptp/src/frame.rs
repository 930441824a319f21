//! Frames with gPTP messages as they are sent: byte for byte those of linuxptp, unpadded.

use crate::message::{
    ClockIdentity, ETHERTYPE, GptpHeader, GptpMessage, PortIdentity, TLV_PATH, kind,
};
use crate::{Announce, GptpBody};
use diapason_abi::Nanos;

/// The group to which all messages go. No switch passes it on.
pub const GROUP: [u8; 6] = [0x01, 0x80, 0xc2, 0, 0, 0x0e];
/// Bytes of a frame before its message.
pub const HEAD: usize = 14;
/// Clocks that the path of an Announce can name.
pub(crate) const PATH_MAX: usize = 8;
/// The bytes of the longest frame.
pub const FRAME_MAX: usize = HEAD + 64 + 4 + 8 * PATH_MAX;

const FRACTIONS: i64 = 1 << 16;
const BILLION: u64 = 1_000_000_000;
/// The field of a Follow_Up: its type, its length, the organisation (802.1), its subtype.
const INFORMATION: [u8; 10] = [0, 3, 0, 28, 0, 0x80, 0xc2, 0, 0, 1];
/// Units of a rate in that field.
const RATE_UNITS: i128 = 1 << 41;

/// Returns the name of the clock with this address.
#[must_use]
pub const fn identity_of([a, b, c, d, e, f]: [u8; 6]) -> ClockIdentity {
    [a, b, c, 0xff, 0xfe, d, e, f]
}

/// A frame to send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GptpFrame {
    bytes: [u8; FRAME_MAX],
    length: usize,
}

impl GptpFrame {
    /// Returns the frame with a message from this address.
    #[must_use]
    pub fn new(mac: [u8; 6], message: &GptpMessage<'_>) -> GptpFrame {
        let mut frame = GptpFrame { bytes: [0; FRAME_MAX], length: 0 };
        frame.put(&GROUP);
        frame.put(&mac);
        frame.put(&ETHERTYPE.to_be_bytes());
        let (kind, control) = match message.body {
            GptpBody::Sync => (kind::SYNC, 0),
            GptpBody::FollowUp { .. } => (kind::FOLLOW_UP, 2),
            GptpBody::PdelayReq => (kind::PDELAY_REQ, 5),
            GptpBody::PdelayResp { .. } => (kind::PDELAY_RESP, 5),
            GptpBody::PdelayRespFollowUp { .. } => (kind::PDELAY_RESP_FOLLOW_UP, 5),
            GptpBody::Announce(_) => (kind::ANNOUNCE, 5),
        };
        frame.header(&message.header, kind, control);
        match &message.body {
            GptpBody::Sync => frame.put(&[0; 10]),
            GptpBody::PdelayReq => frame.put(&[0; 20]),
            GptpBody::FollowUp { origin } => {
                frame.timestamp(*origin);
                frame.put(&INFORMATION);
                frame.put(&[0; 22]);
            }
            GptpBody::PdelayResp { received: time, requester }
            | GptpBody::PdelayRespFollowUp { sent: time, requester } => {
                frame.timestamp(*time);
                frame.port(requester);
            }
            GptpBody::Announce(announce) => frame.announce(announce),
        }
        let flags = match message.body {
            GptpBody::Sync | GptpBody::PdelayResp { .. } => [2, 0],
            GptpBody::Announce(Announce { properties, .. }) => [0, properties.flags],
            _ => [0, 0],
        };
        frame.bytes[HEAD + 6..HEAD + 8].copy_from_slice(&flags);
        let length = (frame.length - HEAD) as u16;
        frame.bytes[HEAD + 2..HEAD + 4].copy_from_slice(&length.to_be_bytes());
        frame
    }

    /// Says in a Follow_Up how fast the grandmaster is: it counts `gain.0` while the clock that
    /// sends counts `gain.1`.
    #[must_use]
    pub(crate) fn with_rate(mut self, gain: (i128, i128)) -> GptpFrame {
        let scaled = (gain.0 - gain.1).saturating_mul(RATE_UNITS).checked_div(gain.1).unwrap_or(0);
        let scaled = i32::try_from(scaled).unwrap_or(0);
        let at = HEAD + 34 + 10 + INFORMATION.len();
        self.bytes[at..at + 4].copy_from_slice(&scaled.to_be_bytes());
        self
    }

    /// Returns the bytes from the address of the receiver on, without the checksum.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        self.bytes.get(..self.length).unwrap_or_default()
    }

    /// Adds bytes. There is room for the longest message.
    fn put(&mut self, bytes: &[u8]) {
        let end = self.length + bytes.len();
        if let Some(place) = self.bytes.get_mut(self.length..end) {
            place.copy_from_slice(bytes);
            self.length = end;
        }
    }

    fn header(&mut self, header: &GptpHeader, kind: u8, control: u8) {
        self.put(&[0x10 | kind, 2, 0, 0, 0, 0, 0, 0]);
        self.put(&header.correction_ns.saturating_mul(FRACTIONS).to_be_bytes());
        self.put(&[0; 4]);
        self.port(&header.source);
        self.put(&header.sequence.to_be_bytes());
        self.put(&[control, header.log_interval.cast_unsigned()]);
    }

    fn port(&mut self, port: &PortIdentity) {
        self.put(&port.clock);
        self.put(&port.port.to_be_bytes());
    }

    fn timestamp(&mut self, time: Nanos) {
        self.put(&(time.0 / BILLION).to_be_bytes()[2..]);
        self.put(&((time.0 % BILLION) as u32).to_be_bytes());
    }

    fn announce(&mut self, announce: &Announce<'_>) {
        let grandmaster = &announce.grandmaster;
        self.put(&[0; 10]);
        self.put(&announce.properties.utc_offset.to_be_bytes());
        self.put(&[0, grandmaster.priority1, grandmaster.class, grandmaster.accuracy]);
        self.put(&grandmaster.variance.to_be_bytes());
        self.put(&[grandmaster.priority2]);
        self.put(&grandmaster.identity);
        self.put(&announce.steps.to_be_bytes());
        self.put(&[announce.properties.source]);
        let path = announce.path.get(..PATH_MAX).unwrap_or(announce.path);
        self.put(&TLV_PATH.to_be_bytes());
        self.put(&((8 * path.len()) as u16).to_be_bytes());
        path.iter().for_each(|clock| self.put(clock));
    }
}
