//! A value that one thread uses at a time, and that others are refused meanwhile.
//!
//! It takes no object of the kernel, so a program that opens no channel pays nothing for it.

use core::cell::UnsafeCell;
use core::sync::atomic::{AtomicBool, Ordering};

/// A value, and whether somebody uses it.
pub struct Claim<T> {
    used: AtomicBool,
    value: UnsafeCell<T>,
}

// SAFETY: the value is reached only by the thread that set `used`.
unsafe impl<T: Send> Sync for Claim<T> {}

impl<T> Claim<T> {
    /// Returns a value that nobody uses.
    pub const fn new(value: T) -> Claim<T> {
        Claim { used: AtomicBool::new(false), value: UnsafeCell::new(value) }
    }

    /// Lets `body` use the value. `None` if another thread uses it now.
    pub fn with<R>(&self, body: impl FnOnce(&mut T) -> R) -> Option<R> {
        if self.used.swap(true, Ordering::Acquire) {
            return None;
        }
        // SAFETY: `used` was not set, and this thread set it.
        let result = body(unsafe { &mut *self.value.get() });
        self.used.store(false, Ordering::Release);
        Some(result)
    }
}
