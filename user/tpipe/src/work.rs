//! What a pipe and its thread, of whatever kind, are to each other.

use core::sync::atomic::{AtomicBool, Ordering};
use diapason_abi::Nanos;
use diapason_abi::pipe::WrittenReport;
use diapason_pipe::tuned::{Granted, Qos, Route};
use diapason_rt::thread::Task;
use diapason_state::{StateBuffer, StaticState, Writer};

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

/// Bits of a message in a quality of service.
const BITS: u64 = 16 * 8;

/// The terms of a pipe, in memory.
type Words = StateBuffer<[u64; 3], 2>;

/// The terms of a pipe, told to a thread that writes.
pub struct Told(StaticState<Words>);

/// One version of them.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct Terms {
    version: u64,
    /// How often it writes; zero if the pipe is closed.
    pub period: Nanos,
    messages: u64,
    per: u64,
}

impl Told {
    pub(crate) const fn new() -> Told {
        Told(StaticState::new(StateBuffer::new()))
    }

    /// `None` while they are changed more than once.
    pub(crate) fn terms(&self) -> Option<Terms> {
        let reader = self.0.reader();
        // Is the value newer than that, the next look finds another version.
        let version = reader.published();
        let [period, messages, per] = reader.read_checked().ok()?;
        Some(Terms { version, period: Nanos(period), messages, per })
    }

    /// Was the pipe open once?
    pub(crate) fn was_open(&self) -> bool {
        self.0.reader().published() > 0
    }
}

impl Terms {
    /// How many of all messages may be written in so many periods.
    pub fn owed(&self, periods: u64) -> u64 {
        let time = u128::from(self.period.0) * u128::from(periods) * u128::from(self.messages);
        time.div_ceil(u128::from(self.per.max(1))) as u64
    }
}

/// Who tells them: the pipe.
pub(crate) struct Teller(Option<Writer<'static, Words>>);

impl Teller {
    /// Of a thread that has not been told anything so far.
    pub fn new(told: Option<&'static Told>) -> Teller {
        Teller(told.and_then(|told| told.0.writer()))
    }

    /// It has these terms from now on; none if it is closed.
    pub fn tell(&mut self, terms: Option<(&Qos, &Granted)>) {
        let words = terms.map_or([0; 3], |(qos, granted)| {
            [granted.period.0, qos.tput, qos.latency.0.saturating_mul(BITS)]
        });
        if let Some(writer) = &mut self.0 {
            writer.write(words);
        }
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

    /// Where it looks up the terms of its pipe, if it does.
    fn told(&'static self) -> Option<&'static Told> {
        None
    }
}
