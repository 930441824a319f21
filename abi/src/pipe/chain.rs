//! The lines in which the last thread of a chain says how its messages do.

use crate::Nanos;
use core::fmt;

/// Most threads of a chain.
pub const HOPS: usize = 4;

/// How the messages of a chain do, from the device to the chain's end. It fits into a line of the
/// console.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct ChainReport {
    /// Messages at the end so far.
    pub messages: u64,
    /// Messages that are missing there, and that no newer one stands for.
    pub lost: u64,
    /// Messages that a newer one stands for: a thread took the newest only.
    pub replaced: u64,
    /// The longest that one took since the last report, beyond the fastest way from the device to
    /// the server there ever was.
    pub whole: Nanos,
}

/// When messages have passed a thread of a chain: the longest since the last report, counted as
/// that of the whole chain.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct ChainReach {
    /// The thread's place in the chain, from 0.
    pub thread: u8,
    /// How long after they arrived.
    pub after: Nanos,
}

const PREFIX: &str = "chain: ";
const THREAD: &str = "chain thread ";

impl fmt::Display for ChainReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ChainReport { messages, lost, replaced, whole } = self;
        write!(f, "{PREFIX}{messages} through, {lost} lost, {replaced} replaced, {} ns", whole.0)
    }
}

impl ChainReport {
    /// The report in a line, if it is one.
    #[must_use]
    pub fn parse(line: &str) -> Option<ChainReport> {
        let mut parts = line.strip_prefix(PREFIX)?.split(", ");
        let mut part = |unit: &str| parts.next()?.strip_suffix(unit)?.parse().ok();
        let [messages, lost, replaced] = [part(" through")?, part(" lost")?, part(" replaced")?];
        let whole = Nanos(part(" ns")?);
        parts.next().is_none().then_some(ChainReport { messages, lost, replaced, whole })
    }
}

impl fmt::Display for ChainReach {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{THREAD}{}: {} ns", self.thread, self.after.0)
    }
}

impl ChainReach {
    /// What a line says, if it says this.
    #[must_use]
    pub fn parse(line: &str) -> Option<ChainReach> {
        let (thread, after) = line.strip_prefix(THREAD)?.split_once(": ")?;
        let thread = thread.parse().ok().filter(|thread| usize::from(*thread) < HOPS)?;
        Some(ChainReach { thread, after: Nanos(after.strip_suffix(" ns")?.parse().ok()?) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read() {
        let (messages, lost, replaced) = (31_447, 2, 1 << 40);
        let report = ChainReport { messages, lost, replaced, whole: Nanos(1_000_120) };
        let line = report.to_string();
        assert_eq!(line, "chain: 31447 through, 2 lost, 1099511627776 replaced, 1000120 ns");
        assert_eq!(ChainReport::parse(&line), Some(report));
        let reach = ChainReach { thread: 2, after: Nanos(97) };
        assert_eq!(reach.to_string(), "chain thread 2: 97 ns");
        assert_eq!(ChainReach::parse("chain thread 2: 97 ns"), Some(reach));
    }

    #[test]
    fn other_lines_are_none() {
        let line = ChainReport::default().to_string();
        for cut in 0..line.len() {
            assert_eq!(ChainReport::parse(&line[..cut]), None, "{cut}");
        }
        let other = [format!("{line}, 3"), format!(" {line}"), line.replace('0', "x")];
        other.iter().for_each(|other| assert_eq!(ChainReport::parse(other), None, "{other}"));
        for other in ["chain thread 4: 1 ns", "chain thread 1: ns", "chain thread 1: 1", "chain"] {
            assert_eq!(ChainReach::parse(other), None, "{other}");
        }
    }

    #[test]
    fn the_longest_fits_into_a_line() {
        let most = 1 << 40;
        let (messages, lost, replaced) = (most, most, most);
        let long = ChainReport { messages, lost, replaced, whole: Nanos::from_secs(1_000) };
        assert!(long.to_string().len() <= 112);
    }
}
