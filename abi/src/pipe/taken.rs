//! The line in which the writer of a pipe to a device says how long the server let its messages
//! wait.

use crate::Nanos;
use core::fmt;

/// The longest that a message was in the pipe until the server took it, since the last line.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PipeTaken {
    /// The channel it goes to.
    pub channel: u8,
    /// From the write.
    pub taking: Nanos,
}

/// Between the channel and the time, and behind it.
const WORD: &str = " taken within ";
const UNIT: &str = " ns";

impl PipeTaken {
    /// What a line says, if it says this.
    #[must_use]
    pub fn parse(line: &str) -> Option<PipeTaken> {
        let (channel, rest) = line.strip_prefix(super::PREFIX)?.split_once(WORD)?;
        let taking = rest.strip_suffix(UNIT)?.parse().ok().map(Nanos)?;
        Some(PipeTaken { channel: channel.parse().ok()?, taking })
    }
}

impl fmt::Display for PipeTaken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}{WORD}{}{UNIT}", super::PREFIX, self.channel, self.taking.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_read_as_it_was_written() {
        let taken = PipeTaken { channel: 4, taking: Nanos(41_000_123) };
        let line = taken.to_string();
        assert_eq!(line, "pipe can4 taken within 41000123 ns");
        assert_eq!(PipeTaken::parse(&line), Some(taken));
        for cut in 0..line.len() {
            assert_eq!(PipeTaken::parse(&line[..cut]), None, "{cut}");
        }
        assert_eq!(PipeTaken::parse("can4 taken within 3 ns"), None);
    }
}
