//! When all real-time messages of MTS are in time, whatever their phases.
//!
//! **High-speed.** Let message x not be begun at its start-by time s. Regions are the same for all
//! time, so "has x's identifier or a smaller one" is one set Θ of frames, whichever epoch counts.
//! Let t0 be the last instant at which nothing of Θ that was queued before it waits. From t0 to s
//! the bus carries one frame that was begun before t0, then frames of Θ queued in [t0, s], and
//! nothing else. A frame of rank above x's is in Θ only if its start-by time is before s plus a
//! region; one of a rank below only if before s. So, with L = s − t0, x is in time if for every L
//! from its own distance to the longest busy period
//!
//! `B + updates(L) + Σ C_j · min(arrivals_j(L), deadlines_j(L)) ≤ L`
//!
//! Clocks that are up to δ from the common time move each start-by time by δ, so a frame of any
//! rank may count as earlier than x if its start-by time is up to 2δ later than that. The renewal
//! of identifiers ([`super::Renewal`]) on a signal never lets two nodes meet in arbitration with
//! identifiers of different epochs, except on a bus that was idle just before: that frame is B.
//!
//! Nodes that renew by their clocks do meet so, from δ before the end of an epoch to δ and the
//! time of a renewal after it, and nowhere else. A frame that is not of Θ may then begin before x.
//! Such frames are of high speed, because all high-speed identifiers of any epoch go before the
//! others. They begin within that time, one after the other. So in [t0, s] each renewal adds at
//! most its time and one frame of high speed, and there are as many as meet [t0, s]. A message
//! whose frame is on the wire when its node renews may go twice, if the node cannot take it back:
//! each such message adds one more.
//!
//! This looks at every window, not only at the first instance after a critical instant as
//! [EMERALDS 1998] does. That test is among those of this crate, with a set that it accepts and
//! that is late.
//!
//! **Messages that share buffers.** A node with few buffers keeps some messages in memory
//! ([`crate::toucan::BufferedOutbox`]), and at most one less urgent frame begins while such a
//! message waits. If it is x, that frame is one more before x. If it is another one, y, it contends
//! later than it came. Then t0 is the last time before s at which no such message contends, so y
//! may have come before t0: that is jitter. y begins by its start-by time less the least that any
//! window leaves to it, so it contends by then. One depends on the other, so the jitters are
//! computed again until none grows.
//!
//! **Errors.** Each takes its flags and one frame of any rank from the bus. x is through only if
//! its own frame is not destroyed, so those until the end of its frame count. A message that shares
//! buffers may have lost its buffer when its frame is destroyed: it takes longer to contend again.
//! Nodes that renew on a signal could hear the signal at different times then: such a set has to
//! renew by clocks, and the common time that they need does without some of its frames.
//!
//! **Low-speed.** All high-speed messages are above: the response times of fixed identifiers hold.
//! The order among those above does not matter, so a renewal by clocks costs only what goes twice.

use super::{Epochs, HIGH_SPEED, LOW_SPEED};
use crate::response::{AnalysedMessage, Destroyed, Errors, Level, Stream};
use crate::timing::BitRate;
use crate::wire::INTERFRAME_BITS;
use alloc::vec::Vec;
use core::cmp::Ordering;
use diapason_abi::Nanos;

/// Most bits that one renewal of identifiers adds: two frames of one byte more, 11 bits each at
/// worst with stuffing ([EMERALDS 1998] counts 8).
pub const UPDATE_BITS: u32 = 22;
const HORIZON: u64 = 3_600_000_000_000;

/// How nodes renew their identifiers at the end of an epoch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Renewing {
    /// All at the same bit, after a frame that tells them to. The last node has renewed
    /// [`super::longest_renewal`] after the end of the epoch, by the common time.
    OnSignal { last: Nanos },
    /// Each by its own clock: within this time after its clock says that the epoch is over.
    ByClock {
        within: Nanos,
        /// High-speed messages of nodes that cannot take a frame back which is on the wire. Such a
        /// message may go under its old identifier and under the new one.
        repeating: u32,
    },
}

/// A high-speed message; its place in the list is its code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HighSpeed {
    /// Longest frame in bits, without the interframe space.
    pub bits: u32,
    /// Smallest distance between two of them as they come.
    pub period: Nanos,
    /// How much later than that one may be in its queue.
    pub jitter: Nanos,
    /// The deadline of the message, from its arrival.
    pub deadline: Nanos,
}

/// All messages on one bus.
#[derive(Clone, Debug)]
pub struct MtsSet {
    pub rate: BitRate,
    pub epochs: Epochs,
    /// By code: the most urgent first.
    pub high: Vec<HighSpeed>,
    /// By priority: the most urgent first; their identifiers are not read.
    pub low: Vec<AnalysedMessage>,
    /// Longest frame in bits of non-real-time traffic, or 0.
    pub other: u32,
    /// Each clock is so far from the common time at most.
    pub clocks: Nanos,
    pub renewing: Renewing,
    pub queued: Queued,
    pub errors: Errors,
}

/// Messages that share buffers of their node with others, and wait in its memory for one: their
/// places in the lists of a set.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Queued {
    pub high: Vec<usize>,
    pub low: Vec<usize>,
    /// Longest time from when a frame of such a message is destroyed until the message contends
    /// again.
    pub again: Nanos,
}

/// The window that leaves a message the least.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tightest {
    /// A time up to its start-by time.
    pub window: Nanos,
    /// Most that the bus has to do in it before the message.
    pub work: Nanos,
}

/// Why a message is not promised its deadline.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unmet {
    /// In a window of this length up to its start-by time the bus may have this much to do; a
    /// deadline later by the difference would do for this window.
    Window { window: Nanos, work: Nanos },
    /// The message's response may take this long, more than its deadline.
    Response { response: Nanos, deadline: Nanos },
    /// The message and what is above it fill the bus.
    Overload {
        /// In parts per million, rounded up.
        load_ppm: u64,
    },
    /// Another message that waits in the memory of its node has no bound, so nothing bounds how
    /// many of it come at once.
    Behind,
}

/// Why nothing can be said.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoPromise {
    /// More messages than identifiers.
    TooMany { given: usize, holds: usize },
    /// A period of zero.
    NoPeriod {
        /// The message's number in its class.
        index: usize,
    },
    /// A deadline that its frame and jitter fill, or beyond the reach of the epochs.
    Deadline { index: usize },
    /// An epoch that is over before the nodes have renewed the identifiers of the last one.
    Short {
        epoch: Nanos,
        /// The least that would do.
        least: Nanos,
    },
}

struct High {
    /// Its jitter lasts until the message contends.
    stream: Stream,
    /// Longest time from coming until the node has the message.
    given: Nanos,
    /// From coming to start-by time.
    distance: Nanos,
    /// The message waits in the memory of its node for a buffer.
    queued: bool,
}

/// The high-speed messages of a set.
struct Checked {
    all: Vec<High>,
    /// A queued message may be late.
    unbounded: bool,
}

impl MtsSet {
    fn check(&self) -> Result<Checked, NoPromise> {
        let mut all = self.sane()?;
        let unbounded = !self.contend(&mut all);
        Ok(Checked { all, unbounded })
    }

    /// Adds to the jitter of each queued message how long it may wait until it contends. Returns
    /// whether all have such a bound.
    fn contend(&self, all: &mut [High]) -> bool {
        loop {
            let mut grew = false;
            for index in 0..all.len() {
                if !all[index].queued {
                    continue;
                }
                let Ok(found) = self.tightest_of(all, index) else { return false };
                let begins = all[index].distance - (found.window - found.work);
                let jitter = &mut all[index].stream.jitter;
                grew |= begins > *jitter;
                *jitter = begins.max(*jitter);
            }
            if !grew {
                return true;
            }
        }
    }

    fn sane(&self) -> Result<Vec<High>, NoPromise> {
        for (given, holds) in [(self.high.len(), HIGH_SPEED), (self.low.len(), LOW_SPEED)] {
            if given > holds.into() {
                return Err(NoPromise::TooMany { given, holds: holds.into() });
            }
        }
        let periods = self.high.iter().map(|message| message.period);
        if let Some(index) = { periods }.position(|period| period == Nanos::ZERO) {
            return Err(NoPromise::NoPeriod { index });
        }
        if let Some(index) = self.low.iter().position(|message| message.period == Nanos::ZERO) {
            return Err(NoPromise::NoPeriod { index });
        }
        let epoch = self.epochs.epoch();
        let least = self.renewal() + Nanos(4 * self.clocks.0);
        if epoch <= least {
            return Err(NoPromise::Short { epoch, least });
        }
        let reach = Nanos(self.epochs.region().0 * super::REGIONS) - epoch;
        let reach = reach - self.renewal() - self.clocks;
        let mut all = Vec::new();
        for (index, message) in self.high.iter().enumerate() {
            let stream = self.stream(message);
            let distance = message.deadline - stream.frame;
            if distance <= message.jitter || distance >= reach {
                return Err(NoPromise::Deadline { index });
            }
            let queued = self.queued.high.contains(&index);
            all.push(High { stream, given: message.jitter, distance, queued });
        }
        Ok(all)
    }

    fn stream(&self, message: &HighSpeed) -> Stream {
        let cost = self.rate.time(u64::from(message.bits + INTERFRAME_BITS));
        let frame = self.rate.time(message.bits.into());
        Stream { cost, frame, period: message.period, jitter: message.jitter }
    }

    /// Returns the longest frame of all, in bits: any may have begun.
    fn longest(&self) -> u32 {
        let high = self.high.iter().map(|message| message.bits);
        let low = self.low.iter().map(|message| message.bits);
        high.chain(low).chain([self.other]).max().unwrap_or(0)
    }

    fn blocking(&self) -> Nanos {
        self.rate.time(u64::from(self.longest() + INTERFRAME_BITS))
    }

    /// Returns the errors on the bus, as a message counts them that is queued or not.
    fn destroyed(&self, queued: bool) -> Destroyed {
        let again = if queued { self.queued.again } else { Nanos::ZERO };
        Destroyed::new(self.rate, self.errors, self.longest(), again)
    }

    /// Returns the longest time from the end of an epoch until the last node has renewed its
    /// identifiers.
    #[must_use]
    pub fn renewal(&self) -> Nanos {
        match self.renewing {
            Renewing::OnSignal { last } => last,
            Renewing::ByClock { within, .. } => self.clocks + within,
        }
    }

    /// Returns the most of the bus that one renewal takes from a high-speed message.
    #[must_use]
    pub fn renewal_cost(&self) -> Nanos {
        match self.renewing {
            Renewing::OnSignal { .. } => self.rate.time(UPDATE_BITS.into()),
            Renewing::ByClock { repeating, .. } => {
                self.clocks + self.renewal() + self.longest_high(1 + repeating)
            }
        }
    }

    /// Returns the time of so many of the longest high-speed frames.
    fn longest_high(&self, frames: u32) -> Nanos {
        let longest = self.high.iter().map(|message| message.bits).max().unwrap_or(0);
        self.rate.time(u64::from(frames) * u64::from(longest + INTERFRAME_BITS))
    }

    /// Renewals of identifiers, as a message above those of high speed.
    fn updates(&self) -> Stream {
        self.renewals(self.renewal_cost())
    }

    /// Renewals of identifiers, as a message above those of low speed.
    fn updates_of_low(&self) -> Stream {
        self.renewals(match self.renewing {
            Renewing::OnSignal { .. } => self.renewal_cost(),
            Renewing::ByClock { repeating, .. } => self.longest_high(repeating),
        })
    }

    fn renewals(&self, cost: Nanos) -> Stream {
        let epoch = self.epochs.epoch();
        let jitter = match self.renewing {
            Renewing::OnSignal { .. } => epoch,
            Renewing::ByClock { .. } => self.clocks + self.renewal(),
        };
        Stream { cost, frame: cost, period: epoch, jitter }
    }
}

/// Returns why high-speed message `index` is not always in time; `None` if it always is.
///
/// # Errors
/// A set that makes no sense.
pub fn high_speed(set: &MtsSet, index: usize) -> Result<Option<Unmet>, NoPromise> {
    tightest(set, index).map(Result::err)
}

/// Returns the window that leaves high-speed message `index` the least, or why the message is not
/// always in time.
///
/// # Errors
/// A set that makes no sense.
pub fn tightest(set: &MtsSet, index: usize) -> Result<Result<Tightest, Unmet>, NoPromise> {
    let Checked { all, unbounded } = set.check()?;
    let found = set.tightest_of(&all, index);
    Ok(if unbounded { found.and(Err(Unmet::Behind)) } else { found })
}

impl MtsSet {
    fn tightest_of(&self, all: &[High], index: usize) -> Result<Tightest, Unmet> {
        let updates = self.updates();
        // A message that waits in memory may see one frame more that is less urgent.
        let frames = if all[index].queued { 2 } else { 1 };
        let blocking = Nanos(frames * self.blocking().0);
        let errors = self.destroyed(all[index].queued);
        let fixed = |window: Nanos| {
            // The frame must not be destroyed itself.
            let lost = errors.lost(window + all[index].stream.cost);
            blocking + Nanos(updates.cost.0 * updates.arrivals(window)) + lost
        };
        let parts = all.iter().map(|message| message.stream).chain([updates]);
        let load: u128 =
            parts.map(|s| (u128::from(s.cost.0) * 1_000_000).div_ceil(s.period.0.into())).sum();
        let spoiled = errors.stream().map_or(0, |(interval, each)| {
            (u128::from(each.0) * 1_000_000).div_ceil(u128::from(interval.0.max(1)))
        });
        let load_ppm = u64::try_from(load + spoiled).unwrap_or(u64::MAX);
        let busy = busy_period(all, &fixed);
        let (Some(end), true) = (busy, load_ppm < 1_000_000) else {
            return Err(Unmet::Overload { load_ppm });
        };
        let own = all[index].distance - all[index].given;
        let apart = Nanos(2 * self.clocks.0);
        let ahead = |rank: usize| match rank.cmp(&index) {
            Ordering::Less => self.epochs.region() - Nanos(1) + apart,
            Ordering::Equal => Nanos::ZERO,
            Ordering::Greater => apart,
        };
        let mut windows = alloc::vec![own];
        for (rank, message) in all.iter().enumerate() {
            let Stream { period, jitter, .. } = message.stream;
            let late = i128::from(rank > index);
            let by_deadline = i128::from(message.distance.0) + late - i128::from(ahead(rank).0);
            for first in [by_deadline, 0] {
                steps(&mut windows, first - i128::from(jitter.0), period, own, end);
            }
        }
        steps(&mut windows, -i128::from(updates.jitter.0), updates.period, own, end);
        if let Some((interval, _)) = errors.stream() {
            steps(&mut windows, -i128::from(all[index].stream.cost.0), interval, own, end);
        }
        windows.sort_unstable();
        windows.dedup();
        let mut found: Option<Tightest> = None;
        for window in windows {
            let work = all.iter().enumerate().map(|(rank, message)| {
                let count = in_window(message, rank, index, ahead(rank), window);
                message.stream.cost.0 * count
            });
            let work = fixed(window) + Nanos(work.sum());
            let spare = |of: &Tightest| i128::from(of.window.0) - i128::from(of.work.0);
            let here = Tightest { window, work };
            if found.is_none_or(|found| spare(&here) < spare(&found)) {
                found = Some(here);
            }
        }
        // A window of its own distance is always among them.
        let Tightest { window, work } =
            found.unwrap_or(Tightest { window: own, work: Nanos::ZERO });
        if work > window {
            Err(Unmet::Window { window, work })
        } else {
            Ok(Tightest { window, work })
        }
    }
}

/// The instants of `[from, end]` that are whole periods from `first`.
fn steps(windows: &mut Vec<Nanos>, first: i128, period: Nanos, from: Nanos, end: Nanos) {
    let offset = (first - i128::from(from.0)).rem_euclid(period.0.into()) as u64;
    let mut at = from.0 + offset;
    while at <= end.0 {
        windows.push(Nanos(at));
        at += period.0;
    }
}

/// Frames of `message` (of rank `rank`) that may go before message `index` in a window up to the
/// latter's start-by time.
fn in_window(message: &High, rank: usize, index: usize, ahead: Nanos, window: Nanos) -> u64 {
    let Stream { period, jitter, .. } = message.stream;
    let last = (window + jitter + ahead).0.checked_sub(u64::from(rank > index));
    let by_deadline = last
        .and_then(|last| last.checked_sub(message.distance.0))
        .map_or(0, |spare| spare / period.0 + 1);
    if rank == index {
        return by_deadline.saturating_sub(1);
    }
    by_deadline.min(message.stream.arrivals(window))
}

/// Returns a window at whose end everything that came in it is done.
fn busy_period(all: &[High], fixed: &impl Fn(Nanos) -> Nanos) -> Option<Nanos> {
    let mut window = Nanos(1);
    loop {
        let work: u64 =
            all.iter().map(|m| m.stream.cost.0.saturating_mul(m.stream.arrivals(window))).sum();
        let next = fixed(window) + Nanos(work);
        if next <= window {
            return Some(window);
        }
        if next.0 > HORIZON {
            return None;
        }
        window = next;
    }
}

/// Returns the longest response of low-speed message `index`, or why it is not always in time.
///
/// # Errors
/// A set that makes no sense.
pub fn low_speed(set: &MtsSet, index: usize) -> Result<Result<Nanos, Unmet>, NoPromise> {
    let Checked { all, unbounded } = set.check()?;
    if unbounded {
        return Ok(Err(Unmet::Behind));
    }
    let mut above: Vec<Stream> = all.iter().map(|message| message.stream).collect();
    above.push(set.updates_of_low());
    for before in 0..index {
        let mut stream = Stream::of(set.rate, &set.low[before]);
        if set.queued.low.contains(&before) {
            let level = set.level(before, above);
            let Some(response) = level.response() else { return Ok(Err(Unmet::Behind)) };
            // The message contends when it begins at the latest.
            stream.jitter = response - stream.frame;
            above = level.above;
        }
        above.push(stream);
    }
    let level = set.level(index, above);
    let deadline = set.low[index].deadline;
    Ok(match level.response() {
        Some(response) if response <= deadline => Ok(response),
        Some(response) => Err(Unmet::Response { response, deadline }),
        None => Err(Unmet::Overload { load_ppm: level.load_ppm() }),
    })
}

impl MtsSet {
    /// Returns low-speed message `index` among those that go before it.
    fn level(&self, index: usize, above: Vec<Stream>) -> Level {
        let below = self.low[index + 1..].iter().map(|message| message.bits);
        let longest = below.chain([self.other]).max().unwrap_or(0);
        let frame = self.rate.time(u64::from(longest + INTERFRAME_BITS));
        let queued = self.queued.low.contains(&index);
        let frames = if queued { 2 } else { 1 };
        let own = Stream::of(self.rate, &self.low[index]);
        let blocking = Nanos(frames * frame.0);
        Level { rate: self.rate, above, own, blocking, errors: self.destroyed(queued) }
    }
}
