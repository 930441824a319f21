//! The device as a server of messages: how long one waits until a transfer takes it.

use super::service::Service;
use super::stages::Transfers;
use diapason_abi::Nanos;

/// Whether a request is always there when a transfer could begin.
#[derive(Clone, Copy)]
pub(super) enum Queued {
    /// Then a message waits only for the transfers before its own: so long.
    Enough(Nanos),
    /// A request comes back after a round.
    InRounds,
}

/// Transfers one after the other, each with what waits, and each request back `round` after its
/// transfer began. "Work" is counted in messages.
///
/// Let s be the last time at which nothing waited in the device. Message j after s is in transfer
/// i = ⌈j/m⌉ after s, because every transfer from then on is full or takes all. Transfer i begins
/// when transfer i − 1 has ended and the request of transfer i − n is back: for i ≤ n at s + round
/// at the latest, as that one began before s.
pub(super) struct Sampling {
    pub(super) queued: u64,
    pub(super) round: Nanos,
    pub(super) bus: Transfers,
}

impl Service for Sampling {
    fn budget(&self) -> Nanos {
        Nanos(self.queued.saturating_mul(self.bus.messages))
    }

    fn period(&self) -> Nanos {
        let all = self.bus.worst.0.saturating_mul(self.queued);
        Nanos(all.max(self.round.0).max(1))
    }

    fn sync(&self, messages: Nanos) -> Nanos {
        let transfers = messages.0.div_ceil(self.bus.messages.max(1));
        let Some(before) = transfers.checked_sub(1) else { return Nanos::ZERO };
        let (rounds, rest) = (before / self.queued.max(1), before % self.queued.max(1));
        let in_rounds = self.period().0.saturating_mul(rounds);
        self.round + Nanos(in_rounds) + Nanos(self.bus.worst.0.saturating_mul(rest))
    }

    fn any(&self, messages: Nanos) -> Nanos {
        self.sync(messages) + self.period()
    }

    fn wakeups(&self) -> u64 {
        u64::MAX
    }
}
