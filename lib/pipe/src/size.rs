//! How many slots a ring needs so that it cannot overflow, computed at compile time.
//!
//! α(Δ) is the largest number of messages that arrive at the device in a closed window of length Δ.
//! A message enters the ring between `d_min` and `D` after it arrived, and leaves it at most `E`
//! after it arrived. The content of the ring at any instant arrived in one window of length `E −
//! d_min`, so α(E − d_min) slots are enough. `E − d_min` has two parts: how much the way in varies,
//! `D − d_min`, and how long a record can wait for the reader, at most the time from one read to
//! the next. Everything below is a use of this.
//!
//! A read is the instant at which slots are given back. All sums saturate, so a time too large
//! gives more slots than there can be and not too few.

use diapason_abi::Nanos;

/// A limit on arrivals, a leaky bucket: at most `burst + ⌊(Δ + jitter) · messages / per⌋` in any
/// closed window of length Δ.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Bucket {
    /// Messages that may come at once; at least 1, or nothing ever arrives at an instant.
    pub burst: u64,
    /// Most messages in `per`, in the long run.
    pub messages: u64,
    /// The time in which `messages` may come.
    pub per: Nanos,
    /// How long after its nominal time a message may come.
    pub jitter: Nanos,
}

impl Bucket {
    /// Returns one message every `period`: α(Δ) = 1 + ⌊Δ / period⌋.
    #[must_use]
    pub const fn periodic(period: Nanos) -> Self {
        Bucket { burst: 1, messages: 1, per: period, jitter: Nanos::ZERO }
    }

    /// Returns the bucket of at most `rate` messages a second, evenly.
    #[must_use]
    pub const fn per_second(rate: u64) -> Self {
        Bucket { messages: rate, ..Self::periodic(Nanos::from_secs(1)) }
    }

    /// Lets `burst` messages come at once; in the long run no more come.
    #[must_use]
    pub const fn with_burst(self, burst: u64) -> Self {
        Bucket { burst, ..self }
    }

    /// Lets each message come up to `jitter` late.
    #[must_use]
    pub const fn with_jitter(self, jitter: Nanos) -> Self {
        Bucket { jitter, ..self }
    }

    /// Returns the most arrivals in a closed window of length `window`.
    #[must_use]
    pub const fn most(&self, window: Nanos) -> u64 {
        if self.messages == 0 {
            return self.burst;
        }
        if self.per.0 == 0 || window.0 == u64::MAX || self.jitter.0 == u64::MAX {
            return u64::MAX;
        }
        let length = window.0 as u128 + self.jitter.0 as u128;
        // A product that saturates is, divided by any `per`, still more than 64 bits.
        let refilled = divided(length.saturating_mul(self.messages as u128), self.per.0);
        narrowed(refilled.saturating_add(self.burst as u128))
    }

    /// Returns the shortest window longer than `window` in which more may arrive; for ever if there
    /// is none.
    pub(crate) const fn next_step(&self, window: Nanos) -> Nanos {
        if self.messages == 0 || self.per.0 == 0 || self.jitter.0 == u64::MAX {
            return Nanos::FOREVER;
        }
        let length = window.0 as u128 + self.jitter.0 as u128;
        let refilled = divided(length.saturating_mul(self.messages as u128), self.per.0);
        let tokens = refilled.saturating_add(1).saturating_mul(self.per.0 as u128);
        let length = divided(tokens.saturating_add(self.messages as u128 - 1), self.messages);
        Nanos(narrowed(length - self.jitter.0 as u128))
    }

    /// Returns the longest window in which no more than `messages` arrive.
    const fn longest_window(&self, messages: u64) -> Option<Nanos> {
        let Some(refilled) = messages.checked_sub(self.burst) else { return None };
        if self.messages == 0 {
            return Some(Nanos::FOREVER);
        }
        if self.jitter.0 == u64::MAX {
            return None;
        }
        // The largest length with ⌊length · messages / per⌋ ≤ refilled.
        let tokens = (refilled as u128 + 1).saturating_mul(self.per.0 as u128);
        let Some(last) = tokens.checked_sub(1) else { return None };
        match (last / self.messages as u128).checked_sub(self.jitter.0 as u128) {
            // For ever would be too long, as messages keep coming.
            Some(length) if length >= u64::MAX as u128 => Some(Nanos(u64::MAX - 1)),
            Some(length) => Some(Nanos(length as u64)),
            None => None,
        }
    }
}

/// Returns the value divided, rounded down. Usual values need no division of 128 bits, which takes
/// long, and the USB server divides while it opens pipes.
const fn divided(value: u128, by: u64) -> u128 {
    if value <= u64::MAX as u128 { (value as u64 / by) as u128 } else { value / by as u128 }
}

const fn narrowed(number: u128) -> u64 {
    if number > u64::MAX as u128 { u64::MAX } else { number as u64 }
}

const fn slots(messages: u64) -> usize {
    let most = if messages > usize::MAX as u64 { usize::MAX } else { messages as usize };
    if most == 0 { 1 } else { most }
}

/// α(Δ): most arrivals in a closed window of length `window`, if all limits of `contract` hold.
/// Without any limit there is no bound.
#[must_use]
pub const fn arrivals(contract: &[Bucket], window: Nanos) -> u64 {
    let (mut least, mut at) = (u64::MAX, 0);
    while at < contract.len() {
        let most = contract[at].most(window);
        if most < least {
            least = most;
        }
        at += 1;
    }
    least
}

/// Returns the longest time between two reads of a reader that runs every `period` and gives the
/// slots back at least `earliest` and at most `latest` after each release: T + R − C.
#[must_use]
pub const fn read_gap(period: Nanos, latest: Nanos, earliest: Nanos) -> Nanos {
    Nanos(period.0.saturating_add(latest.0.saturating_sub(earliest.0)))
}

/// Slots for a reader that takes all there is in every read: α(D − d_min + gap).
///
/// `way_in` is D − d_min, by how much the time from the device into the ring varies; `read_gap` is
/// the longest time between two reads. A reader that is woken by each record and has taken it at
/// most `d` later has the gap `d`. A caller that knows E as a whole passes E − d_min and a gap of
/// zero.
///
/// ```
/// use diapason_abi::Nanos;
/// use diapason_pipe::size::{Bucket, capacity};
/// let frames = [Bucket::per_second(2752)];
/// assert_eq!(capacity(&frames, Nanos::ZERO, Nanos::from_micros(36_800)), 102);
/// ```
#[must_use]
pub const fn capacity(contract: &[Bucket], way_in: Nanos, read_gap: Nanos) -> usize {
    slots(arrivals(contract, Nanos(way_in.0.saturating_add(read_gap.0))))
}

/// Returns the longest E − d_min for which `slots` are enough: the inverse of [`capacity`]. `None`
/// if one burst is already too much, or nothing bounds the arrivals.
#[must_use]
pub const fn longest_window(contract: &[Bucket], slots: usize) -> Option<Nanos> {
    let (mut longest, mut at) = (None, 0);
    while at < contract.len() {
        let window = contract[at].longest_window(slots as u64);
        longest = match (longest, window) {
            (Some(Nanos(known)), Some(Nanos(new))) if known >= new => Some(Nanos(known)),
            (_, Some(new)) => Some(new),
            (known, None) => known,
        };
        at += 1;
    }
    longest
}

/// Returns the longest period of a reader for which `slots` are enough, if each of its reads comes
/// at least `earliest` after a release and before the next one, at an unknown phase: at most 2T − C
/// between two reads. About half of what Little's law gives.
///
/// ```
/// use diapason_abi::Nanos;
/// use diapason_pipe::size::{Bucket, longest_period};
/// const MS: fn(u64) -> Nanos = Nanos::from_millis;
/// let period = longest_period(&[Bucket::per_second(2752)], 128, MS(10), MS(2));
/// assert_eq!(period.map(|period| period.0 / 1_000), Some(19_255)); // Little: 46 ms
/// ```
#[must_use]
pub const fn longest_period(
    contract: &[Bucket],
    slots: usize,
    way_in: Nanos,
    earliest: Nanos,
) -> Option<Nanos> {
    let Some(window) = longest_window(contract, slots) else { return None };
    match window.0.checked_sub(way_in.0) {
        Some(gap) => Some(Nanos(narrowed((gap as u128 + earliest.0 as u128) / 2))),
        None => None,
    }
}

/// Slots for a reader that takes at most `per_read` records in a read:
/// the largest α(D − d_min + k · gap) − (k − 1) · `per_read` over k ≥ 1.
///
/// `None` if the arrivals outrun the reader in the long run, or the search leaves 64 bits.
///
/// ```
/// use diapason_abi::Nanos;
/// use diapason_pipe::size::{Bucket, capacity_of_short_reads};
/// const MS: fn(u64) -> Nanos = Nanos::from_millis;
/// // Bursts of 10, but on a wire that carries one in a millisecond.
/// let contract = [Bucket::periodic(MS(4)).with_burst(10), Bucket::periodic(MS(1))];
/// assert_eq!(capacity_of_short_reads(&contract, MS(0), MS(4), 2), Some(9));
/// assert_eq!(capacity_of_short_reads(&contract, MS(0), MS(9), 2), None);
/// ```
#[must_use]
pub const fn capacity_of_short_reads(
    contract: &[Bucket],
    way_in: Nanos,
    read_gap: Nanos,
    per_read: u64,
) -> Option<usize> {
    let reads = ShortReads { contract, way_in: way_in.0, gap: read_gap.0, per_read };
    match reads.most() {
        Some(most) => Some(slots(narrowed(most))),
        None => None,
    }
}

/// The space that [`capacity_of_short_reads`] searches.
struct ShortReads<'a> {
    contract: &'a [Bucket],
    way_in: u64,
    gap: u64,
    per_read: u64,
}

impl ShortReads<'_> {
    /// Returns whether the bucket is refilled no faster than the reads take.
    const fn keeps_up(&self, bucket: &Bucket) -> bool {
        let taken = self.per_read as u128 * bucket.per.0 as u128;
        bucket.messages as u128 * self.gap as u128 <= taken && bucket.jitter.0 != u64::MAX
    }

    /// Returns the least bound on the fill before read `k` of a backlog, by the buckets that the
    /// reads keep up with, or by those that they do not. The former never grows with `k`, the
    /// latter never falls, because ⌊x⌋ − whole = ⌊x − whole⌋.
    const fn fill(&self, kept_up: bool, k: u64) -> i128 {
        let window = self.window(k);
        let taken = (k as i128 - 1).saturating_mul(self.per_read as i128);
        let (mut least, mut at) = (i128::MAX, 0);
        while at < self.contract.len() {
            let bucket = &self.contract[at];
            let fill = bucket.most(window) as i128 - taken;
            if self.keeps_up(bucket) == kept_up && fill < least {
                least = fill;
            }
            at += 1;
        }
        least
    }

    /// Returns the time from the first arrival that read `k` of a backlog can find to the last.
    const fn window(&self, k: u64) -> Nanos {
        Nanos(self.way_in + k * self.gap)
    }

    const fn grows_at(&self, k: u64) -> bool {
        self.fill(false, k) < self.fill(true, k)
    }

    /// Returns the largest bound: where the growing one meets the falling one, found by halving.
    const fn most(&self) -> Option<u128> {
        let Some(room) = (u64::MAX - 1).checked_sub(self.way_in) else { return None };
        let Some(last) = room.checked_div(self.gap) else {
            // Reads without a gap: nothing waits.
            return Some(arrivals(self.contract, Nanos(self.way_in)) as u128);
        };
        if last == 0 || self.fill(true, last) == i128::MAX || self.grows_at(last) {
            return None;
        }
        let (mut grows, mut falls) = (0, last);
        while falls - grows > 1 {
            let middle = grows + (falls - grows) / 2;
            if self.grows_at(middle) { grows = middle } else { falls = middle }
        }
        if arrivals(self.contract, self.window(falls)) == u64::MAX {
            return None;
        }
        let before = if grows == 0 { 0 } else { self.fill(false, grows) };
        let after = self.fill(true, falls);
        let most = if before > after { before } else { after };
        Some(if most < 0 { 0 } else { most as u128 })
    }
}
