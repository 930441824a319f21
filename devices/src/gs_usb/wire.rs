//! The bytes of the protocol: requests, and the frames that bulk transfers carry.
//!
//! A transfer carries one frame: its number or [`RECEIVED`], the identifier with Linux's flags, the
//! length code, the channel, flags, eight bytes of data, and to the host the time in µs.

use crate::can::{FrameContent, Passing};
use diapason_can::CanFrame;
use diapason_can::frame::{extended, standard};

/// The numbers of requests.
pub mod request {
    #![allow(missing_docs, reason = "the names are the documentation")]
    pub const HOST_FORMAT: u8 = 0;
    pub const BIT_TIMING: u8 = 1;
    pub const MODE: u8 = 2;
    pub const TIMING_LIMITS: u8 = 4;
    pub const DEVICE_CONFIG: u8 = 5;
    pub const TIMESTAMP: u8 = 6;
    pub const GET_STATE: u8 = 14;
}

/// Bits of what a channel can do, and of the mode in which it is started.
pub mod feature {
    /// The channel is not seen on its bus.
    pub const LISTEN_ONLY: u32 = 1;
    /// Frames to the host have times.
    pub const TIMESTAMP: u32 = 1 << 4;
    /// The host may ask how the controller is.
    pub const GET_STATE: u32 = 1 << 13;
    /// All that the model does.
    pub const ALL: u32 = LISTEN_ONLY | TIMESTAMP | GET_STATE;
}

/// The number of a frame that came from the bus.
pub const RECEIVED: u32 = u32::MAX;
/// The identifier has 29 bits.
pub const EXTENDED: u32 = 1 << 31;
/// The frame asks for data.
pub const REMOTE: u32 = 1 << 30;
/// The frame is about an error, and has its kind instead of an identifier.
pub const ERROR: u32 = 1 << 29;
/// Frames were lost before this one.
pub const OVERFLOW: u8 = 1;

/// Bytes of a frame from the host.
pub const SHORT: usize = 20;
/// Bytes of a frame with a time.
pub const STAMPED: usize = 24;

/// A frame as it travels.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct HostFrame {
    /// The number that the host gave it, or [`RECEIVED`].
    pub echo: u32,
    /// Its identifier, with flags.
    pub id: u32,
    pub code: u8,
    pub channel: u8,
    pub flags: u8,
    pub data: [u8; 8],
}

impl HostFrame {
    /// Returns one from the bus of a channel.
    #[must_use]
    pub fn received(channel: u8, frame: &CanFrame) -> HostFrame {
        let long = if frame.is_extended() { EXTENDED } else { 0 };
        let remote = if frame.is_remote() { REMOTE } else { 0 };
        let data = std::array::from_fn(|at| frame.bytes().get(at).copied().unwrap_or(0));
        let id = frame.raw_id() | long | remote;
        HostFrame { echo: RECEIVED, id, code: frame.code(), channel, flags: 0, data }
    }

    /// Returns one about an error of this kind on the bus of a channel.
    #[must_use]
    pub const fn error(channel: u8, kind: u32, data: [u8; 8]) -> HostFrame {
        HostFrame { echo: RECEIVED, id: ERROR | kind, code: 8, channel, flags: 0, data }
    }

    /// Reads the first bytes of a transfer.
    #[must_use]
    pub fn read(bytes: &[u8]) -> Option<HostFrame> {
        let word = |at: usize| Some(u32::from_le_bytes(*bytes.get(at..)?.first_chunk()?));
        let [code, channel, flags, _] = *bytes.get(8..)?.first_chunk()?;
        let data = *bytes.get(12..)?.first_chunk()?;
        Some(HostFrame { echo: word(0)?, id: word(4)?, code, channel, flags, data })
    }

    /// Returns the bytes of its transfer, with a time in µs or without.
    #[must_use]
    pub fn bytes(&self, micros: Option<u32>) -> Vec<u8> {
        let mut bytes = self.echo.to_le_bytes().to_vec();
        bytes.extend(self.id.to_le_bytes());
        bytes.extend([self.code, self.channel, self.flags, 0]);
        bytes.extend(self.data);
        bytes.extend(micros.into_iter().flat_map(u32::to_le_bytes));
        bytes
    }

    /// Returns the frame on the bus, if classic CAN has such a one.
    #[must_use]
    pub fn frame(&self) -> Option<CanFrame> {
        let raw = self.id & !(EXTENDED | REMOTE);
        let id = if self.id & EXTENDED != 0 { extended(raw) } else { standard(raw) }.ok()?;
        if self.flags & !OVERFLOW != 0 {
            return None;
        }
        if self.id & REMOTE != 0 {
            return CanFrame::remote(id, self.code.into()).ok();
        }
        let data = self.data.get(..usize::from(self.code.min(8)))?;
        CanFrame::data(id, data).ok()?.with_code(self.code).ok()
    }
}

/// Returns what a transfer of an endpoint says about a frame: for observers of the traffic between
/// host and device.
#[must_use]
pub fn passing(endpoint: u8, bytes: &[u8]) -> Option<Passing> {
    let fits = match endpoint {
        super::IN => [SHORT, STAMPED].contains(&bytes.len()),
        super::OUT => bytes.len() == SHORT,
        _ => false,
    };
    let frame = HostFrame::read(bytes).filter(|_| fits)?;
    let load = match (endpoint, frame.echo) {
        (super::OUT, RECEIVED) => return None,
        (super::OUT, _) => FrameContent::Departure(frame.frame()?),
        (_, RECEIVED) => FrameContent::Arrival(frame.frame()?),
        _ => FrameContent::Acknowledgement,
    };
    let channel = usize::from(frame.channel);
    (channel < super::CHANNELS).then_some(Passing { channel, load, transaction: frame.echo as u16 })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The transfers that a Linux driver and a device exchanged.
    #[test]
    fn frames_have_the_bytes_that_linux_sends_and_reads() {
        let sent = [0, 0, 0, 0, 0x23, 1, 0, 0, 4, 0, 0, 0, 0xde, 0xad, 0xbe, 0xef, 0, 0, 0, 0];
        let frame = CanFrame::data(standard(0x123).unwrap(), &[0xde, 0xad, 0xbe, 0xef]).unwrap();
        assert_eq!(HostFrame::read(&sent).unwrap().frame(), Some(frame));
        let load = FrameContent::Departure(frame);
        let passed = Passing { channel: 0, load, transaction: 0 };
        assert_eq!(passing(super::super::OUT, &sent), Some(passed));
        let got = HostFrame::received(0, &frame).bytes(None);
        assert_eq!((&got[..4], &got[4..]), (&[0xff; 4][..], &sent[4..]));
        let long = CanFrame::data(extended(0x1234_5678).unwrap(), b"12345678").unwrap();
        let bytes = HostFrame::received(1, &long).bytes(Some(7));
        assert_eq!(bytes[4..12], [0x78, 0x56, 0x34, 0x92, 8, 1, 0, 0]);
        assert_eq!((bytes.len(), bytes[20]), (STAMPED, 7));
        let remote = [0, 0, 0, 0, 0xff, 7, 0, 0x40, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
        let asked = HostFrame::read(&remote).unwrap().frame().unwrap();
        assert!(asked.is_remote() && asked.raw_id() == 0x7ff);
    }

    #[test]
    fn what_no_classic_frame_is_has_none() {
        let frame = HostFrame::received(0, &CanFrame::data(standard(1).unwrap(), &[]).unwrap());
        assert!(frame.frame().is_some());
        let wrong = [
            HostFrame { id: 0x800, ..frame },
            HostFrame { id: ERROR | 4, ..frame },
            HostFrame { flags: 2, ..frame },
            HostFrame { code: 16, ..frame },
        ];
        assert!(wrong.iter().all(|frame| frame.frame().is_none()));
        assert_eq!(HostFrame::read(&[0; 19]), None);
    }
}
