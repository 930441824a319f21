//! The table of a router: by which link or mailbox each flow comes, by which it goes on, and the
//! most that it may send.
//!
//! The program [`PROGRAM`] passes messages on between the links and mailboxes of its host. The
//! flows of a list of hosts say which way each goes. Nobody writes it twice, and no router computes
//! it.

use crate::carried::{CONTRACT_WORDS, Contract};
use crate::link::{LINKS, MESSAGE_MAX, UNIT};
use crate::mail::MAILBOXES_MAX;

/// The program that passes messages on between links and mailboxes.
pub const PROGRAM: &str = "link-router";
/// Bytes of the stack of each thread of a router.
pub const STACK: u64 = 12 << 10;
/// The setting with the ways of flows, as words of [`LinkRoute`].
pub const ROUTES: &str = "routes";
/// The setting with the word of a [`RouterMemory`].
pub const MEMORY: &str = "memory";
/// Most ways of flows through a router.
pub const ROUTES_MAX: usize = 24;
/// Most messages for which a router has memory.
pub const PIECES: usize = 64;
/// Messages out of mailboxes that may be on their way out at once, of those.
pub const OWN: usize = 24;
/// Words of a [`LinkRoute`].
const WORDS: usize = CONTRACT_WORDS;

/// A place by which messages come to a router or leave it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Gate {
    /// The link with this number.
    Link(usize),
    /// The mailbox with this number in the setting of the router's mailboxes.
    Mailbox(usize),
}

impl Gate {
    const fn byte(self) -> u8 {
        match self {
            Gate::Link(number) => number as u8,
            Gate::Mailbox(number) => (LINKS + number) as u8,
        }
    }

    fn of(byte: u8) -> Option<Gate> {
        match usize::from(byte) {
            number if number < LINKS => Some(Gate::Link(number)),
            number => {
                Some(Gate::Mailbox(number - LINKS)).filter(|_| number < LINKS + MAILBOXES_MAX)
            }
        }
    }
}

/// The way of a flow through a router.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LinkRoute {
    /// The link or mailbox by which its messages come.
    pub from: Gate,
    /// The label of its messages. The first way from a link is that of messages with another label,
    /// too.
    pub label: u8,
    /// The link or mailbox by which they go on.
    pub to: Gate,
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
        let [from, to] = [self.from, self.to].map(Gate::byte);
        let way = u32::from_le_bytes([from, to, self.label, self.most]);
        let [pace, burst, jitter] = self.contract.map_or([0; CONTRACT_WORDS], Contract::words);
        // A burst of so many messages is as good as any.
        let burst = burst.min(u32::MAX.into());
        [u64::from(way) | burst << 32, pace, jitter]
    }

    /// Reads the ways out of the numbers of a setting. Those by places that cannot be are left out.
    pub fn all(numbers: &[u64]) -> impl Iterator<Item = LinkRoute> + '_ {
        let ways = numbers.as_chunks::<WORDS>().0.iter().filter_map(|[way, pace, jitter]| {
            let [from, to, label, most] = (*way as u32).to_le_bytes();
            let contract = Contract::of([*pace, way >> 32, *jitter]);
            let (from, to) = (Gate::of(from)?, Gate::of(to)?);
            Some(LinkRoute { from, label, to, contract, most })
        });
        ways.take(ROUTES_MAX)
    }
}

/// The memory of a router.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RouterMemory {
    /// Most bytes of a message, below 2^24.
    pub bytes: u32,
    /// Messages out of mailboxes for which it has memory.
    pub own: u8,
    /// Messages for which it lends memory to each link.
    pub slots: [u8; LINKS],
}

impl RouterMemory {
    /// Returns the number of a setting.
    #[must_use]
    pub const fn word(self) -> u64 {
        let low = self.bytes as u64 & 0xff_ffff | (self.own as u64) << 24;
        low | (u32::from_le_bytes(self.slots) as u64) << 32
    }

    /// Reads the number of a setting.
    #[must_use]
    pub const fn of(word: u64) -> RouterMemory {
        let slots = ((word >> 32) as u32).to_le_bytes();
        RouterMemory { bytes: word as u32 & 0xff_ffff, own: (word >> 24) as u8, slots }
    }

    /// Returns the bytes of a piece of memory for one message. A piece begins at a multiple of
    /// them, so no message crosses a multiple of [`MESSAGE_MAX`].
    #[must_use]
    pub fn piece(self) -> usize {
        (self.bytes as usize).next_power_of_two().clamp(UNIT, MESSAGE_MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mail::{BoxName, MAILBOXES};
    use alloc::vec::Vec;
    use diapason_abi::Nanos;
    use diapason_abi::settings::Settings;

    #[test]
    fn a_table_survives_its_setting() {
        let per = Nanos::from_millis(2);
        let contract = Contract { messages: 3, per, burst: 4, jitter: Nanos(5) };
        let all = [
            LinkRoute {
                from: Gate::Link(0),
                label: 7,
                to: Gate::Mailbox(MAILBOXES_MAX - 1),
                contract: Some(contract),
                most: 9,
            },
            LinkRoute {
                from: Gate::Mailbox(0),
                label: u8::MAX,
                to: Gate::Link(3),
                contract: None,
                most: 0,
            },
        ];
        let words: Vec<u64> = all.iter().flat_map(LinkRoute::words).collect();
        assert_eq!(LinkRoute::all(&words).collect::<Vec<_>>(), all);
        assert_eq!(LinkRoute::all(&words[..WORDS + 1]).count(), 1);
        let first = (LINKS + MAILBOXES_MAX) as u64;
        assert_eq!(LinkRoute::all(&[first, 0, 0, first << 8, 0, 0]).count(), 0, "no such places");
        let memory = RouterMemory { bytes: 65_536, own: 24, slots: [8, 0, 255, 1] };
        assert_eq!(RouterMemory::of(memory.word()), memory);
        assert_eq!(memory.piece(), MESSAGE_MAX);
        assert_eq!(RouterMemory { bytes: 84, ..memory }.piece(), UNIT);
        assert_eq!(RouterMemory { bytes: 1_100, ..memory }.piece(), 2 * UNIT);
        let full: Vec<u64> = (0..ROUTES_MAX).flat_map(|_| all[0].words()).collect();
        let mut settings = Settings::NONE;
        assert_eq!(settings.put(ROUTES, &full), Ok(()));
        assert_eq!(settings.put(MEMORY, &[memory.word()]), Ok(()));
        let boxes: Vec<u64> =
            (0..MAILBOXES_MAX).flat_map(|_| BoxName::new("speeds").words()).collect();
        assert_eq!(settings.put(MAILBOXES, &boxes), Ok(()));
    }
}
