//! A bottom half's own watch, if somebody wants to know what its way costs; else it costs nothing
//! but the question.

use diapason_rt::time;
use diapason_usblib::times::{Outlet, Times, outlet};

/// The activation under way.
pub(crate) struct Watch {
    outlet: Option<Outlet>,
    times: Times,
}

impl Watch {
    /// Returns a watch that tells, if it is `wanted` and can.
    pub fn new(wanted: bool) -> Watch {
        let outlet = wanted.then(outlet).and_then(Result::ok);
        Watch { outlet, times: Times::default() }
    }

    fn now(&self) -> u64 {
        if self.outlet.is_some() { time::now().0 } else { 0 }
    }

    /// The thread is back from its wait.
    pub fn woken(&mut self) {
        self.times.woken = self.now();
    }

    /// Notes that the thread has the lock, at this instant.
    pub fn begun(&mut self, now: u64) {
        self.times.begun = now;
    }

    /// Notes that the thread has given the lock back.
    pub fn done(&mut self) {
        self.times.done = self.now();
    }

    /// Notes that the thread has told the clients.
    pub fn told(&mut self) {
        self.times.told = self.now();
        if let Some(outlet) = &mut self.outlet {
            // A client that does not read misses some.
            let _ = outlet.push(&self.times);
        }
    }
}
