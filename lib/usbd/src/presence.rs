//! Whether a device is there, seen without the lock of its branch.

use alloc::sync::Arc;
use core::sync::atomic::{AtomicBool, Ordering};

/// Whether there is a CAN interface. Its service writes it; clones show it to other threads.
#[derive(Clone, Default)]
pub struct Presence(Arc<AtomicBool>);

impl Presence {
    /// Notes that the device is there, or is not.
    pub fn set(&self, there: bool) {
        self.0.store(there, Ordering::Relaxed);
    }

    /// Returns whether the device is there. It may be gone a moment later.
    #[must_use]
    pub fn holds(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}
