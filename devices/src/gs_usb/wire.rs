//! The bytes of the protocol: requests, and the frames that bulk transfers carry.
//!
//! A transfer carries one frame: its number or [`RECEIVED`], the identifier with Linux's flags, the
//! length code, the channel, flags, eight bytes of data or 64, and to the host the time in µs.

use crate::can::{FrameContent, Passing};
use diapason_can::fd::LENGTHS;
use diapason_can::frame::{extended, standard};
use diapason_can::{AnyFrame, CanFrame, FdFrame};

/// The numbers of requests.
pub mod request {
    #![allow(missing_docs, reason = "the names are the documentation")]
    pub const HOST_FORMAT: u8 = 0;
    pub const BIT_TIMING: u8 = 1;
    pub const MODE: u8 = 2;
    pub const TIMING_LIMITS: u8 = 4;
    pub const DEVICE_CONFIG: u8 = 5;
    pub const TIMESTAMP: u8 = 6;
    pub const DATA_BIT_TIMING: u8 = 10;
    pub const ALL_TIMING_LIMITS: u8 = 11;
    pub const GET_STATE: u8 = 14;
}

/// Bits of what a channel can do, and of the mode in which it is started.
pub mod feature {
    /// The channel is not seen on its bus.
    pub const LISTEN_ONLY: u32 = 1;
    /// Frames to the host have times.
    pub const TIMESTAMP: u32 = 1 << 4;
    /// The channel has frames of CAN FD.
    pub const FD: u32 = 1 << 8;
    /// The host may ask for the limits of the data's bits, too. No mode.
    pub const ALL_TIMING_LIMITS: u32 = 1 << 10;
    /// The host may ask how the controller is.
    pub const GET_STATE: u32 = 1 << 13;
    /// All that the model does with classic frames.
    pub const ALL: u32 = LISTEN_ONLY | TIMESTAMP | GET_STATE;
    /// All that the model does.
    pub const ALL_FD: u32 = ALL | FD | ALL_TIMING_LIMITS;
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

/// The frame is of CAN FD.
pub const FD: u8 = 2;
/// Its data goes at the rate of the data.
pub const FAST: u8 = 4;
/// Its sender is error-passive.
pub const PASSIVE: u8 = 8;

/// Bytes of a frame from the host.
pub const SHORT: usize = 20;
/// Bytes of a frame with a time.
pub const STAMPED: usize = 24;
/// Bytes of a frame from the host to a channel with CAN FD, whatever the frame is.
pub const LONG: usize = 76;
/// Bytes of a frame of CAN FD with a time.
pub const LONG_STAMPED: usize = 80;
/// Bytes of data of a classic frame, and of one of CAN FD.
const DATA: usize = 8;
const LONG_DATA: usize = 64;

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
    pub data: [u8; LONG_DATA],
}

impl HostFrame {
    /// Returns one from the bus of a channel.
    #[must_use]
    pub fn received(channel: u8, frame: &AnyFrame) -> HostFrame {
        let flag = |set: bool, flag: u8| if set { flag } else { 0 };
        let long = if frame.is_extended() { EXTENDED } else { 0 };
        let remote = if frame.is_remote() { REMOTE } else { 0 };
        let data = std::array::from_fn(|at| frame.bytes().get(at).copied().unwrap_or(0));
        let flags = match frame {
            AnyFrame::Classic(_) => 0,
            AnyFrame::Fd(fd) => FD | flag(fd.is_fast(), FAST) | flag(fd.is_passive(), PASSIVE),
        };
        let id = frame.raw_id() | long | remote;
        HostFrame { echo: RECEIVED, id, code: frame.code(), channel, flags, data }
    }

    /// Returns one about an error of this kind on the bus of a channel.
    #[must_use]
    pub fn error(channel: u8, kind: u32, details: [u8; DATA]) -> HostFrame {
        let mut data = [0; LONG_DATA];
        data[..DATA].copy_from_slice(&details);
        HostFrame { echo: RECEIVED, id: ERROR | kind, code: 8, channel, flags: 0, data }
    }

    /// Returns how many bytes of data travel.
    fn room(flags: u8) -> usize {
        if flags & FD != 0 { LONG_DATA } else { DATA }
    }

    /// Reads the first bytes of a transfer.
    #[must_use]
    pub fn read(bytes: &[u8]) -> Option<HostFrame> {
        let word = |at: usize| Some(u32::from_le_bytes(*bytes.get(at..)?.first_chunk()?));
        let [code, channel, flags, _] = *bytes.get(8..)?.first_chunk()?;
        let mut data = [0; LONG_DATA];
        let room = HostFrame::room(flags);
        data[..room].copy_from_slice(bytes.get(12..12 + room)?);
        Some(HostFrame { echo: word(0)?, id: word(4)?, code, channel, flags, data })
    }

    /// Returns the bytes of its transfer, with a time in µs or without.
    #[must_use]
    pub fn bytes(&self, micros: Option<u32>) -> Vec<u8> {
        let mut bytes = self.echo.to_le_bytes().to_vec();
        bytes.extend(self.id.to_le_bytes());
        bytes.extend([self.code, self.channel, self.flags, 0]);
        bytes.extend(&self.data[..HostFrame::room(self.flags)]);
        bytes.extend(micros.into_iter().flat_map(u32::to_le_bytes));
        bytes
    }

    /// Returns the frame on the bus, if CAN has such a one.
    #[must_use]
    pub fn frame(&self) -> Option<AnyFrame> {
        let raw = self.id & !(EXTENDED | REMOTE);
        let id = if self.id & EXTENDED != 0 { extended(raw) } else { standard(raw) }.ok()?;
        match (self.flags & !OVERFLOW, self.id & REMOTE != 0) {
            (0, true) => Some(CanFrame::remote(id, self.code.into()).ok()?.into()),
            (0, false) => {
                let data = self.data.get(..usize::from(self.code.min(8)))?;
                Some(CanFrame::data(id, data).ok()?.with_code(self.code).ok()?.into())
            }
            (flags, false) if flags & FD != 0 && flags & !(FD | FAST | PASSIVE) == 0 => {
                let (length, _) = LENGTHS.get(usize::from(self.code))?;
                let frame = FdFrame::new(id, self.data.get(..*length as usize)?).ok()?;
                let (fast, passive) = (flags & FAST != 0, flags & PASSIVE != 0);
                Some(frame.with_fast(fast).with_passive(passive).into())
            }
            _ => None,
        }
    }
}

/// Returns what a transfer of an endpoint says about a frame: for observers of the traffic between
/// host and device.
#[must_use]
pub fn passing(endpoint: u8, bytes: &[u8]) -> Option<Passing> {
    let fits = match endpoint {
        super::IN => [SHORT, STAMPED, LONG, LONG_STAMPED].contains(&bytes.len()),
        super::OUT => [SHORT, LONG].contains(&bytes.len()),
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
        assert_eq!(HostFrame::read(&sent).unwrap().frame(), Some(frame.into()));
        let load = FrameContent::Departure(frame.into());
        let passed = Passing { channel: 0, load, transaction: 0 };
        assert_eq!(passing(super::super::OUT, &sent), Some(passed));
        let got = HostFrame::received(0, &frame.into()).bytes(None);
        assert_eq!((&got[..4], &got[4..]), (&[0xff; 4][..], &sent[4..]));
        let long = CanFrame::data(extended(0x1234_5678).unwrap(), b"12345678").unwrap();
        let bytes = HostFrame::received(1, &long.into()).bytes(Some(7));
        assert_eq!(bytes[4..12], [0x78, 0x56, 0x34, 0x92, 8, 1, 0, 0]);
        assert_eq!((bytes.len(), bytes[20]), (STAMPED, 7));
        let remote = [0, 0, 0, 0, 0xff, 7, 0, 0x40, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
        let asked = HostFrame::read(&remote).unwrap().frame().unwrap();
        assert!(asked.is_remote() && asked.raw_id() == 0x7ff);
    }

    #[test]
    fn frames_of_can_fd_have_64_bytes_of_data() {
        let data = [0x11, 0x22, 0x33, 0x44, 0x55, 0x66, 0x77, 0x88, 0x99, 0xaa, 0xbb, 0xcc];
        let frame = FdFrame::new(standard(0x123).unwrap(), &data).unwrap().with_fast(true);
        let mut sent = vec![0, 0, 0, 0, 0x23, 1, 0, 0, 9, 0, 6, 0];
        sent.extend(data);
        sent.resize(LONG, 0);
        let read = HostFrame::read(&sent).unwrap();
        assert_eq!((read.frame(), read.bytes(None)), (Some(frame.into()), sent.clone()));
        assert!(passing(super::super::OUT, &sent).is_some());
        let got = HostFrame::received(0, &frame.with_passive(true).into());
        assert_eq!((got.flags, got.bytes(Some(1)).len()), (0xe, LONG_STAMPED));
        let wrong = [
            HostFrame { id: REMOTE | 1, ..read },
            HostFrame { flags: 4, ..read },
            HostFrame { flags: 0x12, ..read },
            HostFrame { code: 16, ..read },
        ];
        assert!(wrong.iter().all(|frame| frame.frame().is_none()));
        assert_eq!(HostFrame::read(&sent[..75]), None);
    }

    #[test]
    fn what_no_frame_is_has_none() {
        let frame = CanFrame::data(standard(1).unwrap(), &[]).unwrap();
        let frame = HostFrame::received(0, &frame.into());
        assert!(frame.frame().is_some());
        let wrong = [
            HostFrame { id: 0x800, ..frame },
            HostFrame { id: ERROR | 4, ..frame },
            HostFrame { flags: 16, ..frame },
            HostFrame { code: 16, ..frame },
        ];
        assert!(wrong.iter().all(|frame| frame.frame().is_none()));
        assert_eq!(HostFrame::read(&[0; 19]), None);
    }
}
