//! The flight recorder's format: every entry into the kernel core, in order.
//!
//! A run recorded in QEMU is replayed on the host through the same core, which must take the same
//! decisions to the last one. An entry is ten words; user bytes the core read on the way to it
//! come before it, as [`EntryKind::Bytes`] entries.

pub const ENTRY_WORDS: usize = 10;
pub const ENTRY_BYTES: usize = ENTRY_WORDS * 8;

/// The kind of an entry.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum EntryKind {
    /// A call that changed no schedule: arguments and result.
    Quick = 1,
    /// A call decided by `enter`.
    Syscall = 2,
    Timer = 3,
    Irq = 4,
    /// A fault of the running thread.
    Fault = 5,
    Boot = 6,
    /// User memory read on the way to the next entry that is not this kind: up to 64 bytes.
    Bytes = 7,
    /// A device went beyond its grants, and the machine stopped that.
    Stray = 8,
}

impl EntryKind {
    /// Returns the kind with this number.
    #[must_use]
    pub const fn decode(number: u8) -> Option<EntryKind> {
        match number {
            1 => Some(EntryKind::Quick),
            2 => Some(EntryKind::Syscall),
            3 => Some(EntryKind::Timer),
            4 => Some(EntryKind::Irq),
            5 => Some(EntryKind::Fault),
            6 => Some(EntryKind::Boot),
            7 => Some(EntryKind::Bytes),
            8 => Some(EntryKind::Stray),
            _ => None,
        }
    }
}

/// One entry.
///
/// `arguments` are those of the call; of an interrupt the line; of a fault cause, address and
/// instruction; of a stray access device, address and fault. For `Bytes`, `detail` is the length
/// (or `u16::MAX` for a bad address) and the bytes lie in the words after the first.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Entry {
    /// The kind of the entry.
    pub kind: EntryKind,
    /// The call's number, or the length of `Bytes`.
    pub detail: u16,
    /// The thread that ran afterwards (`u16::MAX`: none).
    pub run: u16,
    /// Whether `result` was delivered to the thread.
    pub has_result: bool,
    /// Clock at entry; 0 for calls that changed no schedule.
    pub now: u64,
    pub arguments: [u64; 5],
    /// The result of the thread's call.
    pub result: u64,
    /// When the core wanted to be called again.
    pub alarm: u64,
}

impl Entry {
    /// Returns a call that changed no schedule; nobody read the clock for it.
    #[must_use]
    pub const fn quick(number: u64, arguments: [u64; 5], result: u64) -> Entry {
        Entry {
            kind: EntryKind::Quick,
            detail: number as u16,
            run: u16::MAX,
            has_result: false,
            now: 0,
            arguments,
            result,
            alarm: 0,
        }
    }

    /// As words. The last word is spare.
    #[must_use]
    pub fn to_words(&self) -> [u64; ENTRY_WORDS] {
        let a = &self.arguments;
        let head = self.kind as u64
            | (self.has_result as u64) << 8
            | (self.detail as u64) << 16
            | (self.run as u64) << 32;
        [head, self.now, a[0], a[1], a[2], a[3], a[4], self.result, self.alarm, 0]
    }

    /// From words; `None` if the kind is unknown.
    #[must_use]
    pub fn from_words(words: &[u64; ENTRY_WORDS]) -> Option<Entry> {
        Some(Entry {
            kind: EntryKind::decode(words[0] as u8)?,
            has_result: words[0] >> 8 & 1 == 1,
            detail: (words[0] >> 16) as u16,
            run: (words[0] >> 32) as u16,
            now: words[1],
            arguments: [words[2], words[3], words[4], words[5], words[6]],
            result: words[7],
            alarm: words[8],
        })
    }
}

/// Writes an access of user memory as entries: the bytes read, 64 to an entry, or that it failed.
pub fn access_words(bytes: Option<&[u8]>, mut keep: impl FnMut([u64; ENTRY_WORDS])) {
    let Some(bytes) = bytes else {
        let mut words = [0; ENTRY_WORDS];
        words[0] = EntryKind::Bytes as u64 | u64::from(u16::MAX) << 16;
        return keep(words);
    };
    for chunk in bytes.chunks(64) {
        let mut words = [0; ENTRY_WORDS];
        words[0] = EntryKind::Bytes as u64 | (chunk.len() as u64) << 16;
        for (word, part) in words[1..9].iter_mut().zip(chunk.chunks(8)) {
            let mut bytes = [0; 8];
            bytes[..part.len()].copy_from_slice(part);
            *word = u64::from_le_bytes(bytes);
        }
        keep(words);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_entry_survives_its_words() {
        let entry = Entry {
            kind: EntryKind::Syscall,
            detail: 11,
            run: 7,
            has_result: true,
            now: 1_000,
            arguments: [1, 2, 3, 4, u64::MAX],
            result: 9,
            alarm: u64::MAX,
        };
        assert_eq!(Entry::from_words(&entry.to_words()), Some(entry));
    }
}
