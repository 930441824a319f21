//! What a description may tell the USB server by name: each setting, and what it can be.
//!
//! Words are told as their places in the list.

use crate::threads::WORDS;

/// The program that takes these settings.
pub const PROGRAM: &str = "usbd";

/// What a setting can be.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Values {
    /// Some of these words.
    Words(&'static [&'static str]),
    /// Numbers from the first to the second, at least and at most so many of them.
    Numbers((u64, u64), (usize, usize)),
    /// Powers of two up to the first, at most so many of them.
    Powers(u64, usize),
}

/// A setting and what it can be.
pub type Known = (&'static str, Values);

/// What it serves; without it, and without links and streams, CAN interfaces.
pub const SERVES: &str = "serves";
/// What it logs.
pub const SAYS: &str = "says";
/// How buses are counted, if not as they are.
pub const BUSES: &str = "buses";
/// The root port of each link to another computer; 0 is any.
pub const LINKS: &str = "links";
/// What each direction of a link is promised: microframes, and bytes in them.
pub const PROMISE: &str = "promise";
/// Cameras that nobody watches: each runs at so many times the period that it asks for.
pub const STREAMS: &str = "streams";
/// Which of these are critical.
pub const CRITICAL: &str = "critical";
/// CAN channels whose clients open and write them.
pub const CLIENTS: &str = "clients";

/// CAN channels that the server opens: those whose pipe it may use. A description does not say it;
/// it follows from its pipes.
pub const OPENS: &str = "opens";

/// Words of [`SAYS`]: each device and the schedule of its bus; what is left of all pools when one
/// is gone; when the bottom half of the first service was where.
pub const SAYINGS: [&str; 3] = ["devices", "pools", "times"];
/// Words of [`BUSES`]: as the article counts them.
pub const COUNTS: [&str; 1] = ["article"];
/// Most links, and most streams.
pub const MOST: usize = 4;

/// All of them.
pub const SETTINGS: [Known; 8] = [
    (SERVES, Values::Words(&WORDS)),
    (SAYS, Values::Words(&SAYINGS)),
    (BUSES, Values::Words(&COUNTS)),
    (LINKS, Values::Numbers((0, 255), (1, MOST))),
    (PROMISE, Values::Numbers((1, u32::MAX as u64), (2, 2))),
    (STREAMS, Values::Powers(1 << 15, MOST)),
    (CRITICAL, Values::Numbers((0, MOST as u64 - 1), (1, MOST))),
    (CLIENTS, Values::Numbers((0, 4), (1, 5))),
];
