//! The bytes of the protocol: requests, and frames.

use crate::Setup;
use diapason_can::bus::Health;
use diapason_can::fd::LENGTHS;
use diapason_can::frame::{extended, standard};
use diapason_can::timing::BitTiming;
use diapason_can::{CanFrame, FdFrame, Id};

/// Bytes of a frame to the device.
pub const SENT: usize = 20;
/// Bytes of a frame to a channel with CAN FD, whatever the frame is.
pub const LONG_SENT: usize = 76;
/// Bytes of a frame of CAN FD from the device, with the time at its end.
pub(super) const LONG_STAMPED: usize = 80;
/// The place of the data in a frame, and that of the time behind it: in a classic frame, and in one
/// of CAN FD.
const DATA: usize = 12;
const TIME: usize = 20;
const LONG_TIME: usize = 76;
/// The number of a frame that came from the bus.
const RECEIVED: u32 = u32::MAX;
const EXTENDED: u32 = 1 << 31;
const REMOTE: u32 = 1 << 30;
const ERROR: u32 = 1 << 29;
/// Frames were lost before this one.
const OVERFLOW: u8 = 1;
/// The frame is of CAN FD.
const FD: u8 = 1 << 1;
/// Its data goes at the rate of the data.
const FAST: u8 = 1 << 2;
/// Its sender is error-passive.
const PASSIVE: u8 = 1 << 3;
/// The host's numbers have their low byte first.
pub(super) const LITTLE_ENDIAN: [u8; 4] = [0xef, 0xbe, 0, 0];
/// Features of a channel, and the modes in which it is started.
pub(super) mod feature {
    pub const LISTEN_ONLY: u32 = 1;
    pub const TIMESTAMP: u32 = 1 << 4;
    pub const FD: u32 = 1 << 8;
    /// The device tells the limits of the bits of data, too. No mode.
    pub const ALL_TIMING_LIMITS: u32 = 1 << 10;
    pub const GET_STATE: u32 = 1 << 13;
}

mod number {
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

/// A question or an order.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Ask {
    Format,
    Config,
    /// The limits of a channel.
    Limits(u8),
    /// The limits of a channel with those of the bits of data.
    DataLimits(u8),
    Timing(u8),
    DataTiming(u8),
    Start(u8),
    Stop(u8),
    State(u8),
    Time,
}

impl Ask {
    /// Returns the control transfer for it, which has `length` bytes of data to the device.
    pub(super) fn setup(self, length: usize) -> Setup {
        let (request, channel, answer) = match self {
            // These are no channels, but what Linux sends.
            Ask::Format => (number::HOST_FORMAT, 1, 0),
            Ask::Config => (number::DEVICE_CONFIG, 1, 12),
            Ask::Limits(channel) => (number::TIMING_LIMITS, channel, 40),
            Ask::DataLimits(channel) => (number::ALL_TIMING_LIMITS, channel, 72),
            Ask::Timing(channel) => (number::BIT_TIMING, channel, 0),
            Ask::DataTiming(channel) => (number::DATA_BIT_TIMING, channel, 0),
            Ask::Start(channel) | Ask::Stop(channel) => (number::MODE, channel, 0),
            Ask::State(channel) => (number::GET_STATE, channel, 12),
            Ask::Time => (number::TIMESTAMP, 0, 4),
        };
        let kind = if answer > 0 { 0xc1 } else { 0x41 };
        let length = if answer > 0 { answer } else { length as u16 };
        Setup { kind, request, value: channel.into(), index: 0, length }
    }
}

/// Returns the number at a place of an answer; 0 beyond its end.
pub(super) fn word(bytes: &[u8], at: usize) -> u32 {
    let word = bytes.get(4 * at..).and_then(|rest| rest.first_chunk());
    word.map_or(0, |word| u32::from_le_bytes(*word))
}

/// Returns numbers as the bytes of a request.
pub(super) fn words<const N: usize>(words: [u32; N]) -> [[u8; 4]; N] {
    words.map(u32::to_le_bytes)
}

/// Returns a bit timing as the bytes of its request.
pub(super) fn timing(timing: &BitTiming) -> [[u8; 4]; 5] {
    words([timing.propagation, timing.phase1, timing.phase2, timing.jump, timing.prescaler])
}

/// The content of a frame from the device.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Content {
    /// A frame of the bus; `None` if classic CAN has none like that.
    Frame(Option<CanFrame>),
    /// A frame of CAN FD; `None` if CAN FD has none like that.
    FdFrame(Option<FdFrame>),
    /// The frame with this number is through.
    Echo(u32),
    Error {
        /// An error on the bus.
        bus: bool,
        /// The health of the controller, if it is news.
        health: Option<Health>,
        /// Transmit and receive errors.
        counters: (u8, u8),
    },
}

/// A frame from the device.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Received {
    pub channel: u8,
    /// Others were lost before it.
    pub overflow: bool,
    /// Microseconds of the device's clock.
    pub micros: u32,
    pub content: Content,
}

impl Received {
    /// Reads a transfer with a time; `None` if it is none.
    pub(super) fn read(bytes: &[u8]) -> Option<Received> {
        let [code, channel, flags, _] = *bytes.get(8..)?.first_chunk()?;
        let end = if flags & FD != 0 { LONG_TIME } else { TIME };
        let micros = u32::from_le_bytes(*bytes.get(end..)?.first_chunk()?);
        let data: [u8; 8] = *bytes.get(DATA..)?.first_chunk()?;
        let id = word(bytes, 1);
        let content = match word(bytes, 0) {
            RECEIVED if id & ERROR != 0 => error(id, data),
            RECEIVED if flags & FD != 0 => {
                Content::FdFrame(fd_frame(id, (code, flags), bytes.get(DATA..LONG_TIME)?))
            }
            RECEIVED if flags & !OVERFLOW != 0 => Content::Frame(None),
            RECEIVED => Content::Frame(frame(id, code, data)),
            echo => Content::Echo(echo),
        };
        Some(Received { channel, overflow: flags & OVERFLOW != 0, micros, content })
    }
}

fn frame(id: u32, code: u8, data: [u8; 8]) -> Option<CanFrame> {
    let raw = id & !(EXTENDED | REMOTE);
    let known = if id & EXTENDED != 0 { extended(raw) } else { standard(raw) }.ok()?;
    if id & REMOTE != 0 {
        return CanFrame::remote(known, code.into()).ok();
    }
    let data = data.get(..usize::from(code.min(8)))?;
    CanFrame::data(known, data).ok()?.with_code(code).ok()
}

fn fd_frame(id: u32, (code, flags): (u8, u8), data: &[u8]) -> Option<FdFrame> {
    let raw = id & !EXTENDED;
    let known = if id & EXTENDED != 0 { extended(raw) } else { standard(raw) }.ok()?;
    let (length, _) = *LENGTHS.get(usize::from(code))?;
    let frame = FdFrame::new(known, data.get(..length as usize)?).ok()?;
    let is_one = flags & !(OVERFLOW | FD | FAST | PASSIVE) == 0;
    let frame = frame.with_fast(flags & FAST != 0).with_passive(flags & PASSIVE != 0);
    is_one.then_some(frame)
}

/// Returns what an error frame says: its kinds are where others have their identifier.
fn error(kinds: u32, data: [u8; 8]) -> Content {
    const CONTROLLER: u32 = 1 << 2;
    const BUS: u32 = 1 << 3 | 1 << 5 | 1 << 7;
    const BUS_OFF: u32 = 1 << 6;
    const RESTARTED: u32 = 1 << 8;
    const WARNING: u8 = 0b1100;
    const PASSIVE: u8 = 0b11_0000;
    let [_, state, .., transmit, receive] = data;
    let health = if kinds & BUS_OFF != 0 {
        Some(Health::BusOff)
    } else if kinds & RESTARTED != 0 {
        Some(Health::ErrorActive)
    } else if kinds & CONTROLLER == 0 {
        None
    } else if state & PASSIVE != 0 {
        Some(Health::ErrorPassive)
    } else if state & WARNING != 0 {
        Some(Health::Warning)
    } else {
        Some(Health::ErrorActive)
    };
    Content::Error { bus: kinds & BUS != 0, health, counters: (transmit, receive) }
}

/// Returns the health in an answer to `GET_STATE`: a stopped or sleeping controller is on no bus.
pub(super) fn health(state: u32) -> Health {
    match state {
        0 => Health::ErrorActive,
        1 => Health::Warning,
        2 => Health::ErrorPassive,
        _ => Health::BusOff,
    }
}

/// A frame to the device, as it travels.
pub(super) struct Shape<'f> {
    /// The identifier with its flags.
    id: u32,
    code: u8,
    flags: u8,
    data: &'f [u8],
}

impl<'f> From<&'f CanFrame> for Shape<'f> {
    fn from(frame: &'f CanFrame) -> Shape<'f> {
        let long = if frame.is_extended() { EXTENDED } else { 0 };
        let remote = if frame.is_remote() { REMOTE } else { 0 };
        let id = frame.raw_id() | long | remote;
        Shape { id, code: frame.code(), flags: 0, data: frame.bytes() }
    }
}

impl<'f> From<&'f FdFrame> for Shape<'f> {
    fn from(frame: &'f FdFrame) -> Shape<'f> {
        let id = match frame.id() {
            Id::Standard(id) => id.as_raw().into(),
            Id::Extended(id) => id.as_raw() | EXTENDED,
        };
        let flag = |set: bool, flag: u8| if set { flag } else { 0 };
        let flags = FD | flag(frame.is_fast(), FAST) | flag(frame.is_passive(), PASSIVE);
        Shape { id, code: frame.code(), flags, data: frame.bytes() }
    }
}

impl Shape<'_> {
    pub(super) fn is_fd(&self) -> bool {
        self.flags & FD != 0
    }

    /// Returns the bytes of the frame, zeros behind its data.
    pub(super) fn sent(&self, echo: u32, channel: u8) -> [u8; LONG_SENT] {
        let mut bytes = [0; LONG_SENT];
        bytes[..4].copy_from_slice(&echo.to_le_bytes());
        bytes[4..8].copy_from_slice(&self.id.to_le_bytes());
        (bytes[8], bytes[9], bytes[10]) = (self.code, channel, self.flags);
        bytes[DATA..DATA + self.data.len()].copy_from_slice(self.data);
        bytes
    }
}
