//! The line in which a program says how a pipe does that it opened while it ran.

use crate::Nanos;
use core::fmt;

/// How such a pipe does. It fits into a line of the console.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct TunedReport {
    /// Its place in the description.
    pub place: u8,
    /// The channel it comes from.
    pub channel: u8,
    /// Messages read so far.
    pub messages: u64,
    /// Messages that found its buffer full.
    pub lost: u64,
    /// Times the device said that it had lost some.
    pub overruns: u64,
    /// Messages outside of the pipe's contract.
    pub outside: u64,
    /// Times the channel was not there for a while.
    pub outages: u64,
    /// Most that ever waited in its buffer.
    pub peak: u64,
    /// Most that may, on the terms it has; none if it is closed.
    pub slots: u64,
    /// The longest that one took since the last report, beyond the fastest there ever was.
    pub longest: Nanos,
    /// The longest that one may, beyond the fastest; zero if it is closed.
    pub bound: Nanos,
}

/// How the line begins.
const PREFIX: &str = "tpipe";

impl fmt::Display for TunedReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let TunedReport { place, channel, messages, lost, overruns, .. } = self;
        let TunedReport { outside, outages, peak, slots, longest, bound, .. } = self;
        write!(f, "{PREFIX}{place} can{channel}: {messages} read, {lost} + {overruns} lost, ")?;
        write!(f, "{outside} outside, {outages} outages, {peak} of {slots}, ")?;
        write!(f, "{} of {} ns", longest.0, bound.0)
    }
}

/// Two numbers with `between` between them.
fn two(text: &str, between: &str) -> Option<(u64, u64)> {
    let (first, second) = text.split_once(between)?;
    Some((first.parse().ok()?, second.parse().ok()?))
}

impl TunedReport {
    /// The report in a line, if it is one.
    #[must_use]
    pub fn parse(line: &str) -> Option<TunedReport> {
        let (head, rest) = line.strip_prefix(PREFIX)?.split_once(": ")?;
        let (place, channel) = two(head, " can")?;
        let mut parts = rest.split(", ");
        let mut part = |unit: &str| parts.next()?.strip_suffix(unit);
        let messages = part(" read")?.parse().ok()?;
        let (lost, overruns) = two(part(" lost")?, " + ")?;
        let outside = part(" outside")?.parse().ok()?;
        let outages = part(" outages")?.parse().ok()?;
        let (peak, slots) = two(part("")?, " of ")?;
        let (longest, bound) = two(part(" ns")?, " of ")?;
        parts.next().is_none().then_some(())?;
        let small = |number: u64| u8::try_from(number).ok();
        let (place, channel) = (small(place)?, small(channel)?);
        let (longest, bound) = (Nanos(longest), Nanos(bound));
        Some(TunedReport {
            place,
            channel,
            messages,
            lost,
            overruns,
            outside,
            outages,
            peak,
            slots,
            longest,
            bound,
        })
    }
}

/// How such a pipe to a device does, from the write, or from the arrival of what is passed on. It
/// fits into a line, too.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct WrittenReport {
    /// Its place in the description.
    pub place: u8,
    /// The channel it goes to.
    pub channel: u8,
    /// Messages that are through.
    pub through: u64,
    /// Messages that will not be sent any more, or found no room.
    pub lost: u64,
    /// Times the channel was not there for a while.
    pub outages: u64,
    /// The longest until the server had taken one, since the last report, and the longest promised.
    pub taken: (Nanos, Nanos),
    /// The same until it was known to be through; zero if it is closed.
    pub whole: (Nanos, Nanos),
}

impl fmt::Display for WrittenReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let WrittenReport { place, channel, through, lost, outages, taken, whole } = self;
        write!(f, "{PREFIX}{place} to can{channel}: {through} sent, {lost} lost, ")?;
        write!(f, "{outages} outages, {} of {} + ", taken.0.0, taken.1.0)?;
        write!(f, "{} of {} ns", whole.0.0, whole.1.0)
    }
}

impl WrittenReport {
    /// The report in a line, if it is one.
    #[must_use]
    pub fn parse(line: &str) -> Option<WrittenReport> {
        let (head, rest) = line.strip_prefix(PREFIX)?.split_once(": ")?;
        let (place, channel) = two(head, " to can")?;
        let mut parts = rest.split(", ");
        let mut part = |unit: &str| parts.next()?.strip_suffix(unit);
        let [through, lost, outages] = [part(" sent")?, part(" lost")?, part(" outages")?];
        let (taken, whole) = part(" ns")?.split_once(" + ")?;
        parts.next().is_none().then_some(())?;
        let times = |text: &str| two(text, " of ").map(|(a, b)| (Nanos(a), Nanos(b)));
        Some(WrittenReport {
            place: u8::try_from(place).ok()?,
            channel: u8::try_from(channel).ok()?,
            through: through.parse().ok()?,
            lost: lost.parse().ok()?,
            outages: outages.parse().ok()?,
            taken: times(taken)?,
            whole: times(whole)?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_report_of_what_was_written_is_read_and_nothing_else() {
        let report = WrittenReport {
            place: 1,
            channel: 3,
            through: 31_447,
            lost: 12,
            outages: 1,
            taken: (Nanos(1_000), Nanos(2_000)),
            whole: (Nanos(7_000_120), Nanos(33_900_000)),
        };
        let line = report.to_string();
        let said =
            "tpipe1 to can3: 31447 sent, 12 lost, 1 outages, 1000 of 2000 + 7000120 of 33900000 ns";
        assert_eq!((line.as_str(), WrittenReport::parse(&line)), (said, Some(report)));
        assert_eq!(TunedReport::parse(&line), None);
        for cut in 0..line.len() {
            assert_eq!(WrittenReport::parse(&line[..cut]), None, "{cut}");
        }
        let (long, most) = (Nanos(9_999_999_999), 99_999_999);
        let long = WrittenReport {
            through: most,
            lost: 9_999,
            taken: (long, long),
            whole: (long, long),
            ..report
        };
        assert!(long.to_string().len() <= 112);
    }

    #[test]
    fn what_is_written_is_read_and_nothing_else() {
        let report = TunedReport {
            place: 1,
            channel: 4,
            messages: 31_447,
            lost: 2,
            overruns: 1,
            outside: 12,
            outages: 3,
            peak: 7,
            slots: 41,
            longest: Nanos(1_000_120),
            bound: Nanos(33_900_000),
        };
        let line = report.to_string();
        let said = "tpipe1 can4: 31447 read, 2 + 1 lost, 12 outside, 3 outages, 7 of 41, \
                    1000120 of 33900000 ns";
        assert_eq!(line, said);
        assert_eq!(TunedReport::parse(&line), Some(report));
        for cut in 0..line.len() {
            assert_eq!(TunedReport::parse(&line[..cut]), None, "{cut}");
        }
        for other in [format!("{line}, 3"), format!(" {line}"), line.replace("can4", "can444")] {
            assert_eq!(TunedReport::parse(&other), None, "{other}");
        }
    }

    #[test]
    fn a_long_one_fits_into_a_line() {
        let report = TunedReport {
            messages: 99_999_999,
            lost: 9_999,
            overruns: 99,
            outside: 99_999,
            outages: 99,
            peak: 256,
            slots: 256,
            longest: Nanos(9_999_999_999),
            bound: Nanos(9_999_999_999),
            ..TunedReport::default()
        };
        let length = report.to_string().len();
        assert!(length <= 112, "{length}");
    }
}
