//! Sizes and durations as people write them: `"64K"`, `"10ms"`.

const SIZES: [(&str, u64); 3] = [("K", 1 << 10), ("M", 1 << 20), ("G", 1 << 30)];
const DURATIONS: [(&str, u64); 4] =
    [("ns", 1), ("us", 1_000), ("ms", 1_000_000), ("s", 1_000_000_000)];

const FREQUENCIES: [(&str, u64); 3] = [("kHz", 1_000), ("MHz", 1_000_000), ("GHz", 1_000_000_000)];
const SHARES: [(&str, u64); 3] = [("%", 10_000), ("‰", 1_000), ("ppm", 1)];

/// Bytes in `text`, which is digits and one of K, M, G.
pub(crate) fn size(text: &str) -> Option<u64> {
    scaled(text, &SIZES)
}

/// Nanoseconds in `text`, which is a number and one of ns, us, ms, s. A fraction is allowed if it
/// makes whole nanoseconds.
pub(crate) fn duration(text: &str) -> Option<u64> {
    decimal(text, &DURATIONS)
}

/// Hertz in `text`, which is digits and one of kHz, MHz, GHz.
pub(crate) fn frequency(text: &str) -> Option<u64> {
    scaled(text, &FREQUENCIES)
}

/// Reads a rate in millionths, as in `-80ppm`.
pub(crate) fn millionths(text: &str) -> Option<i32> {
    text.strip_suffix("ppm")?.trim_end().parse().ok()
}

/// Parts per million in `text`: a number, fractions allowed, and one of %, ‰, ppm. `None` also if
/// it is not a whole number of millionths, or does not fit.
pub(crate) fn share(text: &str) -> Option<u32> {
    decimal(text, &SHARES)?.try_into().ok()
}

/// Returns a number with or without a fraction, times its unit, if that is whole.
fn decimal(text: &str, units: &[(&str, u64)]) -> Option<u64> {
    let unit = text.trim_start_matches(|c: char| c.is_ascii_digit() || c == '.');
    let (_, scale) = units.iter().find(|(name, _)| *name == unit)?;
    let (whole, fraction) = match text.strip_suffix(unit)?.split_once('.') {
        Some((_, "")) => return None,
        Some(parts) => parts,
        None => (text.strip_suffix(unit)?, ""),
    };
    let digits = |text: &str| text.bytes().all(|c| c.is_ascii_digit());
    if whole.is_empty() || !digits(whole) || !digits(fraction) || fraction.len() > 9 {
        return None;
    }
    let tenths = 10u128.pow(u32::try_from(fraction.len()).ok()?);
    let number = format!("{whole}{fraction}").parse::<u128>().ok()?;
    let number = number.checked_mul(u128::from(*scale))?;
    number.is_multiple_of(tenths).then_some(number / tenths)?.try_into().ok()
}

/// `ppm` as a percentage, exactly.
pub(crate) fn show_share(ppm: u32) -> String {
    let text = format!("{}.{:04}", ppm / 10_000, ppm % 10_000);
    format!("{}%", text.trim_end_matches('0').trim_end_matches('.'))
}

fn scaled(text: &str, units: &[(&str, u64)]) -> Option<u64> {
    let digits = text.len() - text.trim_start_matches(|c: char| c.is_ascii_digit()).len();
    let (number, unit) = text.split_at(digits);
    let (_, scale) = units.iter().find(|(name, _)| *name == unit)?;
    number.parse::<u64>().ok()?.checked_mul(*scale)
}

/// Returns the size that `text` means if its unit were written the one way we accept.
pub(crate) fn size_as_meant(text: &str) -> Option<String> {
    let compact = compact(text).to_ascii_uppercase();
    let stem = compact.strip_suffix("IB").or(compact.strip_suffix('B')).unwrap_or(&compact);
    let in_bytes = || stem.parse().ok().map(show_size).filter(|shown| size(shown).is_some());
    size(stem).map(|_| stem.to_owned()).or_else(in_bytes)
}

/// Returns the duration that `text` means if its unit were written the one way we accept.
pub(crate) fn duration_as_meant(text: &str) -> Option<String> {
    let compact = compact(text).to_lowercase().replace(['µ', 'μ'], "u");
    let meant = ["sec", "seconds", "second"]
        .iter()
        .find_map(|long| compact.strip_suffix(long).map(|number| format!("{number}s")))
        .unwrap_or(compact);
    duration(&meant).map(|_| meant)
}

fn compact(text: &str) -> String {
    text.chars().filter(|c| !c.is_whitespace() && *c != '_').collect()
}

/// `bytes` in the largest unit that shows it exactly.
pub(crate) fn show_size(bytes: u64) -> String {
    shown(bytes, &SIZES).unwrap_or_else(|| bytes.to_string())
}

/// `ns` in the largest unit that shows it exactly.
pub(crate) fn show_duration(ns: u64) -> String {
    shown(ns, &DURATIONS).unwrap_or_else(|| "0ns".to_owned())
}

fn shown(value: u64, units: &[(&str, u64)]) -> Option<String> {
    let (unit, scale) =
        units.iter().rev().find(|(_, scale)| value >= *scale && value.is_multiple_of(*scale))?;
    Some(format!("{}{unit}", value / scale))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes() {
        assert_eq!(size("64K"), Some(65536));
        assert_eq!(size("1M"), Some(1 << 20));
        assert_eq!(size("2G"), Some(2 << 30));
        for bad in ["", "K", "64", "64k", "64 K", "-1K", "+1K", "1.5M", "64KB", "１K", "64Kµ"] {
            assert_eq!(size(bad), None, "{bad}");
        }
        assert_eq!(size("99999999999999999999G"), None);
        assert_eq!(size("18446744073709551615G"), None);
    }

    #[test]
    fn durations() {
        assert_eq!(duration("10ms"), Some(10_000_000));
        assert_eq!(duration("5us"), Some(5_000));
        assert_eq!(duration("2s"), Some(2_000_000_000));
        assert_eq!(duration("7ns"), Some(7));
        assert_eq!(duration("0.5s"), Some(500_000_000));
        assert_eq!(duration("802.374us"), Some(802_374));
        for bad in ["", "ms", "10", "10 ms", "-1s", "1m", ".5s", "5.s", "1.5ns", "1.2.3s"] {
            assert_eq!(duration(bad), None, "{bad}");
        }
        assert_eq!(duration("1.0000000000s"), None, "more digits than are read");
    }

    #[test]
    fn frequencies() {
        assert_eq!(frequency("25MHz"), Some(25_000_000));
        assert_eq!(frequency("1GHz"), Some(1_000_000_000));
        for bad in ["", "GHz", "1", "1 GHz", "2.4GHz", "1Hz", "1mhz"] {
            assert_eq!(frequency(bad), None, "{bad}");
        }
    }

    #[test]
    fn shares() {
        assert_eq!(share("5%"), Some(50_000));
        assert_eq!(share("12.5%"), Some(125_000));
        assert_eq!(share("0.0001%"), Some(1));
        assert_eq!(share("33‰"), Some(33_000));
        assert_eq!(share("0.001‰"), Some(1));
        assert_eq!(share("7ppm"), Some(7));
        assert_eq!(share("7.0ppm"), Some(7));
        for bad in ["", "%", "5", "5 %", "-5%", ".5%", "5.%", "0.00001%", "0.5ppm", "1e3ppm"] {
            assert_eq!(share(bad), None, "{bad}");
        }
        assert_eq!(share("99999999999999999999%"), None);
        assert_eq!(share("999999999%"), None);
        for ppm in [0, 1, 50_000, 125_000, 333_333, 1_000_000] {
            assert_eq!(share(&show_share(ppm)), Some(ppm));
        }
    }

    #[test]
    fn what_was_meant() {
        assert_eq!(size_as_meant("64 KiB").as_deref(), Some("64K"));
        assert_eq!(size_as_meant("64kb").as_deref(), Some("64K"));
        assert_eq!(size_as_meant("65536").as_deref(), Some("64K"));
        assert_eq!(size_as_meant("65000"), None);
        assert_eq!(size_as_meant("lots"), None);
        assert_eq!(duration_as_meant("5 µs").as_deref(), Some("5us"));
        assert_eq!(duration_as_meant("3 seconds").as_deref(), Some("3s"));
        assert_eq!(duration_as_meant("soon"), None);
    }

    #[test]
    fn what_is_shown_reads_back() {
        assert_eq!(show_size(0), "0");
        assert_eq!(show_size(4096), "4K");
        assert_eq!(show_size(3 << 20), "3M");
        assert_eq!(show_size(4097), "4097");
        assert_eq!(show_duration(1_500_000), "1500us");
        assert_eq!(show_duration(0), "0ns");
        for ns in [1, 999, 1_000, 60_000_000_000] {
            assert_eq!(duration(&show_duration(ns)), Some(ns));
        }
    }
}
