//! Layout of the messages of `link-ping` and `link-detour`, and their report.

#![no_std]
#![forbid(unsafe_code)]

pub mod mail;

use diapason_frame::HEAD;
use diapason_pipe::measured::{ChainReport, Measurement, Reported};
use diapason_rt::memory::DmaSegment;
use diapason_rt::{Nanos, log};

/// Time between two reports.
pub const REPORT: Nanos = Nanos::from_secs(1);
/// Until the other computers are there.
pub const START: Nanos = Nanos::from_millis(500);
/// The other computer is to answer a message of this kind.
const PING: u32 = 1;
const PONG: u32 = 2;
/// Behind the head: what a message is, and when it was made.
const KIND: usize = HEAD;
const STAMP: usize = HEAD + 4;
/// Fewest bytes of a message.
pub const LEAST: usize = STAMP + 8;

/// Writes a message that is to be answered at this byte of `data`.
pub fn ask(data: &DmaSegment, at: usize, now: Nanos) {
    data.write32(at + KIND, PING);
    data.write32(at + STAMP, now.0 as u32);
    data.write32(at + STAMP + 4, (now.0 >> 32) as u32);
}

/// Makes the message at this byte of `data` an answer. Returns nothing if it was a message to be
/// answered, and when its question was made if it was an answer.
#[must_use]
pub fn answer(data: &DmaSegment, at: usize) -> Option<Nanos> {
    if data.read32(at + KIND) == PING {
        data.write32(at + KIND, PONG);
        return None;
    }
    let [low, high] = [STAMP, STAMP + 4].map(|word| u64::from(data.read32(at + word)));
    Some(Nanos(high << 32 | low))
}

/// The way of messages there and back.
#[derive(Default)]
pub struct RoundTrips {
    /// The number of the sender, if several flows end here.
    pub source: u8,
    pub came: u64,
    /// Messages that are missing.
    pub lost: u64,
    /// The longest time from a message to its answer, in ns.
    pub longest: u64,
    /// The longest since the last report.
    recent: u64,
}

impl RoundTrips {
    /// Counts an answer to a message that was made so long ago.
    pub fn took(&mut self, time: u64) {
        self.came += 1;
        self.longest = self.longest.max(time);
        self.recent = self.recent.max(time);
    }

    /// Tells how the way there and back did since the last time, as of the end of a flow.
    pub fn report(&mut self, now: Nanos) {
        let whole = Nanos(core::mem::take(&mut self.recent));
        let RoundTrips { came: messages, lost, source, .. } = *self;
        let report = ChainReport { messages, lost, source, whole, ..ChainReport::default() };
        log::measured(&Reported { at: now, said: Measurement::Chain(report) }.words());
    }
}
