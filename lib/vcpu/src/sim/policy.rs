//! The operations that the simulated processor needs of a server. Tests replace a server's rules
//! through them.

use crate::{Pibs, SporadicServer};
use diapason_abi::Nanos;

/// A main VCPU's server; the operations are those of [`SporadicServer`].
pub trait MainServer {
    fn period(&self) -> Nanos;
    /// Returns the budget that the head chunk allows now.
    fn available(&self, now: Nanos) -> Nanos;
    /// Returns when the head chunk may be used.
    fn eligible_at(&self) -> Nanos;
    /// Returns when the head chunk must have been used.
    fn deadline(&self) -> Nanos;
    /// The queue is no longer empty.
    fn wake(&mut self, now: Nanos);
    /// The queue is empty.
    fn block(&mut self, now: Nanos);
    /// The processor was used.
    fn charge(&mut self, used: Nanos, now: Nanos);
    /// Returns how much the head chunk can bear, eligible or not. No slice is longer.
    fn left_of_head(&self) -> Nanos {
        Nanos::FOREVER
    }
    /// Checked after every step.
    fn is_consistent(&self) -> bool {
        true
    }
}

/// An I/O VCPU's server; the operations are those of [`Pibs`].
pub trait IoServer {
    fn period(&self) -> Nanos;
    /// Returns the budget that can be used now.
    fn available(&self, now: Nanos) -> Nanos;
    /// Returns when there is or will be budget.
    fn eligible_at(&self) -> Nanos;
    /// `e`, also while a grant is being used.
    fn eligibility(&self) -> Nanos;
    /// The deadline of the grant.
    fn deadline(&self) -> Nanos;
    /// There is work, the most urgent for `period`.
    fn wake(&mut self, now: Nanos, period: Nanos);
    /// The most urgent work is now for `period`.
    fn inherit(&mut self, now: Nanos, period: Nanos);
    /// There is no work.
    fn stop(&mut self, now: Nanos);
    /// The processor was used.
    fn charge(&mut self, used: Nanos, now: Nanos);
}

impl MainServer for SporadicServer {
    fn period(&self) -> Nanos {
        SporadicServer::period(self)
    }
    fn available(&self, now: Nanos) -> Nanos {
        self.available_by_deadline(now)
    }
    fn eligible_at(&self) -> Nanos {
        SporadicServer::eligible_at(self)
    }
    fn deadline(&self) -> Nanos {
        SporadicServer::deadline(self)
    }
    fn wake(&mut self, now: Nanos) {
        SporadicServer::wake(self, now);
    }
    fn block(&mut self, now: Nanos) {
        SporadicServer::block(self, now);
    }
    fn charge(&mut self, used: Nanos, now: Nanos) {
        SporadicServer::charge(self, used, now);
    }
    fn left_of_head(&self) -> Nanos {
        SporadicServer::left_of_head(self)
    }
    fn is_consistent(&self) -> bool {
        SporadicServer::is_consistent(self)
    }
}

impl IoServer for Pibs {
    fn period(&self) -> Nanos {
        Pibs::period(self)
    }
    fn available(&self, now: Nanos) -> Nanos {
        Pibs::available(self, now)
    }
    fn eligible_at(&self) -> Nanos {
        Pibs::eligible_at(self)
    }
    fn eligibility(&self) -> Nanos {
        Pibs::eligibility(self)
    }
    fn deadline(&self) -> Nanos {
        Pibs::deadline(self)
    }
    fn wake(&mut self, now: Nanos, period: Nanos) {
        Pibs::wake(self, now, period);
    }
    fn inherit(&mut self, now: Nanos, period: Nanos) {
        Pibs::inherit(self, now, period);
    }
    fn stop(&mut self, _now: Nanos) {
        Pibs::stop(self);
    }
    fn charge(&mut self, used: Nanos, now: Nanos) {
        Pibs::charge(self, used, now);
    }
}
