//! The thread of a pipe from a device: it calls a function for each message, and measures.

use crate::agreement::inlet;
use crate::reading::{Heard, Reading, Way};
use crate::work::{Base, Due, TunedWork};
use diapason_abi::Nanos;
use diapason_canlib::{Phase, TimedFrame};
use diapason_pipe::measured::TunedReport;
use diapason_pipe::tuned::Route;
use diapason_rt::thread::Task;

/// The function of a pipe from a device. It runs on the pipe's thread, and `self` is its argument.
pub trait TunedFunction: Sync + 'static {
    fn message(&self, message: &TimedFrame);

    /// The channel is somewhere else: not there, closed, open, off its bus.
    fn news(&self, phase: Phase) {
        let _ = phase;
    }
}

/// The thread of a pipe from a device, and what it counts.
pub struct TunedThread<F> {
    function: F,
    reading: Reading,
}

impl<F: TunedFunction> TunedThread<F> {
    /// Returns the function of the pipe in this place. It runs from the first request for the pipe
    /// on.
    #[must_use]
    pub const fn new(place: usize, function: F) -> TunedThread<F> {
        TunedThread { function, reading: Reading::new(place) }
    }

    /// Returns the function of the pipe.
    pub const fn function(&self) -> &F {
        &self.function
    }

    /// Returns its counts since it began. It reports the same by itself, once a second.
    pub fn report(&self) -> TunedReport {
        self.reading.report()
    }
}

impl<F: TunedFunction> TunedWork for TunedThread<F> {
    fn base(&self) -> &Base {
        &self.reading.base
    }

    fn suits(&self, route: Route) -> bool {
        matches!(route, Route::From(_))
    }
}

impl<F: TunedFunction> Task for TunedThread<F> {
    fn run(&'static self) -> u64 {
        let Ok((mut inlet, ready)) = inlet(self.reading.base.place) else { return 1 };
        let (mut way, mut due) = (Way::new(), Due::new());
        while due.wait(&ready, Nanos::FOREVER) {
            self.reading.drain(&mut inlet, &mut way, &mut |heard| match heard {
                Heard::News(phase) => self.function.news(phase),
                Heard::Message(message, _) => self.function.message(message),
            });
            due.look(self.base(), || (Some(self.reading.next_report()), None));
        }
        1
    }
}
