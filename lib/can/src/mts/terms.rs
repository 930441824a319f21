//! How far the clocks of nodes are apart that follow the frames of a master, and for how long.
//!
//! A frame is on the bus at one instant E for all nodes. The master reads its clock C at E and says
//! what it read in its next frame (Gergeleit and Streich, 1994). A node reads its own clock L at E
//! and adds to the master's time what its clock did since. Let r be the drift of a clock, ρ the
//! longest time from E until a clock is read, measured by that clock, g the step of a clock, and
//! q the step of the time in the frame.
//!
//! 1. The master's reading is in (C(E) − g, C(E) + ρ], and the frame says up to q less.
//! 2. The node's reading is in (L(E) − g, L(E) + ρ], and its clock now is read up to g early.
//! 3. Two clocks run apart by at most 2r a second. If a node's clock says that E was `a` ago, E was
//!    at most (a + g + ρ) / (1 − r) ago.
//!
//! So the node's idea of C is wrong by at most `ρ + 2g + q + 2r · (a + g + ρ) / (1 − r)`. The age
//! `a` is limited: a node that has nothing younger says that it does not know the time.

use core::fmt;
use diapason_abi::Nanos;

/// The step of the time in a frame.
const STEP: u64 = 1_000;
const PPM: u128 = 1_000_000;
const HOUR: Nanos = Nanos::from_secs(3_600);
/// Furthest drift, and most frames that may be lost in a row: beyond that nobody means it.
const DRIFT_MAX: u32 = 10_000;
const LOSSES_MAX: u32 = 1_000;

/// The properties of a bus and its clocks that a common time follows from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TimeBase {
    /// The master's frames are due so far apart.
    pub interval: Nanos,
    /// Longest time from when such a frame is due until it is through.
    pub late: Nanos,
    /// The node keeps the time although it loses so many frames in a row.
    pub losses: u32,
    /// Each clock is faster or slower than true time by at most this, in parts per million.
    pub drift_ppm: u32,
    /// Longest time from the end of a frame until a node has read its clock. The frame of a
    /// sender ends one bit later than that of a receiver: this includes it.
    pub stamp: Nanos,
    /// The step of the clocks.
    pub grain: Nanos,
}

/// Why no common time follows: the caller's mistake.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TimeRefusal {
    /// No interval, or a time beyond an hour.
    Interval,
    /// Frames that are through only when the next is due.
    Late,
    /// Clocks that drift by more than 1 %, or more than 1,000 losses.
    Beyond,
}

impl fmt::Display for TimeRefusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            TimeRefusal::Interval => "the times are longer than 0 and at most an hour",
            TimeRefusal::Late => "a frame of the master must be through before the next is due",
            TimeRefusal::Beyond => "clocks drift by at most 10,000 ppm, and 1,000 frames are lost",
        })
    }
}

/// A common time that follows from the properties of a bus.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TimeTerms {
    base: TimeBase,
    valid: Nanos,
    silence: Nanos,
}

fn narrow(wide: u128) -> Nanos {
    Nanos(u64::try_from(wide).unwrap_or(u64::MAX))
}

impl TimeTerms {
    /// Returns the common time of a bus.
    ///
    /// # Errors
    /// Properties that make no sense.
    pub fn new(base: TimeBase) -> Result<TimeTerms, TimeRefusal> {
        let TimeBase { interval, late, losses, drift_ppm, stamp, grain } = base;
        if interval == Nanos::ZERO || [interval, stamp, grain].into_iter().any(|it| it > HOUR) {
            return Err(TimeRefusal::Interval);
        }
        if late >= interval {
            return Err(TimeRefusal::Late);
        }
        if drift_ppm > DRIFT_MAX || losses > LOSSES_MAX {
            return Err(TimeRefusal::Beyond);
        }
        // A frame that is lost takes its own instant along, and the time of the frame before.
        let frames = if losses == 0 { 2 } else { u64::from(losses) + 3 };
        let age = Nanos(interval.0.saturating_mul(frames)) + late;
        let mut terms = TimeTerms { base, valid: Nanos::ZERO, silence: Nanos::ZERO };
        let readings = terms.stamped() + Nanos(2 * grain.0);
        terms.valid = terms.ratio(age) + readings;
        terms.silence = terms.ratio(terms.valid + readings) + grain;
        Ok(terms)
    }

    /// Returns the properties that this follows from.
    #[must_use]
    pub fn base(&self) -> &TimeBase {
        &self.base
    }

    /// Returns the longest time on a clock while another clock measures this.
    fn ratio(&self, time: Nanos) -> Nanos {
        let drift = u128::from(self.base.drift_ppm);
        narrow((u128::from(time.0) * (PPM + drift)).div_ceil(PPM - drift))
    }

    /// Returns the longest time until a node has read its clock, by that clock.
    fn stamped(&self) -> Nanos {
        let drift = u128::from(self.base.drift_ppm);
        narrow((u128::from(self.base.stamp.0) * (PPM + drift)).div_ceil(PPM))
    }

    /// Returns how far a node is from the master's time at most, this long after the instant of the
    /// frame that it knows the master's time of.
    #[must_use]
    pub fn error(&self, age: Nanos) -> Nanos {
        let (stamped, grain) = (self.stamped(), self.base.grain);
        let drift = u128::from(self.base.drift_ppm);
        let ran = u128::from((age + grain + stamped).0);
        let apart = narrow((2 * drift * ran).div_ceil(PPM - drift));
        stamped + Nanos(2 * grain.0 + STEP) + apart
    }

    /// Returns how old that instant may be: a node with an older one does not know the time.
    #[must_use]
    pub fn valid(&self) -> Nanos {
        self.valid
    }

    /// Returns how far a node that knows the time is from it at most.
    #[must_use]
    pub fn clocks(&self) -> Nanos {
        self.error(self.valid)
    }

    /// Returns a time after which no node knows a time that ended before, whatever its clock.
    #[must_use]
    pub fn silence(&self) -> Nanos {
        self.silence
    }
}

/// A frame of the master.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TimeFrame {
    pub sequence: u16,
    /// The master's time at the end of its frame before, in whole steps. `None` if it does not
    /// vouch for that.
    pub before: Option<Nanos>,
}

/// The bytes of such a frame.
pub const TIME_BYTES: usize = 8;
const NONE: u64 = (1 << 48) - 1;

impl TimeFrame {
    /// Returns the data of the frame: two bytes of its number, six of microseconds.
    #[must_use]
    pub fn bytes(&self) -> [u8; TIME_BYTES] {
        let steps = self.before.map_or(NONE, |time| (time.0 / STEP).min(NONE));
        (u64::from(self.sequence) << 48 | steps).to_be_bytes()
    }

    /// Returns the frame with this data; `None` if it is shorter. Bytes that follow are not read.
    #[must_use]
    pub fn read(data: &[u8]) -> Option<TimeFrame> {
        let word = u64::from_be_bytes(data.get(..TIME_BYTES)?.try_into().ok()?);
        let steps = word & NONE;
        let before = (steps != NONE).then_some(Nanos(steps * STEP));
        Some(TimeFrame { sequence: (word >> 48) as u16, before })
    }
}
