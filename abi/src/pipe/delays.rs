//! How delays of messages are spread: counts by size, four sizes to a doubling.

use crate::Nanos;
use core::fmt;

/// Sizes that are told apart: up to a microsecond, then a quarter of an octave each, up to a
/// second.
pub const SIZES: usize = 81;
/// Sizes in a line.
const IN_A_LINE: usize = 8;

/// The size of a delay.
#[must_use]
pub const fn size_of_delay(delay: Nanos) -> usize {
    let micros = delay.0.div_ceil(1_000);
    if micros <= 1 {
        return 0;
    }
    // Sizes begin above what they do not hold.
    let last = micros - 1;
    let octave = last.ilog2();
    let quarter = (last << 2 >> octave) & 3;
    let size = 1 + 4 * octave as usize + quarter as usize;
    if size < SIZES { size } else { SIZES - 1 }
}

/// The longest delay of a size; the last size has everything longer, too.
#[must_use]
pub const fn longest_of(size: usize) -> Nanos {
    if size == 0 {
        return Nanos::from_micros(1);
    }
    let (octave, quarter) = ((size - 1) / 4, (size - 1) % 4);
    // The largest whole number of microseconds whose predecessor has this octave and quarter.
    let quarters = (4 + quarter as u64 + 1) << octave;
    Nanos(quarters.div_ceil(4) * 1_000)
}

/// Delays of a pipe's messages since the start, of a few neighbouring sizes: a line of the console.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PipeDelays {
    /// The channel it comes from.
    pub channel: u8,
    /// The first of the sizes.
    pub first: usize,
    /// How many messages had each.
    pub counts: [u32; IN_A_LINE],
}

/// Between the channel and the first size.
const WORD: &str = " delays ";

impl PipeDelays {
    /// The lines that say all of `counts`.
    pub fn lines(channel: u8, counts: &[u32; SIZES]) -> impl Iterator<Item = PipeDelays> {
        let lines = counts.chunks(IN_A_LINE).enumerate();
        let any = lines.filter(|(_, part)| part.iter().any(|count| *count > 0));
        any.map(move |(line, part)| {
            let mut counts = [0; IN_A_LINE];
            counts[..part.len()].copy_from_slice(part);
            PipeDelays { channel, first: line * IN_A_LINE, counts }
        })
    }

    /// What a line says, if it says this.
    #[must_use]
    pub fn parse(line: &str) -> Option<PipeDelays> {
        let (channel, rest) = line.strip_prefix(super::PREFIX)?.split_once(WORD)?;
        let (first, rest) = rest.split_once(':')?;
        let mut words = rest.split_whitespace();
        let mut counts = [0; IN_A_LINE];
        for count in &mut counts {
            *count = words.next()?.parse().ok()?;
        }
        let first = first.parse().ok().filter(|first| *first < SIZES)?;
        words.next().is_none().then_some(())?;
        Some(PipeDelays { channel: channel.parse().ok()?, first, counts })
    }
}

impl fmt::Display for PipeDelays {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}{WORD}{}:", super::PREFIX, self.channel, self.first)?;
        self.counts.iter().try_for_each(|count| write!(f, " {count}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_follow_each_other_and_hold_what_they_say() {
        assert_eq!(size_of_delay(Nanos::ZERO), 0);
        let mut before = Nanos::ZERO;
        for micros in (1..2_000_000u64).step_by(7).chain(1..64) {
            let delay = Nanos::from_micros(micros);
            let size = size_of_delay(delay);
            assert!(size < SIZES);
            assert!(delay <= longest_of(size) || size == SIZES - 1, "{micros}");
            assert!(size == 0 || delay > longest_of(size - 1) || size < 12, "{micros} {size}");
        }
        for size in 0..SIZES {
            assert!(longest_of(size) >= before);
            before = longest_of(size);
        }
    }

    #[test]
    fn what_is_written_is_read() {
        let mut counts = [0; SIZES];
        (counts[7], counts[8], counts[80]) = (3, u32::MAX, 5);
        let lines: Vec<PipeDelays> = PipeDelays::lines(4, &counts).collect();
        assert_eq!(lines.len(), 3);
        assert_eq!(lines[2].to_string(), "pipe can4 delays 80: 5 0 0 0 0 0 0 0");
        for line in lines {
            assert!(line.to_string().len() <= 112);
            assert_eq!(PipeDelays::parse(&line.to_string()), Some(line));
        }
        for other in ["pipe can4 delays 81: 0 0 0 0 0 0 0 0", "pipe can4 delays 8: 1 2", ""] {
            assert_eq!(PipeDelays::parse(other), None);
        }
    }
}
