//! The relation between a pipe and its thread, of any kind.

use core::sync::atomic::{AtomicBool, AtomicU8, AtomicU32, AtomicU64, Ordering};
use diapason_abi::{Errno, Nanos};
use diapason_pipe::measured::{Measurement, REPORT, Reported, TunedReport, WrittenReport};
use diapason_pipe::tuned::{Granted, Qos, Route};
use diapason_rt::sync::Semaphore;
use diapason_rt::thread::Task;
use diapason_rt::{log, time};
use diapason_state::{StateBuffer, StateWriter, StaticState};

/// The common parts of all threads of pipes.
pub struct Base {
    pub(crate) place: usize,
    started: AtomicBool,
    promised: Promised,
}

/// The bounds promised to the pipe, for the reports of its thread.
struct Promised {
    was_open: AtomicBool,
    from: AtomicU8,
    to: AtomicU8,
    slots: AtomicU32,
    /// The longest until a message is taken by the server, and of the whole way: now, and the most
    /// since the last report.
    now: [AtomicU64; 2],
    most: [AtomicU64; 2],
}

impl Base {
    pub(crate) const fn new(place: usize) -> Base {
        let promised = Promised {
            was_open: AtomicBool::new(false),
            from: AtomicU8::new(0),
            to: AtomicU8::new(0),
            slots: AtomicU32::new(0),
            now: [const { AtomicU64::new(0) }; 2],
            most: [const { AtomicU64::new(0) }; 2],
        };
        Base { place, started: AtomicBool::new(false), promised }
    }

    /// Sets the terms of the pipe; none if it is closed.
    pub(crate) fn promise(&self, route: Route, granted: Option<&Granted>) {
        let promised = &self.promised;
        // Measured times leave out the fastest way there is.
        let times = granted.map_or([Nanos::ZERO; 2], |granted| {
            [granted.taken, granted.bound].map(|time| time - granted.least)
        });
        for ((now, most), time) in promised.now.iter().zip(&promised.most).zip(times) {
            now.store(time.0, Ordering::Relaxed);
            most.fetch_max(time.0, Ordering::Relaxed);
        }
        let slots = granted.map_or(0, |granted| granted.slots.into());
        promised.slots.store(slots, Ordering::Relaxed);
        if granted.is_some() {
            promised.from.store(route.comes_from().unwrap_or_default(), Ordering::Relaxed);
            promised.to.store(route.goes_to().unwrap_or_default(), Ordering::Relaxed);
            promised.was_open.store(true, Ordering::Release);
        }
    }

    /// Returns whether a bound is promised now: the pipe is open, and is not being closed.
    pub(crate) fn is_promised(&self) -> bool {
        let [_, whole] = &self.promised.now;
        whole.load(Ordering::Relaxed) > 0
    }

    /// Reports what was read, and written, if the pipe was ever open.
    fn say(&self, read: Option<TunedReport>, written: Option<WrittenReport>) {
        let promised = &self.promised;
        if !promised.was_open.load(Ordering::Acquire) {
            return;
        }
        let mut times =
            promised.now.iter().zip(&promised.most).map(|(now, most)| {
                Nanos(most.swap(now.load(Ordering::Relaxed), Ordering::Relaxed))
            });
        let [taken, bound] = core::array::from_fn(|_| times.next().unwrap_or_default());
        let place = self.place as u8;
        let read = read.map(|report| {
            let (channel, slots) =
                (promised.from.load(Ordering::Relaxed), promised.slots.load(Ordering::Relaxed));
            Measurement::Tuned(TunedReport { place, channel, slots, bound, ..report })
        });
        let written = written.map(|report| {
            let channel = promised.to.load(Ordering::Relaxed);
            let (taken, whole) = ((report.taken.0, taken), (report.whole.0, bound));
            Measurement::Written(WrittenReport { place, channel, taken, whole, ..report })
        });
        let at = time::now();
        for said in read.into_iter().chain(written) {
            log::measured(&Reported { at, said }.words());
        }
    }

    /// True once: it must be started then.
    pub(crate) fn begin(&self) -> bool {
        !self.started.swap(true, Ordering::Relaxed)
    }
}

/// When a pipe's thread reports next.
pub(crate) struct Due(Nanos);

impl Due {
    /// Returns a report that is due in a while.
    pub fn new() -> Due {
        Due(time::now() + REPORT)
    }

    /// Waits until there is something new, for a while, or until a report is due. False if there
    /// is nothing to wait for any more.
    pub fn wait(&self, ready: &Semaphore, until: Nanos) -> bool {
        matches!(ready.take(until.min(self.0)), Ok(()) | Err(Errno::TimedOut | Errno::WouldBlock))
    }

    /// Reports if that is due; `report` gives what was read, and written.
    pub fn look(
        &mut self,
        base: &Base,
        report: impl FnOnce() -> (Option<TunedReport>, Option<WrittenReport>),
    ) {
        let now = time::now();
        if now >= self.0 {
            self.0 = now + REPORT;
            let (read, written) = report();
            base.say(read, written);
        }
    }
}

/// Bits of a message in a quality of service.
const BITS: u64 = 16 * 8;

/// The terms of a pipe, in memory.
type Words = StateBuffer<[u64; 3], 2>;

/// The terms of a pipe, told to a thread that writes.
pub struct ToldTerms(StaticState<Words>);

/// One version of them.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct Terms {
    version: u64,
    /// The period in which the thread writes; zero if the pipe is closed.
    pub period: Nanos,
    messages: u64,
    per: u64,
}

impl ToldTerms {
    pub(crate) const fn new() -> ToldTerms {
        ToldTerms(StaticState::new(StateBuffer::new()))
    }

    /// `None` while they are changed more than once.
    pub(crate) fn terms(&self) -> Option<Terms> {
        let reader = self.0.reader();
        // Is the value newer than that, the next look finds another version.
        let version = reader.published();
        let [period, messages, per] = reader.read_checked().ok()?;
        Some(Terms { version, period: Nanos(period), messages, per })
    }

    /// Returns whether the pipe was open once.
    pub(crate) fn was_open(&self) -> bool {
        self.0.reader().published() > 0
    }
}

impl Terms {
    /// Returns how many of all messages may be written in so many periods.
    pub fn owed(&self, periods: u64) -> u64 {
        let time = u128::from(self.period.0) * u128::from(periods) * u128::from(self.messages);
        time.div_ceil(u128::from(self.per.max(1))) as u64
    }
}

/// The pipe, which tells the thread its terms.
pub(crate) struct Teller(Option<StateWriter<'static, Words>>);

impl Teller {
    /// Returns the teller of a thread that has heard nothing so far.
    pub fn new(told: Option<&'static ToldTerms>) -> Teller {
        Teller(told.and_then(|told| told.0.writer()))
    }

    /// Tells the thread the terms from now on; none if the pipe is closed.
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
pub trait TunedWork: Task + Sync + 'static {
    /// Returns the common parts.
    fn base(&self) -> &Base;

    /// Returns whether it can serve a pipe on this route.
    fn suits(&self, route: Route) -> bool;

    /// Returns the counts of its writes, if it writes, and their longest times since it began.
    fn written(&self) -> Option<WrittenReport> {
        None
    }

    /// Returns whether nothing that it wrote is under way any more.
    fn is_settled(&self) -> bool {
        true
    }

    /// Returns where it looks up the terms of its pipe, if it does.
    fn told(&'static self) -> Option<&'static ToldTerms> {
        None
    }
}
