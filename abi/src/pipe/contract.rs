//! The contracts of a device's channels, and the envelopes of programs that open pipes while the
//! system runs, as the description gives them to the server.

use crate::Nanos;

/// Channels of a device.
pub const CHANNELS: usize = 5;

/// The setting with the contracts of all channels.
pub const CONTRACTS: &str = "contracts";
/// The setting with the drift between the device's clock and the host's, in millionths.
pub const DRIFT: &str = "drift";
/// The drift if the description does not say: what ordinary crystals may.
pub const USUAL_DRIFT: u32 = 100;
/// The setting with the envelopes of all places for tuned pipes.
pub const ENVELOPES: &str = "tpipes";

/// The most that the pipe of a channel carries.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Contract {
    /// Messages a second in the long run; at least 1.
    pub rate: u64,
    /// Messages at once; at least 1.
    pub burst: u64,
    /// How long after its nominal time a message may come.
    pub jitter: Nanos,
}

/// The contracts of a device's channels; those without one have no pipe in the description.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Contracts(pub [Option<Contract>; CHANNELS]);

/// Words of a contract, and of an envelope.
const CONTRACT_WORDS: usize = 3;
const ENVELOPE_WORDS: usize = 5;

impl Contracts {
    /// Returns whether no channel has a contract.
    #[must_use]
    pub fn are_none(&self) -> bool {
        self.0.iter().all(Option::is_none)
    }

    /// Returns the contracts as the words of a setting.
    #[must_use]
    pub fn words(&self) -> [u64; CONTRACT_WORDS * CHANNELS] {
        let mut words = [0; CONTRACT_WORDS * CHANNELS];
        for (words, contract) in words.chunks_exact_mut(CONTRACT_WORDS).zip(&self.0) {
            if let Some(Contract { rate, burst, jitter }) = contract {
                words.copy_from_slice(&[*rate, *burst, jitter.0]);
            }
        }
        words
    }

    /// Out of a setting: a rate or a burst of 0 is no contract.
    #[must_use]
    pub fn of(words: &[u64]) -> Contracts {
        let contract = |channel: usize| {
            let [rate @ (1..), burst @ (1..), jitter] =
                *words.get(CONTRACT_WORDS * channel..)?.first_chunk::<CONTRACT_WORDS>()?
            else {
                return None;
            };
            Some(Contract { rate, burst, jitter: Nanos(jitter) })
        };
        Contracts(core::array::from_fn(contract))
    }
}

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

    /// All of a setting; a channel that no bit is for is left out.
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
    fn what_is_told_is_heard() {
        let contract =
            |rate, burst| Some(Contract { rate, burst, jitter: Nanos::from_micros(rate) });
        let contracts = Contracts([contract(470, 4), None, contract(1, 1), None, contract(9, 64)]);
        assert_eq!(Contracts::of(&contracts.words()), contracts);
        // A contract that is cut off or impossible reads as none.
        let cut = Contracts([contract(470, 4), None, contract(1, 1), None, None]);
        assert_eq!(Contracts::of(&contracts.words()[..14]), cut);
        assert!(Contracts::of(&[0, 5, 5, 5, 0, 5]).are_none() && Contracts::of(&[]).are_none());
    }

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
