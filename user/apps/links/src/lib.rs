//! Layout of the messages of `link-ping` and `link-detour`, and their report.

#![no_std]
#![forbid(unsafe_code)]

pub mod mail;

use diapason_contract::carried::Contract;
use diapason_frame::{Continuity, HEAD, Head, Numbering, SequenceTracker};
use diapason_pipe::measured::{ChainReport, Measurement, Reported};
use diapason_pipe::meter::Meter;
use diapason_pipe::size::Bucket;
use diapason_rt::memory::DmaSegment;
use diapason_rt::{Nanos, log, settings};
use diapason_usblib::link::LABEL;

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

/// Most flows that a program tells apart.
const FLOWS: usize = 8;

/// The numbers of messages that come and go, of each flow by its label.
#[derive(Default)]
pub struct Flows([Option<Numbers>; FLOWS]);

#[derive(Default)]
struct Numbers {
    label: u8,
    come: SequenceTracker,
    go: Numbering,
}

impl Flows {
    /// Returns the numbers of a flow, or nothing if there are too many flows.
    fn of(&mut self, label: u8) -> Option<&mut Numbers> {
        let is_its = |it: &&mut Option<Numbers>| it.as_ref().is_none_or(|it| it.label == label);
        let place = self.0.iter_mut().find(is_its)?;
        Some(place.get_or_insert_with(|| Numbers { label, ..Numbers::default() }))
    }

    /// Judges a message that arrived. Nobody judges those of a flow too many.
    pub fn arrived(&mut self, head: Head) -> Continuity {
        self.of(head.label).map_or(Continuity::Next, |it| it.come.arrived(head))
    }

    /// Returns the head of the next message of a flow, with `bytes` bytes behind it. Each message
    /// of a flow too many is the first of its sender.
    pub fn head(&mut self, label: u8, bytes: u16) -> Head {
        let numbered = self.of(label).map(|it| it.go.head(bytes));
        let head = numbered.unwrap_or_else(|| Numbering::default().head(bytes));
        Head { label, ..head }
    }
}

/// Returns the label of the messages of the program's own flow; 0 if it has none.
#[must_use]
pub fn own_label() -> u8 {
    settings::read().first(LABEL).map_or(0, |label| label as u8)
}

/// Returns the meter of a contract. One without it is never too much.
#[must_use]
pub fn meter(contract: Option<Contract>) -> Meter {
    let any = Bucket { burst: u64::MAX, ..Bucket::per_second(1) };
    Meter::new(contract.map_or(any, |Contract { messages, per, burst, jitter }| Bucket {
        burst,
        messages: messages.into(),
        per,
        jitter,
    }))
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
        let RoundTrips { came: messages, source, .. } = *self;
        let lost = u32::try_from(self.lost).unwrap_or(u32::MAX);
        let report = ChainReport { messages, lost, source, whole, ..ChainReport::default() };
        log::measured(&Reported { at: now, said: Measurement::Chain(report) }.words());
    }
}
