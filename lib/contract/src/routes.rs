//! The table of a router: by which link each flow goes on, and the most that it may send.
//!
//! The program [`PROGRAM`] passes messages on between the links of its host. The flows of a list of
//! hosts say which way each goes. Nobody writes it twice, and no router computes it.

use crate::carried::{CONTRACT_WORDS, Contract};
use crate::link::LINKS;

/// The program that passes messages on between links.
pub const PROGRAM: &str = "link-router";
/// The setting with the ways of flows, as words of [`LinkRoute`].
pub const ROUTES: &str = "routes";
/// The setting with the word of a [`RouterMemory`].
pub const MEMORY: &str = "memory";
/// Most ways of flows through a router.
pub const ROUTES_MAX: usize = 16;
/// Most messages for which a router has memory.
pub const PIECES: usize = 32;
/// Words of a [`LinkRoute`].
const WORDS: usize = 1 + CONTRACT_WORDS;

/// The way of a flow through a router.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LinkRoute {
    /// The link by which its messages come.
    pub from: usize,
    /// The label of its messages. The first way from a link is that of messages with another label,
    /// too.
    pub label: u8,
    /// The link by which they go on.
    pub to: usize,
    /// The most messages that go on. Without one any number may.
    pub contract: Option<Contract>,
    /// Messages that may be on their way out at once; 0: any number. Further ones are thrown away:
    /// the host at the other end takes none, and other flows need the memory.
    pub most: u8,
}

impl LinkRoute {
    /// Returns the numbers of a setting.
    #[must_use]
    pub fn words(&self) -> [u64; WORDS] {
        let [from, to] = [self.from, self.to].map(|link| link as u8);
        let way = u32::from_le_bytes([from, to, self.label, self.most]).into();
        let [pace, burst, jitter] = self.contract.map_or([0; CONTRACT_WORDS], Contract::words);
        [way, pace, burst, jitter]
    }

    /// Reads the ways out of the numbers of a setting. Those by links that cannot be are left out.
    pub fn all(numbers: &[u64]) -> impl Iterator<Item = LinkRoute> + '_ {
        let ways = numbers.as_chunks::<WORDS>().0.iter().map(|[way, contract @ ..]| {
            let [from, to, label, most, ..] = way.to_le_bytes();
            let contract = Contract::of(*contract);
            LinkRoute { from: from.into(), label, to: to.into(), contract, most }
        });
        ways.filter(|way| way.from < LINKS && way.to < LINKS).take(ROUTES_MAX)
    }
}

/// The memory of a router.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RouterMemory {
    /// Most bytes of a message.
    pub bytes: u32,
    /// Messages for which it lends memory to each link.
    pub slots: [u8; LINKS],
}

impl RouterMemory {
    /// Returns the number of a setting.
    #[must_use]
    pub const fn word(self) -> u64 {
        self.bytes as u64 | (u32::from_le_bytes(self.slots) as u64) << 32
    }

    /// Reads the number of a setting.
    #[must_use]
    pub const fn of(word: u64) -> RouterMemory {
        RouterMemory { bytes: word as u32, slots: ((word >> 32) as u32).to_le_bytes() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;
    use diapason_abi::Nanos;
    use diapason_abi::settings::Settings;

    #[test]
    fn a_table_survives_its_setting() {
        let per = Nanos::from_millis(2);
        let contract = Contract { messages: 3, per, burst: 4, jitter: Nanos(5) };
        let all = [
            LinkRoute { from: 0, label: 7, to: 3, contract: Some(contract), most: 9 },
            LinkRoute { from: 2, label: u8::MAX, to: 1, contract: None, most: 0 },
        ];
        let words: Vec<u64> = all.iter().flat_map(LinkRoute::words).collect();
        assert_eq!(LinkRoute::all(&words).collect::<Vec<_>>(), all);
        assert_eq!(LinkRoute::all(&words[..WORDS + 1]).count(), 1);
        assert_eq!(LinkRoute::all(&[4, 0, 0, 0, 4 << 8, 0, 0, 0]).count(), 0, "no such links");
        let memory = RouterMemory { bytes: 65_536, slots: [8, 0, 255, 1] };
        assert_eq!(RouterMemory::of(memory.word()), memory);
        let full: Vec<u64> = (0..ROUTES_MAX).flat_map(|_| all[0].words()).collect();
        let mut settings = Settings::NONE;
        assert_eq!(settings.put(ROUTES, &full), Ok(()));
        assert_eq!(settings.put(MEMORY, &[memory.word()]), Ok(()));
    }
}
