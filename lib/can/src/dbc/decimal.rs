//! Decimal numbers, exact: scales are written as such, and `0.1` has no binary fraction.

use core::fmt;

/// Digits that a number may be written with, leading and trailing zeros aside.
const DIGITS_MAX: u32 = 18;
/// Places behind the point.
const PLACES_MAX: i32 = 36;

/// `digits` times ten to the power of minus `places`. Equal numbers are equal values.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Decimal {
    digits: i128,
    places: u8,
}

impl Decimal {
    /// Returns a whole number.
    #[must_use]
    pub const fn whole(number: i128) -> Decimal {
        Decimal { digits: number, places: 0 }
    }

    /// `digits` with the point so many places from the right.
    #[must_use]
    pub const fn new(mut digits: i128, mut places: u8) -> Decimal {
        while places > 0 && digits % 10 == 0 {
            digits /= 10;
            places -= 1;
        }
        Decimal { digits, places }
    }

    /// Returns whether the number is 0.
    #[must_use]
    pub const fn is_zero(self) -> bool {
        self.digits == 0
    }

    /// Reads a text such as `-12`, `0.25` or `3.05E-05`; `None` if it is none, or has more than 18
    /// digits or 36 places.
    #[must_use]
    pub fn parse(text: &str) -> Option<Decimal> {
        let (mantissa, exponent) = text.split_once(['e', 'E']).unwrap_or((text, "0"));
        let exponent: i32 = exponent.parse().ok()?;
        let (negative, mantissa) = match mantissa.strip_prefix('-') {
            Some(rest) => (true, rest),
            None => (false, mantissa.strip_prefix('+').unwrap_or(mantissa)),
        };
        let (whole, part) = mantissa.split_once('.').unwrap_or((mantissa, ""));
        if whole.len() + part.len() == 0 || part.len() > 400 {
            return None;
        }
        let mut digits: i128 = 0;
        // Zeros that no other digit follows: they need no place.
        let (mut zeros, mut places) = (0u32, part.len() as i32);
        for byte in whole.bytes().chain(part.bytes()) {
            match byte {
                b'0' => zeros += u32::from(digits != 0),
                b'1'..=b'9' => {
                    digits = digits.checked_mul(10i128.checked_pow(zeros + 1)?)?;
                    digits += i128::from(byte - b'0');
                    zeros = 0;
                }
                _ => return None,
            }
        }
        places = places.checked_sub(zeros as i32)?.checked_sub(exponent)?;
        if digits >= 10i128.pow(DIGITS_MAX) {
            return None;
        }
        let digits = if negative { -digits } else { digits };
        match places {
            _ if digits == 0 => Some(Decimal::whole(0)),
            0..=PLACES_MAX => Some(Decimal::new(digits, places as u8)),
            -18..0 => Some(Decimal::whole(digits * 10i128.pow(places.unsigned_abs()))),
            _ => None,
        }
    }

    /// Returns the digits with so many places; `None` if that needs more, or they do not fit.
    fn with_places(self, places: u8) -> Option<i128> {
        let more = places.checked_sub(self.places)?;
        self.digits.checked_mul(10i128.checked_pow(more.into())?)
    }

    /// `number` times this; `None` if it does not fit.
    #[must_use]
    pub fn times(self, number: i128) -> Option<Decimal> {
        Some(Decimal::new(self.digits.checked_mul(number)?, self.places))
    }

    /// Returns the sum; `None` if it does not fit.
    #[must_use]
    pub fn plus(self, other: Decimal) -> Option<Decimal> {
        let places = self.places.max(other.places);
        let sum = self.with_places(places)?.checked_add(other.with_places(places)?)?;
        Some(Decimal::new(sum, places))
    }

    /// Returns the difference; `None` if it does not fit.
    #[must_use]
    pub fn minus(self, other: Decimal) -> Option<Decimal> {
        self.plus(Decimal { digits: other.digits.checked_neg()?, ..other })
    }

    /// Returns how often `other` is in this; `None` if that is no whole number, or does not fit.
    #[must_use]
    pub fn over(self, other: Decimal) -> Option<i128> {
        let places = self.places.max(other.places);
        let (own, its) = (self.with_places(places)?, other.with_places(places)?);
        (its != 0 && own.checked_rem(its)? == 0).then(|| own / its)
    }
}

impl fmt::Display for Decimal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sign = if self.digits < 0 { "-" } else { "" };
        let unit = 10u128.pow(self.places.into());
        let (whole, part) = (self.digits.unsigned_abs() / unit, self.digits.unsigned_abs() % unit);
        match self.places {
            0 => write!(f, "{sign}{whole}"),
            places => write!(f, "{sign}{whole}.{part:0places$}", places = usize::from(places)),
        }
    }
}
