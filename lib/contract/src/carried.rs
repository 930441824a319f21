//! The contracts of pipes from devices, as the description gives them to the server.

use crate::source::PIPES;
use diapason_abi::Nanos;

/// The setting with the contracts of all pipes.
pub const CONTRACTS: &str = "contracts";

/// The most that a pipe carries.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Contract {
    /// Messages in `per`, in the long run; at least 1.
    pub messages: u32,
    /// The time in which so many may come, at most [`PER_MAX`].
    pub per: Nanos,
    /// Messages at once; at least 1.
    pub burst: u64,
    /// How long after its nominal time a message may come.
    pub jitter: Nanos,
}

/// The longest time from one message to the next, and the one that a word need not say.
pub const PER_MAX: Nanos = Nanos::from_secs(1);

/// The contracts of a host's pipes, by their numbers; a number without one has no pipe in the
/// description.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Contracts(pub [Option<Contract>; PIPES]);

/// Words of a contract.
pub(crate) const CONTRACT_WORDS: usize = 3;

/// Words of a setting.
#[derive(Clone, Copy, Debug)]
pub struct ContractWords {
    all: [u64; CONTRACT_WORDS * PIPES],
    length: usize,
}

impl core::ops::Deref for ContractWords {
    type Target = [u64];

    fn deref(&self) -> &[u64] {
        &self.all[..self.length]
    }
}

impl Contract {
    /// Returns messages and time as a word: the time is in the upper half, and 0 is a second.
    const fn pace(self) -> u64 {
        let per = if self.per.0 == PER_MAX.0 { 0 } else { self.per.0 };
        per << 32 | self.messages as u64
    }

    pub(crate) const fn words(self) -> [u64; CONTRACT_WORDS] {
        [self.pace(), self.burst, self.jitter.0]
    }

    /// Reads a contract. A pace or a burst of 0 is none.
    pub(crate) const fn of(words: [u64; CONTRACT_WORDS]) -> Option<Contract> {
        let [pace, burst @ (1..), jitter] = words else { return None };
        let (messages @ (1..), per) = (pace as u32, pace >> 32) else { return None };
        let per = if per == 0 { PER_MAX } else { Nanos(per) };
        Some(Contract { messages, per, burst, jitter: Nanos(jitter) })
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
            ContractWords { all: [0; CONTRACT_WORDS * PIPES], length: CONTRACT_WORDS * length };
        for (words, contract) in words.all.chunks_exact_mut(CONTRACT_WORDS).zip(&self.0) {
            if let Some(contract) = contract {
                words.copy_from_slice(&contract.words());
            }
        }
        words
    }

    /// Out of a setting: a pace or a burst of 0 is no contract.
    #[must_use]
    pub fn of(words: &[u64]) -> Contracts {
        let contract =
            |number: usize| Contract::of(*words.get(CONTRACT_WORDS * number..)?.first_chunk()?);
        Contracts(core::array::from_fn(contract))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_told_is_heard() {
        let of = |some: &[Option<Contract>]| {
            Contracts(core::array::from_fn(|number| some.get(number).copied().flatten()))
        };
        let every = |messages: u32, per, burst| {
            let jitter = Nanos::from_micros(messages.into());
            Some(Contract { messages, per, burst, jitter })
        };
        let contract = |messages, burst| every(messages, PER_MAX, burst);
        let rare = every(1, Nanos::from_millis(41), 64);
        let contracts = of(&[contract(470, 4), None, contract(1, 1), None, rare]);
        assert_eq!(contracts.words()[..3], [470, 4, 470_000], "as it was before there were times");
        assert_eq!(Contracts::of(&contracts.words()), contracts);
        assert_eq!(contracts.words().len(), 15, "those behind the last one are left out");
        // A contract that is cut off or impossible reads as none.
        let cut = of(&[contract(470, 4), None, contract(1, 1)]);
        assert_eq!(Contracts::of(&contracts.words()[..14]), cut);
        assert!(Contracts::of(&[0, 5, 5, 5, 0, 5]).are_none() && Contracts::of(&[]).are_none());
    }
}
