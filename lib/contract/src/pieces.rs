//! The memory of a server of mailboxes: pieces that it lends to links, and pieces for messages that
//! go. Each link has its own, so that one whose cable is lost keeps none of another's.

use crate::mail::{PIECES, own_of_link};

/// The pieces of a server, by their numbers.
pub struct Pieces([MailPiece; PIECES]);

/// The use of one piece of memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum MailPiece {
    /// Memory for what comes by this link.
    Lent(usize),
    /// Memory for a message that goes by this link.
    Free(usize),
    /// A link has it, with a message of the mailbox with this number.
    Given(usize),
    /// There is no such memory.
    None,
}

impl Pieces {
    /// Returns the memory of a server. For each link, `links` says how many pieces it lends and
    /// whether it sends by the link.
    #[must_use]
    pub fn of(links: &[(u64, bool)]) -> Pieces {
        let senders = links.iter().filter(|(_, sends)| *sends).count();
        let mut pieces = Pieces([MailPiece::None; PIECES]);
        let mut rest = pieces.0.iter_mut();
        let mut put = |count: usize, piece| {
            rest.by_ref().take(count).for_each(|it| *it = piece);
        };
        for (link, (slots, _)) in links.iter().enumerate() {
            put(usize::try_from(*slots).unwrap_or(PIECES), MailPiece::Lent(link));
        }
        for (link, _) in links.iter().enumerate().filter(|(_, (_, sends))| *sends) {
            put(own_of_link(senders), MailPiece::Free(link));
        }
        pieces
    }

    /// Returns the use of a piece.
    #[must_use]
    pub fn get(&self, number: usize) -> MailPiece {
        self.0.get(number).copied().unwrap_or(MailPiece::None)
    }

    /// Changes the use of a piece.
    pub fn set(&mut self, number: usize, piece: MailPiece) {
        if let Some(it) = self.0.get_mut(number) {
            *it = piece;
        }
    }

    /// Returns a piece for a message that goes by a link.
    #[must_use]
    pub fn free(&self, link: usize) -> Option<usize> {
        self.0.iter().position(|it| *it == MailPiece::Free(link))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mail::OWN;
    use alloc::vec::Vec;

    /// Returns the links to which pieces are lent, in their order.
    fn lent(pieces: &Pieces) -> Vec<usize> {
        let lent = (0..PIECES).filter_map(|number| match pieces.get(number) {
            MailPiece::Lent(link) => Some(link),
            _ => None,
        });
        lent.collect()
    }

    /// Gives all the memory of a link, and returns how many messages that were.
    fn exhaust(pieces: &mut Pieces, link: usize) -> usize {
        let mut given = 0;
        while let Some(number) = pieces.free(link) {
            pieces.set(number, MailPiece::Given(0));
            given += 1;
        }
        given
    }

    #[test]
    fn a_link_that_keeps_its_messages_takes_no_memory_of_another() {
        for senders in 1..=4 {
            let links: Vec<(u64, bool)> = (0..4).map(|link| (8, link < senders)).collect();
            let mut pieces = Pieces::of(&links);
            assert_eq!(lent(&pieces), (0..32).map(|piece| piece / 8).collect::<Vec<_>>());
            for link in 0..4 {
                let own = if link < senders { own_of_link(senders) } else { 0 };
                assert_eq!(exhaust(&mut pieces, link), own, "link {link} of {senders}");
            }
        }
    }

    #[test]
    fn all_pieces_find_room() {
        let mut pieces = Pieces::of(&[((PIECES - OWN) as u64, true), (0, true)]);
        assert_eq!([0, 1].map(|link| exhaust(&mut pieces, link)), [OWN / 2; 2]);
        assert_eq!(pieces.get(PIECES), MailPiece::None);
        assert_eq!(lent(&Pieces::of(&[(u64::MAX, false)])).len(), PIECES);
    }
}
