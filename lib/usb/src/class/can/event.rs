//! Events of USB-CAN interfaces of all families, and the reasons for refusals.

use core::fmt;
use diapason_abi::Nanos;
use diapason_can::bus::Health;
use diapason_can::{BitRate, CanFrame, FdFrame};

/// The rates of a bus, and the place in a bit at which it is sampled.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct BusRates {
    pub rate: BitRate,
    /// The sample point of a bit, in tenths of a per cent.
    pub sample_point: u32,
    /// The rate of the data of CAN FD. `None` opens the channel for classic frames only.
    pub data: Option<BitRate>,
}

impl From<(BitRate, u32)> for BusRates {
    /// Returns the rates of a bus with classic frames only.
    fn from((rate, sample_point): (BitRate, u32)) -> BusRates {
        BusRates { rate, sample_point, data: None }
    }
}

/// How a channel takes part in its bus.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Mode {
    /// Sends, acknowledges, reports errors.
    Normal,
    /// Is not seen on the bus.
    ListenOnly,
}

/// Why a channel was closed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum CloseCause {
    /// The closing was asked for.
    Asked,
    /// The controller went bus-off: its frames did not get through.
    BusOff,
    NotOpened,
}

/// An event of the interface.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum InterfaceEvent {
    /// The device is known, its channels can be opened.
    Ready {
        channels: u8,
        /// The device's serial number, if its protocol says it.
        serial: Option<u32>,
    },
    /// A channel takes part in its bus.
    Opened { channel: u8 },
    /// A channel does not any more. Frames that were not acknowledged are lost.
    Closed { channel: u8, cause: CloseCause },
    Frame {
        channel: u8,
        /// When, by the device's clock.
        time: Nanos,
        frame: CanFrame,
    },
    /// A frame of CAN FD came, on a channel that was opened for them.
    FdFrame {
        channel: u8,
        /// When, by the device's clock.
        time: Nanos,
        frame: FdFrame,
    },
    /// Frames were lost before the next one of this channel.
    Overrun { channel: u8 },
    /// A frame is through, or was given up.
    Acknowledged {
        channel: u8,
        /// The slot that the call which sent it returned.
        slot: u8,
        /// When, by the device's clock; 0 if it does not say.
        time: Nanos,
        /// The fate of the frame.
        outcome: FrameOutcome,
    },
    /// The controller saw an error on its bus.
    BusError {
        channel: u8,
        /// When, by the device's clock.
        time: Nanos,
        /// The channel's error counters: transmit, receive.
        counters: (u8, u8),
    },
    /// How the controller is.
    ChipState {
        channel: u8,
        /// When, by the device's clock.
        time: Nanos,
        /// The channel's error counters: transmit, receive.
        counters: (u8, u8),
        /// The health that follows from the counters and the bus status.
        health: Health,
    },
    /// Something did not work.
    Failed {
        /// The channel; `None`: the device as a whole, which is of no use any more.
        channel: Option<u8>,
        reason: InterfaceFailure,
    },
}

/// The fate of a frame.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FrameOutcome {
    /// Somebody acknowledged it on the bus.
    Sent,
    /// Sent once, and nobody did.
    NotAcknowledged,
    /// Sent once, and another frame won.
    ArbitrationLost,
}

/// A question of the probe.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ProbeStep {
    Start,
    /// The entity of a channel.
    Map(u8),
    /// The entity for the rest.
    MapDebug,
    /// How many frames may be on their way.
    Software,
    Details,
    /// Serial number and channels.
    Card,
    /// Asks for the capabilities of the channels.
    Capability(u8),
    /// Says in which order the bytes of numbers come.
    Format,
    /// The clock, the segments and the features of a channel.
    Limits(u8),
    /// The segments of a bit of a channel's data.
    DataLimits(u8),
    Done,
}

/// Why something did not work.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum InterfaceFailure {
    /// No answer to this question.
    NoAnswer(ProbeStep),
    /// A channel's answer did not come.
    Late,
    /// A channel without an entity, or with somebody else's.
    Map(u8),
    /// The device takes no frames at all.
    NoSlots,
    /// No channels, or more than are served.
    Channels(u8),
    /// A channel without time stamps, or with a clock that makes no bit.
    Limits(u8),
    /// The device says that its firmware must not be used.
    BadFirmware,
    /// The device keeps other bus parameters than it was given, or refuses them.
    ParametersDiffer,
    /// The device does not start the channel.
    NotStarted,
    /// The device reports an error: its code, and the command it is about.
    Device {
        /// 1 CAN, 5 unknown command, 6 fatal, 8 transmit queue, 9 parameter.
        code: u8,
        command: u16,
    },
    /// The pipes do not work.
    Pipe,
}

/// Why the caller's wish is refused; nothing was changed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Refused {
    /// The device is not ready, or failed.
    NotReady,
    /// The interface has no such channel.
    NoSuchChannel,
    /// The channel is not closed, or not open.
    WrongPhase,
    /// The controllers cannot do these parameters.
    Parameters,
    /// All slots are in use, or the pipe is full: wait for an acknowledgement.
    Busy,
    /// Not in this mode of the device.
    Unsupported,
    /// The channel has no CAN FD, or was opened without it.
    NoFd,
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Refused::NotReady => "the device is not ready: wait for `Ready`",
            Refused::NoSuchChannel => "the device has no such channel",
            Refused::WrongPhase => "the channel is not closed (to open it) or not open (to use it)",
            Refused::Parameters => "the controller has no such bit timing: ask its personality",
            Refused::Busy => "all slots are in use: wait for an acknowledgement",
            Refused::Unsupported => "this device can do that in extended commands only",
            Refused::NoFd => "the channel has no CAN FD, or was opened without it",
        })
    }
}

/// Counts of received data that was not used, by reason.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct DiscardCounts {
    /// Commands of unknown number, or at the wrong time.
    pub skipped: u64,
    /// About a channel that is not there.
    pub strangers: u64,
    /// Frames that CAN does not have, or CAN FD on a channel that was opened without it.
    pub malformed: u64,
    /// Acknowledgements of frames that are not under way.
    pub stray_acknowledgements: u64,
    /// Frames for a channel that is not open.
    pub unwanted: u64,
    /// Times that the stream made no sense and the rest of a transfer was dropped.
    pub broken_streams: u64,
}
