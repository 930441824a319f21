//! A clock that drifts and is kept with a master by messages (IEEE 802.1AS), and how far it is off.
//!
//! Each Sync tells the master's time, known up to the noise of a measurement. The servo takes the
//! rate from the last two and steers so that the offset would be gone at the next. It steps once,
//! at the first Sync, and slews from then on.
//!
//! With noise of at most N the rate is known up to 2N in an interval and the offset up to N. So
//! from the third Sync on the clock is off by at most 3N and what rounding adds.

/// The error that rounding, and the drift of the oscillator during one frame, add to the noise.
const ROUNDING_NS: u64 = 8;
/// Parts of the unit in which drift is given.
const BILLION: i128 = 1_000_000_000;

/// A steered clock on an oscillator that drifts.
#[derive(Clone, Copy, Debug)]
pub struct ServoClock {
    drift_ppb: i64,
    /// Offset of the oscillator's count.
    offset_ns: i64,
    syncs: u64,
    /// The oscillator and this clock at the last Sync.
    count: i128,
    value: i128,
    /// The master's time as the last Sync told it.
    master: i128,
    /// The clock advances by `gain.0` while the oscillator counts `gain.1`.
    gain: (i128, i128),
}

impl ServoClock {
    /// Returns a free clock whose oscillator gains `drift_ppb` and begins at `offset_ns`.
    #[must_use]
    pub fn new(drift_ppb: i64, offset_ns: i64) -> ServoClock {
        let value = i128::from(offset_ns);
        ServoClock { drift_ppb, offset_ns, syncs: 0, count: value, value, master: 0, gain: (1, 1) }
    }

    /// Returns how far the clock is off at most, from the third Sync on, if no Sync is wrong by
    /// more than `noise_ns`, all intervals are equal, and the oscillator keeps its rate.
    #[must_use]
    pub const fn stated_error_ns(noise_ns: u64) -> u64 {
        3 * noise_ns + ROUNDING_NS
    }

    /// Takes a Sync at a true time, which it tells wrong by `noise_ns`.
    pub fn sync(&mut self, true_ns: u64, noise_ns: i64) {
        let master = i128::from(true_ns) + i128::from(noise_ns);
        let (count, value) = (self.counted(true_ns), self.read(true_ns));
        if self.syncs == 0 {
            self.value = master;
        } else {
            let (counted, passed) = (count - self.count, master - self.master);
            let wanted = passed - (value - master);
            if counted > 0 && wanted > 0 {
                self.gain = (wanted, counted);
            }
            self.value = value;
        }
        (self.count, self.master) = (count, master);
        self.syncs += 1;
    }

    /// Returns what the clock shows at a true time.
    #[must_use]
    pub fn read(&self, true_ns: u64) -> i128 {
        let (gain, per) = self.gain;
        self.value + ((self.counted(true_ns) - self.count) * gain).div_euclid(per)
    }

    /// Returns the first true time since the last Sync at which the clock shows `local` or more.
    #[must_use]
    pub fn when(&self, local: i128) -> u64 {
        let (gain, per) = self.gain;
        let count = self.count + ((local - self.value) * per).div_euclid(gain);
        let at =
            (count - i128::from(self.offset_ns)) * BILLION / (BILLION + i128::from(self.drift_ppb));
        let mut at = u64::try_from(at - 2).unwrap_or(0);
        while self.read(at) < local {
            at += 1;
        }
        at
    }

    /// Returns the count of the oscillator.
    fn counted(&self, true_ns: u64) -> i128 {
        let true_ns = i128::from(true_ns);
        let gained = (true_ns * i128::from(self.drift_ppb)).div_euclid(BILLION);
        i128::from(self.offset_ns) + true_ns + gained
    }
}
