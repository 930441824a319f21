//! The work of a thread that writes to a device: it puts messages into the ring of its pipe, and
//! learns their fate.

use crate::agreement::entrance;
use core::sync::atomic::{AtomicU64, Ordering, fence};
use diapason_abi::{Errno, Nanos};
use diapason_canlib::agreement::{
    ChannelCommand, ChannelRequest, DEPARTURES, Departure, Ledger, REPORTS, REPORTS_KEPT,
    SendingEnds,
};
use diapason_canlib::{CanFrame, Phase};
use diapason_pipe::measured::WrittenReport;

/// The counts that the thread alone makes; anybody may read them.
pub(crate) struct Written {
    through: AtomicU64,
    lost: AtomicU64,
    outages: AtomicU64,
    /// The longest times: ever, and since the last report.
    taken: [AtomicU64; 2],
    whole: [AtomicU64; 2],
    /// Messages whose fate is not known yet.
    pending: AtomicU64,
}

impl Written {
    /// Returns counts of nothing.
    pub const fn new() -> Written {
        Written {
            through: AtomicU64::new(0),
            lost: AtomicU64::new(0),
            outages: AtomicU64::new(0),
            taken: [const { AtomicU64::new(0) }; 2],
            whole: [const { AtomicU64::new(0) }; 2],
            pending: AtomicU64::new(0),
        }
    }

    /// Returns whether nothing is in the pipe or under way.
    pub fn is_settled(&self) -> bool {
        self.pending.load(Ordering::Acquire) == 0
    }

    /// Returns the counts since the thread began.
    pub fn report(&self) -> WrittenReport {
        let [taken, _] = &self.taken;
        let [whole, _] = &self.whole;
        self.with([taken, whole].map(|time| time.load(Ordering::Relaxed)))
    }

    /// Returns the counts since the thread began, with the longest times since the last call.
    pub fn next_report(&self) -> WrittenReport {
        let [_, taken] = &self.taken;
        let [_, whole] = &self.whole;
        self.with([taken, whole].map(|time| time.swap(0, Ordering::Relaxed)))
    }

    fn with(&self, times: [u64; 2]) -> WrittenReport {
        let read = |count: &AtomicU64| count.load(Ordering::Relaxed);
        let [taken, whole] = times.map(|time| (Nanos(time), Nanos::ZERO));
        WrittenReport {
            through: read(&self.through),
            lost: read(&self.lost),
            outages: read(&self.outages),
            taken,
            whole,
            ..WrittenReport::default()
        }
    }
}

/// The program's end of a pipe to a device.
pub(crate) struct Exit {
    counter: SendingEnds,
    books: Ledger,
    phase: Phase,
    counts: &'static Written,
    /// Messages that found no room.
    refused: u64,
}

impl Exit {
    /// Opens the end of a place whose pipe was open once.
    pub fn open(place: usize, counts: &'static Written) -> Result<Exit, Errno> {
        let (counter, _) = entrance(place)?;
        let (books, phase) = (Ledger::default(), Phase::Absent);
        Ok(Exit { counter, books, phase, counts, refused: 0 })
    }

    /// Returns where the channel is.
    pub const fn phase(&self) -> Phase {
        self.phase
    }

    /// Hears the reports that have come, and returns the channel's phase if that is new. A channel
    /// that goes is an outage if its pipe is `open`.
    pub fn hear(&mut self, open: bool) -> Option<Phase> {
        let waiting = self.counter.reports.len().unwrap_or(0);
        let before = self.phase;
        for _ in 0..waiting {
            let Some(report) = self.counter.reports.pop() else { break };
            self.books.note(report);
            let was = core::mem::replace(&mut self.phase, report.phase());
            let gone = open && was == Phase::Open && self.phase != Phase::Open;
            self.counts.outages.fetch_add(gone.into(), Ordering::Relaxed);
            for (taken, whole) in self.counts.taken.iter().zip(&self.counts.whole) {
                taken.fetch_max(report.taking, Ordering::Relaxed);
                whole.fetch_max(report.whole, Ordering::Relaxed);
            }
        }
        if waiting >= REPORTS - REPORTS_KEPT {
            // The server may have kept the last one for want of room.
            self.wake();
        }
        if waiting > 0 {
            let (_, through, given_up) = self.books.counts();
            self.counts.through.store(through, Ordering::Relaxed);
            self.counts.lost.store(given_up + self.refused, Ordering::Relaxed);
            self.counts.pending.store(self.books.pending(), Ordering::Release);
        }
        (self.phase != before).then_some(self.phase)
    }

    /// Puts a message into the ring that exists since then; false if there is no room.
    pub fn put(&mut self, frame: &CanFrame, since: Nanos) -> bool {
        let departures = &mut self.counter.departures;
        let room = departures.len().is_ok_and(|waiting| waiting < DEPARTURES);
        if !room || departures.push(&Departure::at(frame, since)).is_err() {
            self.refused += 1;
            self.counts.lost.fetch_add(1, Ordering::Relaxed);
            return false;
        }
        self.books.wrote();
        self.counts.pending.store(self.books.pending(), Ordering::Release);
        // As a channel's client does: one of the two ends sees what the other did.
        fence(Ordering::SeqCst);
        if departures.len() == Ok(1) {
            self.wake();
        }
        true
    }

    /// Has the server look. A full mailbox wakes it anyway.
    fn wake(&self) {
        let request = ChannelRequest { wanted: ChannelCommand::Wake, token: 0 };
        let _ = self.counter.requests.send(&request.bytes(), 0, Nanos::ZERO);
    }
}
