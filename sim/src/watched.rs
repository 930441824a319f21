//! Words of shared memory that somebody watches: how far a pipe is written and read, for example.
//! Programs change them without asking anybody, so they are compared after every stretch of native
//! code, which takes no time: a change is noticed at the very instant of its trap.

use crate::memory::Shared;

/// A word of a segment.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Watched {
    /// The segment's number in the description.
    pub segment: u16,
    /// Bytes before the word.
    pub offset: usize,
}

/// The words that are watched, and what they were.
#[derive(Default)]
pub(crate) struct Watcher {
    words: Vec<(Watched, u64)>,
}

impl Watcher {
    /// Returns a watcher of these words, which are zero so far.
    pub fn new(words: &[Watched]) -> Watcher {
        Watcher { words: words.iter().map(|word| (*word, 0)).collect() }
    }

    /// Returns whether there is nothing to watch.
    pub fn is_idle(&self) -> bool {
        self.words.is_empty()
    }

    /// Words that are not what they were: which, what they were and are, and all of their segment.
    pub fn changes(
        &mut self,
        segments: &mut [(Shared, u64)],
        mut tell: impl FnMut(usize, (u64, u64), &[u8]),
    ) {
        for (number, (word, last)) in self.words.iter_mut().enumerate() {
            let Some((segment, _)) = segments.get_mut(usize::from(word.segment)) else { continue };
            let bytes = segment.bytes();
            let found = bytes.get(word.offset..).and_then(|rest| rest.first_chunk());
            let now = found.map_or(0, |bytes| u64::from_le_bytes(*bytes));
            if now != *last {
                tell(number, (*last, now), bytes);
                *last = now;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_is_told_once_and_what_is_not_there_never_changes() {
        let mut segments = [(Shared::new(1).unwrap(), 1)];
        let words = [(0, 8), (0, 4_090), (7, 0)];
        let words = words.map(|(segment, offset)| Watched { segment, offset });
        let mut watcher = Watcher::new(&words);
        assert!(!watcher.is_idle() && Watcher::default().is_idle());
        let mut told = Vec::new();
        for value in [0, 5, 5, 2] {
            segments[0].0.bytes()[8] = value;
            watcher.changes(&mut segments, |word, change, all| told.push((word, change, all[8])));
        }
        assert_eq!(told, [(0, (0, 5), 5), (0, (5, 2), 2)]);
    }
}
