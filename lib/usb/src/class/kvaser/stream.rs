//! From transfers to commands: several come in one transfer, and one may be cut over two.

use super::command::{LONGEST, NORMAL, Received, number};

#[derive(Clone, Copy, Debug)]
pub(super) struct Stream {
    bytes: [u8; LONGEST],
    length: usize,
}

/// How long the command is that begins with these bytes.
enum Need {
    More,
    Bytes(usize),
    /// No command has this length.
    Nonsense,
}

fn need(bytes: &[u8]) -> Need {
    match *bytes {
        [] => Need::More,
        [number::EXTENDED, _, _, _, low, high, ..] => {
            let length = usize::from(u16::from_le_bytes([low, high]));
            let possible = (NORMAL..=LONGEST).contains(&length) && length.is_multiple_of(8);
            if possible { Need::Bytes(length) } else { Need::Nonsense }
        }
        [number::EXTENDED, ..] => Need::More,
        _ => Need::Bytes(NORMAL),
    }
}

impl Stream {
    pub(super) const fn new() -> Stream {
        Stream { bytes: [0; LONGEST], length: 0 }
    }

    /// Forgets the beginning of a command whose end was lost.
    pub(super) fn restart(&mut self) {
        self.length = 0;
    }

    /// Returns the command with which these bytes begin, and what is behind it, if no part of it is
    /// in another transfer.
    pub(super) fn whole<'a>(&self, bytes: &'a [u8]) -> Option<(Received<'a>, &'a [u8])> {
        if self.length > 0 {
            return None;
        }
        let Need::Bytes(length) = need(bytes) else { return None };
        let (command, rest) = bytes.split_at_checked(length)?;
        Some((Received(command), rest))
    }

    /// Takes the bytes of a transfer. False if they made no sense at some point: where the next
    /// command begins is not known then, and the rest is dropped.
    pub(super) fn feed(&mut self, mut bytes: &[u8], mut each: impl FnMut(Received<'_>)) -> bool {
        while !bytes.is_empty() {
            if let Some((command, rest)) = self.whole(bytes) {
                each(command);
                bytes = rest;
                continue;
            }
            let wanted = match need(&self.bytes[..self.length]) {
                Need::More => self.length + 1,
                Need::Bytes(length) => length,
                Need::Nonsense => {
                    self.length = 0;
                    return false;
                }
            };
            let count = (wanted - self.length).min(bytes.len());
            let (head, rest) = bytes.split_at(count);
            self.bytes[self.length..self.length + count].copy_from_slice(head);
            (self.length, bytes) = (self.length + count, rest);
            self.flush(&mut each);
        }
        let sane = !matches!(need(&self.bytes[..self.length]), Need::Nonsense);
        if !sane {
            self.length = 0;
        }
        sane
    }

    /// Hands on what was put together, if it is whole.
    fn flush(&mut self, each: &mut impl FnMut(Received<'_>)) {
        if let Need::Bytes(length) = need(&self.bytes[..self.length])
            && length == self.length
        {
            each(Received(&self.bytes[..length]));
            self.length = 0;
        }
    }
}
