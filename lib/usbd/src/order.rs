//! The order of a stream: the part of the bus that a change of modes gives it. A camera that comes
//! or goes in the middle of a change writes its own order only, so no other stream notices.

use alloc::sync::Arc;
use core::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use diapason_abi::Nanos;

/// The part of the bus that a stream is to have, and the part that it has. Clones of an order are
/// the same order.
#[derive(Clone, Default)]
pub(crate) struct Order(Arc<Shared>);

#[derive(Default)]
struct Shared {
    /// Bytes of an interval that the stream is to have; 0 stops it.
    wanted: AtomicU32,
    /// Bytes that its camera may have reserved.
    held: AtomicU32,
    /// Bytes of the stream whose first interval has come, and when it came.
    running: AtomicU32,
    since: AtomicU64,
    /// A camera is there and has not failed.
    works: AtomicBool,
    /// The last camera failed, and is asked again after a while.
    failed: AtomicBool,
}

impl Order {
    /// Returns the bytes that the stream is to have.
    pub fn wanted(&self) -> u32 {
        self.0.wanted.load(Ordering::Acquire)
    }

    /// Sets the bytes that the stream is to have; 0 stops it.
    pub fn want(&self, bytes: u32) {
        self.0.wanted.store(bytes, Ordering::Release);
    }

    /// A camera is there, and may have any of its settings.
    pub fn comes(&self) {
        self.0.held.store(u32::MAX, Ordering::Release);
        self.0.running.store(0, Ordering::Release);
        self.0.failed.store(false, Ordering::Release);
        self.0.works.store(true, Ordering::Release);
    }

    /// The camera reserves so many bytes next; 0: it has stopped.
    pub fn hold(&self, bytes: u32) {
        self.0.running.store(0, Ordering::Release);
        self.0.held.store(bytes, Ordering::Release);
    }

    /// The first interval came of a stream with so many bytes.
    pub fn runs(&self, bytes: u32, now: Nanos) {
        self.0.since.store(now.0, Ordering::Release);
        self.0.running.store(bytes, Ordering::Release);
    }

    /// The camera failed. It may still hold what it held.
    pub fn fails(&self) {
        self.0.failed.store(true, Ordering::Release);
    }

    /// The camera is gone, or of no use for a while.
    pub fn leaves(&self) {
        self.0.works.store(false, Ordering::Release);
        self.hold(0);
    }

    /// Returns whether the camera reserves nothing.
    pub fn is_stopped(&self) -> bool {
        self.0.held.load(Ordering::Acquire) == 0
    }

    /// Returns whether nothing more is to be awaited: it runs, or there is no camera that could.
    pub fn is_settled(&self) -> bool {
        let (wanted, there) = (self.wanted(), self.0.works.load(Ordering::Acquire));
        !there || wanted == 0 || self.0.running.load(Ordering::Acquire) == wanted
    }

    /// Returns when the stream that is wanted began, if it runs.
    pub fn since(&self) -> Option<u64> {
        let runs = self.wanted() > 0 && self.0.running.load(Ordering::Acquire) == self.wanted();
        runs.then(|| self.0.since.load(Ordering::Acquire))
    }

    /// Returns whether the stream is to run, and its last camera failed.
    pub fn has_failed(&self) -> bool {
        self.wanted() > 0 && self.0.failed.load(Ordering::Acquire)
    }
}
