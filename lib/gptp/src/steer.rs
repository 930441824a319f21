//! The clock of a node that follows: it takes the time and the rate from Syncs, and shows a time
//! that never goes back. [`crate::SyncTerms`] has the proof of how far that is off.
//!
//! An era begins with a step to the computed time and lasts while Syncs come. Within an era the
//! clock only slews. A Sync that contradicts the era is not used. So a master that jumps ends the
//! era by silence: the node first says that it does not know the time, and steps then.

use crate::{GptpFault, SyncTerms};
use diapason_abi::Nanos;

/// Samples that are kept for the rate.
const SAMPLES: usize = 40;
const PPM: i128 = 1_000_000;

/// One Sync: what the node's clock said when it arrived, and the master's when it was sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TimeSample {
    pub local: Nanos,
    pub master: Nanos,
}

/// A time that advances evenly by a clock: by `gain.0` while the clock counts `gain.1`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Line {
    local: i128,
    common: i128,
    gain: (i128, i128),
}

/// The time of an era since its last Sync.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Segment {
    /// The time that follows from the last Syncs.
    computed: Line,
    /// The time that is shown until it meets the computed one.
    shown: Line,
    /// It comes from below.
    behind: bool,
}

/// The time of one node that follows a master, and the Syncs from which its rate comes.
#[derive(Clone, Copy, Debug)]
pub struct SteeredClock {
    terms: SyncTerms,
    samples: [TimeSample; SAMPLES],
    count: usize,
    /// The last Sync that was used, kept for the rate or not.
    last: Option<Nanos>,
    segment: Option<Segment>,
}

fn wide(time: Nanos) -> i128 {
    i128::from(time.0)
}

fn narrow(time: i128) -> Nanos {
    Nanos(u64::try_from(time.max(0)).unwrap_or(u64::MAX))
}

impl Line {
    fn at(&self, local: i128) -> i128 {
        let (gain, per) = self.gain;
        self.common + ((local - self.local) * gain).div_euclid(per)
    }

    /// Returns the first time of the clock at which this is `common` or more.
    fn when(&self, common: i128) -> i128 {
        let (gain, per) = self.gain;
        self.local - ((self.common - common) * per).div_euclid(gain)
    }

    /// Returns a line through the same instant that is faster by so many parts per million.
    fn faster(&self, local: i128, common: i128, ppm: i128) -> Line {
        let (gain, per) = self.gain;
        Line { local, common, gain: (gain * PPM + per * ppm, per * PPM) }
    }
}

impl Segment {
    fn at(&self, local: i128) -> i128 {
        let (computed, shown) = (self.computed.at(local), self.shown.at(local));
        if self.behind { computed.min(shown) } else { computed.max(shown) }
    }

    fn when(&self, common: i128) -> i128 {
        let (computed, shown) = (self.computed.when(common), self.shown.when(common));
        if self.behind { computed.max(shown) } else { computed.min(shown) }
    }
}

impl SteeredClock {
    /// Returns a clock that knows no time.
    #[must_use]
    pub fn new(terms: SyncTerms) -> SteeredClock {
        let none = TimeSample { local: Nanos::ZERO, master: Nanos::ZERO };
        SteeredClock { terms, samples: [none; SAMPLES], count: 0, last: None, segment: None }
    }

    /// Ends the era: nothing of it counts for the next.
    pub fn forget(&mut self) {
        *self = SteeredClock::new(self.terms);
    }

    /// Takes in a Sync that came over a link with this delay. `now` is when that is known. Returns
    /// whether an era begins.
    ///
    /// # Errors
    /// [`GptpFault::Disagrees`] if the era would be wrong, or the Sync is too old.
    pub fn learn(
        &mut self,
        sample: TimeSample,
        delay: Nanos,
        now: Nanos,
    ) -> Result<bool, GptpFault> {
        if self.is_over(now) {
            self.forget();
        }
        let age = now - sample.local;
        let back = self.last.is_some_and(|last| sample.local <= last);
        if back || sample.local > now || age > self.terms.valid() {
            return Err(GptpFault::Disagrees);
        }
        if !self.agrees(sample, delay) {
            if self.segment.is_some() {
                return Err(GptpFault::Disagrees);
            }
            self.forget();
        }
        self.last = Some(sample.local);
        self.keep(sample);
        let Some(gain) = self.rate(sample) else { return Ok(false) };
        let (local, common) = (wide(sample.local), wide(sample.master) + wide(delay));
        self.follow(Line { local, common, gain }, wide(now));
        Ok(true)
    }

    /// Returns whether no Sync came for so long that none before counts.
    #[must_use]
    pub fn is_over(&self, now: Nanos) -> bool {
        self.last.is_some_and(|last| now - last > self.terms.valid())
    }

    /// Returns whether a node knows the time.
    #[must_use]
    pub fn is_known(&self, now: Nanos) -> bool {
        self.segment.is_some() && !self.is_over(now)
    }

    /// Returns the last instant at which the node knows the time if it hears nothing any more.
    #[must_use]
    pub fn known_until(&self) -> Option<Nanos> {
        let last = self.last.filter(|_| self.segment.is_some())?;
        Some(last + self.terms.valid())
    }

    /// Returns the time that programs see; `None` while it is not known.
    #[must_use]
    pub fn time(&self, now: Nanos) -> Option<Nanos> {
        let segment = self.segment.filter(|_| self.is_known(now))?;
        Some(narrow(segment.at(wide(now))))
    }

    /// Returns the time that programs would see, whether it is known or not: a new grandmaster goes
    /// on from there.
    pub(crate) fn coasting(&self, now: Nanos) -> Option<Nanos> {
        self.segment.map(|segment| narrow(segment.at(wide(now))))
    }

    /// Returns the node's clock at the first instant at which programs see `common`, if no other
    /// Sync comes. It may be in the past, or after the time ceases to be known.
    #[must_use]
    pub fn local(&self, common: Nanos) -> Option<Nanos> {
        self.segment.map(|segment| narrow(segment.when(wide(common))))
    }

    /// Returns the computed time, while it is known, and the grandmaster's rate.
    pub(crate) fn computed(&self, local: Nanos) -> Option<(Nanos, (i128, i128))> {
        let line = self.segment.filter(|_| self.is_known(local))?.computed;
        Some((narrow(line.at(wide(local))), line.gain))
    }

    /// Returns whether a sample can be right if those before are.
    fn agrees(&self, sample: TimeSample, delay: Nanos) -> bool {
        let (local, master) = (wide(sample.local), wide(sample.master));
        if let Some(segment) = &self.segment {
            let apart = segment.computed.at(local).abs_diff(master + wide(delay));
            return apart <= 2 * u128::from(self.terms.error().0);
        }
        let Some(first) = self.kept().first() else { return true };
        let passed = local - wide(first.local);
        let told = master - wide(first.master);
        let most = self.terms.apart(narrow(passed)) + Nanos(2 * self.terms.error().0);
        told.abs_diff(passed) <= u128::from(most.0)
    }

    fn kept(&self) -> &[TimeSample] {
        self.samples.get(..self.count).unwrap_or_default()
    }

    /// Keeps a sample for the rate, unless the last one is close, and drops those that no rate
    /// needs any more.
    fn keep(&mut self, sample: TimeSample) {
        let last = self.kept().last().map(|last| last.local);
        if last.is_some_and(|last| sample.local - last < self.terms.spacing()) {
            return;
        }
        let span = self.terms.span();
        let old = |it: &TimeSample| sample.local - it.local >= span;
        let drop = self.kept().iter().rposition(old).unwrap_or(0);
        let drop = drop.max((self.count + 1).saturating_sub(SAMPLES));
        self.samples.copy_within(drop..self.count, 0);
        self.count -= drop;
        self.samples[self.count] = sample;
        self.count += 1;
    }

    /// Returns the rate of the grandmaster from the newest sample that is old enough.
    fn rate(&self, sample: TimeSample) -> Option<(i128, i128)> {
        let old = |it: &&TimeSample| sample.local - it.local >= self.terms.span();
        let base = self.kept().iter().rev().find(old)?;
        let passed = wide(sample.local) - wide(base.local);
        let told = wide(sample.master) - wide(base.master);
        let drift = i128::from(self.terms.base().drift_ppm);
        let fastest = passed * (PPM + drift) / (PPM - drift);
        let slowest = passed * (PPM - drift) / (PPM + drift);
        Some((told.clamp(slowest, fastest), passed))
    }

    /// Goes on from what is shown now, or begins an era with a step.
    fn follow(&mut self, computed: Line, now: i128) {
        let before = self.segment.map(|segment| segment.at(now));
        let (at, slew) = (computed.at(now), i128::from(self.terms.base().slew_ppm));
        let from = before.unwrap_or(at);
        let behind = from < at;
        let shown = computed.faster(now, from, if behind { slew } else { -slew });
        self.segment = Some(Segment { computed, shown, behind });
    }
}
