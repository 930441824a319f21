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

/// Halvings of a time that is searched for.
const HALVINGS: u32 = 8;

/// Times that a bound of all waits is used to find a shorter one.
const TIMES: u32 = 2;

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
        let mut known = known;
        for _ in 0..TIMES {
            let shorter = self.shorter(known);
            if shorter == known {
                break;
            }
            known = shorter;
        }
        known
    }

    fn shorter(&self, known: Nanos) -> Nanos {
        let Transfers { worst, run, queued, messages, .. } = self.bus;
        let mut wait = self.in_a_row;
        for row in 0..ROW_MAX {
            let lasts = Nanos(row.div_ceil(run.max(1)).saturating_mul(worst.0));
            let full = row.saturating_mul(messages);
            if row > 0 && self.messages.most((known + lasts).0) <= full {
                return wait.min(known);
            }
            let (left, all) = (self.round + lasts, queued.saturating_mul(messages));
            let one_left_nothing = |passed| self.one_left_nothing(passed, full, known);
            wait = wait.max(left - least(left - wait, one_left_nothing));
            let all_full = |passed: Nanos| self.messages.most(passed.0) > all.saturating_add(full);
            wait = wait.max((left + known) - least((left + known) - wait, all_full));
        }
        known
    }

    /// Returns whether a message can come this long after the transfer began whose request it waits
    /// for, with `more` messages in full transfers between, if one of the n transfers left nothing.
    ///
    /// Let the first f be full, and the next one leave nothing. Then n − f messages came after that
    /// one, and n + f·(m − 1) not longer than `known` before the first. The fewest f that the first
    /// allows is what the second allows most easily.
    fn one_left_nothing(&self, passed: Nanos, more: u64, known: Nanos) -> bool {
        let Transfers { queued, messages, empties, .. } = self.bus;
        let fewest = queued.saturating_add(more).saturating_sub(self.messages.most(passed.0));
        if fewest == 0 {
            return true;
        }
        let gathered = fewest.saturating_mul(messages.saturating_sub(1));
        let last = u64::from(!empties);
        let all = gathered.saturating_add(queued).saturating_add(last).saturating_add(more);
        fewest < queued && self.messages.most((passed + known).0) >= all
    }
}

/// Returns a time up to `most` before which something that stays possible is not possible: the
/// longest but for a small part of `most`. The server computes this while pipes are opened, so few
/// steps must be enough.
fn least(most: Nanos, possible: impl Fn(Nanos) -> bool) -> Nanos {
    if most > Nanos::ZERO && !possible(most - Nanos(1)) {
        return most;
    }
    let (mut from, mut to) = (0, most.0);
    for _ in 0..HALVINGS {
        if from >= to {
            break;
        }
        let middle = u64::midpoint(from, to);
        if possible(Nanos(middle)) { to = middle } else { from = middle + 1 }
    }
    Nanos(from)
}

#[cfg(test)]
mod tests;
