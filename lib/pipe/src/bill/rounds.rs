//! The device as a server of messages: how long one waits until a transfer takes it. "Work" is
//! counted in messages.
//!
//! Let s be the time at which the first message comes after nothing waited in the device. Message j
//! from then on is in transfer i = ⌈j/m⌉ after s, because every transfer from then on is full or
//! takes all. Transfer i could begin when transfer i − 1 has ended and its request is there.

use super::service::Service;
use super::stages::Transfers;
use diapason_abi::Nanos;

/// Whether a request is always there when a transfer could begin.
#[derive(Clone, Copy)]
pub(super) enum Requests {
    /// Then a message waits only for the transfers before its own.
    Enough,
    /// All may be under way. Each comes back after a round.
    Scarce,
}

/// Transfers in a row: a request is always there.
///
/// Transfers 0 to i − 1 are in a row that began by s, so they have ended ⌈i/run⌉ times `worst`
/// after s.
pub(super) struct BackToBack(pub(super) Transfers);

impl Service for BackToBack {
    fn budget(&self) -> Nanos {
        Nanos(self.0.run.saturating_mul(self.0.messages))
    }

    fn period(&self) -> Nanos {
        Nanos(self.0.worst.0.max(1))
    }

    fn sync(&self, messages: Nanos) -> Nanos {
        let runs = messages.0.div_ceil(self.budget().0.max(1));
        Nanos(self.0.worst.0.saturating_mul(runs))
    }

    fn any(&self, messages: Nanos) -> Nanos {
        self.sync(messages) + self.period()
    }

    fn wakeups(&self) -> u64 {
        u64::MAX
    }
}

/// Transfers whose requests are each back `round` after their transfer began; `queued` are there.
///
/// The request of transfer i is that of i − n. For i ≤ n it is back at s + `round`, as i − n began
/// by s. k transfers in a row end within L + k·e of the begin of the first, where e is `worst` /
/// run and L the rest of `worst`. docs/pipes-proofs.md shows by induction that transfer i begins at
/// s + round + q·P + L + r·e at the latest, with i − 1 = q·n + r and P = max(round, n·e) + L.
pub(super) struct Sampling {
    pub(super) queued: u64,
    pub(super) round: Nanos,
    pub(super) bus: Transfers,
}

impl Sampling {
    /// Returns e, what a transfer more in a row takes, and L.
    fn each_and_latency(&self) -> (u64, u64) {
        let each = self.bus.worst.0.div_ceil(self.bus.run.max(1));
        (each, self.bus.worst.0 - each)
    }
}

impl Service for Sampling {
    fn budget(&self) -> Nanos {
        Nanos(self.queued.saturating_mul(self.bus.messages))
    }

    fn period(&self) -> Nanos {
        let (each, latency) = self.each_and_latency();
        let all = each.saturating_mul(self.queued);
        Nanos(all.max(self.round.0).saturating_add(latency).max(1))
    }

    fn sync(&self, messages: Nanos) -> Nanos {
        let transfers = messages.0.div_ceil(self.bus.messages.max(1));
        let Some(before) = transfers.checked_sub(1) else { return Nanos::ZERO };
        let (each, latency) = self.each_and_latency();
        let latency = if before == 0 { 0 } else { latency };
        let (rounds, rest) = (before / self.queued.max(1), before % self.queued.max(1));
        let in_rounds = self.period().0.saturating_mul(rounds);
        self.round + Nanos(in_rounds) + Nanos(each.saturating_mul(rest).saturating_add(latency))
    }

    fn any(&self, messages: Nanos) -> Nanos {
        self.sync(messages) + self.period()
    }

    fn wakeups(&self) -> u64 {
        u64::MAX
    }
}
