//! One slot of the ring, copied word by word.
//!
//! Ends that keep the rules never touch a slot at the same time. An end that breaks them may, and
//! an ordinary copy that races is undefined behaviour. These copies are made of relaxed atomic
//! words: the worst that a race does is to mix words of two records.

use core::cell::UnsafeCell;
use core::mem::{MaybeUninit, size_of};
use core::sync::atomic::{AtomicU64, Ordering::Relaxed};

use diapason_state::{Plain, Step};

/// Room for one record of whole words.
#[repr(C, align(8))]
pub(crate) struct Slot<T>(UnsafeCell<MaybeUninit<T>>);

// SAFETY: a shared slot is reached through the atomic words below only.
unsafe impl<T: Plain> Sync for Slot<T> {}

impl<T: Plain> Slot<T> {
    const WHOLE_WORDS: () = assert!(
        size_of::<T>().is_multiple_of(8),
        "the size of a record must be a multiple of 8 bytes: add a field that fills it"
    );

    /// Returns all bytes zero, like fresh memory.
    pub(crate) const fn zeroed() -> Slot<T> {
        Slot(UnsafeCell::new(MaybeUninit::zeroed()))
    }

    #[inline(always)]
    fn words(&self) -> &[AtomicU64] {
        let () = Self::WHOLE_WORDS;
        // SAFETY: the slot is aligned to 8 bytes, and a `T` in it is this many words, all of them
        // initialised (zeroed or a `Plain` value) and reached in no other way while shared.
        unsafe { core::slice::from_raw_parts(self.0.get().cast(), size_of::<T>() / 8) }
    }

    #[inline(always)]
    fn copy_from<S: Step>(&self, source: &Slot<T>) {
        for (to, from) in self.words().iter().zip(source.words()) {
            S::step();
            to.store(from.load(Relaxed), Relaxed);
        }
    }

    #[inline(always)]
    pub(crate) fn load<S: Step>(&self) -> T {
        let copy = Slot::zeroed();
        copy.copy_from::<S>(self);
        // SAFETY: it was zeroed and then written, and every pattern is a value of a `Plain` type.
        unsafe { copy.0.into_inner().assume_init() }
    }

    #[inline(always)]
    pub(crate) fn store<S: Step>(&self, record: &T) {
        self.copy_from::<S>(&Slot(UnsafeCell::new(MaybeUninit::new(*record))));
    }
}
