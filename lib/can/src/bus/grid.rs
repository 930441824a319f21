//! The times of bits: whole bits of two rates after an anchor, so that nothing drifts.

use crate::timing::BitRate;
use diapason_abi::Nanos;

const SECOND: u64 = 1_000_000_000;

/// Bits of the two rates.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Span {
    /// Bits at the rate of arbitration.
    pub slow: u64,
    /// Bits at the rate of the data.
    pub fast: u64,
}

impl Span {
    pub const NONE: Span = Span { slow: 0, fast: 0 };

    /// Returns the span with so many bits more at the rate of arbitration.
    pub const fn and_slow(self, bits: u64) -> Span {
        Span { slow: self.slow + bits, ..self }
    }

    /// Returns how many bits there are.
    pub const fn bits(self) -> u64 {
        self.slow + self.fast
    }
}

/// The time of the bit that comes next.
#[derive(Clone, Copy, Debug)]
pub(super) struct Grid {
    pub rate: BitRate,
    /// The rate of the data of CAN FD, on a bus that has it.
    pub data: Option<BitRate>,
    anchor: Nanos,
    passed: Span,
}

impl Grid {
    /// Returns the grid of a classic bus at time 0.
    pub fn new(rate: BitRate) -> Grid {
        Grid { rate, data: None, anchor: Nanos::ZERO, passed: Span::NONE }
    }

    /// The next bit begins at `now`.
    pub fn begin(&mut self, now: Nanos) {
        (self.anchor, self.passed) = (now, Span::NONE);
    }

    /// Returns the instant `ahead` after the beginning of the next bit, rounded up.
    pub fn time(&self, ahead: Span) -> Nanos {
        let (slow, fast) = (self.passed.slow + ahead.slow, self.passed.fast + ahead.fast);
        let Some(data) = self.data.filter(|_| fast > 0) else {
            return self.anchor + self.rate.time(slow);
        };
        let (rate, data) = (u128::from(self.rate.hertz()), u128::from(data.hertz()));
        let bits = u128::from(slow) * data + u128::from(fast) * rate;
        let time = (bits * u128::from(SECOND)).div_ceil(rate * data);
        self.anchor + Nanos(time as u64)
    }

    /// Lets bits pass. Whole seconds of either rate move the anchor.
    pub fn pass(&mut self, bits: Span) {
        let mut settle = |passed: &mut u64, bits: u64, rate: BitRate| {
            *passed += bits;
            let second = u64::from(rate.hertz());
            if *passed >= second {
                self.anchor += Nanos::from_secs(*passed / second);
                *passed %= second;
            }
        };
        settle(&mut self.passed.slow, bits.slow, self.rate);
        if let Some(data) = self.data {
            settle(&mut self.passed.fast, bits.fast, data);
        }
    }
}
