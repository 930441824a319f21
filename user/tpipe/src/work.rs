//! What a pipe and its thread, of whatever kind, are to each other.

use core::sync::atomic::{AtomicBool, Ordering};
use diapason_abi::pipe::WrittenReport;
use diapason_pipe::tuned::{Granted, Qos, Route};
use diapason_rt::thread::Task;

/// What all threads of pipes have.
pub struct Base {
    pub(crate) place: usize,
    started: AtomicBool,
}

impl Base {
    pub(crate) const fn new(place: usize) -> Base {
        Base { place, started: AtomicBool::new(false) }
    }

    /// True once: it must be started then.
    pub(crate) fn begin(&self) -> bool {
        !self.started.swap(true, Ordering::Relaxed)
    }
}

/// The thread of a pipe.
pub trait Work: Task + Sync + 'static {
    /// What it has as any other.
    fn base(&self) -> &Base;

    /// Can it be of a pipe on this route?
    fn suits(&self, route: Route) -> bool;

    /// What became of what it wrote, if it writes; the longest times since the last look.
    fn written(&self) -> Option<WrittenReport> {
        None
    }

    /// Is nothing that it wrote under way any more?
    fn is_settled(&self) -> bool {
        true
    }

    /// Its pipe has these terms from now on; none if it is closed.
    fn agreed(&self, terms: Option<(&Qos, &Granted)>) {
        let _ = terms;
    }
}
