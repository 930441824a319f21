//! The end that takes records out.

use core::marker::PhantomData;
use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use diapason_state::{NoStep, Plain, Step};

use crate::{Corrupt, Ring};

/// The reading end of a ring. There is one, and it is not `Clone`:
///
/// ```compile_fail,E0599
/// let mut ring = diapason_pipe::Ring::<u64, 8>::new();
/// let (_, reader) = ring.split();
/// let second = reader.clone();
/// ```
pub struct Reader<'ring, T: Plain, const N: usize, S: Step = NoStep> {
    ring: &'ring Ring<T, N>,
    taken: u64,
    step: PhantomData<fn(S)>,
}

impl<'ring, T: Plain, const N: usize> Reader<'ring, T, N> {
    /// Goes on where the last reader of this memory stopped.
    pub(crate) fn attach(ring: &'ring Ring<T, N>) -> Self {
        Reader { ring, taken: ring.by_reader.taken.load(Relaxed), step: PhantomData }
    }

    /// Returns the reading end of a ring in memory shared with another process. A reader that was
    /// restarted goes on where the last one stopped, and may get again what that one was taking.
    /// See [`Writer::from_raw`](crate::Writer::from_raw).
    ///
    /// # Safety
    ///
    /// As for [`Writer::from_raw`](crate::Writer::from_raw).
    #[must_use]
    pub unsafe fn from_raw(ring: *const Ring<T, N>) -> Self {
        // SAFETY: valid for `'ring` by contract; any content of initialised memory is a ring.
        Self::attach(unsafe { &*ring })
    }
}

impl<'ring, T: Plain, const N: usize, S: Step> Reader<'ring, T, N, S> {
    /// Gives the reader preemption points for a simulator.
    #[must_use]
    pub fn with_step<NewStep: Step>(self) -> Reader<'ring, T, N, NewStep> {
        Reader { ring: self.ring, taken: self.taken, step: PhantomData }
    }

    /// Takes the oldest record out. `None` if there is none, or if the ring is corrupt, which
    /// [`Reader::len`] tells apart. Never waits.
    #[inline]
    pub fn pop(&mut self) -> Option<T> {
        if self.len().unwrap_or(0) == 0 {
            return None;
        }
        let record = self.ring.slot(self.taken).load::<S>();
        self.give_back(1);
        Some(record)
    }

    /// Takes out as many records as there are and fit into `into`, oldest first, and says how
    /// many. Their slots are given back all at once.
    #[inline]
    pub fn pop_many(&mut self, into: &mut [T]) -> usize {
        let count = self.len().unwrap_or(0).min(into.len());
        for (ahead, place) in (0..).zip(&mut into[..count]) {
            *place = self.ring.slot(self.taken.wrapping_add(ahead)).load::<S>();
        }
        if count > 0 {
            self.give_back(count as u64);
        }
        count
    }

    #[inline]
    fn give_back(&mut self, count: u64) {
        self.taken = self.taken.wrapping_add(count);
        S::step();
        // An end that sees this count may overwrite the slots: they have been read to their last
        // word.
        self.ring.by_reader.taken.store(self.taken, Release);
    }

    /// Records in the ring now; the writer may be putting in more.
    ///
    /// # Errors
    ///
    /// [`Corrupt`]: somebody wrote over the writer's count.
    #[inline]
    pub fn len(&self) -> Result<usize, Corrupt> {
        S::step();
        // Records that this count covers are there to their last word.
        Ring::<T, N>::fill(self.ring.by_writer.written.load(Acquire), self.taken)
    }

    /// Returns whether the ring is empty now.
    ///
    /// # Errors
    ///
    /// [`Corrupt`]: somebody wrote over the writer's count.
    #[inline]
    pub fn is_empty(&self) -> Result<bool, Corrupt> {
        self.len().map(|len| len == 0)
    }

    /// Records the writer had to drop since the memory was zeroed. Only ever grows, if the writer
    /// is honest.
    #[must_use]
    pub fn lost(&self) -> u64 {
        self.ring.by_writer.lost.load(Relaxed)
    }

    /// Returns the highest fill after a push, as the writer says: see
    /// [`Writer::peak`](crate::Writer::peak).
    #[must_use]
    pub fn peak(&self) -> u64 {
        self.ring.by_writer.peak.load(Relaxed)
    }
}
