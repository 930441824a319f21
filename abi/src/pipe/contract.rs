//! The contracts of a device's pipes: as the description tells them to the server in its arguments,
//! and the line in which a reader says that one was not kept.

use core::fmt;

/// Channels of a device.
pub const CHANNELS: usize = 5;
/// Messages a second in a unit of a rate: so much more is not noticed.
const UNIT: u64 = 32;
/// Where rates begin in the second argument, and their bits.
const RATES: (u32, u32) = (12, 10);
/// Where the burst is in the third argument, and its bits.
const BURST: (u32, u32) = (5, 11);

/// What is told: most messages a second of each channel's pipe, and at once of any. 0 is nothing.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Contracts {
    /// Of each channel, in the long run.
    pub rates: [u64; CHANNELS],
    /// At once, jitter included.
    pub burst: u64,
}

/// `value`, or the most that so many bits hold.
const fn within(value: u64, bits: u32) -> u64 {
    let most = (1 << bits) - 1;
    if value < most { value } else { most }
}

/// So many bits of a word.
const fn bits(word: u64, (from, count): (u32, u32)) -> u64 {
    word >> from & ((1 << count) - 1)
}

impl Contracts {
    /// In a server's arguments, beside what else is in them. Rates are rounded up.
    #[must_use]
    pub fn told_in(&self, [first, second, third, fourth]: [u64; 4]) -> [u64; 4] {
        let (from, count) = RATES;
        let rates =
            self.rates.iter().zip(0..).map(|(rate, channel)| {
                within(rate.div_ceil(UNIT), count) << (from + count * channel)
            });
        let burst = within(self.burst, BURST.1) << BURST.0;
        [first, second | rates.fold(0, |all, rate| all | rate), third | burst, fourth]
    }

    /// Out of them.
    #[must_use]
    pub fn of([_, second, third, _]: [u64; 4]) -> Contracts {
        let (from, count) = RATES;
        let rate = |channel| bits(second, (from + count * channel as u32, count)) * UNIT;
        Contracts { rates: core::array::from_fn(rate), burst: bits(third, BURST) }
    }
}

/// Messages of a pipe that were outside of its contract, since the start: a line of the console.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PipeOutside {
    /// The channel it comes from.
    pub channel: u8,
    /// How many.
    pub messages: u64,
}

/// Between the channel and the number.
const WORD: &str = " outside ";

impl PipeOutside {
    /// What a line says, if it says this.
    #[must_use]
    pub fn parse(line: &str) -> Option<PipeOutside> {
        let (channel, messages) = line.strip_prefix(super::PREFIX)?.split_once(WORD)?;
        Some(PipeOutside { channel: channel.parse().ok()?, messages: messages.parse().ok()? })
    }
}

impl fmt::Display for PipeOutside {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}{WORD}{}", super::PREFIX, self.channel, self.messages)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_told_is_heard_and_not_less() {
        let contracts = Contracts { rates: [470, 0, 1, 32, 40_000], burst: 9 };
        let told = contracts.told_in([0; 4]);
        let heard = Contracts { rates: [480, 0, 32, 32, 32_736], burst: 9 };
        assert_eq!(Contracts::of(told), heard);
        assert_eq!(heard.told_in([7, 0xfff, 0x1f, 9]), [7, told[1] | 0xfff, told[2] | 0x1f, 9]);
        let most = Contracts { rates: [u64::MAX; 5], burst: u64::MAX };
        assert_eq!(most.told_in([0; 4]), [0, (1 << 62) - (1 << 12), (1 << 16) - (1 << 5), 0]);
    }

    #[test]
    fn a_line_is_read_as_it_was_written() {
        let outside = PipeOutside { channel: 4, messages: 1_303 };
        assert_eq!(outside.to_string(), "pipe can4 outside 1303");
        assert_eq!(PipeOutside::parse("pipe can4 outside 1303"), Some(outside));
        for other in ["pipe can4 outside ", "pipe can4 outside 3 4", "can4 outside 3", ""] {
            assert_eq!(PipeOutside::parse(other), None);
        }
    }
}
