//! The exchange between a CAN server and its clients: records in pipes, and requests in mailboxes.
//!
//! Frames come as [`ReceivedFrame`]s and go as [`Departure`]s. A [`ChannelReport`] says how a
//! channel is; its counts only grow, so each report is worth all before it, and one that is missed
//! is no loss. Neither side trusts the other: what cannot be a frame or a request is `None`.

mod fd;

pub use fd::{FAST, FLEXIBLE, FdDeparture, FdReceivedFrame, PASSIVE};

use crate::bus::Health;
use crate::frame::{CanFrame, extended, standard};
use diapason_abi::Nanos;
use diapason_state::plain;

/// In `flags`: the identifier has 29 bits.
pub const EXTENDED: u8 = 1 << 0;
/// In `flags`: a remote frame.
pub const REMOTE: u8 = 1 << 1;
/// In [`ReceivedFrame::flags`]: the interface lost frames of this channel before this one.
pub const LOST_BEFORE: u8 = 1 << 2;
/// In [`ReceivedFrame::flags`]: more than the contract of its pipe allows.
pub const OUTSIDE: u8 = 1 << 3;
/// In [`ReceivedFrame::flags`]: no frame, but news of the channel; `code` is its [`Phase`].
pub const NEWS: u8 = 1 << 4;

plain! {
    /// A CAN frame that came.
    #[derive(Debug, PartialEq, Eq)]
    pub struct ReceivedFrame {
        /// The time at which the frame was through on its bus, in ns by the clock of the interface.
        pub time: u64,
        /// The time at which the server took the frame from the controller, in ns since boot.
        pub taken: u64,
        /// Data, zeros behind it.
        pub data: [u8; 8],
        pub id: u32,
        pub code: u8,
        /// [`EXTENDED`], [`REMOTE`], [`LOST_BEFORE`], [`OUTSIDE`], [`NEWS`]. On channels with CAN
        /// FD also [`FLEXIBLE`], [`FAST`], [`PASSIVE`].
        pub flags: u8,
        /// How often the channel was opened before: the interface's clock may have restarted.
        pub opened: u16,
        /// The time that the frame took from its bus to the server, beyond the fastest, in ns. It
        /// is a lower bound for any drift of the two clocks within the stated one.
        pub moved: u32,
        /// The largest error of `moved`: it may be this much too short.
        pub inexact: u32,
    }
}

plain! {
    /// A CAN frame to be sent.
    #[derive(Debug, PartialEq, Eq)]
    pub struct Departure {
        /// Data, zeros behind it.
        pub data: [u8; 8],
        pub id: u32,
        pub code: u8,
        pub flags: u8,
        pub spare: u16,
        /// The time at which the client put the frame into the pipe, in ns since boot.
        pub written: u64,
    }
}

plain! {
    /// How a channel is, and what became of the frames that its client wrote.
    #[derive(Debug, PartialEq, Eq, Default)]
    pub struct ChannelReport {
        /// When the last frame was through on the bus, in ns by the clock of the interface.
        pub time: u64,
        /// When the server learned that, in ns since boot.
        pub taken: u64,
        /// Frames that somebody acknowledged on the bus.
        pub through: u64,
        /// Frames that will not be: the channel was closed, or they are none.
        pub given_up: u64,
        /// The longest that a frame was in the pipe until the server took it, since the report
        /// before.
        pub taking: u64,
        /// The longest from there, that is, its [`Departure::written`], until it was known to be
        /// through, since the last report.
        pub whole: u64,
        /// The longest from [`Departure::written`] until it was through on the bus, since the last
        /// report.
        pub moving: u64,
        /// The longest from there until the server knew, beyond the fastest, since the last report.
        pub back: u64,
        /// By how much the two may be wrong, because two clocks drift.
        pub inexact: u32,
        /// The most frames that were in the pipe and flying at once, since the last report.
        pub under_way: u32,
        /// Errors the controller saw on its bus.
        pub errors: u32,
        /// Times that the interface lost frames it had received.
        pub overruns: u32,
        /// The last request that was heard.
        pub token: u32,
        /// The fate of the request: a [`RequestReply`].
        pub answer: u8,
        pub phase: u8,
        /// The controller's transmit error counter.
        pub transmit_errors: u8,
        /// The channel's receive error counter.
        pub receive_errors: u8,
    }
}

/// Where a channel is.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Phase {
    /// There is no interface.
    #[default]
    Absent,
    /// The channel takes no part in its bus.
    Closed,
    /// The channel is being opened or closed.
    Changing,
    Open,
    /// The channel's controller went bus-off. It stays so until it is opened again.
    BusOff,
}

/// The fate of a request.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum RequestReply {
    /// The request is being done, or will be as soon as there is an interface.
    #[default]
    Heard,
    /// The interface has no such bit rate.
    NoSuchRate,
    Nonsense,
}

/// A request of a client for a channel.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ChannelCommand {
    /// That frames in the pipe are looked at.
    Wake,
    /// To take part in the bus.
    Open(ChannelParameters),
    /// To leave it; frames that wait are given up.
    Close,
    Status,
}

/// How a channel takes part in its bus.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ChannelParameters {
    /// Bits per second; 0 is the rate that the description says.
    pub bit_rate: u32,
    /// Where a bit is sampled, in tenths of a per cent. Without a bit rate it means nothing.
    pub sample_point: u16,
    /// Only listens: acknowledges nothing, sends nothing.
    pub silent: bool,
    /// Bits per second of the data of CAN FD; 0 opens the channel for classic frames only. The
    /// description says it, and no client does.
    pub data_rate: u32,
}

impl ChannelParameters {
    /// Takes part at the rate that the description says.
    pub const AS_DESCRIBED: ChannelParameters =
        ChannelParameters { bit_rate: 0, sample_point: 0, silent: false, data_rate: 0 };

    /// Returns the same with the rate of `described`, unless it has one of its own. The rate of the
    /// data is always that of `described`.
    #[must_use]
    pub fn or(self, described: ChannelParameters) -> ChannelParameters {
        let (silent, data_rate) = (self.silent, described.data_rate);
        match self.bit_rate {
            0 => ChannelParameters { silent, ..described },
            _ => ChannelParameters { data_rate, ..self },
        }
    }
}

/// A request, and the number by which a report answers it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ChannelRequest {
    pub wanted: ChannelCommand,
    pub token: u32,
}

impl Phase {
    const ALL: [Phase; 5] =
        [Phase::Absent, Phase::Closed, Phase::Changing, Phase::Open, Phase::BusOff];
}

impl ChannelReport {
    /// Returns the phase of the channel.
    #[must_use]
    pub fn phase(&self) -> Phase {
        Phase::ALL.get(usize::from(self.phase)).copied().unwrap_or_default()
    }

    /// Returns the fate of the request that this report answers.
    #[must_use]
    pub fn answer(&self) -> RequestReply {
        match self.answer {
            0 => RequestReply::Heard,
            1 => RequestReply::NoSuchRate,
            _ => RequestReply::Nonsense,
        }
    }

    /// Returns how far the controller trusts itself.
    #[must_use]
    pub fn health(&self) -> Health {
        match self.transmit_errors.max(self.receive_errors) {
            _ if self.phase() == Phase::BusOff => Health::BusOff,
            0..96 => Health::ErrorActive,
            96..128 => Health::Warning,
            128.. => Health::ErrorPassive,
        }
    }
}

impl ReceivedFrame {
    /// Returns a frame that was through at `time` and came at `taken`.
    #[must_use]
    pub fn new(frame: &CanFrame, time: Nanos, taken: Nanos) -> ReceivedFrame {
        let Departure { data, id, code, flags, .. } = Departure::new(frame);
        let (time, taken) = (time.0, taken.0);
        let (opened, moved, inexact) = (0, 0, 0);
        ReceivedFrame { time, taken, data, id, code, flags, opened, moved, inexact }
    }

    /// Adds how long the frame took from the bus to the server: at least, and how much more at
    /// most.
    #[must_use]
    pub fn moved(self, beyond: Nanos, inexact: Nanos) -> ReceivedFrame {
        let [moved, inexact] =
            [beyond, inexact].map(|time| u32::try_from(time.0).unwrap_or(u32::MAX));
        ReceivedFrame { moved, inexact, ..self }
    }

    /// Returns the frame; news are none.
    #[must_use]
    pub fn frame(&self) -> Option<CanFrame> {
        if self.flags & NEWS != 0 {
            return None;
        }
        frame(self.id, self.flags, self.code, self.data)
    }

    /// News of the channel: where it is.
    #[must_use]
    pub const fn news(phase: Phase) -> ReceivedFrame {
        let (code, flags) = (phase as u8, NEWS);
        let (time, taken, data, id) = (0, 0, [0; 8], 0);
        let (opened, moved, inexact) = (0, 0, 0);
        ReceivedFrame { time, taken, data, id, code, flags, opened, moved, inexact }
    }

    /// Returns where the channel is now, if these are news.
    #[must_use]
    pub fn phase(&self) -> Option<Phase> {
        if self.flags & NEWS == 0 { None } else { Phase::ALL.get(usize::from(self.code)).copied() }
    }
}

impl Departure {
    /// Returns a frame to be sent, put into a pipe at `written`.
    #[must_use]
    pub fn at(frame: &CanFrame, written: Nanos) -> Departure {
        Departure { written: written.0, ..Departure::new(frame) }
    }

    /// Returns a frame to be sent.
    #[must_use]
    pub fn new(frame: &CanFrame) -> Departure {
        let flag = |set: bool, flag: u8| if set { flag } else { 0 };
        let data = *frame.padded();
        let flags = flag(frame.is_extended(), EXTENDED) | flag(frame.is_remote(), REMOTE);
        Departure { data, id: frame.raw_id(), code: frame.code(), flags, spare: 0, written: 0 }
    }

    /// Returns the frame, if the words are one.
    #[must_use]
    pub fn frame(&self) -> Option<CanFrame> {
        frame(self.id, self.flags, self.code, self.data)
    }
}

fn frame(id: u32, flags: u8, code: u8, data: [u8; 8]) -> Option<CanFrame> {
    if flags & FLEXIBLE != 0 {
        return None;
    }
    let id = if flags & EXTENDED != 0 { extended(id) } else { standard(id) }.ok()?;
    if flags & REMOTE != 0 {
        return CanFrame::remote(id, code.into()).ok();
    }
    CanFrame::data(id, data.get(..usize::from(code.min(8)))?).ok()?.with_code(code).ok()
}

/// Bytes of a request.
pub const REQUEST_BYTES: usize = 12;

impl ChannelRequest {
    /// Encodes the request as a message.
    #[must_use]
    pub fn bytes(&self) -> [u8; REQUEST_BYTES] {
        let none = ChannelParameters { bit_rate: 0, sample_point: 0, silent: false, data_rate: 0 };
        let (kind, parameters) = match self.wanted {
            ChannelCommand::Wake => (0, none),
            ChannelCommand::Open(parameters) => (1, parameters),
            ChannelCommand::Close => (2, none),
            ChannelCommand::Status => (3, none),
        };
        let [r0, r1, r2, r3] = parameters.bit_rate.to_le_bytes();
        let [s0, s1] = parameters.sample_point.to_le_bytes();
        let [t0, t1, t2, t3] = self.token.to_le_bytes();
        [kind, parameters.silent.into(), s0, s1, r0, r1, r2, r3, t0, t1, t2, t3]
    }

    /// Out of a message.
    #[must_use]
    pub fn parse(bytes: &[u8]) -> Option<ChannelRequest> {
        let &[kind, silent, s0, s1, r0, r1, r2, r3, t0, t1, t2, t3] = bytes else { return None };
        let parameters = ChannelParameters {
            bit_rate: u32::from_le_bytes([r0, r1, r2, r3]),
            sample_point: u16::from_le_bytes([s0, s1]),
            silent: silent != 0,
            data_rate: 0,
        };
        let wanted = match kind {
            0 => ChannelCommand::Wake,
            1 => ChannelCommand::Open(parameters),
            2 => ChannelCommand::Close,
            3 => ChannelCommand::Status,
            _ => return None,
        };
        Some(ChannelRequest { wanted, token: u32::from_le_bytes([t0, t1, t2, t3]) })
    }
}

/// The client's books: what it wrote and what its reports say of it.
#[derive(Clone, Copy, Debug, Default)]
pub struct Ledger {
    latest: ChannelReport,
    /// As the last one that counts from nothing.
    first: ChannelReport,
    written: u64,
}

impl Ledger {
    /// Takes a report into account.
    pub fn note(&mut self, report: ChannelReport) {
        self.latest = report;
    }

    /// Returns the last report.
    #[must_use]
    pub const fn latest(&self) -> &ChannelReport {
        &self.latest
    }

    /// A frame was put into the pipe.
    pub fn wrote(&mut self) {
        self.written += 1;
    }

    /// Nothing is in the pipe or under way: count from here.
    pub fn restart(&mut self) {
        (self.first, self.written) = (self.latest, 0);
    }

    /// Frames written, through, and given up since then. A server that says more than was written
    /// is not believed.
    #[must_use]
    pub fn counts(&self) -> (u64, u64, u64) {
        let since = |latest: u64, first: u64| latest.wrapping_sub(first);
        let through = since(self.latest.through, self.first.through).min(self.written);
        let given_up = since(self.latest.given_up, self.first.given_up);
        (self.written, through, given_up.min(self.written - through))
    }

    /// Written frames whose fate is not known yet.
    #[must_use]
    pub fn pending(&self) -> u64 {
        let (written, through, given_up) = self.counts();
        written - through - given_up
    }
}
