//! The shared memory of a pipe's buffer: two counts, two measurements, the slots.
//!
//! `written` and `taken` only grow; their difference is the fill, and record `k` is in slot
//! `k mod N`. Each count is stored by one end only. An end keeps its own count in its handle too
//! and believes only that one, so of what the other end can spoil it uses a single number, and
//! checks it ([`Ring::fill`]).

use core::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use diapason_state::Plain;

use crate::slot::Slot;
use crate::{Reader, Writer};

/// The fields that the writer stores. A cache line of its own, so that the ends do not slow each
/// other down.
#[repr(C, align(64))]
pub(crate) struct ByWriter {
    /// Records put in so far.
    pub(crate) written: AtomicU64,
    /// Records there was no room for.
    pub(crate) lost: AtomicU64,
    pub(crate) peak: AtomicU64,
}

/// The fields that the reader stores.
#[repr(C, align(64))]
pub(crate) struct ByReader {
    /// Records taken out so far.
    pub(crate) taken: AtomicU64,
}

/// A ring of `N` records. Zeroed memory is a valid ring, and empty.
///
/// The layout is fixed (`repr(C)`): two processes that agree on `T` and `N` may share it.
/// A record is plain data of whole words:
///
/// ```compile_fail,E0080
/// diapason_pipe::Ring::<u32, 8>::new().split().0.push(&1);
/// ```
///
/// and a ring without a slot does not compile either:
///
/// ```compile_fail,E0080
/// diapason_pipe::Ring::<u64, 0>::new();
/// ```
#[repr(C)]
pub struct Ring<T, const N: usize> {
    pub(crate) by_writer: ByWriter,
    pub(crate) by_reader: ByReader,
    slots: [Slot<T>; N],
}

/// There was no room; the record was dropped and counted as lost.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RingFull;

/// The counts contradict each other: somebody wrote over them.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Corrupt;

impl<T: Plain, const N: usize> Ring<T, N> {
    const HAS_A_SLOT: () = assert!(N > 0, "a ring needs at least one slot");

    /// Returns an empty ring.
    #[must_use]
    pub const fn new() -> Self {
        let () = Self::HAS_A_SLOT;
        Ring {
            by_writer: ByWriter {
                written: AtomicU64::new(0),
                lost: AtomicU64::new(0),
                peak: AtomicU64::new(0),
            },
            by_reader: ByReader { taken: AtomicU64::new(0) },
            slots: [const { Slot::zeroed() }; N],
        }
    }

    /// Returns both ends, for threads of one process.
    pub fn split(&mut self) -> (Writer<'_, T, N>, Reader<'_, T, N>) {
        let ring = &*self;
        (Writer::attach(ring), Reader::attach(ring))
    }

    /// Returns the slot of record `number`: inside the ring for any number whatever.
    #[inline(always)]
    pub(crate) fn slot(&self, number: u64) -> &Slot<T> {
        let () = Self::HAS_A_SLOT;
        &self.slots[(number % N as u64) as usize]
    }

    /// Records in the ring, at most `N`.
    #[inline(always)]
    pub(crate) fn fill(written: u64, taken: u64) -> Result<usize, Corrupt> {
        match written.wrapping_sub(taken) {
            fill if fill <= N as u64 => Ok(fill as usize),
            _ => Err(Corrupt),
        }
    }
}

impl<T: Plain, const N: usize> Default for Ring<T, N> {
    fn default() -> Self {
        Self::new()
    }
}

/// A ring in a `static`, which hands out each of its ends once.
///
/// ```
/// use diapason_pipe::StaticRing;
/// static RING: StaticRing<[u64; 2], 4> = StaticRing::new();
/// let mut writer = RING.writer().expect("nobody has asked before");
/// let mut reader = RING.reader().expect("nobody has asked before");
/// assert!(RING.writer().is_none() && RING.reader().is_none());
/// assert_eq!(writer.push(&[1, 2]), Ok(()));
/// assert_eq!(reader.pop(), Some([1, 2]));
/// ```
pub struct StaticRing<T, const N: usize> {
    ring: Ring<T, N>,
    written: AtomicBool,
    read: AtomicBool,
}

impl<T: Plain, const N: usize> StaticRing<T, N> {
    /// Returns an empty ring, whose ends have not been taken.
    #[must_use]
    pub const fn new() -> Self {
        let (written, read) = (AtomicBool::new(false), AtomicBool::new(false));
        StaticRing { ring: Ring::new(), written, read }
    }

    /// Returns the writing end, to the first who asks.
    pub fn writer(&self) -> Option<Writer<'_, T, N>> {
        (!self.written.swap(true, Ordering::AcqRel)).then(|| Writer::attach(&self.ring))
    }

    /// Returns the reading end, to the first who asks.
    pub fn reader(&self) -> Option<Reader<'_, T, N>> {
        (!self.read.swap(true, Ordering::AcqRel)).then(|| Reader::attach(&self.ring))
    }
}

impl<T: Plain, const N: usize> Default for StaticRing<T, N> {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests {
    use super::Ring;

    #[test]
    fn the_layout_is_two_lines_and_the_slots() {
        assert_eq!(size_of::<Ring<[u64; 3], 8>>(), 64 + 64 + 8 * 24);
        assert_eq!(align_of::<Ring<[u8; 16], 8>>(), 64);
    }

    #[test]
    fn counts_that_contradict_each_other_are_corrupt() {
        let fill = Ring::<u64, 4>::fill;
        assert_eq!(
            [fill(9, 9), fill(9, 5), fill(2, u64::MAX)].map(|fill| fill.ok()),
            [Some(0), Some(4), Some(3)]
        );
        assert!([fill(9, 4), fill(4, 5), fill(0, 1 << 63)].iter().all(Result::is_err));
    }
}
