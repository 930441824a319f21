//! Messages of mailboxes between hosts: the layout of one on a link, and what a protocol server is
//! told of the mailboxes that it serves.
//!
//! The program [`PROGRAM`] takes messages out of a mailbox and gives them to a link, or takes them
//! from a link and puts them into a mailbox. The flows of a list of hosts say which mailboxes and
//! links these are. Nobody writes it twice.

use diapason_abi::{Key, MESSAGE_BYTES};
use diapason_frame::HEAD;

/// The program that carries messages of mailboxes over links.
pub const PROGRAM: &str = "link-mail";

/// The setting with the mailboxes whose messages go to links, as words of [`MailRoute`].
pub const POSTS: &str = "posts";
/// The setting with the mailboxes that take messages from links, as words of [`MailRoute`].
pub const DELIVERS: &str = "delivers";
/// The setting with the contract of each sender, in the order of [`POSTS`], as words of
/// [`Contracts`](crate::carried::Contracts). A mailbox without one is not held to any.
pub const CONTRACTS: &str = "contracts";
/// The setting with the contract of each flow to a mailbox with several senders, in the order of
/// [`DELIVERS`], as words of [`Contracts`](crate::carried::Contracts). A server puts no more
/// messages of the flow into the mailbox: it throws those away that a lost cable kept and that
/// come at once when it is back.
pub const ARRIVALS: &str = "arrivals";
/// The setting with the messages for which memory is lent to each link, a byte for each. 0: the
/// link is not used.
pub const SLOTS: &str = "slots";
/// Most mailboxes that one server serves in each direction: so many find room in its settings.
pub const EACH_MAX: usize = 8;
/// Messages for which a server has memory.
pub const PIECES: usize = 64;
/// Messages that may be under way to links, of those. Each link has [`own_of_link`] of them.
pub const OWN: usize = 24;

/// Bytes of a link's message before those of the mailbox's: the head, the number of the flow, and
/// the priority.
pub const BEFORE: usize = HEAD + 8;
/// Most bytes of a message on a link.
pub const BYTES_MAX: usize = BEFORE + MESSAGE_BYTES;
/// Words of a [`MailRoute`].
const WORDS: usize = 4;
/// Most bytes of a name that are kept.
const NAME: usize = 16;

/// Returns how many messages may be under way to each of the `links` by which a server sends.
/// Further ones are dropped and counted. A link whose cable is lost keeps no more than its own.
#[must_use]
pub fn own_of_link(links: usize) -> usize {
    OWN.checked_div(links).unwrap_or(OWN)
}

/// A mailbox that a server serves.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct MailRoute {
    pub mailbox: Key,
    /// The number of the flow in its list, which messages carry.
    pub flow: u32,
    /// The link that its messages go to or come from.
    pub link: usize,
    /// The first bytes of the name of the mailbox, and zeros.
    name: [u8; NAME],
}

impl MailRoute {
    /// Returns a mailbox of this name whose messages go by a link.
    #[must_use]
    pub fn new(mailbox: &str, flow: u32, link: usize) -> MailRoute {
        let mut name = [0; NAME];
        let mut length = mailbox.len().min(NAME);
        while !mailbox.is_char_boundary(length) {
            length -= 1;
        }
        name[..length].copy_from_slice(&mailbox.as_bytes()[..length]);
        MailRoute { mailbox: Key::new(mailbox), flow, link, name }
    }

    /// Returns the numbers of a setting.
    #[must_use]
    pub fn words(&self) -> [u64; WORDS] {
        let (halves, _) = self.name.as_chunks();
        let half = |at: usize| halves.get(at).map_or(0, |half| u64::from_le_bytes(*half));
        [self.mailbox.0, (self.link as u64) << 32 | u64::from(self.flow), half(0), half(1)]
    }

    /// Reads the mailboxes out of the numbers of a setting.
    pub fn all(numbers: &[u64]) -> impl Iterator<Item = MailRoute> + '_ {
        numbers.as_chunks::<WORDS>().0.iter().map(|[key, at, first, second]| {
            let mut name = [0; NAME];
            let halves = name.as_chunks_mut().0.iter_mut().zip([first, second]);
            halves.for_each(|(half, word)| *half = word.to_le_bytes());
            MailRoute { mailbox: Key(*key), flow: *at as u32, link: (at >> 32) as usize, name }
        })
    }

    /// Returns its name, or as much of it as was kept.
    #[must_use]
    pub fn name(&self) -> &str {
        let end = self.name.iter().position(|byte| *byte == 0).unwrap_or(NAME);
        str::from_utf8(&self.name[..end]).unwrap_or_default()
    }
}

/// The words between the head of a message and the mailbox's own bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct MailHead {
    /// The number of the flow.
    pub flow: u32,
    pub priority: u32,
}

impl MailHead {
    /// Returns the words of a message.
    #[must_use]
    pub const fn words(self) -> [u32; 2] {
        [self.flow, self.priority]
    }

    /// Returns the number of the flow in the bytes of a whole message on a link.
    #[must_use]
    pub fn flow_of(message: &[u8]) -> Option<u32> {
        Some(u32::from_le_bytes(*message.get(HEAD..)?.first_chunk()?))
    }

    /// Decodes the words of a message with so many bytes behind its head. Returns also how many
    /// bytes the mailbox's message has. `None` if it is no message of a mailbox.
    #[must_use]
    pub fn of([flow, priority]: [u32; 2], bytes: u16) -> Option<(MailHead, usize)> {
        let length = usize::from(bytes).checked_sub(BEFORE - HEAD)?;
        (length <= MESSAGE_BYTES).then_some((MailHead { flow, priority }, length))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::string::String;
    use alloc::vec::Vec;

    #[test]
    fn mailboxes_survive_their_setting() {
        let long = "a-mailbox-with-a-long-name";
        let all = [MailRoute::new("speeds", 3, 1), MailRoute::new(long, u32::MAX, 3)];
        let words: Vec<u64> = all.iter().flat_map(MailRoute::words).collect();
        assert_eq!(MailRoute::all(&words).collect::<Vec<_>>(), all);
        let names: Vec<String> = MailRoute::all(&words).map(|it| it.name().into()).collect();
        assert_eq!(names, ["speeds", "a-mailbox-with-a"]);
        assert_eq!(MailRoute::all(&words[..WORDS + 1]).count(), 1);
        let odd = MailRoute::new("fifteen-bytes--é", 0, 0);
        assert_eq!(odd.name(), "fifteen-bytes--");
    }

    #[test]
    fn all_settings_of_a_server_find_room() {
        let mut settings = diapason_abi::settings::Settings::NONE;
        let full: Vec<u64> =
            (0..EACH_MAX).flat_map(|at| MailRoute::new("a", at as u32, 0).words()).collect();
        let contracts = &full[..3 * EACH_MAX];
        for (name, words) in [
            (POSTS, &full[..]),
            (CONTRACTS, contracts),
            (DELIVERS, &full),
            (ARRIVALS, contracts),
            (SLOTS, &full[..1]),
        ] {
            assert_eq!(settings.put(name, words), Ok(()));
        }
    }

    #[test]
    fn a_message_of_another_length_is_none() {
        let words = MailHead { flow: 7, priority: 9 }.words();
        for bytes in 0..=u16::MAX {
            let length = usize::from(bytes);
            let expected = (8..=8 + MESSAGE_BYTES).contains(&length);
            let found = MailHead::of(words, bytes);
            assert_eq!(
                found.map(|(it, length)| (it.words(), length)),
                expected.then(|| (words, length - 8))
            );
        }
    }
}
