//! The thread of a pipe: it calls a function for each message, and measures.

use crate::agreement::{Inlet, inlet};
use core::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use diapason_abi::Nanos;
use diapason_abi::pipe::{SLOTS, TunedReport};
use diapason_canlib::{Arrival, LOST_BEFORE, Message, OUTSIDE, Phase};
use diapason_rt::thread::Task;
use diapason_rt::time;

/// What a pipe is for. It runs on the pipe's thread, and `self` is its argument.
pub trait Function: Sync + 'static {
    /// A message came.
    fn message(&self, message: &Message);

    /// The channel is somewhere else: not there, closed, open, off its bus.
    fn news(&self, phase: Phase) {
        let _ = phase;
    }
}

/// The thread of a pipe, and what it counts.
pub struct Thread<F> {
    function: F,
    place: usize,
    started: AtomicBool,
    counts: Counts,
}

/// Written by the thread alone, read by anybody.
struct Counts {
    messages: AtomicU64,
    lost: AtomicU64,
    overruns: AtomicU64,
    outside: AtomicU64,
    outages: AtomicU64,
    peak: AtomicU64,
    longest: AtomicU64,
}

/// What is known of the way here.
struct Way {
    /// The smallest difference of the two clocks, since the channel was opened so many times.
    fastest: (u16, u64),
    phase: Phase,
}

impl<F: Function> Thread<F> {
    /// Of the pipe in this place. It runs from the first time the pipe is asked for.
    #[must_use]
    pub const fn new(place: usize, function: F) -> Thread<F> {
        let counts = Counts {
            messages: AtomicU64::new(0),
            lost: AtomicU64::new(0),
            overruns: AtomicU64::new(0),
            outside: AtomicU64::new(0),
            outages: AtomicU64::new(0),
            peak: AtomicU64::new(0),
            longest: AtomicU64::new(0),
        };
        Thread { function, place, started: AtomicBool::new(false), counts }
    }

    /// What it is for.
    pub const fn function(&self) -> &F {
        &self.function
    }

    pub(crate) const fn place(&self) -> usize {
        self.place
    }

    /// True once: it must be started then.
    pub(crate) fn begin(&self) -> bool {
        !self.started.swap(true, Ordering::Relaxed)
    }

    /// What it has counted since it began; the longest delay since the last look.
    pub fn report(&self) -> TunedReport {
        let Counts { messages, lost, overruns, outside, outages, peak, longest } = &self.counts;
        let read = |count: &AtomicU64| count.load(Ordering::Relaxed);
        TunedReport {
            place: self.place as u8,
            messages: read(messages),
            lost: read(lost),
            overruns: read(overruns),
            outside: read(outside),
            outages: read(outages),
            peak: read(peak),
            longest: Nanos(longest.swap(0, Ordering::Relaxed)),
            ..TunedReport::default()
        }
    }

    /// All there is, but at most what fits: the server must not keep it here.
    fn drain(&self, inlet: &mut Inlet, way: &mut Way) {
        for _ in 0..SLOTS {
            let Some(arrival) = inlet.pop() else { break };
            match (arrival.phase(), arrival.frame()) {
                (Some(phase), _) => self.note(phase, way),
                (None, Some(frame)) => {
                    self.function.message(&Message { frame, arrival });
                    self.count(&arrival, way, time::now());
                }
                (None, None) => {}
            }
        }
        self.counts.lost.store(inlet.lost(), Ordering::Relaxed);
        self.counts.peak.store(inlet.peak(), Ordering::Relaxed);
    }

    fn note(&self, phase: Phase, way: &mut Way) {
        if way.phase == Phase::Open && phase != Phase::Open {
            add(&self.counts.outages, true);
        }
        way.phase = phase;
        self.function.news(phase);
    }

    /// A message with which the function is done at `now`.
    fn count(&self, arrival: &Arrival, way: &mut Way, now: Nanos) {
        add(&self.counts.messages, true);
        add(&self.counts.overruns, arrival.flags & LOST_BEFORE != 0);
        add(&self.counts.outside, arrival.flags & OUTSIDE != 0);
        // Of two clocks: only differences between such differences mean anything.
        let distance = arrival.taken.wrapping_sub(arrival.time);
        let (opened, fastest) = way.fastest;
        let fastest = if opened == arrival.opened { fastest.min(distance) } else { distance };
        way.fastest = (arrival.opened, fastest);
        let delay = Nanos(distance - fastest) + (now - Nanos(arrival.taken));
        self.counts.longest.fetch_max(delay.0, Ordering::Relaxed);
    }
}

fn add(count: &AtomicU64, more: bool) {
    count.fetch_add(u64::from(more), Ordering::Relaxed);
}

impl<F: Function> Task for Thread<F> {
    fn run(&'static self) -> u64 {
        let Ok((mut inlet, ready)) = inlet(self.place) else { return 1 };
        // A channel that was never opened has no clock that could be compared.
        let mut way = Way { fastest: (u16::MAX, u64::MAX), phase: Phase::Absent };
        while ready.take(Nanos::FOREVER).is_ok() {
            self.drain(&mut inlet, &mut way);
        }
        1
    }
}
