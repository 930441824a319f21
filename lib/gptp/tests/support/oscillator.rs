//! A clock that nobody steers: it drifts, and its rate wanders.

use diapason_abi::Nanos;
use diapason_random::Random;

const BILLION: i128 = 1_000_000_000;
/// The rate changes so often.
const STEP_NS: u64 = 100_000_000;

/// How the rate changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wander {
    None,
    Random,
    /// As fast as it may, from one end to the other.
    Sweeps,
}

pub struct Oscillator {
    /// The clock when true time was `at`, in billionths of a nanosecond.
    at: u64,
    count: i128,
    rate_ppb: i64,
    most_ppb: i64,
    wander_ppb: i64,
    pub wander: Wander,
    rises: bool,
    random: Random,
}

impl Oscillator {
    pub fn new(offset: u64, rate_ppb: i64, most_ppb: i64, wander_ppb: i64) -> Oscillator {
        let count = i128::from(offset) * BILLION;
        let random = Random::new(offset ^ rate_ppb.unsigned_abs());
        let (wander, rises) = (Wander::None, rate_ppb < 0);
        Oscillator { at: 0, count, rate_ppb, most_ppb, wander_ppb, wander, rises, random }
    }

    /// Returns what the clock shows at a true time.
    pub fn read(&mut self, now: u64) -> Nanos {
        while self.wander != Wander::None && now >= self.at + STEP_NS {
            self.count += self.passed(i128::from(STEP_NS));
            self.at += STEP_NS;
            self.change();
        }
        self.ahead(now)
    }

    /// Returns what the clock will show soon after now, if its rate does not change before.
    pub fn ahead(&self, at: u64) -> Nanos {
        let passed = i128::from(at - self.at);
        let count = (self.count + self.passed(passed)).div_euclid(BILLION);
        Nanos(u64::try_from(count).unwrap())
    }

    /// Jumps to another time.
    pub fn set(&mut self, now: u64, shown: u64) {
        (self.at, self.count) = (now, i128::from(shown) * BILLION);
    }

    fn passed(&self, span: i128) -> i128 {
        span * (BILLION + i128::from(self.rate_ppb))
    }

    fn change(&mut self) {
        // Eleven changes are in the longest second.
        let most = self.wander_ppb / 11;
        let change = match self.wander {
            Wander::None => 0,
            Wander::Random => self.random.between(0, 2 * most as u64) as i64 - most,
            Wander::Sweeps if self.rises => most,
            Wander::Sweeps => -most,
        };
        let rate = (self.rate_ppb + change).clamp(-self.most_ppb, self.most_ppb);
        if rate.abs() == self.most_ppb {
            self.rises = rate < 0;
        }
        self.rate_ppb = rate;
    }
}
