//! How far a node is from the grandmaster's time, and for how long it may say that it knows it.
//!
//! Let p be the drift of a clock, s the error of a stamp, and w the change of an oscillator's rate
//! in a second. Stamps of one frame are off by at most s at each end.
//!
//! 1. **Delay.** `D = (r·(t4 − t1) − (t3 − t2)) / 2` has the errors of four stamps, so 2s. The rate
//!    r is kept within what drift allows and is wrong by at most 4p/(1 − p²). Nobody sees by
//!    how much the directions differ: half of that is added. A mean of such delays is no worse.
//! 2. **Sync.** The sender's time is wrong by at most U, which is s at the grandmaster. So the time
//!    at the receiver's stamp is wrong by at most `E0 = U + s + D's error`.
//! 3. **Rate.** Two Syncs that are Δ apart give the mean rate between them up to `2(U + s)/Δ`: the
//!    delay is in both. The mean rate in the next A differs by at most `2w·(Δ + A)/2`. So the time
//!    that a node computes is off by at most `E = E0 + A·2(U + s)/Δ + A·w·(Δ + A)`, and A is
//!    limited.
//! 4. **Slew.** The clock S that programs see follows the computed time G. The first S is G. At a
//!    Sync G may jump, and S approaches G at `slew`, which is more than the error of the rate. If S
//!    is behind G, it gains on the true time, so it stays above −E, and it stays below G, so below
//!    E. If it is ahead, the same holds with both signs changed. So S is off by at most E, too.
//! 5. **Hops.** A node sends the time that it computes in an interval of its own, so losses on one
//!    link cause none on the next. The next node has U = E + s.

use crate::link::KNOWN;
use core::fmt;
use diapason_abi::Nanos;

/// Rounding to whole nanoseconds adds so much at each hop.
const ROUNDING: u64 = 8;
/// The rate of the grandmaster is measured over this many intervals at least.
const SPAN: u64 = 16;
const PPM: u128 = 1_000_000;
const BILLION: u128 = 1_000_000_000;
/// The interval of Announces, and of measurements of the delay.
pub(crate) const SECOND: Nanos = Nanos::from_secs(1);
const LOG_MIN: i8 = -7;
const LOG_MAX: i8 = 0;
const DRIFT_MAX: u32 = 1_000;
const SLEW_MAX: u32 = 10_000;
const LOSSES_MAX: u32 = 100;
const HOPS_MAX: u32 = 8;

/// The properties of a network and its clocks that a common time follows from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SyncBase {
    /// The interval of Syncs, as a power of two in seconds: −3 for 125 ms.
    pub log_interval: i8,
    /// Longest time from when a Sync is due until its receiver has the Follow_Up.
    pub late: Nanos,
    /// The most frames of one kind that are lost in a row.
    pub losses: u32,
    /// Links between the grandmaster and the furthest node.
    pub hops: u32,
    /// Each clock is faster or slower than true time by at most this, in parts per million.
    pub drift_ppm: u32,
    /// The rate of a clock changes in a second by at most this, in parts per billion.
    pub wander_ppb: u32,
    /// The error of a stamp: from the frame's passage at the plug to what the clock said.
    pub stamp: Nanos,
    /// Longest time in which a neighbour answers a request.
    pub turnaround: Nanos,
    /// Least time between two events that a node sends over a link, which is how long a neighbour
    /// with room for one stamp may need until it has taken the first. An answer waits for one gap,
    /// a Sync for two.
    pub gap: Nanos,
    /// Longest delay of a link.
    pub link: Nanos,
    /// Half of what the two directions of a link differ by.
    pub uneven: Nanos,
    /// How fast the clock approaches the computed time, in parts per million.
    pub slew_ppm: u32,
}

/// Numbers of the properties, as words.
const WORDS: usize = 12;

impl SyncBase {
    /// Returns the properties as words of a setting.
    #[must_use]
    pub fn words(&self) -> [u64; WORDS] {
        let SyncBase { log_interval, losses, hops, drift_ppm, wander_ppb, slew_ppm, .. } = *self;
        let interval = u64::from(log_interval.cast_unsigned());
        let numbers = [losses, hops, drift_ppm, wander_ppb, slew_ppm].map(u64::from);
        let [losses, hops, drift, wander, slew] = numbers;
        let times = [self.late, self.stamp, self.turnaround, self.gap, self.link, self.uneven];
        let [late, stamp, turnaround, gap, link, uneven] = times.map(|time| time.0);
        [interval, losses, hops, drift, wander, slew, late, stamp, turnaround, gap, link, uneven]
    }

    /// Reads the properties from words.
    #[must_use]
    pub fn of(words: &[u64; WORDS]) -> SyncBase {
        let [interval, losses, hops, drift, wander, slew, times @ ..] = *words;
        let [late, stamp, turnaround, gap, link, uneven] = times.map(Nanos);
        let small = |word| u32::try_from(word).unwrap_or(u32::MAX);
        SyncBase {
            log_interval: (interval as u8).cast_signed(),
            late,
            losses: small(losses),
            hops: small(hops),
            drift_ppm: small(drift),
            wander_ppb: small(wander),
            stamp,
            turnaround,
            gap,
            link,
            uneven,
            slew_ppm: small(slew),
        }
    }
}

/// Why no common time follows: the caller's mistake.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SyncRefusal {
    Interval,
    /// Syncs that arrive only when the next is due, or times beyond a second.
    Late,
    /// A gap that makes answers or Syncs late.
    Gap,
    Beyond,
    Hops,
    /// The clock would not catch up with a computed time that is as wrong as it may be.
    Slew {
        least_ppm: u64,
    },
}

impl fmt::Display for SyncRefusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SyncRefusal::Interval => {
                write!(f, "the interval of Syncs is 2^{LOG_MIN} to 2^{LOG_MAX} seconds")
            }
            SyncRefusal::Late => f.write_str(
                "a Sync must arrive before the next is due, and each time is at most a second",
            ),
            SyncRefusal::Gap => f.write_str(
                "an answer waits for a gap, which is at most its turnaround, and a Sync for two",
            ),
            SyncRefusal::Beyond => write!(
                f,
                "clocks drift by at most {DRIFT_MAX} ppm, that changes by at most as much in a \
                 second, and at most {LOSSES_MAX} frames in a row are lost"
            ),
            SyncRefusal::Hops => write!(f, "the furthest node is 1 to {HOPS_MAX} links away"),
            SyncRefusal::Slew { least_ppm } => {
                write!(f, "the clock slews by {least_ppm} to {SLEW_MAX} ppm")
            }
        }
    }
}

/// A common time that follows from the properties of a network.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SyncTerms {
    base: SyncBase,
    valid: Nanos,
    error: Nanos,
}

fn narrow(wide: u128) -> Nanos {
    Nanos(u64::try_from(wide).unwrap_or(u64::MAX))
}

impl SyncTerms {
    /// Returns the common time of a network.
    ///
    /// # Errors
    /// Properties that make no sense.
    pub fn new(base: SyncBase) -> Result<SyncTerms, SyncRefusal> {
        if !(LOG_MIN..=LOG_MAX).contains(&base.log_interval) {
            return Err(SyncRefusal::Interval);
        }
        let mut terms = SyncTerms { base, valid: Nanos::ZERO, error: Nanos::ZERO };
        let times = [base.stamp, base.turnaround, base.link, base.uneven];
        if base.late >= terms.interval() || times.into_iter().any(|it| it > SECOND) {
            return Err(SyncRefusal::Late);
        }
        if base.gap > base.turnaround || base.gap > Nanos(base.late.0 / 2) {
            return Err(SyncRefusal::Gap);
        }
        let beyond = base.drift_ppm > DRIFT_MAX || base.wander_ppb > DRIFT_MAX * 1_000;
        if beyond || base.losses > LOSSES_MAX {
            return Err(SyncRefusal::Beyond);
        }
        if !(1..=HOPS_MAX).contains(&base.hops) {
            return Err(SyncRefusal::Hops);
        }
        let frames = u64::from(base.losses) + 1;
        let age = Nanos((terms.interval() + base.late).0 * frames) + base.late;
        terms.valid = terms.ratio(age) + Nanos(2 * terms.stamp().0);
        terms.error = terms.error_at(base.hops);
        let least = terms.rate_error(terms.sender(base.hops)).div_ceil(1_000) as u64 + 1;
        if u64::from(base.slew_ppm) < least || base.slew_ppm > SLEW_MAX {
            return Err(SyncRefusal::Slew { least_ppm: least });
        }
        Ok(terms)
    }

    /// Returns the properties that this follows from.
    #[must_use]
    pub fn base(&self) -> &SyncBase {
        &self.base
    }

    /// Returns the interval of Syncs.
    #[must_use]
    pub fn interval(&self) -> Nanos {
        Nanos(SECOND.0 >> -self.base.log_interval)
    }

    /// Returns the least time between the two Syncs that give a rate.
    pub(crate) fn span(&self) -> Nanos {
        Nanos(self.interval().0 * SPAN)
    }

    /// Returns the least time between two Syncs that are kept for that.
    pub(crate) fn spacing(&self) -> Nanos {
        Nanos(self.interval().0 / 2)
    }

    /// Returns how old the last Sync may be: with an older one a node does not know the time.
    #[must_use]
    pub fn valid(&self) -> Nanos {
        self.valid
    }

    /// Returns how long an Announce counts.
    #[must_use]
    pub fn announced(&self) -> Nanos {
        let frames = u64::from(self.base.losses) + 1;
        self.ratio(Nanos(SECOND.0 * frames) + self.base.late)
    }

    /// Returns how long a grandmaster must have heard of no other before it knows the time.
    #[must_use]
    pub fn settle(&self) -> Nanos {
        let heard = self.announced().0 * u64::from(self.base.hops);
        self.ratio(Nanos(heard) + self.valid + self.valid)
    }

    /// Returns how long it takes at most until every node knows the time, if only one node may
    /// lead. The time counts from when all nodes are on and all links work, and nothing but what
    /// the terms allow is lost.
    ///
    /// Let f be the losses and one, L `late`, and h the hops. Every f-th frame of a kind comes.
    ///
    /// 1. A Sync waits for two events at most, and a request for three: so its receiver has it
    ///    within 2L. The second part of the answer comes within L after the first part. A link is
    ///    capable after three exchanges, and those begin a second apart: `3f s + 3L + turnaround`.
    /// 2. The leader begins to lead when it has looked at its clock after `announced`. It knows the
    ///    time once it has led for `settle` and its link is capable. A node that never leads says
    ///    nothing that makes it wait longer.
    /// 3. From then on, and as soon as both ends of a link are capable, an Announce is due each
    ///    second. So each hop has heard of the leader after `f s + 2L`.
    /// 4. A node that follows uses the first Sync after f intervals and L. It knows the time with
    ///    the first Sync that it uses after a span more: f intervals and L later. The next hop gets
    ///    its Syncs from then on.
    #[must_use]
    pub fn learnt(&self) -> Nanos {
        let SyncBase { late, turnaround, losses, hops, .. } = self.base;
        let (frames, hops) = (u64::from(losses) + 1, u64::from(hops));
        let capable = Nanos(KNOWN as u64 * frames * SECOND.0 + 3 * late.0) + turnaround;
        let leads = self.announced() + late;
        let told = capable.max(leads) + Nanos(hops * (frames * SECOND.0 + 2 * late.0));
        let knows = capable.max(leads + self.settle());
        let used = Nanos(frames * self.interval().0) + late;
        let followed = Nanos(hops * (self.span() + used + used).0);
        self.ratio(told.max(knows) + followed)
    }

    /// Returns how far a node that knows the time is from it at most.
    #[must_use]
    pub fn error(&self) -> Nanos {
        self.error
    }

    /// Returns how far a node that knows the time is from it, so many links from the grandmaster.
    #[must_use]
    pub fn error_at(&self, hops: u32) -> Nanos {
        let sender = self.sender(hops);
        let error = self.received(sender) + self.growth(sender, self.valid);
        self.ratio(error)
    }

    /// Returns the error of a measured delay.
    pub(crate) fn delay_error(&self) -> Nanos {
        let round = self.base.turnaround + Nanos(4 * (self.base.link + self.stamp()).0);
        let rate = self.apart(round);
        let stamps = Nanos(2 * self.stamp().0) + self.base.uneven;
        stamps + Nanos(rate.0.div_ceil(2) + ROUNDING)
    }

    /// Returns by how much a clock's count of this time may differ from that of another.
    pub(crate) fn apart(&self, time: Nanos) -> Nanos {
        let drift = u128::from(self.base.drift_ppm);
        narrow((4 * drift * u128::from(time.0)).div_ceil(PPM - drift))
    }

    /// Returns the error of a stamp, by any clock.
    pub(crate) fn stamp(&self) -> Nanos {
        self.ratio(self.base.stamp)
    }

    /// Returns the longest time on a clock while another clock measures this.
    fn ratio(&self, time: Nanos) -> Nanos {
        let drift = u128::from(self.base.drift_ppm);
        narrow((u128::from(time.0) * (PPM + drift)).div_ceil(PPM - drift))
    }

    /// Returns the error of the time that arrives over the last of so many links.
    fn sender(&self, hops: u32) -> Nanos {
        let mut sender = self.stamp();
        for _ in 1..hops {
            let passed = self.growth(sender, self.valid);
            sender = self.received(sender) + passed + self.stamp();
        }
        sender
    }

    /// Returns the error of the time at the receiver's stamp.
    fn received(&self, sender: Nanos) -> Nanos {
        sender + self.stamp() + self.delay_error() + Nanos(ROUNDING)
    }

    /// Returns what the error of the rate adds in this time.
    fn growth(&self, sender: Nanos, age: Nanos) -> Nanos {
        let age = u128::from(age.0);
        let measured = self.spans().map(|span| {
            let stamps = 2 * u128::from((sender + self.stamp()).0);
            let wander = age * self.wander() * (span + age);
            (age * stamps).div_ceil(span) + wander.div_ceil(2 * BILLION * BILLION)
        });
        let drift = self.apart(narrow(age));
        drift.min(narrow(measured.into_iter().max().unwrap_or(0)))
    }

    /// Returns the greatest error of the rate at any instant, in parts per billion.
    fn rate_error(&self, sender: Nanos) -> u128 {
        let valid = u128::from(self.valid.0);
        let measured = self.spans().map(|span| {
            let stamps = 2 * u128::from((sender + self.stamp()).0);
            let wander = self.wander() * (span + 2 * valid);
            (stamps * BILLION).div_ceil(span) + wander.div_ceil(2 * BILLION)
        });
        let drift = u128::from(self.apart(Nanos(BILLION as u64)).0);
        drift.min(measured.into_iter().max().unwrap_or(0))
    }

    /// Returns the change in a second of the rate of two clocks against each other.
    fn wander(&self) -> u128 {
        let one = Nanos(u64::from(self.base.wander_ppb));
        2 * u128::from(self.ratio(self.ratio(one)).0)
    }

    /// Returns the least and the longest time between the two Syncs that give a rate.
    fn spans(&self) -> [u128; 2] {
        let most = self.span() + self.spacing() + self.valid;
        [self.span().0.into(), most.0.into()]
    }
}
