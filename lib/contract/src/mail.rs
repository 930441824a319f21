//! Messages of mailboxes between hosts: the layout of one on a link, and the mailboxes of a router.
//!
//! A router takes messages out of a mailbox and gives them to a link, or takes them from a link and
//! puts them into a mailbox. The flows of a list of hosts say which mailboxes and links these are.
//! Nobody writes it twice.

use diapason_abi::{Key, MESSAGE_BYTES};
use diapason_frame::HEAD;

/// The setting with the mailboxes of a router, as words of [`BoxName`].
pub const MAILBOXES: &str = "mailboxes";
/// Most mailboxes of a router.
pub const MAILBOXES_MAX: usize = 12;

/// Bytes of a link's message before those of the mailbox's: the head, the number of the flow, and
/// the priority.
pub const BEFORE: usize = HEAD + 8;
/// Most bytes of a message on a link.
pub const BYTES_MAX: usize = BEFORE + MESSAGE_BYTES;
/// Words of a [`BoxName`].
const WORDS: usize = 3;
/// Most bytes of a name that are kept.
const NAME: usize = 16;

/// A mailbox of a router, with its name.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct BoxName {
    pub mailbox: Key,
    /// The first bytes of its name, and zeros.
    name: [u8; NAME],
}

impl BoxName {
    /// Returns the mailbox of this name.
    #[must_use]
    pub fn new(mailbox: &str) -> BoxName {
        let mut name = [0; NAME];
        let mut length = mailbox.len().min(NAME);
        while !mailbox.is_char_boundary(length) {
            length -= 1;
        }
        name[..length].copy_from_slice(&mailbox.as_bytes()[..length]);
        BoxName { mailbox: Key::new(mailbox), name }
    }

    /// Returns the numbers of a setting.
    #[must_use]
    pub fn words(&self) -> [u64; WORDS] {
        let (halves, _) = self.name.as_chunks();
        let half = |at: usize| halves.get(at).map_or(0, |half| u64::from_le_bytes(*half));
        [self.mailbox.0, half(0), half(1)]
    }

    /// Reads the mailboxes out of the numbers of a setting.
    pub fn all(numbers: &[u64]) -> impl Iterator<Item = BoxName> + '_ {
        numbers.as_chunks::<WORDS>().0.iter().map(|[key, first, second]| {
            let mut name = [0; NAME];
            let halves = name.as_chunks_mut().0.iter_mut().zip([first, second]);
            halves.for_each(|(half, word)| *half = word.to_le_bytes());
            BoxName { mailbox: Key(*key), name }
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
        let all = [BoxName::new("speeds"), BoxName::new("a-mailbox-with-a-long-name")];
        let words: Vec<u64> = all.iter().flat_map(BoxName::words).collect();
        assert_eq!(BoxName::all(&words).collect::<Vec<_>>(), all);
        let names: Vec<String> = BoxName::all(&words).map(|it| it.name().into()).collect();
        assert_eq!(names, ["speeds", "a-mailbox-with-a"]);
        assert_eq!(BoxName::all(&words[..WORDS + 1]).count(), 1);
        assert_eq!(BoxName::new("fifteen-bytes--é").name(), "fifteen-bytes--");
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
