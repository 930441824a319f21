//! Bit timing: from a controller's clock to a bit rate and a sample point, and what that tolerates.
//!
//! A bit is one quantum of synchronisation, the propagation segment, phase segment 1, the sample,
//! and phase segment 2. The clock divided by the prescaler makes quanta.

use core::fmt;
use diapason_abi::Nanos;

const SECOND: u64 = 1_000_000_000;
/// Fewest and most quanta in a bit (ISO 11898-1).
pub const QUANTA: (u32, u32) = (8, 25);
/// Fastest bit rate of classic CAN.
pub const RATE_MAX: u32 = 1_000_000;
/// Fastest rate of the data of CAN FD.
pub const DATA_RATE_MAX: u32 = 8_000_000;

/// Bits per second, at least 1 and at most a million, or eight million for the data of CAN FD.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct BitRate(u32);

impl BitRate {
    /// `hertz` bits per second.
    ///
    /// # Errors
    /// None at all, or more than classic CAN has.
    pub const fn new(hertz: u32) -> Result<BitRate, TimingRefusal> {
        if hertz == 0 || hertz > RATE_MAX {
            return Err(TimingRefusal::Rate { hertz });
        }
        Ok(BitRate(hertz))
    }

    /// `hertz` bits per second for the data of CAN FD.
    ///
    /// # Errors
    /// None at all, or more than CAN FD has.
    pub const fn of_data(hertz: u32) -> Result<BitRate, TimingRefusal> {
        if hertz == 0 || hertz > DATA_RATE_MAX {
            return Err(TimingRefusal::DataRate { hertz });
        }
        Ok(BitRate(hertz))
    }

    /// Returns the rate in bits a second.
    #[must_use]
    pub const fn hertz(self) -> u32 {
        self.0
    }

    /// Returns how long `bits` bits take, rounded up to a whole nanosecond.
    #[must_use]
    pub fn time(self, bits: u64) -> Nanos {
        let (whole, rest) = (bits / u64::from(self.0), bits % u64::from(self.0));
        Nanos::from_secs(whole) + Nanos((rest * SECOND).div_ceil(u64::from(self.0)))
    }
}

/// The registers of a controller, in quanta.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BitTiming {
    /// Clock cycles in a quantum.
    pub prescaler: u32,
    /// Quanta that make up for the delay of the bus.
    pub propagation: u32,
    /// Quanta before the sample that resynchronisation may lengthen.
    pub phase1: u32,
    /// Quanta after it that resynchronisation may shorten.
    pub phase2: u32,
    /// Most quanta of one resynchronisation.
    pub jump: u32,
}

/// The smallest and largest values that a controller's registers can hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TimingLimits {
    pub prescaler: (u32, u32),
    /// Limits of the propagation segment and phase segment 1 together.
    pub before_sample: (u32, u32),
    /// Limits of phase segment 2.
    pub phase2: (u32, u32),
    pub jump_max: u32,
}

impl TimingLimits {
    /// The limits that every controller of the standard meets.
    pub const STANDARD: TimingLimits =
        TimingLimits { prescaler: (1, 64), before_sample: (2, 16), phase2: (2, 8), jump_max: 4 };
}

/// Why a bit timing is refused: the caller's mistake.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TimingRefusal {
    /// Zero, or faster than classic CAN.
    Rate { hertz: u32 },
    /// Zero, or faster than the data of CAN FD.
    DataRate { hertz: u32 },
    /// A value outside the controller's limits.
    Outside { what: &'static str, value: u32, limits: (u32, u32) },
    /// No setting gives this rate from this clock; the nearest that does.
    NoSetting {
        clock: u32,
        /// The rate asked for.
        hertz: u32,
        /// The nearest possible rate, or 0 if none is within the limits.
        nearest: u32,
    },
    /// The propagation segment is shorter than a signal takes there and back.
    Propagation {
        /// The segment's length in ns.
        segment: u64,
        /// The needed value in ns.
        needed: u64,
    },
}

impl fmt::Display for TimingRefusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            TimingRefusal::Rate { hertz } => {
                write!(f, "{hertz} bit/s: classic CAN has 1 to {RATE_MAX} bit/s")
            }
            TimingRefusal::DataRate { hertz } => {
                write!(f, "{hertz} bit/s: the data of CAN FD has 1 to {DATA_RATE_MAX} bit/s")
            }
            TimingRefusal::Outside { what, value, limits: (low, high) } => {
                write!(f, "{what} of {value}: this controller has {low} to {high}")
            }
            TimingRefusal::NoSetting { clock, hertz, nearest } => {
                write!(f, "{hertz} bit/s from a clock of {clock} Hz: ")?;
                match nearest {
                    0 => write!(f, "no bit rate is possible; use another clock"),
                    _ => write!(f, "the nearest possible is {nearest} bit/s"),
                }
            }
            TimingRefusal::Propagation { segment, needed } => {
                write!(f, "a propagation segment of {segment} ns: this bus needs {needed} ns; ")?;
                write!(f, "use a lower bit rate or a shorter cable")
            }
        }
    }
}

impl BitTiming {
    /// Quanta in a bit.
    #[must_use]
    pub const fn quanta(&self) -> u32 {
        1 + self.propagation + self.phase1 + self.phase2
    }

    /// Bits per second from `clock` Hz, as a fraction: clock cycles per bit.
    #[must_use]
    pub const fn cycles(&self) -> u32 {
        self.prescaler * self.quanta()
    }

    /// Returns where the sample is taken, in tenths of a per cent of the bit.
    #[must_use]
    pub const fn sample_point(&self) -> u32 {
        (1 + self.propagation + self.phase1) * 1000 / self.quanta()
    }

    /// Returns the bit rate from `clock` Hz, rounded down.
    ///
    /// # Errors
    /// Settings outside `limits`, or faster than classic CAN.
    pub fn check(&self, clock: u32, limits: &TimingLimits) -> Result<BitRate, TimingRefusal> {
        let before = self.propagation.saturating_add(self.phase1);
        let jump = limits.jump_max.min(self.phase1).min(self.phase2);
        let rules = [
            ("a prescaler", self.prescaler, limits.prescaler),
            ("a propagation segment", self.propagation, (1, limits.before_sample.1 - 1)),
            ("a phase segment 1", self.phase1, (1, limits.before_sample.1 - 1)),
            ("quanta before the sample", before, limits.before_sample),
            ("a phase segment 2", self.phase2, limits.phase2),
            ("a synchronisation jump", self.jump, (1, jump)),
        ];
        let inside = |what, value, limits: (u32, u32)| {
            let good = (limits.0..=limits.1).contains(&value);
            if good { Ok(()) } else { Err(TimingRefusal::Outside { what, value, limits }) }
        };
        for (what, value, limits) in rules {
            inside(what, value, limits)?;
        }
        inside("quanta in a bit", self.quanta(), QUANTA)?;
        BitRate::new(clock / self.cycles())
    }

    /// Checks that the propagation segment covers a one-way delay of `delay`, cable and
    /// transceivers.
    ///
    /// # Errors
    /// The signal would not be back in time.
    pub fn covers(&self, clock: u32, delay: Nanos) -> Result<(), TimingRefusal> {
        let cycles = u64::from(self.propagation) * u64::from(self.prescaler);
        let segment = cycles * SECOND / u64::from(clock.max(1));
        let needed = delay.0.saturating_mul(2);
        if segment < needed { Err(TimingRefusal::Propagation { segment, needed }) } else { Ok(()) }
    }

    /// Returns how much each oscillator may be off, in parts per million: both rules of the
    /// standard.
    #[must_use]
    pub fn tolerance_ppm(&self) -> u32 {
        let quanta = u64::from(self.quanta());
        let phase = u64::from(self.phase1.min(self.phase2)) * 1_000_000;
        let after_error = phase / (2 * (13 * quanta - u64::from(self.phase2)));
        let between_edges = u64::from(self.jump) * 1_000_000 / (20 * quanta);
        after_error.min(between_edges) as u32
    }

    /// Returns the setting for exactly `rate` from `clock` Hz with its sample nearest to
    /// `sample_point` tenths of a per cent; of equals the one with more quanta.
    ///
    /// # Errors
    /// None gives the rate.
    pub fn find(
        clock: u32,
        rate: BitRate,
        sample_point: u32,
        limits: &TimingLimits,
    ) -> Result<BitTiming, TimingRefusal> {
        let hertz = rate.hertz();
        let all = (QUANTA.0..=QUANTA.1).rev();
        let exact = all.filter(|quanta| {
            let cycles = u64::from(hertz) * u64::from(*quanta);
            u64::from(clock).is_multiple_of(cycles)
                && within(u64::from(clock) / cycles, limits.prescaler)
        });
        let settings =
            exact.filter_map(|quanta| split(quanta, clock / hertz / quanta, sample_point, limits));
        let off = |timing: &BitTiming| timing.sample_point().abs_diff(sample_point);
        settings.min_by_key(off).ok_or_else(|| {
            let nearest = nearest(clock, hertz, limits);
            TimingRefusal::NoSetting { clock, hertz, nearest }
        })
    }
}

fn within(value: u64, (low, high): (u32, u32)) -> bool {
    (u64::from(low)..=u64::from(high)).contains(&value)
}

/// `quanta` quanta around the sample point, if the limits allow any such split.
fn split(quanta: u32, prescaler: u32, sample: u32, limits: &TimingLimits) -> Option<BitTiming> {
    let fits = |phase2: &u32| {
        let before = quanta.saturating_sub(1 + phase2);
        before >= limits.before_sample.0.max(2) && before <= limits.before_sample.1
    };
    let candidates = (limits.phase2.0..=limits.phase2.1).filter(fits);
    let phase2 = candidates
        .min_by_key(|phase2| ((quanta - phase2) * 1000).abs_diff(sample.saturating_mul(quanta)))?;
    let before = quanta - 1 - phase2;
    let phase1 = phase2.min(before - 1);
    let jump = limits.jump_max.min(phase1).min(phase2);
    Some(BitTiming { prescaler, propagation: before - phase1, phase1, phase2, jump })
}

/// Returns the possible rate nearest to `hertz`.
fn nearest(clock: u32, hertz: u32, limits: &TimingLimits) -> u32 {
    let mut best = 0u32;
    for quanta in QUANTA.0..=QUANTA.1 {
        if split(quanta, 1, 750, limits).is_none() {
            continue;
        }
        let ideal = clock / hertz / quanta;
        for prescaler in [ideal, ideal.saturating_add(1)] {
            let prescaler = prescaler.clamp(limits.prescaler.0.max(1), limits.prescaler.1.max(1));
            let rate = u64::from(clock) / (u64::from(quanta) * u64::from(prescaler));
            let rate = u32::try_from(rate).unwrap_or(u32::MAX);
            let better = best == 0 || rate.abs_diff(hertz) < best.abs_diff(hertz);
            if better && BitRate::new(rate).is_ok() {
                best = rate;
            }
        }
    }
    best
}
