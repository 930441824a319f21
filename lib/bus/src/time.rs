//! Picoseconds: the unit in which every packet time of the sources is a whole number.
//!
//! A bus calculates in them so that 33 packets of 1720.8 ns are exactly 56,786.4 ns; what leaves
//! the bus is [`Nanos`], rounded up.

use core::fmt;
use core::ops::{Add, Sub};
use diapason_abi::Nanos;

/// A length of time in picoseconds. Arithmetic saturates, as that of [`Nanos`] does.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default, Hash)]
#[repr(transparent)]
pub struct Picos(pub u64);

impl Picos {
    pub const ZERO: Picos = Picos(0);

    /// Returns a duration of `n` nanoseconds.
    #[must_use]
    pub const fn from_nanos(n: u64) -> Picos {
        Picos(n.saturating_mul(1_000))
    }

    /// Returns the time in nanoseconds, rounded up: a bound stays a bound.
    #[must_use]
    pub const fn nanos(self) -> Nanos {
        Nanos(self.0.div_ceil(1_000))
    }

    /// Returns the time of `count` of them one after another.
    #[must_use]
    pub const fn times(self, n: u64) -> Picos {
        Picos(self.0.saturating_mul(n))
    }
}

impl Add for Picos {
    type Output = Picos;
    fn add(self, other: Picos) -> Picos {
        Picos(self.0.saturating_add(other.0))
    }
}

impl Sub for Picos {
    type Output = Picos;
    fn sub(self, other: Picos) -> Picos {
        Picos(self.0.saturating_sub(other.0))
    }
}

/// Nanoseconds with as many decimals as there are: `1778.4 ns`.
impl fmt::Display for Picos {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (whole, part) = (self.0 / 1_000, self.0 % 1_000);
        match part {
            0 => write!(f, "{whole} ns"),
            _ if part.is_multiple_of(100) => write!(f, "{whole}.{} ns", part / 100),
            _ if part.is_multiple_of(10) => write!(f, "{whole}.{:02} ns", part / 10),
            _ => write!(f, "{whole}.{part:03} ns"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Nanos, Picos};
    use alloc::string::ToString;

    #[test]
    fn what_leaves_is_rounded_up_and_what_is_shown_is_exact() {
        assert_eq!(Picos(1_778_400).nanos(), Nanos(1_779));
        assert_eq!(Picos(1_778_000).nanos(), Nanos(1_778));
        for (ps, text) in
            [(1_778_400, "1778.4 ns"), (5_000, "5 ns"), (2_083_340, "2083.34 ns"), (7, "0.007 ns")]
        {
            assert_eq!(Picos(ps).to_string(), text);
        }
        assert_eq!(Picos(3) - Picos(4), Picos::ZERO);
        assert_eq!(Picos(u64::MAX) + Picos(1), Picos(u64::MAX));
    }
}
