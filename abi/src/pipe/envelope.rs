//! The envelopes of programs that open pipes while the system runs, as the description gives them
//! to the server, and the drift of its devices' clocks.

use crate::Nanos;

/// The setting with the drift between the device's clock and the host's, in millionths.
pub const DRIFT: &str = "drift";
/// The drift if the description does not say: what ordinary crystals may.
pub const USUAL_DRIFT: u32 = 100;
/// The setting with the envelopes of all places for tuned pipes.
pub const ENVELOPES: &str = "tpipes";

/// Words of an envelope.
const ENVELOPE_WORDS: usize = 5;

/// The limits of the requests in one place for tuned pipes. The server grants nothing beyond them,
/// and the plan counts all of them.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Envelope {
    /// Channels it may listen to, one bit each.
    pub channels: u8,
    /// Channels it may write to.
    pub to: u8,
    /// Most messages a second in the long run.
    pub rate: u64,
    /// Most messages at once.
    pub burst: u64,
    /// Most C of its thread.
    pub budget: Nanos,
    /// Least T of its thread.
    pub period: Nanos,
}

impl Envelope {
    /// Returns whether the program may listen to this channel.
    #[must_use]
    pub const fn has(&self, channel: u8) -> bool {
        channel < u8::BITS as u8 && self.channels >> channel & 1 != 0
    }

    /// Returns whether the program may write to this channel.
    #[must_use]
    pub const fn writes(&self, channel: u8) -> bool {
        channel < u8::BITS as u8 && self.to >> channel & 1 != 0
    }

    /// As a part of a setting.
    #[must_use]
    pub fn words(&self) -> [u64; ENVELOPE_WORDS] {
        let Envelope { channels, to, rate, burst, budget, period } = *self;
        [u16::from_le_bytes([channels, to]).into(), rate, burst, budget.0, period.0]
    }

    /// Returns all of a setting; a channel that no bit is for is left out.
    pub fn all(words: &[u64]) -> impl ExactSizeIterator<Item = Envelope> + '_ {
        words.chunks_exact(ENVELOPE_WORDS).map(|words| Envelope {
            channels: words[0] as u8,
            to: (words[0] >> 8) as u8,
            rate: words[1],
            burst: words[2],
            budget: Nanos(words[3]),
            period: Nanos(words[4]),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn envelopes_are_heard() {
        let envelope = |rate| Envelope {
            channels: 0b1_0010,
            to: 0b100,
            rate,
            burst: 8,
            budget: Nanos::from_micros(400),
            period: Nanos::from_millis(4),
        };
        let words = [envelope(400).words(), envelope(3_200).words()].concat();
        let heard: Vec<Envelope> = Envelope::all(&words).collect();
        assert_eq!(heard, [envelope(400), envelope(3_200)]);
        assert_eq!(Envelope::all(&words[..9]).len(), 1);
        assert!(heard[0].writes(2) && !heard[0].writes(1) && !heard[0].writes(200));
        let listens = [0, 1, 4, 7, 8, 255].map(|channel| envelope(1).has(channel));
        assert_eq!(listens, [false, true, true, false, false, false]);
    }
}
