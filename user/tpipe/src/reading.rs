//! What a thread does that reads a pipe: it takes what there is, and measures.

use crate::agreement::Inlet;
use crate::work::Base;
use core::sync::atomic::{AtomicU64, Ordering};
use diapason_abi::Nanos;
use diapason_abi::pipe::{SLOTS, TunedReport};
use diapason_canlib::{Arrival, LOST_BEFORE, Message, OUTSIDE, Phase};
use diapason_rt::time;

/// What came.
pub(crate) enum Heard<'a> {
    /// A message, and when it arrived, later by the fastest way here.
    Message(&'a Message, Nanos),
    /// News of the channel.
    News(Phase),
}

/// The reader, and what it counts.
pub(crate) struct Reading {
    pub base: Base,
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
pub(crate) struct Way {
    /// The smallest difference of the two clocks, since the channel was opened so many times.
    fastest: (u16, u64),
    phase: Phase,
}

impl Way {
    /// A channel that was never opened has no clock that could be compared.
    pub const fn new() -> Way {
        Way { fastest: (u16::MAX, u64::MAX), phase: Phase::Absent }
    }

    /// When a message arrived, later by the fastest way here. Of two clocks: only differences
    /// between such differences mean anything.
    fn arrived(&mut self, arrival: &Arrival) -> Nanos {
        let distance = arrival.taken.wrapping_sub(arrival.time);
        let (opened, fastest) = self.fastest;
        let fastest = if opened == arrival.opened { fastest.min(distance) } else { distance };
        self.fastest = (arrival.opened, fastest);
        Nanos(arrival.taken) - Nanos(distance - fastest)
    }
}

impl Reading {
    pub const fn new(place: usize) -> Reading {
        let counts = Counts {
            messages: AtomicU64::new(0),
            lost: AtomicU64::new(0),
            overruns: AtomicU64::new(0),
            outside: AtomicU64::new(0),
            outages: AtomicU64::new(0),
            peak: AtomicU64::new(0),
            longest: AtomicU64::new(0),
        };
        Reading { base: Base::new(place), counts }
    }

    /// What was counted since it began; the longest delay since the last look.
    pub fn report(&self) -> TunedReport {
        let Counts { messages, lost, overruns, outside, outages, peak, longest } = &self.counts;
        let read = |count: &AtomicU64| count.load(Ordering::Relaxed);
        TunedReport {
            place: self.base.place as u8,
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
    pub fn drain(&self, inlet: &mut Inlet, way: &mut Way, hear: &mut dyn FnMut(Heard<'_>)) {
        for _ in 0..SLOTS {
            let Some(arrival) = inlet.pop() else { break };
            match (arrival.phase(), arrival.frame()) {
                (Some(phase), _) => {
                    let was = core::mem::replace(&mut way.phase, phase);
                    add(&self.counts.outages, was == Phase::Open && phase != Phase::Open);
                    hear(Heard::News(phase));
                }
                (None, Some(frame)) => {
                    let arrived = way.arrived(&arrival);
                    hear(Heard::Message(&Message { frame, arrival }, arrived));
                    self.count(&arrival, time::now() - arrived);
                }
                (None, None) => {}
            }
        }
        self.counts.lost.store(inlet.lost(), Ordering::Relaxed);
        self.counts.peak.store(inlet.peak(), Ordering::Relaxed);
    }

    /// A message that took so long.
    fn count(&self, arrival: &Arrival, delay: Nanos) {
        add(&self.counts.messages, true);
        add(&self.counts.overruns, arrival.flags & LOST_BEFORE != 0);
        add(&self.counts.outside, arrival.flags & OUTSIDE != 0);
        self.counts.longest.fetch_max(delay.0, Ordering::Relaxed);
    }
}

fn add(count: &AtomicU64, more: bool) {
    count.fetch_add(u64::from(more), Ordering::Relaxed);
}
