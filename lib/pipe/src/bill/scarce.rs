//! The wait for a request where fewer are queued than may be under way.
//!
//! A request that is missing when a message comes left with a transfer that began some time ago. As
//! all n requests are away, n transfers began since then, and each took messages that came since
//! then, unless many had gathered before. So part of the round has passed when the message comes.
//! docs/pipes-proofs.md (Scarce requests) has the proof.

use super::stages::Transfers;
use super::steps::{Messages, Steps};
use diapason_abi::Nanos;

/// Transfers in a row that are looked at one by one. With more, nothing is gained.
const ROW_MAX: u64 = 256;

/// Times that a bound of all waits is used to find a shorter one.
const TIMES: u32 = 3;

/// Requests that come back a round after their transfers began.
pub(super) struct Scarce<'a> {
    pub(super) bus: Transfers,
    pub(super) round: Nanos,
    pub(super) messages: Messages<'a>,
    /// How long a message waits at most for transfers in a row, if a request is always there.
    pub(super) in_a_row: Nanos,
}

impl Scarce<'_> {
    /// Returns how long a message waits at most, if no message waits longer than `known`.
    pub(super) fn wait(&self, known: Nanos) -> Nanos {
        (0..TIMES).fold(known, |known, _| self.shorter(known))
    }

    fn shorter(&self, known: Nanos) -> Nanos {
        let mut wait = self.in_a_row;
        for row in 0..ROW_MAX {
            let lasts = Nanos(row.div_ceil(self.bus.run.max(1)).saturating_mul(self.bus.worst.0));
            let full = row.saturating_mul(self.bus.messages);
            if row > 0 && self.messages.most((known + lasts).0) <= full {
                return wait.min(known);
            }
            let since = self.since_one_left_nothing(known, full);
            wait = wait.max((self.round + lasts) - since);
            let all_full = self.bus.queued.saturating_mul(self.bus.messages).saturating_add(full);
            let gathered = self.least_window(all_full.saturating_add(1));
            wait = wait.max((self.round + lasts + known) - gathered);
        }
        known
    }

    /// Returns the shortest time from the beginning of the transfer whose request is waited for
    /// until the message comes, with `more` messages in full transfers between, if one of the n
    /// transfers left nothing.
    ///
    /// Let the first f be full, and the next one leave nothing. Then n − f messages came after that
    /// one, and n + f·(m − 1) not longer than `known` before the first. One bound falls with f and
    /// the other grows: the least of the larger is where they cross.
    fn since_one_left_nothing(&self, known: Nanos, more: u64) -> Nanos {
        let last = self.bus.queued - 1;
        let (mut below, mut crossed) = (0, last);
        while below + 1 < crossed {
            let middle = below.midpoint(crossed);
            if self.after_full(middle, more, known) < self.after_empty(middle, more) {
                below = middle;
            } else {
                crossed = middle;
            }
        }
        let largest = |full| self.after_empty(full, more).max(self.after_full(full, more, known));
        largest(below).min(largest(crossed))
    }

    /// Returns the time in which the messages come that follow the first `full` transfers and the
    /// one that left nothing.
    fn after_empty(&self, full: u64, more: u64) -> Nanos {
        self.least_window((self.bus.queued - full).saturating_add(more))
    }

    /// Returns the same by all messages since the first transfer, if `full` were full.
    fn after_full(&self, full: u64, more: u64, known: Nanos) -> Nanos {
        let Transfers { queued, messages, empties, .. } = self.bus;
        if full == 0 {
            return Nanos::ZERO;
        }
        let gathered = full.saturating_mul(messages.saturating_sub(1));
        let last = u64::from(!empties);
        let all = gathered.saturating_add(queued).saturating_add(last).saturating_add(more);
        self.least_window(all) - known
    }

    /// Returns the shortest window in which so many messages can come.
    fn least_window(&self, messages: u64) -> Nanos {
        let reached = |window: u64| self.messages.most(window) >= messages;
        let (mut below, mut above) = (0, 1);
        while !reached(above) {
            if above > u64::MAX / 2 {
                return Nanos(u64::MAX);
            }
            (below, above) = (above, above * 2);
        }
        if reached(0) {
            return Nanos::ZERO;
        }
        while below + 1 < above {
            let middle = below.midpoint(above);
            if reached(middle) { above = middle } else { below = middle }
        }
        Nanos(above)
    }
}

#[cfg(test)]
mod tests;
