//! Slow readers: a copy that nobody can interrupt, so that they do not deepen the buffer.
//!
//! A reader with a long deadline can be preempted for many periods of the writer, and would need
//! as many slots. It lets the kernel copy instead, with interrupts off: on the writer's core no
//! write can then touch the time of the copy, and two slots are enough for it.
//!
//! The *whole cell* is copied, count and slots, in one piece. Copying one slot would leave a gap
//! between the load of the count and the copy, and what happens in that gap depends on the
//! scheduler: a writer out of budget in the middle of a write would break it. A snapshot of the
//! whole cell is right under any scheduler.

use core::mem::{MaybeUninit, size_of};

use crate::handle::{StateReader, sealed::Cell};
use crate::{NoStep, Plain, StateBuffer, Step};

/// Largest cell that can be read slowly: interrupts stay off for one copy of it.
pub const SLOW_BYTES_MAX: usize = 4096;

/// The service for slow readers: a system call that copies with interrupts off.
///
/// # Safety
///
/// `copy` must copy exactly `length` bytes, and no thread of this core may run between the first
/// and the last of them.
pub unsafe trait CopyInOnePiece {
    /// Copies `length` bytes from `source` to `destination`.
    ///
    /// # Safety
    ///
    /// `source` is readable and `destination` writable for `length` bytes, and they do not
    /// overlap. Other threads may write to `source`, with atomic stores.
    unsafe fn copy(&self, destination: *mut u8, source: *const u8, length: usize);
}

impl<T: Plain, const N: usize, S: Step> StateReader<'_, StateBuffer<T, N>, S> {
    const SMALL_ENOUGH: () = assert!(
        size_of::<StateBuffer<T, N>>() <= SLOW_BYTES_MAX,
        "this cell is too large to be copied with interrupts off"
    );

    /// Returns the newest value, copied by the kernel in one piece.
    ///
    /// A reader that uses only this needs not be counted in the depth. It must be on the writer's
    /// core: interrupts off here do not stop a writer elsewhere.
    ///
    /// ```
    /// use diapason_state::{CopyInOnePiece, StateBuffer};
    /// struct Kernel;
    /// // SAFETY: this example has one thread, so nobody runs in between.
    /// unsafe impl CopyInOnePiece for Kernel {
    ///     unsafe fn copy(&self, destination: *mut u8, source: *const u8, length: usize) {
    ///         // SAFETY: passed on to the caller.
    ///         unsafe { destination.copy_from_nonoverlapping(source, length) }
    ///     }
    /// }
    /// let mut cell = StateBuffer::<[u64; 4], 2>::new();
    /// let (mut writer, reader) = cell.split();
    /// writer.write([3; 4]);
    /// assert_eq!(reader.read_slow(&Kernel), [3; 4]);
    /// ```
    #[must_use]
    pub fn read_slow<K: CopyInOnePiece>(&self, kernel: &K) -> T {
        let () = Self::SMALL_ENOUGH;
        let mut snapshot = MaybeUninit::<StateBuffer<T, N>>::uninit();
        let source = core::ptr::from_ref(self.cell()).cast();
        // SAFETY: the cell is readable, the snapshot is ours and of the same size.
        unsafe {
            kernel.copy(snapshot.as_mut_ptr().cast(), source, size_of::<StateBuffer<T, N>>());
        }
        // SAFETY: the bytes are those of a valid cell, and a cell has no invalid pattern.
        unsafe { snapshot.assume_init_ref() }.get::<NoStep>()
    }
}
