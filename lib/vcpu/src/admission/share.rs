//! Shares of a processor in 32 binary places, and Liu and Layland's bound among them.

use crate::PERIOD_MAX;
use diapason_abi::Nanos;

/// A share of one processor, in units of 2⁻³². Sums saturate.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
pub struct Share(pub u64);

impl Share {
    pub const ZERO: Share = Share(0);
    pub const ONE: Share = Share(1 << 32);

    /// `part / whole`, rounded up. Without a whole, or beyond [`PERIOD_MAX`], more than any bound.
    #[must_use]
    pub const fn of(part: Nanos, whole: Nanos) -> Share {
        if part.0 == 0 {
            return Share::ZERO;
        }
        if whole.0 == 0 || whole.0 > PERIOD_MAX.0 || part.0 >= PERIOD_MAX.0 {
            return Share(u64::MAX);
        }
        // Long division, 24 places and then 8, so that nothing leaves 64 bits.
        let high = part.0 << 24;
        let low = (high % whole.0) << 8;
        Share(((high / whole.0) << 8) + low.div_ceil(whole.0))
    }

    /// In parts per million, rounded to the nearest: for people.
    #[must_use]
    pub const fn ppm(self) -> u64 {
        let whole = (self.0 >> 32).saturating_mul(1_000_000);
        whole.saturating_add(((self.0 & 0xffff_ffff) * 1_000_000 + (1 << 31)) >> 32)
    }

    /// Returns the sum of both.
    #[must_use]
    pub const fn plus(self, other: Share) -> Share {
        Share(self.0.saturating_add(other.0))
    }

    /// Returns the difference, not below zero.
    #[must_use]
    pub const fn minus(self, other: Share) -> Share {
        Share(self.0.saturating_sub(other.0))
    }

    /// Returns the product of two shares of at most one, rounded down.
    #[must_use]
    pub const fn times(self, other: Share) -> Share {
        if self.0 >= Share::ONE.0 {
            other
        } else if other.0 >= Share::ONE.0 {
            self
        } else {
            Share((self.0 * other.0) >> 32)
        }
    }

    /// Returns the longest time of which this is at least the share in `whole`; at most `whole`.
    #[must_use]
    pub const fn part_of(self, whole: Nanos) -> Nanos {
        if self.0 >= Share::ONE.0 || whole.0 > PERIOD_MAX.0 {
            return whole;
        }
        // whole = high · 2²⁰ + low: two products below 2⁵², the places cut off added before they
        // go.
        let high = self.0 * (whole.0 >> 20);
        let low = self.0 * (whole.0 & 0xf_ffff);
        Nanos((high >> 12) + ((((high & 0xfff) << 20) + low) >> 32))
    }
}

/// `ln 2` in units of 2⁻³², rounded down.
const LN2: u64 = 2_977_044_471;

/// `n(2^(1/n) − 1)`, rounded down by less than 16 units of 2⁻³²; 1 for `n = 0`.
///
/// With `x = ln 2 / n` this is `n(eˣ − 1) = Σ xᵏ n / k!`. All terms are positive, each follows from
/// the one before by a factor `ln 2 / (k n)`, and each is rounded down, so any number of them
/// is a lower bound. A test holds it against the inequality in integers of any length.
#[must_use]
pub const fn liu_layland(n: u32) -> Share {
    if n <= 1 {
        return Share::ONE;
    }
    let mut term = LN2;
    let mut sum = LN2;
    let mut k = 2;
    // The 13th term is below one unit for any n.
    while k < 13 {
        term = ((term * LN2) >> 32) / k / n as u64;
        sum += term;
        k += 1;
    }
    Share(sum)
}
