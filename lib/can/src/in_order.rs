//! Response times on a bus on which some nodes send in the order of requests.
//!
//! An interface on USB is such a node: a frame waits for those before it, however urgent it is. The
//! idea is that of Davis, Kollmann, Pollex and Slomka (2011). The head of such a queue contends
//! with an identifier that is at worst the least urgent of its node, so all messages of the node
//! are analysed at that level together. A message of such a node contends only from when it is at
//! the head; for others that is more jitter, by as much as it may wait. One depends on the other,
//! so the bounds are computed again until none grows.

use crate::response::{AnalysedMessage, Destroyed, Errors, Level, NoBound, Stream, blocking, sane};
use crate::timing::BitRate;
use alloc::vec::Vec;
use diapason_abi::Nanos;

/// Busy periods and responses longer than an hour are taken for endless.
const HORIZON: Nanos = Nanos::from_secs(3_600);
/// Bounds that still grow after so many rounds, or beyond so many periods, are taken for endless.
const ROUNDS: usize = 200;
const PERIODS: u64 = 100;

/// How a message gets from its node to the bus.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sends {
    /// Its node sends the most urgent message first.
    Urgent,
    /// The node of this number sends in the order of requests.
    InOrder(usize),
    /// Its node has a few buffers, and other messages wait in memory
    /// ([`crate::toucan::BufferedOutbox`]). At most one less urgent frame begins while it waits.
    Buffered,
}

/// Errors on a bus with nodes of all kinds.
#[derive(Clone, Copy, Debug)]
pub struct BusErrors {
    pub errors: Errors,
    /// Longest time from when a frame of a [`Sends::Buffered`] message is destroyed until the
    /// message contends again. Its buffer may have been given to another meanwhile, and a less
    /// urgent frame may go first.
    pub again: Nanos,
}

impl BusErrors {
    pub const NONE: BusErrors = BusErrors { errors: Errors::NONE, again: Nanos::ZERO };
}

/// Returns all response times, in the order of `messages`, from coming to the end on the bus.
///
/// `sends` says how each message gets to the bus. A message that waits for a buffer contends later
/// than it came, as one in a queue does, so that is jitter for others. `other` is the longest frame
/// in bits of traffic below all messages, or 0.
///
/// # Errors
/// The first message without a bound.
pub fn responses_in_order(
    rate: BitRate,
    messages: &[AnalysedMessage],
    sends: &[Sends],
    other: u32,
    errors: BusErrors,
) -> Result<Vec<Nanos>, NoBound> {
    sane(messages)?;
    let bus = Shared { rate, messages, sends, other, errors };
    let mut waits = alloc::vec![Nanos::ZERO; messages.len()];
    let longest = messages.iter().map(|message| message.period).max().unwrap_or_default();
    let endless = Nanos(longest.0.saturating_mul(PERIODS));
    for _ in 0..ROUNDS {
        let mut found = Vec::new();
        for index in 0..messages.len() {
            let response = match bus.queue(index) {
                None => bus.by_priority(index, &waits),
                Some(queue) => bus.of_queue(index, queue, &waits),
            };
            let load_ppm = bus.level(index, &waits).load_ppm();
            let response = response.filter(|response| *response <= HORIZON);
            found.push(response.ok_or(NoBound::Overload { index, load_ppm })?);
        }
        let next: Vec<Nanos> = (0..messages.len())
            .map(|index| match bus.sends(index) {
                Sends::Urgent => Nanos::ZERO,
                Sends::InOrder(_) | Sends::Buffered => {
                    let own = Stream::of(rate, &messages[index]);
                    found[index] - own.frame - own.jitter
                }
            })
            .collect();
        if next == waits {
            return Ok(found);
        }
        if next.iter().any(|wait| *wait > endless) {
            break;
        }
        waits = next;
    }
    let index = sends.iter().position(|it| *it != Sends::Urgent).unwrap_or(0);
    Err(NoBound::Growing { index })
}

struct Shared<'a> {
    rate: BitRate,
    messages: &'a [AnalysedMessage],
    sends: &'a [Sends],
    other: u32,
    errors: BusErrors,
}

impl Shared<'_> {
    fn sends(&self, index: usize) -> Sends {
        self.sends.get(index).copied().unwrap_or(Sends::Urgent)
    }

    fn queue(&self, index: usize) -> Option<usize> {
        match self.sends(index) {
            Sends::InOrder(queue) => Some(queue),
            Sends::Urgent | Sends::Buffered => None,
        }
    }

    /// Returns the least urgent identifier with which a message may contend.
    fn bottom(&self, index: usize) -> embedded_can::Id {
        let own = self.queue(index);
        let mates = (0..self.messages.len())
            .filter(|at| *at == index || (own.is_some() && self.queue(*at) == own));
        let ids = mates.map(|at| self.messages[at].id);
        ids.max().unwrap_or(self.messages[index].id)
    }

    fn is_mate(&self, index: usize, other: usize) -> bool {
        other == index || (self.queue(index).is_some() && self.queue(index) == self.queue(other))
    }

    /// Returns a message among those that may go before it, its mates not included.
    fn level(&self, index: usize, waits: &[Nanos]) -> Level {
        let bottom = self.bottom(index);
        let strangers = || {
            let all = self.messages.iter().enumerate();
            all.filter(|(at, _)| !self.is_mate(index, *at))
        };
        let above = strangers().filter(|(_, message)| message.id < bottom);
        let above = above.map(|(at, message)| {
            let stream = Stream::of(self.rate, message);
            Stream { jitter: stream.jitter + waits[at], ..stream }
        });
        let below = strangers().filter(|(_, message)| message.id > bottom);
        let lower = below.map(|(_, message)| message.bits).chain([self.other]).max();
        let frame = blocking(self.rate, lower.unwrap_or(0));
        let (frames, again) = match self.sends(index) {
            Sends::Buffered => (2, self.errors.again),
            _ => (1, Nanos::ZERO),
        };
        let all = self.messages.iter().map(|message| message.bits);
        let longest = all.chain([self.other]).max().unwrap_or(0);
        Level {
            rate: self.rate,
            above: above.collect(),
            own: Stream::of(self.rate, &self.messages[index]),
            blocking: Nanos(frames * frame.0),
            errors: Destroyed::new(self.rate, self.errors.errors, longest, again),
        }
    }

    fn by_priority(&self, index: usize, waits: &[Nanos]) -> Option<Nanos> {
        self.level(index, waits).response()
    }

    /// Returns the response of a message that waits for all that was requested of its node before
    /// it.
    fn of_queue(&self, index: usize, queue: usize, waits: &[Nanos]) -> Option<Nanos> {
        let level = self.level(index, waits);
        let mates: Vec<(usize, Stream)> = (0..self.messages.len())
            .filter(|at| self.queue(*at) == Some(queue))
            .map(|at| (at, Stream::of(self.rate, &self.messages[at])))
            .collect();
        let busy = busy_period(&level, &mates)?;
        let mut comings = alloc::vec![Nanos::ZERO];
        for (_, mate) in &mates {
            let mut at = mate.period.0 - mate.jitter.0 % mate.period.0;
            while at <= busy.0 {
                comings.push(Nanos(at));
                at += mate.period.0;
            }
        }
        comings.sort_unstable();
        comings.dedup();
        let mut worst = Nanos::ZERO;
        for came in comings {
            let ahead: u64 = mates
                .iter()
                .map(|(at, mate)| {
                    let before = mate.arrivals(came) - u64::from(*at == index);
                    mate.cost.0.saturating_mul(before)
                })
                .sum();
            let start = start(&level, level.blocking + Nanos(ahead))?.max(came);
            worst = worst.max(start - came + level.own.frame + level.own.jitter);
        }
        Some(worst)
    }
}

/// Returns a time after which nothing that came in it is left, of the mates or above them.
fn busy_period(level: &Level, mates: &[(usize, Stream)]) -> Option<Nanos> {
    let mut busy = Nanos(1);
    loop {
        let streams = level.above.iter().chain(mates.iter().map(|(_, mate)| mate));
        let work: u64 = streams.map(|s| s.cost.0.saturating_mul(s.arrivals(busy))).sum();
        let next = level.blocking + Nanos(work) + level.errors.lost(busy);
        if next <= busy {
            return Some(busy);
        }
        if next > HORIZON {
            return None;
        }
        busy = next;
    }
}

/// Returns when a frame begins that waits for `before` and for all above it.
fn start(level: &Level, before: Nanos) -> Option<Nanos> {
    let bit = level.rate.time(1);
    let mut start = before;
    loop {
        let above = level.above.iter();
        let work: u64 = above.map(|s| s.cost.0.saturating_mul(s.arrivals(start + bit))).sum();
        let next = before + Nanos(work) + level.errors.lost(start + level.own.cost);
        if next <= start {
            return Some(start);
        }
        if next > HORIZON {
            return None;
        }
        start = next;
    }
}
