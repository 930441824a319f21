//! A state message of any size: a circular buffer of `N` slots.
//!
//! The writer fills the slot after the newest one and then publishes it by counting up; a reader
//! loads the count and copies the slot it names. A reader is safe as long as fewer than `N` writes
//! touch the time from its load of the count to its last word: the `N`-th would be into its slot.
//! [`depth`](crate::depth) says which `N` makes that certain.

use core::sync::atomic::{AtomicU64, Ordering, fence};

use crate::copy::Slot;
use crate::handle::{StateReader, StateWriter, sealed};
use crate::{Plain, Step};

/// The cell of a value larger than a word, `N` slots deep. Zeroed memory is a valid cell whose
/// value is all zero.
///
/// The layout is fixed (`repr(C)`): two processes that agree on `T` and `N` may share it.
///
/// ```
/// use diapason_state::StateBuffer;
/// let mut cell = StateBuffer::<[f64; 6], 3>::new();
/// let (mut writer, reader) = cell.split();
/// writer.write([1.0; 6]);
/// writer.write([2.0; 6]);
/// assert_eq!(reader.read(), [2.0; 6]);
/// ```
///
/// One slot is never enough, and does not compile:
///
/// ```compile_fail,E0080
/// diapason_state::StateBuffer::<[u64; 2], 1>::new();
/// ```
#[repr(C)]
pub struct StateBuffer<T, const N: usize> {
    /// Writes completed so far. The newest value is in slot `published % N`.
    published: AtomicU64,
    /// Writes begun so far: `published`, or one more. Only [`StateReader::read_checked`] looks at
    /// it.
    begun: AtomicU64,
    slots: [Slot<T>; N],
}

/// `N` or more writes touched one read: a deadline was missed, or `N` was computed under
/// assumptions that do not hold.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Overtaken {
    /// How many writes touched the read: `N` should have been one more.
    pub writes: u64,
}

impl<T: Plain, const N: usize> StateBuffer<T, N> {
    const DEEP_ENOUGH: () = assert!(N >= 2, "a StateBuffer needs at least two slots");

    /// Returns a cell whose value is all zero.
    #[must_use]
    pub const fn new() -> Self {
        let () = Self::DEEP_ENOUGH;
        StateBuffer {
            published: AtomicU64::new(0),
            begun: AtomicU64::new(0),
            slots: [const { Slot::zeroed() }; N],
        }
    }

    /// Returns a cell holding `initial`.
    #[must_use]
    pub const fn holding(initial: T) -> Self {
        let mut cell = Self::new();
        cell.slots[0] = Slot::holding(initial);
        cell
    }

    /// Returns the one writer, and a reader to copy.
    pub fn split(&mut self) -> (StateWriter<'_, Self>, StateReader<'_, Self>) {
        StateWriter::pair(self)
    }

    #[inline(always)]
    fn slot(&self, write: u64) -> &Slot<T> {
        let () = Self::DEEP_ENOUGH;
        &self.slots[(write % N as u64) as usize]
    }

    /// Returns the newest value, and which write it is from.
    #[inline(always)]
    fn copy_newest<S: Step>(&self) -> (T, u64) {
        S::step();
        let newest = self.published.load(Ordering::Acquire);
        let value = self.slot(newest).load::<S>();
        // The copy ends here: without the fence the compiler could delay its last loads.
        fence(Ordering::Acquire);
        (value, newest)
    }
}

impl<T: Plain, const N: usize> Default for StateBuffer<T, N> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T: Plain, const N: usize> sealed::Cell for StateBuffer<T, N> {
    type Value = T;

    #[inline(always)]
    fn put<S: Step>(&self, value: T) {
        let next = self.published.load(Ordering::Relaxed).wrapping_add(1);
        S::step();
        self.begun.store(next, Ordering::Relaxed);
        // No store into the slot may overtake this announcement, nor the publication of the write
        // before: a reader that sees any of them also sees those two.
        fence(Ordering::Release);
        self.slot(next).store::<S>(&value);
        S::step();
        self.published.store(next, Ordering::Release);
    }

    #[inline(always)]
    fn get<S: Step>(&self) -> T {
        self.copy_newest::<S>().0
    }
}

impl<T: Plain, const N: usize, S: Step> StateReader<'_, StateBuffer<T, N>, S> {
    /// Writes completed so far: 0 means that the value is still the initial one, and a number
    /// that has not moved since the last look means that there is nothing new.
    #[inline]
    #[must_use]
    pub fn published(&self) -> u64 {
        self.cell().published.load(Ordering::Acquire)
    }

    /// Like [`StateReader::read`], and reports a read that the writer has overtaken.
    ///
    /// `Ok` is certainly whole, whatever the schedule was. `Err` comes exactly if `N` or more
    /// writes touched the time of the read, so it cannot happen while the assumptions of the depth
    /// hold: it is an alarm about the system rather than about this read. Use it where a deadline
    /// miss must be noticed. It costs one more load and a compare.
    ///
    /// ```
    /// use diapason_state::StateBuffer;
    /// let mut cell = StateBuffer::<[u64; 4], 3>::new();
    /// let (mut writer, reader) = cell.split();
    /// writer.write([7; 4]);
    /// assert_eq!(reader.read_checked(), Ok([7; 4]));
    /// ```
    ///
    /// # Errors
    ///
    /// [`Overtaken`]: the value may be a mixture of two writes and is withheld.
    #[inline]
    pub fn read_checked(&self) -> Result<T, Overtaken> {
        let (value, newest) = self.cell().copy_newest::<S>();
        S::step();
        let writes = self.cell().begun.load(Ordering::Relaxed).wrapping_sub(newest);
        // The first write into the copied slot is number `newest + N`.
        if writes < N as u64 { Ok(value) } else { Err(Overtaken { writes }) }
    }
}

#[cfg(test)]
mod tests {
    use super::StateBuffer;

    #[test]
    fn the_last_value_wins_for_longer_than_the_buffer_is_deep() {
        let mut cell = StateBuffer::<[u64; 3], 3>::holding([9; 3]);
        let (mut writer, reader) = cell.split();
        assert_eq!((reader.read(), reader.published()), ([9; 3], 0));
        for number in 1..=20 {
            writer.write([number; 3]);
            assert_eq!((reader.read(), reader.published()), ([number; 3], number));
            assert_eq!(reader.read_checked(), Ok([number; 3]));
        }
    }

    #[test]
    fn the_layout_is_two_counts_and_the_slots() {
        assert_eq!(size_of::<StateBuffer<[u64; 3], 4>>(), 16 + 4 * 24);
        assert_eq!(size_of::<StateBuffer<[u8; 13], 2>>(), 16 + 2 * 16);
        assert_eq!(align_of::<StateBuffer<[u8; 13], 2>>(), 8);
    }
}
