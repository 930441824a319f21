//! The thread of a pipe to a device: once in each period it asks a source for messages.

use crate::agreement::bell;
use crate::work::{Base, Due, Terms, ToldTerms, TunedWork};
use crate::writing::{Exit, Written};
use diapason_abi::Nanos;
use diapason_canlib::{CanFrame, Phase};
use diapason_pipe::measured::WrittenReport;
use diapason_pipe::tuned::Route;
use diapason_rt::sync::Semaphore;
use diapason_rt::thread::Task;
use diapason_rt::time;

/// The source of a pipe to a device. It runs on the pipe's thread, and `self` is its argument.
pub trait TunedSource: Sync + 'static {
    /// Messages of one period, while the channel is open.
    fn fill(&self, out: &mut Outbox<'_>);

    /// The channel is somewhere else: not there, closed, open, off its bus.
    fn news(&self, phase: Phase) {
        let _ = phase;
    }
}

/// Where the messages of one period go.
pub struct Outbox<'a> {
    exit: &'a mut Exit,
    room: u64,
}

impl Outbox<'_> {
    /// Returns the number of messages that may still be written in this period.
    #[must_use]
    pub const fn room(&self) -> u64 {
        self.room
    }

    /// Writes one; false if this is more than the pipe's terms, or its ring, have room for.
    pub fn send(&mut self, frame: &CanFrame) -> bool {
        let Some(left) = self.room.checked_sub(1) else { return false };
        self.room = left;
        self.exit.put(frame, time::now())
    }
}

/// The thread of a pipe to a device, and what it counts.
pub struct TunedWriter<S> {
    source: S,
    base: Base,
    told: ToldTerms,
    counts: Written,
}

impl<S: TunedSource> TunedWriter<S> {
    /// Returns the source of the pipe in this place. It runs from the first request for the pipe
    /// on.
    #[must_use]
    pub const fn new(place: usize, source: S) -> TunedWriter<S> {
        TunedWriter {
            source,
            base: Base::new(place),
            told: ToldTerms::new(),
            counts: Written::new(),
        }
    }

    /// Returns the source of the pipe.
    pub const fn source(&self) -> &S {
        &self.source
    }

    /// One period after the other until the terms are others.
    fn write(&'static self, exit: &mut Exit, ready: &Semaphore, terms: &Terms, due: &mut Due) {
        let (mut next, mut periods) = (time::now(), 0);
        while self.told.terms() == Some(*terms) {
            self.hear(exit);
            if time::now() >= next {
                let room = terms.owed(periods + 1) - terms.owed(periods);
                (next, periods) = (next + terms.period, periods + 1);
                if exit.phase() == Phase::Open {
                    self.source.fill(&mut Outbox { exit, room });
                }
            }
            // A message that is not written in its period is not made up for.
            due.wait(ready, next);
            self.look(due);
        }
    }

    fn look(&self, due: &mut Due) {
        due.look(&self.base, || (None, Some(self.counts.next_report())));
    }

    fn hear(&self, exit: &mut Exit) {
        let is_open = self.told.terms().is_none_or(|it| it.period > Nanos::ZERO);
        if let Some(phase) = exit.hear(is_open) {
            self.source.news(phase);
        }
    }
}

impl<S: TunedSource> TunedWork for TunedWriter<S> {
    fn base(&self) -> &Base {
        &self.base
    }

    fn suits(&self, route: Route) -> bool {
        matches!(route, Route::To(_))
    }

    fn told(&'static self) -> Option<&'static ToldTerms> {
        Some(&self.told)
    }

    fn is_settled(&self) -> bool {
        self.counts.is_settled()
    }

    fn written(&self) -> Option<WrittenReport> {
        Some(self.counts.report())
    }
}

impl<S: TunedSource> Task for TunedWriter<S> {
    fn run(&'static self) -> u64 {
        let Ok(ready) = bell(self.base.place) else { return 1 };
        let (mut exit, mut due) = (None, Due::new());
        loop {
            self.look(&mut due);
            // Messages written by other terms are through, or given up, before more are written:
            // the new bound does not count them.
            match self.told.terms() {
                Some(terms) if self.counts.is_settled() && terms.period > Nanos::ZERO => {
                    if exit.is_none() {
                        exit = Exit::open(self.base.place, &self.counts).ok();
                    }
                    let Some(exit) = &mut exit else { return 1 };
                    self.write(exit, &ready, &terms, &mut due);
                }
                _ if !due.wait(&ready, Nanos::FOREVER) => return 1,
                _ => {
                    if let Some(exit) = &mut exit {
                        self.hear(exit);
                    }
                }
            }
        }
    }
}
