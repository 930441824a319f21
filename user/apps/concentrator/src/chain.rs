//! The agreement of the threads of the example's chains, and the reports of their last ones.

use crate::passed::{Passed, WORDS};
use diapason_pipe::measured::{ChainReport, HOPS, Measurement, REPORT, Reported};
use diapason_rt::{Nanos, log, time};

/// The mailbox from the reader to the controller.
pub const READINGS: &str = "readings";
/// That from the controller to the writer.
pub const COMMANDS: &str = "commands";
/// The state message from the reader to the display.
pub const NEWEST: &str = "newest";
/// Slots of it: so many writes at least while it is being read, which takes a few microseconds of a
/// reader that may be preempted for a few milliseconds.
pub const SLOTS: usize = 32;
/// The value of the state message.
pub type Value = [u64; WORDS];

/// Returns when a thread ends that ends after so many seconds; 0 is never.
pub fn end_after(seconds: u64) -> Nanos {
    if seconds == 0 { Nanos::FOREVER } else { time::now() + Nanos::from_secs(seconds) }
}

/// The messages at the end of a chain.
pub struct ChainEnd {
    /// The last message's number, and its command's.
    last: (u64, u64),
    report: ChainReport,
    /// When the next report is due.
    due: Nanos,
}

impl Default for ChainEnd {
    fn default() -> ChainEnd {
        ChainEnd { last: (0, 0), report: ChainReport::default(), due: time::now() + REPORT }
    }
}

impl ChainEnd {
    /// Returns the number of the next command.
    pub const fn next(&self) -> u64 {
        self.last.1 + 1
    }

    /// A message has passed `threads` threads, the last of them just now.
    pub fn passed(&mut self, message: &Passed, threads: usize) {
        let reached = self.report.reached.iter_mut();
        for (reached, at) in reached.zip(message.at).take(threads) {
            *reached = (*reached).max(at - message.arrived);
        }
    }

    /// A message is through. Gaps in the numbers of commands were lost; further gaps in those of
    /// messages were replaced by newer ones.
    pub fn through(&mut self, message: &Passed, now: Nanos) {
        let gap = |number: u64, last: u64| number.saturating_sub(last + 1);
        let lost = gap(message.command, self.last.1);
        self.report.lost += lost;
        self.report.replaced += gap(message.number, self.last.0).saturating_sub(lost);
        self.report.messages += 1;
        self.last = (message.number, message.command);
        self.report.whole = self.report.whole.max(now - message.arrived);
    }

    /// Returns when the next report is due.
    pub const fn due(&self) -> Nanos {
        self.due
    }

    /// Reports how the chain does, if that is due.
    pub fn look(&mut self, now: Nanos) {
        if now < self.due {
            return;
        }
        self.due = now + REPORT;
        log::measured(&Reported { at: now, said: Measurement::Chain(self.report) }.words());
        (self.report.whole, self.report.reached) = (Nanos::ZERO, [Nanos::ZERO; HOPS]);
    }
}
