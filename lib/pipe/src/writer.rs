//! The end that puts records in.

use core::marker::PhantomData;
use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use diapason_state::{NoStep, Plain, Step};

use crate::{Corrupt, Ring, RingFull};

/// The writing end of a ring. There is one, and it is not `Clone`:
///
/// ```compile_fail,E0599
/// let mut ring = diapason_pipe::Ring::<u64, 8>::new();
/// let (writer, _) = ring.split();
/// let second = writer.clone();
/// ```
pub struct Writer<'ring, T: Plain, const N: usize, S: Step = NoStep> {
    ring: &'ring Ring<T, N>,
    written: u64,
    lost: u64,
    peak: u64,
    step: PhantomData<fn(S)>,
}

impl<'ring, T: Plain, const N: usize> Writer<'ring, T, N> {
    /// Goes on where the last writer of this memory stopped.
    pub(crate) fn attach(ring: &'ring Ring<T, N>) -> Self {
        let line = &ring.by_writer;
        Writer {
            ring,
            written: line.written.load(Relaxed),
            lost: line.lost.load(Relaxed),
            peak: line.peak.load(Relaxed),
            step: PhantomData,
        }
    }

    /// Returns the writing end of a ring in memory shared with another process. A writer that was
    /// restarted goes on where the last one stopped; what that one had not finished is not seen.
    ///
    /// ```
    /// use diapason_pipe::{Reader, Ring, Writer};
    /// type Pipe = Ring<[u64; 2], 8>;
    /// #[repr(align(64))]
    /// struct Segment([u8; size_of::<Pipe>()]);
    /// let segment = core::cell::UnsafeCell::new(Segment([0; _]));
    /// // SAFETY: initialised, aligned, large enough, outlives both ends, which alone use it.
    /// let mut writer = unsafe { Writer::<[u64; 2], 8>::from_raw(segment.get().cast()) };
    /// // SAFETY: the same.
    /// let mut reader = unsafe { Reader::<[u64; 2], 8>::from_raw(segment.get().cast()) };
    /// assert_eq!(writer.push_many(&[[1, 2], [3, 4]]), 2);
    /// assert_eq!(reader.pop(), Some([1, 2]));
    /// ```
    ///
    /// The memory was zeroed before its first use, every process uses it with the same `T` and `N`,
    /// and there is one writer and one reader at a time; or else records are nonsense, and no more.
    ///
    /// # Safety
    ///
    /// `ring` is aligned and points to initialised memory of the size of a `Ring<T, N>` that is
    /// readable and writable for `'ring`. This process uses it only through ends of rings. Other
    /// processes may do anything with it.
    #[must_use]
    pub unsafe fn from_raw(ring: *const Ring<T, N>) -> Self {
        // SAFETY: valid for `'ring` by contract; any content of initialised memory is a ring.
        Self::attach(unsafe { &*ring })
    }
}

impl<'ring, T: Plain, const N: usize, S: Step> Writer<'ring, T, N, S> {
    /// Gives the writer preemption points for a simulator.
    #[must_use]
    pub fn with_step<NewStep: Step>(self) -> Writer<'ring, T, N, NewStep> {
        let Writer { ring, written, lost, peak, .. } = self;
        Writer { ring, written, lost, peak, step: PhantomData }
    }

    /// Puts a copy of `record` in. Never waits.
    ///
    /// # Errors
    ///
    /// [`RingFull`]: there was no room, or the ring is corrupt ([`Writer::len`] tells). The record
    /// was dropped and counted as lost.
    #[inline]
    pub fn push(&mut self, record: &T) -> Result<(), RingFull> {
        match self.push_many(core::slice::from_ref(record)) {
            0 => Err(RingFull),
            _ => Ok(()),
        }
    }

    /// Puts in as many of `records` as there is room for, from the first, and says how many. The
    /// rest is dropped and counted as lost. The reader sees all of them at once.
    #[inline]
    pub fn push_many(&mut self, records: &[T]) -> usize {
        // No room in a ring that cannot be understood.
        let fill = self.len().unwrap_or(N);
        let (accepted, dropped) = records.split_at(records.len().min(N - fill));
        for (ahead, record) in (0..).zip(accepted) {
            self.ring.slot(self.written.wrapping_add(ahead)).store::<S>(record);
        }
        if !accepted.is_empty() {
            self.note_peak((fill + accepted.len()) as u64);
            self.written = self.written.wrapping_add(accepted.len() as u64);
            S::step();
            // An end that sees this count sees the records, too.
            self.ring.by_writer.written.store(self.written, Release);
        }
        if !dropped.is_empty() {
            self.lost = self.lost.saturating_add(dropped.len() as u64);
            S::step();
            self.ring.by_writer.lost.store(self.lost, Relaxed);
        }
        accepted.len()
    }

    #[inline]
    fn note_peak(&mut self, fill: u64) {
        if fill > self.peak {
            self.peak = fill;
            S::step();
            self.ring.by_writer.peak.store(fill, Relaxed);
        }
    }

    /// Records in the ring now; the reader may be taking some.
    ///
    /// # Errors
    ///
    /// [`Corrupt`]: somebody wrote over the reader's count.
    #[inline]
    pub fn len(&self) -> Result<usize, Corrupt> {
        S::step();
        // Slots that this count gives back have been read to their last word.
        Ring::<T, N>::fill(self.written, self.ring.by_reader.taken.load(Acquire))
    }

    /// Returns whether the ring is empty now.
    ///
    /// # Errors
    ///
    /// [`Corrupt`]: somebody wrote over the reader's count.
    #[inline]
    pub fn is_empty(&self) -> Result<bool, Corrupt> {
        self.len().map(|len| len == 0)
    }

    /// Records dropped since the memory was zeroed.
    #[must_use]
    pub fn lost(&self) -> u64 {
        self.lost
    }

    /// Returns the highest fill after a push, as the writer saw it: what the reader took during
    /// that push still counts.
    #[must_use]
    pub fn peak(&self) -> u64 {
        self.peak
    }
}
