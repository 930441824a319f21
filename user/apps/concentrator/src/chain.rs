//! The agreement of the threads of the example's chains, and the reports of their last ones.

use crate::passed::{Passed, WORDS};
use diapason_abi::pipe::{ChainReach, ChainReport, HOPS};
use diapason_rt::{Nanos, log};

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
/// How often threads say how it goes.
pub const REPORT: Nanos = Nanos::from_secs(1);

/// The messages at the end of a chain.
#[derive(Default)]
pub struct End {
    /// The last message's number, and its command's.
    last: (u64, u64),
    report: ChainReport,
    reached: [Nanos; HOPS],
}

impl End {
    /// The number of the next command.
    pub const fn next(&self) -> u64 {
        self.last.1 + 1
    }

    /// A message has passed `threads` threads, the last of them just now.
    pub fn passed(&mut self, message: &Passed, threads: usize) {
        for (reached, at) in self.reached.iter_mut().zip(message.at).take(threads) {
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

    /// The lines for the tools.
    pub fn say(&mut self, threads: usize) {
        log!("{}", self.report);
        for (thread, after) in (0..).zip(self.reached.iter().take(threads)) {
            log!("{}", ChainReach { thread, after: *after });
        }
        self.report.whole = Nanos::ZERO;
        self.reached = [Nanos::ZERO; HOPS];
    }
}
