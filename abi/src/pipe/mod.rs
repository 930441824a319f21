//! What the two ends of a pipe of CAN frames, descriptions and tools agree on: names and sizes of
//! its buffer, and the line in which a program says how its pipe does.
//!
//! The line is text because the console carries text; it is written and read here and nowhere else.

mod chain;
mod contract;
mod costs;
mod delays;
mod taken;
mod tuned;

pub use chain::{ChainReach, ChainReport, HOPS};
pub use contract::{CHANNELS, CONTRACTS, Contract, Contracts, ENVELOPES, Envelope, PipeOutside};
pub use costs::{AT_ONCE, BEFORE, COSTS, DriverCosts, OUTPUT_COSTS, OutputCosts};
pub use delays::{PipeDelays, SIZES, longest_of, size_of_delay};
pub use taken::PipeTaken;
pub use tuned::{TunedReport, WrittenReport};

use crate::Nanos;
use core::fmt;

/// Records in the buffer of a pipe.
pub const SLOTS: usize = 256;
/// Most bytes of a record.
pub const RECORD_BYTES: usize = 40;
/// Bytes of the segment with the buffer, in whole pages: two lines of counts, then the records.
pub const BYTES: u64 = (128 + SLOTS * RECORD_BYTES).next_multiple_of(crate::PAGE) as u64;

/// Records in the buffer of a pipe to a device: the article's 128 frames.
pub const OUT_SLOTS: usize = 128;
/// Most bytes of one.
pub const OUT_RECORD_BYTES: usize = 24;
/// Bytes of the segment with that buffer.
pub const OUT_BYTES: u64 =
    (128 + OUT_SLOTS * OUT_RECORD_BYTES).next_multiple_of(crate::PAGE) as u64;
/// Bytes of the segment with the reports on what became of them.
pub const REPORT_BYTES: u64 = 2 * crate::PAGE as u64;
/// The server rests so long before it listens to its clients again.
pub const REST: Nanos = Nanos::from_millis(1);
/// Requests that may wait for the server.
pub const REQUESTS: u16 = 4;

/// Most places for tuned pipes.
pub const PLACES: usize = 5;
/// Questions about a tuned pipe that may wait, and answers.
pub const QUESTIONS: u16 = 2;
/// C and T of the thread of a tuned pipe that is closed.
pub const CLOSED: (Nanos, Nanos) = (Nanos::from_micros(20), Nanos::from_millis(20));

/// How a pipe does, as its reader sees it. It fits into a line of the console.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct PipeReport {
    /// The channel it comes from.
    pub channel: u8,
    /// Messages read so far; of a pipe to a device, those that are through.
    pub messages: u64,
    /// Messages that were lost so far, on whatever part of the way.
    pub lost: u64,
    /// Most that ever waited in the buffer; of a pipe to a device, that were under way.
    pub peak: u64,
    /// The longest that one took from the server to the reader, since the last report. Of a pipe to
    /// a device: its acknowledgement to the server, beyond the fastest there ever was.
    pub reading: Nanos,
    /// The longest that one took from the device to the server, beyond the fastest there ever was:
    /// the two have clocks of their own. Of a pipe to a device: the rest, from the writer on.
    pub moving: Nanos,
    /// The longest sum of the two for one message, since the last report.
    pub whole: Nanos,
}

/// How the line begins.
const PREFIX: &str = "pipe can";

impl fmt::Display for PipeReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let PipeReport { channel, messages, lost, peak, reading, moving, whole } = self;
        write!(f, "{PREFIX}{channel}: {messages} read, {lost} lost, {peak} at once, ")?;
        write!(f, "{} + {}, {} ns", moving.0, reading.0, whole.0)
    }
}

impl PipeReport {
    /// The report in a line, if it is one.
    #[must_use]
    pub fn parse(line: &str) -> Option<PipeReport> {
        let (channel, rest) = line.strip_prefix(PREFIX)?.split_once(": ")?;
        let mut parts = rest.split(", ");
        let mut part = |unit: &str| parts.next()?.strip_suffix(unit);
        let [messages, lost, peak] = [part(" read")?, part(" lost")?, part(" at once")?];
        let (moving, reading) = part("")?.split_once(" + ")?;
        let whole = part(" ns")?;
        let time = |text: &str| text.parse().ok().map(Nanos);
        let report = PipeReport {
            channel: channel.parse().ok()?,
            messages: messages.parse().ok()?,
            lost: lost.parse().ok()?,
            peak: peak.parse().ok()?,
            reading: time(reading)?,
            moving: time(moving)?,
            whole: time(whole)?,
        };
        parts.next().is_none().then_some(report)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read() {
        let report = PipeReport {
            channel: 4,
            messages: 31_447,
            lost: 2,
            peak: 7,
            reading: Nanos(22_180),
            moving: Nanos(999_750),
            whole: Nanos(1_000_120),
        };
        let line = report.to_string();
        assert_eq!(line, "pipe can4: 31447 read, 2 lost, 7 at once, 999750 + 22180, 1000120 ns");
        assert_eq!(PipeReport::parse(&line), Some(report));
    }

    #[test]
    fn other_lines_are_none() {
        let line = PipeReport::default().to_string();
        for cut in 0..line.len() {
            assert_eq!(PipeReport::parse(&line[..cut]), None, "{cut}");
        }
        for other in [format!("{line}, 3"), format!(" {line}"), line.replace('0', "x")] {
            assert_eq!(PipeReport::parse(&other), None, "{other}");
        }
    }

    #[test]
    fn the_longest_fits_into_a_line() {
        let long = PipeReport {
            channel: 4,
            messages: 1 << 40,
            lost: 1 << 40,
            peak: SLOTS as u64,
            reading: Nanos::from_secs(100),
            moving: Nanos::from_secs(100),
            whole: Nanos::from_secs(200),
        };
        assert!(long.to_string().len() <= 112);
    }
}
