//! Measures whether arrivals keep their contract. A leaky bucket as a counter, message by message.
//!
//! X is the most that any window ending now is ahead of the long-run rate, in units of 1/per
//! messages: with Δ since the message before, X := max(X − Δ·messages, 0) + per. A window of n
//! messages and length Δ keeps the contract if n ≤ burst + ⌊(Δ + jitter)·messages/per⌋, that is if
//! n·per − Δ·messages ≤ burst·per + jitter·messages. So all windows that end now keep it if X is at
//! most the right side: the counter is exact, not an estimate. (If the right side does not fit into
//! 64 bits, nothing is outside.)

use crate::size::Bucket;
use diapason_abi::Nanos;

/// The time at which a message may come that no contract lets in.
const NEVER: Nanos = Nanos(u64::MAX);

/// A contract and how much of it is used up.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Meter {
    contract: Bucket,
    limit: u64,
    ahead: u64,
    last: Nanos,
    /// Messages outside of the contract.
    outside: u64,
}

impl Meter {
    /// Returns a meter before the first message.
    #[must_use]
    pub const fn new(contract: Bucket) -> Meter {
        let Bucket { burst, messages, per, jitter } = contract;
        let spare = jitter.0.saturating_mul(messages);
        let limit = burst.saturating_mul(per.0).saturating_add(spare);
        Meter { contract, limit, ahead: 0, last: Nanos::ZERO, outside: 0 }
    }

    /// Notes a message, and returns whether it is within the contract. One that is not is counted,
    /// and the rest is measured as if it had not come: so many at least are too many. A clock that
    /// goes back stands still.
    pub fn admits(&mut self, at: Nanos) -> bool {
        let gap = (at - self.last).0;
        self.last = self.last.max(at);
        let drained = gap.saturating_mul(self.contract.messages);
        let rest = self.ahead.saturating_sub(drained);
        let ahead = rest.saturating_add(self.contract.per.0);
        let within = ahead <= self.limit;
        self.ahead = if within { ahead } else { rest };
        self.outside += u64::from(!within);
        within
    }

    /// Returns the first time at which one more message is within the contract. It is not before
    /// the last message.
    #[must_use]
    pub fn opens(&self) -> Nanos {
        let Some(room) = self.limit.checked_sub(self.contract.per.0) else { return NEVER };
        let over = self.ahead.saturating_sub(room);
        if over == 0 {
            return self.last;
        }
        if self.contract.messages == 0 {
            return NEVER;
        }
        Nanos(self.last.0.saturating_add(over.div_ceil(self.contract.messages)))
    }

    /// Notes that so many messages came at one time, and returns how many of them are outside. It
    /// does in one step what [`Meter::admits`] does for each.
    pub fn admit_all(&mut self, at: Nanos, messages: u64) -> u64 {
        if messages == 0 {
            return 0;
        }
        let gap = (at - self.last).0;
        self.last = self.last.max(at);
        let rest = self.ahead.saturating_sub(gap.saturating_mul(self.contract.messages));
        let fit = match self.limit.checked_sub(rest) {
            None => 0,
            Some(room) => room.checked_div(self.contract.per.0).unwrap_or(messages),
        };
        let within = messages.min(fit);
        self.ahead = rest.saturating_add(self.contract.per.0.saturating_mul(within));
        self.outside += messages - within;
        messages - within
    }

    /// Restarts the clock, and with it every window.
    pub fn restart(&mut self) {
        (self.ahead, self.last) = (0, Nanos::ZERO);
    }

    /// Messages outside of the contract so far.
    #[must_use]
    pub const fn outside(&self) -> u64 {
        self.outside
    }

    /// Returns the contract that arrivals are measured against.
    #[must_use]
    pub const fn contract(&self) -> &Bucket {
        &self.contract
    }
}
