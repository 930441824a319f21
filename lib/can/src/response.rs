//! How long a message may take on a bus with fixed identifiers, at worst.
//!
//! The analysis of Tindell as revised by Davis, Burns, Bril and Lukkien (2007): a lower frame may
//! just have begun, all higher ones come at once, and every instance of the busy period counts, not
//! only the first. Assumed: a node sends its most urgent request first; nodes are error-active;
//! errors come no faster than stated; identifiers differ.

use crate::timing::BitRate;
use crate::wire::{INTERFRAME_BITS, worst};
use alloc::vec::Vec;
use core::fmt;
use diapason_abi::Nanos;
use embedded_can::Id;

/// Bits lost to one error besides the frame: two flags in a row (12), delimiter (8), interframe
/// space (3), and a passive node's pause (8).
pub const ERROR_BITS: u64 = 31;
/// Busy periods longer than an hour are taken for endless.
const HORIZON: Nanos = Nanos::from_secs(3_600);

/// Frames of one identifier.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AnalysedMessage {
    /// The identifier; no two messages have the same.
    pub id: Id,
    /// Longest frame in bits, stuff bits included, without the interframe space.
    pub bits: u32,
    /// Smallest distance between two of them as they come.
    pub period: Nanos,
    /// How much later than that one may be in its queue.
    pub jitter: Nanos,
    /// The deadline of the message, from its arrival.
    pub deadline: Nanos,
}

impl AnalysedMessage {
    /// Returns a message of up to `bytes` bytes of anything, due within its period, without jitter.
    #[must_use]
    pub fn new(id: impl Into<Id>, bytes: u32, period: Nanos) -> AnalysedMessage {
        let id = id.into();
        let bits = worst(matches!(id, Id::Extended(_)), bytes);
        AnalysedMessage { id, bits, period, jitter: Nanos::ZERO, deadline: period }
    }
}

/// How often frames are destroyed: at most `burst + ⌊t / interval⌋` times in any time `t`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Errors {
    pub burst: u64,
    /// Time for each further frame.
    pub interval: Nanos,
}

impl Errors {
    pub const NONE: Errors = Errors { burst: 0, interval: Nanos::FOREVER };

    fn within(&self, time: Nanos) -> u64 {
        self.burst.saturating_add(time.0 / self.interval.0.max(1))
    }

    /// Returns how many of the frames that were destroyed at these times are more than that.
    #[must_use]
    pub fn beyond(&self, times: &[Nanos]) -> u64 {
        let (mut beyond, mut room, mut since) = (0, self.burst, Nanos::ZERO);
        for time in times {
            // Each interval there is room for one more, up to the burst.
            let more = (*time - since).0 / self.interval.0.max(1);
            since = if room.saturating_add(more) >= self.burst {
                *time
            } else {
                since + Nanos(more.saturating_mul(self.interval.0))
            };
            room = room.saturating_add(more).min(self.burst);
            match room.checked_sub(1) {
                Some(left) => room = left,
                None => beyond += 1,
            }
        }
        beyond
    }

    /// Returns how many of the frames that are due each `interval`, and through within `late`, may
    /// have an error in a row.
    #[must_use]
    pub fn in_a_row(&self, interval: Nanos, late: Nanos) -> u64 {
        let mut row = 0;
        loop {
            let window = Nanos(interval.0.saturating_mul(row).saturating_add(late.0));
            if self.within(window) <= row || window > HORIZON {
                return row;
            }
            row += 1;
        }
    }
}

/// Errors on a bus, and what one of them takes of it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Destroyed {
    errors: Errors,
    each: Nanos,
}

impl Destroyed {
    /// Returns the errors of a bus whose longest frame has so many bits, for a message that
    /// contends again only `again` after its frame was destroyed.
    ///
    /// An error costs its flags and a frame of any priority: a node that sees a bit of arbitration
    /// or a start of frame wrong may yield to a lower frame, or break in on a higher one.
    pub fn new(rate: BitRate, errors: Errors, longest: u32, again: Nanos) -> Destroyed {
        let bits = u64::from(longest + INTERFRAME_BITS) + ERROR_BITS;
        Destroyed { errors, each: rate.time(bits) + again }
    }

    /// Returns what errors take in any time of this length.
    pub fn lost(&self, time: Nanos) -> Nanos {
        Nanos(self.each.0.saturating_mul(self.errors.within(time)))
    }

    /// Returns the time between two errors in the long run, and what each takes, if there are any.
    pub fn stream(&self) -> Option<(Nanos, Nanos)> {
        (self.errors != Errors::NONE).then_some((self.errors.interval, self.each))
    }
}

/// Why there is no bound.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoBound {
    /// A message without a period, which could come without end.
    NoPeriod {
        /// The message's place in the list.
        index: usize,
    },
    /// Two messages with one identifier, which destroy each other.
    SameId {
        /// The place of the first.
        first: usize,
        /// The place of the second.
        second: usize,
    },
    /// This message and those above it fill the bus: their load, and the largest possible.
    Overload {
        /// The message's place in the list.
        index: usize,
        /// In parts per million of the bus, rounded up.
        load_ppm: u64,
    },
    /// Nodes that send in the order of requests keep each other waiting ever longer.
    Growing {
        /// The place of one of their messages in the list.
        index: usize,
    },
}

impl fmt::Display for NoBound {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            NoBound::NoPeriod { index } => {
                write!(f, "message {index} has no period: state its smallest distance")
            }
            NoBound::SameId { first, second } => {
                write!(f, "messages {first} and {second} have the same identifier: change one")
            }
            NoBound::Overload { index, load_ppm } => {
                write!(f, "message {index} and those above it take {load_ppm} of 1000000 parts ")?;
                write!(f, "of the bus: lengthen periods or raise the bit rate until it is less")
            }
            NoBound::Growing { index } => {
                write!(
                    f,
                    "message {index} has no bound: nodes that send in the order of requests "
                )?;
                write!(f, "keep each other waiting; lengthen periods or raise the bit rate")
            }
        }
    }
}

/// The properties of a message that the analysis needs.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Stream {
    /// Time on the bus, interframe space included.
    pub cost: Nanos,
    /// Time on the bus without it. Both are rounded up, so one does not follow from the other.
    pub frame: Nanos,
    pub period: Nanos,
    pub jitter: Nanos,
}

impl Stream {
    pub(crate) fn of(rate: BitRate, message: &AnalysedMessage) -> Stream {
        let cost = rate.time(u64::from(message.bits + INTERFRAME_BITS));
        let frame = rate.time(message.bits.into());
        Stream { cost, frame, period: message.period, jitter: message.jitter }
    }

    /// Returns the most instances queued in any closed time of this length.
    pub(crate) fn arrivals(&self, time: Nanos) -> u64 {
        (time + self.jitter).0 / self.period.0 + 1
    }
}

/// One level of a bus: what is above a message, itself, and what may be in its way.
pub(crate) struct Level {
    pub rate: BitRate,
    pub above: Vec<Stream>,
    pub own: Stream,
    pub blocking: Nanos,
    pub errors: Destroyed,
}

impl Level {
    /// Load of the message, those above it and the errors, in parts per million, rounded up.
    pub(crate) fn load_ppm(&self) -> u64 {
        let share = |cost: Nanos, period: Nanos| {
            (u128::from(cost.0) * 1_000_000).div_ceil(u128::from(period.0.max(1)))
        };
        let streams = self.above.iter().chain([&self.own]);
        let load: u128 = streams.map(|stream| share(stream.cost, stream.period)).sum();
        let errors = self.errors.stream().map_or(0, |(interval, each)| share(each, interval));
        u64::try_from(load + errors).unwrap_or(u64::MAX)
    }

    /// Returns the longest time from being asked for to the last bit of end of frame; none if
    /// endless.
    pub(crate) fn response(&self) -> Option<Nanos> {
        if self.load_ppm() >= 1_000_000 {
            return None;
        }
        let busy = self.busy_period()?;
        let instances = (busy + self.own.jitter).0.div_ceil(self.own.period.0);
        let mut worst = Nanos::ZERO;
        let mut start = self.blocking;
        for instance in 0..instances.max(1) {
            start = self.start(instance, start)?;
            let came = self.own.period.0.saturating_mul(instance);
            worst = worst.max(start + self.own.jitter + self.own.frame - Nanos(came));
        }
        Some(worst)
    }

    fn busy_period(&self) -> Option<Nanos> {
        let mut busy = self.blocking + self.own.cost;
        loop {
            let streams = self.above.iter().chain([&self.own]);
            let work = streams.map(|stream| {
                let instances = (busy + stream.jitter).0.div_ceil(stream.period.0);
                stream.cost.0.saturating_mul(instances)
            });
            let next = Nanos(self.blocking.0 + work.sum::<u64>()) + self.errors.lost(busy);
            if next <= busy {
                return Some(busy);
            }
            if next > HORIZON {
                return None;
            }
            busy = next;
        }
    }

    /// Returns when `instance` begins at the latest, from the beginning of the busy period.
    fn start(&self, instance: u64, from: Nanos) -> Option<Nanos> {
        let before = self.blocking + Nanos(self.own.cost.0.saturating_mul(instance));
        let bit = self.rate.time(1);
        let mut start = from.max(before);
        loop {
            // A message that comes within the first bit may still be taken for a contender.
            let work: u64 =
                self.above.iter().map(|s| s.cost.0.saturating_mul(s.arrivals(start + bit))).sum();
            let next = before + Nanos(work) + self.errors.lost(start + self.own.cost);
            if next <= start {
                return Some(start);
            }
            if next > HORIZON {
                return None;
            }
            start = next;
        }
    }
}

/// Returns what errors take in any time of this length of a bus whose longest frame has so many
/// bits.
#[must_use]
pub fn lost(rate: BitRate, errors: Errors, longest: u32, time: Nanos) -> Nanos {
    Destroyed::new(rate, errors, longest, Nanos::ZERO).lost(time)
}

/// Every message has a period and an identifier of its own.
pub(crate) fn sane(messages: &[AnalysedMessage]) -> Result<(), NoBound> {
    if let Some(index) = messages.iter().position(|message| message.period == Nanos::ZERO) {
        return Err(NoBound::NoPeriod { index });
    }
    for (second, message) in messages.iter().enumerate() {
        let twin = messages[..second].iter().position(|other| other.id == message.id);
        if let Some(first) = twin {
            return Err(NoBound::SameId { first, second });
        }
    }
    Ok(())
}

/// Returns how long a frame of so many bits that has just begun is in the way; 0: there is none.
pub(crate) fn blocking(rate: BitRate, bits: u32) -> Nanos {
    rate.time(if bits == 0 { 0 } else { u64::from(bits + INTERFRAME_BITS) })
}

/// Returns the longest time from the coming of `messages[index]` to its end on the bus.
///
/// `other` is the longest frame in bits of traffic below all messages, or 0.
///
/// # Errors
/// There is no bound.
pub fn response(
    rate: BitRate,
    messages: &[AnalysedMessage],
    index: usize,
    errors: Errors,
    other: u32,
) -> Result<Nanos, NoBound> {
    sane(messages)?;
    let own = messages[index];
    let above = messages.iter().filter(|message| message.id < own.id);
    let above = above.map(|message| Stream::of(rate, message)).collect();
    let below = messages.iter().filter(|message| message.id > own.id).map(|message| message.bits);
    let blocking = blocking(rate, below.chain([other]).max().unwrap_or(0));
    let own = Stream::of(rate, &own);
    let longest = messages.iter().map(|message| message.bits).chain([other]).max().unwrap_or(0);
    let errors = Destroyed::new(rate, errors, longest, Nanos::ZERO);
    let level = Level { rate, above, own, blocking, errors };
    let load_ppm = level.load_ppm();
    level.response().ok_or(NoBound::Overload { index, load_ppm })
}

/// Returns all response times, in the order of `messages`.
///
/// # Errors
/// The first message without a bound.
pub fn responses(
    rate: BitRate,
    messages: &[AnalysedMessage],
    errors: Errors,
    other: u32,
) -> Result<Vec<Nanos>, NoBound> {
    (0..messages.len()).map(|index| response(rate, messages, index, errors, other)).collect()
}
