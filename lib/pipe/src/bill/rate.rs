//! Amounts per time, exactly, and the lines above step functions.

use diapason_abi::Nanos;

/// `amount` per `time` nanoseconds, `time` not zero. In lowest terms; if those leave 64 bits,
/// rounded up, so that a rate that fits is never taken for a smaller one.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Rate {
    amount: u128,
    time: u128,
}

const NARROW: u128 = u64::MAX as u128;
/// The parts of an amount that a rate is rounded to.
const COARSE: u128 = 1 << 40;

impl Rate {
    pub(super) const ZERO: Rate = Rate { amount: 0, time: 1 };

    /// `amount` in each `per`; a period of zero counts as one nanosecond.
    pub(super) fn new(amount: u64, per: Nanos) -> Rate {
        Rate::narrowed(u128::from(amount), u128::from(per.0.max(1)))
    }

    fn narrowed(amount: u128, time: u128) -> Rate {
        let common = gcd(amount, time);
        let (amount, time) = (amount / common, time / common);
        if amount <= NARROW && time <= NARROW {
            return Rate { amount, time };
        }
        let scaled = amount.checked_mul(COARSE).map(|amount| amount.div_ceil(time));
        Rate { amount: scaled.unwrap_or(u128::MAX).min(NARROW), time: COARSE }
    }

    pub(super) fn times(self, factor: u64) -> Rate {
        let (factor, time) = (u128::from(factor), self.time);
        let common = gcd(factor, time);
        Rate::narrowed(self.amount * (factor / common), time / common)
    }

    pub(super) fn plus(self, other: Rate) -> Rate {
        let amount = (self.amount * other.time).saturating_add(other.amount * self.time);
        Rate::narrowed(amount, self.time * other.time)
    }

    pub(super) fn is_above(self, other: Rate) -> bool {
        self.amount * other.time > other.amount * self.time
    }

    /// Returns the amount in `time`, rounded up.
    pub(super) fn within(self, time: u64) -> u128 {
        (self.amount * u128::from(time)).div_ceil(self.time)
    }

    /// Returns the rate in millionths, rounded up.
    pub(super) fn millionths_up(self) -> u64 {
        u64::try_from((self.amount.saturating_mul(1_000_000)).div_ceil(self.time))
            .unwrap_or(u64::MAX)
    }

    /// Returns the rate in millionths, rounded down.
    pub(super) fn millionths_down(self) -> u64 {
        u64::try_from(self.amount.saturating_mul(1_000_000) / self.time).unwrap_or(u64::MAX)
    }
}

fn gcd(a: u128, b: u128) -> u128 {
    let (mut a, mut b) = (a, b);
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a.max(1)
}

/// A line that a step function never exceeds: `base + rate · window`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Line {
    pub(super) base: u128,
    pub(super) rate: Rate,
}

impl Line {
    pub(super) const ZERO: Line = Line { base: 0, rate: Rate::ZERO };

    pub(super) fn times(self, factor: u64) -> Line {
        let base = self.base.saturating_mul(u128::from(factor));
        Line { base, rate: self.rate.times(factor) }
    }

    pub(super) fn plus(self, other: Line) -> Line {
        Line { base: self.base.saturating_add(other.base), rate: self.rate.plus(other.rate) }
    }

    pub(super) fn at(self, window: u64) -> u128 {
        self.base.saturating_add(self.rate.within(window))
    }

    /// Returns the one that grows more slowly; of equals the lower.
    pub(super) fn lower(self, other: Line) -> Line {
        let (ours, theirs) = (self.rate, other.rate);
        if ours.is_above(theirs) || ours == theirs && other.base < self.base { other } else { self }
    }
}
