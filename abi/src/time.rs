//! The one time type of the system: nanoseconds since boot, in a `u64`.

use core::fmt;
use core::ops::{Add, AddAssign, Sub};

/// A point in time since boot, or a length of time. Arithmetic saturates: a deadline that cannot
/// be represented is [`Nanos::FOREVER`], never a small number.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default, Hash)]
#[repr(transparent)]
pub struct Nanos(pub u64);

impl Nanos {
    /// Boot; as a deadline it means "do not block".
    pub const ZERO: Nanos = Nanos(0);
    pub const FOREVER: Nanos = Nanos(u64::MAX);

    /// Returns a duration of `n` microseconds.
    #[must_use]
    pub const fn from_micros(n: u64) -> Nanos {
        Nanos(n.saturating_mul(1_000))
    }

    /// Returns a duration of `n` milliseconds.
    #[must_use]
    pub const fn from_millis(n: u64) -> Nanos {
        Nanos(n.saturating_mul(1_000_000))
    }

    /// Returns a duration of `n` seconds.
    #[must_use]
    pub const fn from_secs(n: u64) -> Nanos {
        Nanos(n.saturating_mul(1_000_000_000))
    }
}

/// A length of time in the unit that suits it, three decimals: `412.300 us`. The kernel has no
/// text; what it does not call is not linked.
impl fmt::Display for Nanos {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (scale, unit) = match self.0 {
            ns @ 0..1_000 => return write!(f, "{ns} ns"),
            1_000..1_000_000 => (1_000, "us"),
            1_000_000..1_000_000_000 => (1_000_000, "ms"),
            _ => (1_000_000_000, "s"),
        };
        write!(f, "{}.{:03} {unit}", self.0 / scale, self.0 % scale * 1_000 / scale)
    }
}

impl Add for Nanos {
    type Output = Nanos;
    fn add(self, other: Nanos) -> Nanos {
        Nanos(self.0.saturating_add(other.0))
    }
}

impl AddAssign for Nanos {
    fn add_assign(&mut self, other: Nanos) {
        *self = *self + other;
    }
}

impl Sub for Nanos {
    type Output = Nanos;
    fn sub(self, other: Nanos) -> Nanos {
        Nanos(self.0.saturating_sub(other.0))
    }
}

#[cfg(test)]
mod tests {
    use super::Nanos;

    #[test]
    fn arithmetic_saturates_at_both_ends() {
        assert_eq!(Nanos(5) - Nanos(7), Nanos::ZERO);
        assert_eq!(Nanos::FOREVER + Nanos(1), Nanos::FOREVER);
        assert_eq!(Nanos::from_secs(u64::MAX), Nanos::FOREVER);
    }
}
