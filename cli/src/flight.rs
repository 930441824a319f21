//! The flight record of a run: every entry into the kernel core, as the machine sent it.

use diapason_abi::recorder::{ENTRY_BYTES, ENTRY_WORDS, Entry};

/// A flight record cannot be used.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Damaged {
    /// The record ends inside an entry, after so many whole ones.
    Cut(usize),
    /// This entry is of an unknown kind.
    Unknown(usize),
}

impl std::fmt::Display for Damaged {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Damaged::Cut(entries) => {
                write!(f, "the flight record is cut off after {entries} entries")
            }
            Damaged::Unknown(entry) => {
                write!(f, "entry {entry} of the flight record is of an unknown kind")
            }
        }
    }
}

/// Returns the entries in `bytes`, in order.
///
/// # Errors
/// If it is not a whole number of known entries.
pub fn entries(bytes: &[u8]) -> Result<Vec<Entry>, Damaged> {
    let (whole, rest) = bytes.as_chunks::<ENTRY_BYTES>();
    if !rest.is_empty() {
        return Err(Damaged::Cut(whole.len()));
    }
    let decoded = whole.iter().enumerate().map(|(index, bytes)| {
        let mut words = [0; ENTRY_WORDS];
        let (chunks, _) = bytes.as_chunks::<8>();
        words.iter_mut().zip(chunks).for_each(|(word, bytes)| *word = u64::from_le_bytes(*bytes));
        Entry::from_words(&words).ok_or(Damaged::Unknown(index))
    });
    decoded.collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use diapason_abi::recorder::EntryKind;

    fn entry(now: u64) -> Entry {
        Entry {
            kind: EntryKind::Syscall,
            detail: 6,
            run: 2,
            has_result: false,
            now,
            arguments: [1, 2, 3, 4, 5],
            result: 0,
            alarm: u64::MAX,
        }
    }

    fn bytes(entries: &[Entry]) -> Vec<u8> {
        entries.iter().flat_map(|e| e.to_words()).flat_map(u64::to_le_bytes).collect()
    }

    #[test]
    fn entries_come_back_in_order() {
        let record = [entry(1), entry(2)];
        assert_eq!(entries(&bytes(&record)), Ok(record.to_vec()));
        assert_eq!(entries(&[]), Ok(Vec::new()));
    }

    #[test]
    fn damage_is_located() {
        let mut record = bytes(&[entry(1), entry(2)]);
        record[ENTRY_BYTES] = 0xff;
        assert_eq!(entries(&record), Err(Damaged::Unknown(1)));
        record.pop();
        assert_eq!(entries(&record), Err(Damaged::Cut(1)));
    }
}
