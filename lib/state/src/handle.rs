//! The rights to write and read: one owner of the pen, any number of eyes.
//!
//! A [`StateWriter`] cannot be cloned, and `write` takes it by `&mut`, so within a program the
//! compiler keeps "one writer" true. Between processes the system description does: it grants the
//! writing end to one of them, whose runtime then uses [`StateWriter::from_raw`].

use core::marker::PhantomData;
use core::sync::atomic::{AtomicBool, Ordering};

use crate::{NoStep, Step};

pub(crate) mod sealed {
    use crate::{Plain, Step};

    /// The operations that a handle needs of the memory behind it.
    pub trait Cell: Sync {
        type Value: Plain;
        /// One write. Only ever called through the one writer.
        fn put<S: Step>(&self, value: Self::Value);
        /// Returns one read of the newest value.
        fn get<S: Step>(&self) -> Self::Value;
    }
}

/// The memory of a state message: [`StateWord`](crate::StateWord) or
/// [`StateBuffer`](crate::StateBuffer).
pub trait StateCell: sealed::Cell {}

impl<C: sealed::Cell> StateCell for C {}

/// The writing end of a state message. There is one, and it is not `Clone`:
///
/// ```compile_fail,E0599
/// let mut cell = diapason_state::StateWord::<u32>::new(0);
/// let (writer, _) = cell.split();
/// let second = writer.clone();
/// ```
#[derive(Debug)]
pub struct StateWriter<'cell, C: StateCell, S: Step = NoStep> {
    cell: &'cell C,
    step: PhantomData<fn(S)>,
}

/// A reading end of a state message. Copy it to as many readers as there are.
#[derive(Debug)]
pub struct StateReader<'cell, C: StateCell, S: Step = NoStep> {
    cell: &'cell C,
    step: PhantomData<fn(S)>,
}

impl<'cell, C: StateCell> StateWriter<'cell, C> {
    pub(crate) fn pair(cell: &'cell mut C) -> (Self, StateReader<'cell, C>) {
        let cell = &*cell;
        (StateWriter { cell, step: PhantomData }, StateReader { cell, step: PhantomData })
    }

    /// Returns the writing end of a cell in memory shared with others.
    ///
    /// ```
    /// use diapason_state::{StateBuffer, StateReader, StateWriter};
    /// type Cell = StateBuffer<[u64; 4], 3>;
    /// let segment = [0_u64; size_of::<Cell>() / 8]; // fresh shared memory is zeroed
    /// let cell = core::cell::UnsafeCell::new(segment);
    /// // SAFETY: zeroed, aligned, large enough, outlives both handles, and this is the writer.
    /// let mut writer = unsafe { StateWriter::<Cell>::from_raw(cell.get().cast()) };
    /// // SAFETY: the same.
    /// let reader = unsafe { StateReader::<Cell>::from_raw(cell.get().cast()) };
    /// assert_eq!(reader.read(), [0; 4]);
    /// writer.write([5; 4]);
    /// assert_eq!(reader.read(), [5; 4]);
    /// ```
    ///
    /// # Safety
    ///
    /// `cell` is aligned and points to memory of the size of `C` that is readable and writable for
    /// `'cell`, was zeroed before its first use as a cell, and is used only as a `C` (the same
    /// value type and depth in every process). No other `StateWriter` of this cell is in use
    /// anywhere.
    #[must_use]
    pub unsafe fn from_raw(cell: *const C) -> Self {
        // SAFETY: valid for `'cell` by contract; zeroed memory is a valid cell.
        StateWriter { cell: unsafe { &*cell }, step: PhantomData }
    }
}

impl<'cell, C: StateCell, S: Step> StateWriter<'cell, C, S> {
    /// Gives the writer preemption points for a simulator.
    #[must_use]
    pub fn with_step<NewStep: Step>(self) -> StateWriter<'cell, C, NewStep> {
        StateWriter { cell: self.cell, step: PhantomData }
    }

    /// Makes `value` the current one. Never waits.
    #[inline]
    pub fn write(&mut self, value: C::Value) {
        self.cell.put::<S>(value);
    }

    /// Returns a reader of the same cell.
    #[must_use]
    pub fn reader(&self) -> StateReader<'cell, C, S> {
        StateReader { cell: self.cell, step: PhantomData }
    }
}

impl<'cell, C: StateCell> StateReader<'cell, C> {
    /// Returns a reading end of a cell in memory shared with others; see [`StateWriter::from_raw`].
    ///
    /// # Safety
    ///
    /// `cell` is aligned and points to memory of the size of `C` that is readable for `'cell`, was
    /// zeroed before its first use as a cell, and is used only as a `C` (the same value type and
    /// depth in every process).
    #[must_use]
    pub unsafe fn from_raw(cell: *const C) -> Self {
        // SAFETY: valid for `'cell` by contract; zeroed memory is a valid cell.
        StateReader { cell: unsafe { &*cell }, step: PhantomData }
    }
}

impl<'cell, C: StateCell, S: Step> StateReader<'cell, C, S> {
    /// Gives the reader preemption points for a simulator.
    #[must_use]
    pub fn with_step<NewStep: Step>(self) -> StateReader<'cell, C, NewStep> {
        StateReader { cell: self.cell, step: PhantomData }
    }

    /// Returns the current value. Never waits and does not consume it.
    #[inline]
    #[must_use]
    pub fn read(&self) -> C::Value {
        self.cell.get::<S>()
    }

    #[inline(always)]
    pub(crate) fn cell(&self) -> &'cell C {
        self.cell
    }
}

impl<C: StateCell, S: Step> Clone for StateReader<'_, C, S> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<C: StateCell, S: Step> Copy for StateReader<'_, C, S> {}

/// A cell in a `static`, which hands out its writer once.
///
/// ```
/// use diapason_state::{StateBuffer, StaticState};
/// static POSE: StaticState<StateBuffer<[f64; 3], 3>> = StaticState::new(StateBuffer::new());
/// let mut writer = POSE.writer().expect("nobody has asked before");
/// assert!(POSE.writer().is_none());
/// writer.write([1.0, 2.0, 3.0]);
/// assert_eq!(POSE.reader().read(), [1.0, 2.0, 3.0]);
/// ```
#[derive(Debug)]
pub struct StaticState<C> {
    taken: AtomicBool,
    cell: C,
}

impl<C: StateCell> StaticState<C> {
    /// Wraps `cell`; its writer has not been taken.
    #[must_use]
    pub const fn new(cell: C) -> Self {
        StaticState { taken: AtomicBool::new(false), cell }
    }

    /// Returns the writer, to the first who asks.
    pub fn writer(&self) -> Option<StateWriter<'_, C>> {
        let taken = self.taken.swap(true, Ordering::AcqRel);
        (!taken).then_some(StateWriter { cell: &self.cell, step: PhantomData })
    }

    /// Returns a reader, to everybody.
    pub fn reader(&self) -> StateReader<'_, C> {
        StateReader { cell: &self.cell, step: PhantomData }
    }
}

#[cfg(test)]
mod tests {
    use super::{StateReader, StateWriter};
    use crate::StateBuffer;

    fn is_send<T: Send>() {}

    #[test]
    fn handles_may_move_to_other_threads() {
        is_send::<StateWriter<'static, StateBuffer<[u64; 2], 2>>>();
        is_send::<StateReader<'static, StateBuffer<[u64; 2], 2>>>();
    }
}
