//! CAN channels: pipes, semaphores and mailboxes, by name and by size. Their contents are in
//! `diapason_can::exchange`.
//!
//! A channel is received from with its pipe alone. A client that also writes, and says how and
//! when the channel takes part in its bus, has the rest, too; the server is told which channels
//! have such a client.

use crate::home::Home;
use diapason_abi::Nanos;

/// The bottom half of CAN channels.
pub const HOME: Home =
    Home::new("usb-receive", "receive", "usbd.receive").moderated(Nanos::from_millis(1));

/// CAN channels that are served.
pub const CHANNELS: usize = 5;

/// Records in the pipe of a channel. The fastest bus of the examples has 3,194 frames a second:
/// this is room for 80 ms of it.
pub const RECORDS: usize = diapason_abi::pipe::SLOTS;

/// Frames in the pipe to a channel.
pub const DEPARTURES: usize = diapason_abi::pipe::OUT_SLOTS;

/// Reports that may wait. The server writes at most one for each bottom half.
pub const REPORTS: usize = 64;
/// Of these, so many are kept for what a client may be waiting for.
pub const REPORTS_KEPT: usize = 8;

/// The bit rate of a channel, if nobody says another.
pub const BIT_RATE: u32 = 500_000;
/// The sample point of a bit, in tenths of a per cent, if nobody says another.
pub const SAMPLE_POINT: u16 = 875;

/// Bits of a frame, the shortest and the longest: no data and no stuffing; eight bytes, an extended
/// identifier and as many stuff bits as there can be. The space between frames is included.
pub const FRAME_BITS: (u64, u64) = (47, 160);

/// The name, in descriptions, of the work that a reader of pipes does for one message.
pub const MESSAGE: &str = "can.message";

/// Names of a channel's objects.
#[derive(Clone, Copy, Debug)]
pub struct Names {
    /// The pipe from the channel.
    pub arrivals: &'static str,
    /// Given when something was put into a pipe to the client.
    pub ready: &'static str,
    /// The pipe to the channel.
    pub departures: &'static str,
    /// The pipe of reports.
    pub reports: &'static str,
    /// The mailbox of requests.
    pub requests: &'static str,
}

/// The names of one channel.
macro_rules! names {
    ($name:literal) => {
        Names {
            arrivals: $name,
            ready: concat!($name, ".ready"),
            departures: concat!($name, ".out"),
            reports: concat!($name, ".report"),
            requests: concat!($name, ".control"),
        }
    };
}

const NAMES: [Names; CHANNELS] =
    [names!("can0"), names!("can1"), names!("can2"), names!("can3"), names!("can4")];

/// The names of a channel, if there is one of this number.
#[must_use]
pub fn names(channel: usize) -> Option<&'static Names> {
    NAMES.get(channel)
}
