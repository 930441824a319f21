//! A state message of at most eight bytes: one machine word, one access.
//!
//! No depth, no index, nothing to prove: the machine reads and writes an aligned word in one
//! piece. There is no [`Step`] in here for the same reason.

use core::marker::PhantomData;
use core::mem::size_of;
use core::sync::atomic::{AtomicU64, Ordering};

use crate::handle::{StateReader, StateWriter, sealed};
use crate::{Plain, Step};

/// The cell of a value of at most eight bytes. Zeroed memory is a valid cell holding zero.
///
/// ```
/// use diapason_state::StateWord;
/// let mut speed = StateWord::<f32>::new(0.0);
/// let (mut writer, reader) = speed.split();
/// writer.write(1.5);
/// assert_eq!(reader.read(), 1.5);
/// ```
///
/// A larger value does not compile:
///
/// ```compile_fail,E0080
/// diapason_state::StateWord::<[u64; 2]>::new([0; 2]);
/// ```
#[repr(transparent)]
pub struct StateWord<T> {
    word: AtomicU64,
    value: PhantomData<T>,
}

impl<T: Plain> StateWord<T> {
    const FITS: () =
        assert!(size_of::<T>() <= 8, "a StateWord holds at most 8 bytes: use a StateBuffer");

    /// Returns a cell holding `initial`.
    #[must_use]
    pub const fn new(initial: T) -> Self {
        StateWord { word: AtomicU64::new(Self::pack(initial)), value: PhantomData }
    }

    /// Returns the one writer, and a reader to copy.
    pub fn split(&mut self) -> (StateWriter<'_, Self>, StateReader<'_, Self>) {
        StateWriter::pair(self)
    }

    #[inline(always)]
    const fn pack(value: T) -> u64 {
        let () = Self::FITS;
        let mut word = 0_u64;
        let bytes = (&raw mut word).cast::<T>();
        // SAFETY: `T` fits into the word; all its bytes are initialised (`Plain`).
        unsafe { bytes.write_unaligned(value) };
        word
    }

    #[inline(always)]
    const fn unpack(word: u64) -> T {
        let () = Self::FITS;
        // SAFETY: `T` fits into the word, and every pattern is a value of a `Plain` type.
        unsafe { (&raw const word).cast::<T>().read_unaligned() }
    }
}

impl<T: Plain> Default for StateWord<T> {
    /// Returns a cell like fresh memory: all bytes zero.
    fn default() -> Self {
        StateWord { word: AtomicU64::new(0), value: PhantomData }
    }
}

impl<T: Plain> sealed::Cell for StateWord<T> {
    type Value = T;

    #[inline(always)]
    fn put<S: Step>(&self, value: T) {
        self.word.store(Self::pack(value), Ordering::Release);
    }

    #[inline(always)]
    fn get<S: Step>(&self) -> T {
        Self::unpack(self.word.load(Ordering::Acquire))
    }
}

#[cfg(test)]
mod tests {
    use super::StateWord;

    #[test]
    fn a_word_keeps_the_last_value_and_reads_do_not_consume() {
        let mut cell = StateWord::<[i16; 3]>::default();
        let (mut writer, reader) = cell.split();
        assert_eq!(reader.read(), [0; 3]);
        writer.write([1, 2, 3]);
        writer.write([-1, -2, -3]);
        assert_eq!([reader.read(), reader.read()], [[-1, -2, -3]; 2]);
    }

    #[test]
    fn a_word_is_one_word() {
        assert_eq!(size_of::<StateWord<u8>>(), 8);
        assert_eq!(align_of::<StateWord<u8>>(), 8);
    }
}
