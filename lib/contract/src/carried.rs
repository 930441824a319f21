//! The contracts of CAN channels, as the description gives them to the server.

use crate::can::CHANNELS;
use diapason_abi::Nanos;

/// The setting with the contracts of all channels.
pub const CONTRACTS: &str = "contracts";

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

/// The contracts of a host's channels; those without one have no pipe in the description.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Contracts(pub [Option<Contract>; CHANNELS]);

/// Words of a contract.
const CONTRACT_WORDS: usize = 3;

/// Words of a setting.
#[derive(Clone, Copy, Debug)]
pub struct ContractWords {
    all: [u64; CONTRACT_WORDS * CHANNELS],
    length: usize,
}

impl core::ops::Deref for ContractWords {
    type Target = [u64];

    fn deref(&self) -> &[u64] {
        &self.all[..self.length]
    }
}

impl Contracts {
    /// Returns whether no channel has a contract.
    #[must_use]
    pub fn are_none(&self) -> bool {
        self.0.iter().all(Option::is_none)
    }

    /// Returns the contracts as the words of a setting. Those behind the last one are left out.
    #[must_use]
    pub fn words(&self) -> ContractWords {
        let length = self.0.iter().rposition(Option::is_some).map_or(0, |last| last + 1);
        let mut words =
            ContractWords { all: [0; CONTRACT_WORDS * CHANNELS], length: CONTRACT_WORDS * length };
        for (words, contract) in words.all.chunks_exact_mut(CONTRACT_WORDS).zip(&self.0) {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_told_is_heard() {
        let of = |some: &[Option<Contract>]| {
            Contracts(core::array::from_fn(|channel| some.get(channel).copied().flatten()))
        };
        let contract =
            |rate, burst| Some(Contract { rate, burst, jitter: Nanos::from_micros(rate) });
        let contracts = of(&[contract(470, 4), None, contract(1, 1), None, contract(9, 64)]);
        assert_eq!(Contracts::of(&contracts.words()), contracts);
        assert_eq!(contracts.words().len(), 15, "those behind the last one are left out");
        // A contract that is cut off or impossible reads as none.
        let cut = of(&[contract(470, 4), None, contract(1, 1)]);
        assert_eq!(Contracts::of(&contracts.words()[..14]), cut);
        assert!(Contracts::of(&[0, 5, 5, 5, 0, 5]).are_none() && Contracts::of(&[]).are_none());
    }
}
