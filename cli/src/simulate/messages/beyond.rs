//! Readers of pipes that are on another core than the server. The server's core follows the
//! messages. The reader's core tells it what was taken and when, and what its processor did.

use crate::outcome::Truth;
use diapason_abi::{CallNumber, Nanos};
use diapason_contract::source::{MessageForm, PipeSource};
use diapason_core::{Cause, ThreadId};
use diapason_sim::History;
use diapason_system::{FarPipe, System};
use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, VecDeque};
use std::rc::Rc;

/// The readers of one host that are on other cores than their servers, by the name of the pipe.
type Readers = Rc<RefCell<BTreeMap<String, Rc<FarReader>>>>;

/// A part of a run as the cores of its host know it.
#[derive(Clone, Default)]
pub struct HostPart {
    /// The number of the part.
    pub number: usize,
    readers: Readers,
}

/// The end of a pipe whose server is on another core.
#[derive(Default)]
pub struct FarReader {
    known: RefCell<Option<KnownReader>>,
    /// The server's core takes these out.
    taken: RefCell<VecDeque<FarTaken>>,
    /// The earliest instant that matters to the server's core; none if nobody follows the pipe.
    oldest: Cell<Option<Nanos>>,
    /// The messages as the server's core saw them.
    truth: Cell<Option<Truth>>,
}

/// A reader has taken messages.
#[derive(Clone, Copy)]
pub struct FarTaken {
    /// How many it had taken then.
    pub reached: u64,
    pub by: (Nanos, ThreadId),
    /// When the last sleep of its thread was over.
    pub looked: Nanos,
}

/// A reader, as its own core knows it.
#[derive(Clone)]
pub struct KnownReader {
    /// The part of the run that is its core.
    pub part: usize,
    pub name: String,
    pub history: Rc<RefCell<History>>,
}

/// A reader of this core.
pub(super) struct OwnReader {
    pub reader: Rc<FarReader>,
    /// The segment with the pipe.
    pub ring: u16,
}

/// When each thread of a core last wanted to be woken from its sleep.
#[derive(Default)]
pub(super) struct Sleeps {
    running: Option<ThreadId>,
    until: BTreeMap<u16, Nanos>,
}

impl Sleeps {
    /// The kernel runs for a reason that the running thread may have given.
    pub fn note(&mut self, cause: Cause) {
        if let (Some(thread), Cause::Syscall(number, [until, ..])) = (self.running, cause)
            && number == CallNumber::SleepUntil as u64
        {
            self.until.insert(thread.index(), Nanos(until));
        }
    }

    /// From now on this thread runs.
    pub fn runs(&mut self, thread: ThreadId) {
        self.running = thread.is_some().then_some(thread);
    }

    /// Returns when the last sleep of a thread was to end.
    pub fn last(&self, thread: ThreadId) -> Nanos {
        self.until.get(&thread.index()).copied().unwrap_or_default()
    }
}

impl HostPart {
    /// Returns a part of a host whose other cores are parts, too.
    #[must_use]
    pub fn beside(&self, number: usize) -> HostPart {
        HostPart { number, readers: Rc::clone(&self.readers) }
    }

    /// Returns the reader of a pipe, for its server's core, which follows the pipe from now on.
    pub(super) fn followed(&self, pipe: &str) -> Rc<FarReader> {
        let reader = self.reader(pipe);
        reader.oldest.set(Some(Nanos::ZERO));
        reader
    }

    /// Returns the readers on this part, in the order of the system's pipes from other cores. A
    /// pipe that nobody can follow has none.
    pub(super) fn own(
        &self,
        system: &System,
        history: &Rc<RefCell<History>>,
    ) -> Vec<Option<OwnReader>> {
        let own = |far: &FarPipe| {
            let source = PipeSource::numbered(far.number.into())?;
            matches!(source.form, MessageForm::Packet | MessageForm::Frame(_)).then_some(())?;
            let ring = system.segments.iter().position(|it| it.name == source.pipe.0)?;
            let name = system.processes.get(usize::from(far.process))?.name.clone();
            let (part, history) = (self.number, Rc::clone(history));
            let reader = self.reader(&far.name);
            *reader.known.borrow_mut() = Some(KnownReader { part, name, history });
            Some(OwnReader { reader, ring: ring.try_into().ok()? })
        };
        system.far.iter().map(own).collect()
    }

    fn reader(&self, pipe: &str) -> Rc<FarReader> {
        Rc::clone(self.readers.borrow_mut().entry(pipe.to_owned()).or_default())
    }
}

impl FarReader {
    /// Returns the reader as its own core knows it.
    pub fn known(&self) -> Option<KnownReader> {
        self.known.borrow().clone()
    }

    /// Notes that the reader has taken messages.
    pub fn took(&self, taken: FarTaken) {
        if self.oldest.get().is_some() {
            self.taken.borrow_mut().push_back(taken);
        }
    }

    /// Returns what the reader has taken since the last call.
    pub fn take_taken(&self) -> VecDeque<FarTaken> {
        self.taken.take()
    }

    /// Returns the earliest instant that is still of interest; `now` if nobody follows the pipe.
    pub fn oldest(&self, now: Nanos) -> Nanos {
        self.oldest.get().unwrap_or(now)
    }

    /// Forgets what was before an instant.
    pub fn forget(&self, oldest: Nanos) {
        self.oldest.set(Some(oldest));
    }

    /// Tells the reader's core how messages did.
    pub fn tell(&self, truth: Option<Truth>) {
        self.truth.set(truth);
    }

    /// Returns how messages did, if somebody followed them.
    pub fn truth(&self) -> Option<Truth> {
        self.truth.get()
    }
}
