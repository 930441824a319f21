//! The thread of a pipe that goes on: from a device, through a function, and to another channel.

use crate::agreement::{Inlet, bell, inlet};
use crate::reading::{Heard, Reading, Way};
use crate::work::{Base, Due, ToldTerms, TunedWork};
use crate::writing::{Exit, Written};
use diapason_abi::Nanos;
use diapason_canlib::{CanFrame, Phase, TimedFrame};
use diapason_pipe::measured::{TunedReport, WrittenReport};
use diapason_pipe::tuned::Route;
use diapason_rt::thread::Task;

/// The function between the two ends. It runs on the pipe's thread, and `self` is its argument.
pub trait Passage: Sync + 'static {
    /// Returns the frame to write for a message that came, if any.
    fn pass(&self, message: &TimedFrame) -> Option<CanFrame>;

    /// The channel that messages come from is somewhere else.
    fn news(&self, phase: Phase) {
        let _ = phase;
    }
}

/// The thread of such a pipe, and what it counts.
pub struct Passer<P> {
    passage: P,
    reading: Reading,
    written: Written,
    told: ToldTerms,
}

impl<P: Passage> Passer<P> {
    /// Returns the passage of the pipe in this place. It runs from the first request for the pipe
    /// on.
    #[must_use]
    pub const fn new(place: usize, passage: P) -> Passer<P> {
        let (reading, written) = (Reading::new(place), Written::new());
        Passer { passage, reading, written, told: ToldTerms::new() }
    }

    /// Returns the function between the ends.
    pub const fn passage(&self) -> &P {
        &self.passage
    }

    /// Returns its counts of messages read since it began. It reports the same once a second.
    pub fn report(&self) -> TunedReport {
        self.reading.report()
    }

    /// The two ends, once the pipe was open.
    fn ends(&'static self) -> Option<(Inlet, Exit)> {
        if !self.told.was_open() {
            return None;
        }
        let place = self.reading.base.place;
        Some((inlet(place).ok()?.0, Exit::open(place, &self.written).ok()?))
    }
}

impl<P: Passage> TunedWork for Passer<P> {
    fn base(&self) -> &Base {
        &self.reading.base
    }

    fn suits(&self, route: Route) -> bool {
        matches!(route, Route::Through(..))
    }

    fn told(&'static self) -> Option<&'static ToldTerms> {
        Some(&self.told)
    }

    fn is_settled(&self) -> bool {
        self.written.is_settled()
    }

    fn written(&self) -> Option<WrittenReport> {
        Some(self.written.report())
    }
}

impl<P: Passage> Task for Passer<P> {
    fn run(&'static self) -> u64 {
        let Ok(ready) = bell(self.reading.base.place) else { return 1 };
        let (mut ends, mut way, mut due) = (None, Way::new(), Due::new());
        while due.wait(&ready, Nanos::FOREVER) {
            ends = ends.or_else(|| self.ends());
            let Some((inlet, exit)) = &mut ends else { continue };
            let is_open = || self.told.terms().is_none_or(|it| it.period > Nanos::ZERO);
            exit.hear(is_open());
            self.reading.drain(inlet, &mut way, &mut |heard| match heard {
                Heard::News(phase) => self.passage.news(phase),
                Heard::Message(message, arrived) => {
                    let passed = self.passage.pass(message);
                    // Its delay is that of the whole way. Of a pipe that is being closed, or whose
                    // other channel is away, what comes goes no further.
                    let goes = exit.phase() == Phase::Open && is_open();
                    if let Some(frame) = passed.filter(|_| goes) {
                        exit.put(&frame, arrived);
                    }
                }
            });
            due.look(self.base(), || {
                (Some(self.reading.next_report()), Some(self.written.next_report()))
            });
        }
        1
    }
}
