//! The work of a thread that reads a pipe: it takes the messages, and measures.

use crate::agreement::Inlet;
use crate::work::Base;
use core::sync::atomic::{AtomicU64, Ordering};
use diapason_abi::Nanos;
use diapason_abi::pipe::SLOTS;
use diapason_canlib::{LOST_BEFORE, OUTSIDE, Phase, ReceivedFrame, TimedFrame};
use diapason_pipe::measured::TunedReport;
use diapason_rt::time;

/// An item that came through the pipe.
pub(crate) enum Heard<'a> {
    /// A message, and when it arrived, later by the fastest way here.
    Message(&'a TimedFrame, Nanos),
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
    /// The longest delay, and what it may lack: ever, and since the last report.
    longest: [AtomicU64; 2],
    inexact: [AtomicU64; 2],
}

/// Where the channel is, as far as the reader knows.
pub(crate) struct Way {
    phase: Phase,
}

impl Way {
    /// Returns a way of which nothing is known.
    pub const fn new() -> Way {
        Way { phase: Phase::Absent }
    }
}

impl Reading {
    /// Returns counts of nothing.
    pub const fn new(place: usize) -> Reading {
        let counts = Counts {
            messages: AtomicU64::new(0),
            lost: AtomicU64::new(0),
            overruns: AtomicU64::new(0),
            outside: AtomicU64::new(0),
            outages: AtomicU64::new(0),
            peak: AtomicU64::new(0),
            longest: [const { AtomicU64::new(0) }; 2],
            inexact: [const { AtomicU64::new(0) }; 2],
        };
        Reading { base: Base::new(place), counts }
    }

    /// Returns the counts since it began.
    pub fn report(&self) -> TunedReport {
        let [longest, _] = &self.counts.longest;
        let [inexact, _] = &self.counts.inexact;
        self.with(longest.load(Ordering::Relaxed), inexact.load(Ordering::Relaxed))
    }

    /// Returns the counts since it began, with the longest delay since the last call.
    pub fn next_report(&self) -> TunedReport {
        let [_, longest] = &self.counts.longest;
        let [_, inexact] = &self.counts.inexact;
        self.with(longest.swap(0, Ordering::Relaxed), inexact.swap(0, Ordering::Relaxed))
    }

    fn with(&self, longest: u64, inexact: u64) -> TunedReport {
        let Counts { messages, lost, overruns, outside, outages, peak, .. } = &self.counts;
        let read = |count: &AtomicU64| count.load(Ordering::Relaxed);
        let small = |count: u64| u32::try_from(count).unwrap_or(u32::MAX);
        TunedReport {
            place: self.base.place as u8,
            messages: read(messages),
            lost: read(lost),
            overruns: small(read(overruns)),
            outside: small(read(outside)),
            outages: small(read(outages)),
            inexact: small(inexact),
            peak: small(read(peak)),
            longest: Nanos(longest),
            ..TunedReport::default()
        }
    }

    /// Reads all messages, but at most as many as fit: the server must not keep the thread here.
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
                    let arrived = Nanos(arrival.taken) - Nanos(arrival.moved.into());
                    hear(Heard::Message(&TimedFrame { frame, arrival }, arrived));
                    self.count(&arrival, time::now() - arrived);
                }
                (None, None) => {}
            }
        }
        self.counts.lost.store(inlet.lost(), Ordering::Relaxed);
        self.counts.peak.store(inlet.peak(), Ordering::Relaxed);
    }

    /// A message that took so long.
    fn count(&self, arrival: &ReceivedFrame, delay: Nanos) {
        add(&self.counts.messages, true);
        add(&self.counts.overruns, arrival.flags & LOST_BEFORE != 0);
        add(&self.counts.outside, arrival.flags & OUTSIDE != 0);
        if !self.base.is_promised() {
            // The thread of a closed pipe reads the rest with hardly any budget.
            return;
        }
        for (longest, inexact) in self.counts.longest.iter().zip(&self.counts.inexact) {
            longest.fetch_max(delay.0, Ordering::Relaxed);
            inexact.fetch_max(arrival.inexact.into(), Ordering::Relaxed);
        }
    }
}

fn add(count: &AtomicU64, more: bool) {
    count.fetch_add(u64::from(more), Ordering::Relaxed);
}
