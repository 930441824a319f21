//! A value that one thread at a time may use: the data behind a mutex, with no way around it.
//!
//! [`crate::sync::Mutex`] is the kernel's object alone; what it guards is the program's affair.
//! Here both are one, so that threads can share what changes without any `unsafe` of their own.

use crate::hint::Hint;
use crate::sync::Mutex;
use crate::sys::{call1, call3};
use core::cell::UnsafeCell;
use core::marker::PhantomData;
use core::ops::{Deref, DerefMut};
use core::sync::atomic::{AtomicU64, Ordering};
use diapason_abi::{CallNumber, Errno, Handle, Nanos};

const NONE: u64 = Handle::NONE.0;

/// A value and its mutex, which comes into being when it is first locked: it may be a `static`.
/// It takes one of the process's private `semaphores`.
#[derive(Debug)]
pub struct Locked<T> {
    mutex: AtomicU64,
    value: UnsafeCell<T>,
}

// SAFETY: the value is reached only through `Held`, which exists once at a time.
unsafe impl<T: Send> Sync for Locked<T> {}

impl<T> Locked<T> {
    /// Returns a value that nobody holds.
    #[must_use]
    pub const fn new(value: T) -> Locked<T> {
        Locked { mutex: AtomicU64::new(NONE), value: UnsafeCell::new(value) }
    }

    /// Holds the value; its holder runs as urgently as its most urgent waiter.
    ///
    /// # Errors
    /// `Exhausted` at the first call if the process has no free semaphore; `Deadlock` if the caller
    /// holds it, or its holder waits for the caller.
    pub fn lock(&self) -> Result<Held<'_, T>, Errno> {
        let mutex = self.mutex()?;
        call3::<{ CallNumber::SemLock as u8 }>(mutex, Nanos::FOREVER.0, Hint::NONE.raw())?;
        Ok(Held { locked: self, mutex, here: PhantomData })
    }

    /// Returns the mutex; of two threads that make it at the same time, one gives its own back.
    fn mutex(&self) -> Result<u64, Errno> {
        let known = self.mutex.load(Ordering::Acquire);
        if known != NONE {
            return Ok(known);
        }
        let mine = Mutex::private()?;
        let won =
            self.mutex.compare_exchange(NONE, mine.raw(), Ordering::AcqRel, Ordering::Acquire);
        match won {
            Ok(_) => Ok(mine.raw()),
            Err(theirs) => mine.delete().map(|()| theirs),
        }
    }
}

/// The value, held; dropping this lets it go. It stays with the thread that locked.
#[derive(Debug)]
pub struct Held<'a, T> {
    locked: &'a Locked<T>,
    mutex: u64,
    here: PhantomData<*const ()>,
}

impl<T> Deref for Held<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        // SAFETY: the kernel gives the mutex to one thread at a time, and this is proof of it.
        unsafe { &*self.locked.value.get() }
    }
}

impl<T> DerefMut for Held<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: as above, and nobody has another reference: `self` is borrowed.
        unsafe { &mut *self.locked.value.get() }
    }
}

impl<T> Drop for Held<'_, T> {
    fn drop(&mut self) {
        let _ = call1::<{ CallNumber::SemUnlock as u8 }>(self.mutex);
    }
}
