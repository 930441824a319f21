//! Lengths of time as people write them (`10s`, `1.5ms`) and as they read them.

use diapason_abi::Nanos;

/// Units, longest suffix first where one ends in another.
const UNITS: [(&str, u64); 7] = [
    ("ns", 1),
    ("us", 1_000),
    ("µs", 1_000),
    ("ms", 1_000_000),
    ("min", 60_000_000_000),
    ("s", 1_000_000_000),
    ("h", 3_600_000_000_000),
];

/// Nanoseconds of a text like `10s`, `250ms`, `1.5us`, `2min`, `1h`.
///
/// # Errors
/// A sentence that says what a duration looks like.
pub fn parse(text: &str) -> Result<u64, String> {
    let wrong = || {
        format!(
            "`{text}` is not a length of time: write a number and one of ns, us, ms, s, min, h, \
             for example 10s or 1.5ms"
        )
    };
    let trimmed = text.trim();
    if trimmed.starts_with('-') {
        return Err(format!("`{text}` is no length of time: write one above zero, such as 10s"));
    }
    let (number, scale) = UNITS
        .iter()
        .find_map(|(unit, scale)| Some((trimmed.strip_suffix(unit)?, *scale)))
        .ok_or_else(wrong)?;
    let ns = scaled(number.trim_end(), scale).ok_or_else(wrong)?;
    if ns == 0 { Err(format!("`{text}` is zero: write a longer time")) } else { Ok(ns) }
}

/// `number` (digits, perhaps with a fraction) times `scale`, exactly; `None` if it is not whole.
pub(crate) fn scaled(number: &str, scale: u64) -> Option<u64> {
    let (whole, fraction) = number.split_once('.').unwrap_or((number, "0"));
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    if !digits(whole) || !digits(fraction) || fraction.len() > 12 {
        return None;
    }
    let mut ns = whole.parse::<u64>().ok()?.checked_mul(scale)?;
    let part = fraction.parse::<u128>().ok()? * u128::from(scale);
    let divisor = 10u128.pow(fraction.len() as u32);
    if part % divisor != 0 {
        return None;
    }
    ns = ns.checked_add(u64::try_from(part / divisor).ok()?)?;
    Some(ns)
}

/// Returns a clock time in seconds with all nine digits: `0.012345678`.
#[must_use]
pub fn seconds(ns: u64) -> String {
    format!("{}.{:09}", ns / 1_000_000_000, ns % 1_000_000_000)
}

/// Returns a length of time in the unit that suits it, three decimals: `412.300 us`.
#[must_use]
pub fn human(ns: u64) -> String {
    Nanos(ns).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_read_exactly() {
        let cases = [
            ("10s", 10_000_000_000),
            ("250ms", 250_000_000),
            ("1.5us", 1_500),
            ("3µs", 3_000),
            ("7ns", 7),
            ("2min", 120_000_000_000),
            ("0.5h", 1_800_000_000_000),
            (" 4 s ", 4_000_000_000),
        ];
        for (text, ns) in cases {
            assert_eq!(parse(text), Ok(ns), "{text}");
        }
    }

    #[test]
    fn what_is_no_duration_is_refused() {
        for text in
            ["", "10", "s", "-1s", "1.s", ".5s", "1e3s", "0.5ns", "1.1ns", "0s", "99999999999h"]
        {
            assert!(parse(text).is_err(), "{text}");
        }
        assert!(parse("ten").unwrap_err().contains("for example 10s"));
    }

    #[test]
    fn lengths_read_well() {
        assert_eq!(human(999), "999 ns");
        assert_eq!(human(412_345), "412.345 us");
        assert_eq!(human(10_000_000_000), "10.000 s");
        assert_eq!(seconds(12_345_678), "0.012345678");
    }
}
