//! PIBS, the server of an I/O VCPU: a share `U` of the processor, one replenishment, and the period
//! of the VCPU that it works for.
//!
//! State: eligibility `e`, budget `b`, inherited period `T`, the smallest among pending work; the
//! budget granted is `Q(T) = ⌊U·min(T, cap)⌋`.
//!
//! - **P1** Wake at `t`: if `e ≤ t`, then `e = t` and `b = Q(T)`. Else if `b > 0`, go on with
//!   `b = min(b, Q(T))`. Else wait for `e`, then `b = Q(T)`.
//! - **P2** Stop (work done, budget gone, or `T` becomes smaller): `e += ⌈used/U⌉`; `b` stays.
//! - **P3** Becoming more urgent is P2, then P1. Becoming less urgent changes neither `e` nor `b`.
//! - **P4** Pending work is served in the order of its beneficiary's priority, FIFO inside: that is
//!   the queue's part, this module only asks for the smallest period in it.
//! - **Overrun** Use beyond `b` counts as used, so it delays the next grant by its `1/U`-fold.
//!
//! The server of [USB 2023] is raised by inheritance and keeps the longer period's budget. That
//! breaks their own admission test (`tests/attacks/counterexamples.rs`); P3 is what repairs it.
//!
//! **Theorem (share).** In a busy period of its level that starts at `s`, the server uses at most
//! `q + U·(L − q)` of the first `L ≥ q`, plus the largest overrun; `q` is the largest `Q` of a
//! beneficiary of that level or above. *Proof.* `e ≥ s` at the first use, by P1 at a wake or a
//! raise, or because the grant came while it was backlogged. Each use moves `e` by at least
//! `used/U`, so what was used before the last grant is at most `U·(e − s)`, and the last grant is
//! at most `q`, used from `e` on; it cannot end before `e + q` and be whole. ∎ For `L = T` and
//! `q = U·T` it is theirs, `(2 − U)·U·T`. **Under EDF**, with deadline `e + T` for a grant
//! and `t + T` for a rest gone on with at `t`, the demand in any `L` is at most `U·L`: a rest is at
//! most `Q(T)`, with what was used before at most one grant, and `t < e`, so a window that begins
//! by `t` has paid for it before the next grant.
//!
//! `U` is in parts per million: finer than a description says it, and its product with any time up
//! to [`PERIOD_MAX`](crate::PERIOD_MAX) stays in 64 bits. Rounding is against the server: the grant
//! down, the wait up, less than 1 ns for each stop.

use crate::PERIOD_MAX;
use diapason_abi::Nanos;

/// The whole processor, in the unit of shares.
pub const MILLION: u32 = 1_000_000;
const _: () = assert!(PERIOD_MAX.0 <= u64::MAX / MILLION as u64);

/// Observed maxima since creation of the quantities that the analysis bounds.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct PibsCounters {
    /// Most use beyond a grant: how late the budget was enforced.
    pub overrun_max: Nanos,
    /// Longest wait for a grant after a wake or a raise: at most `(1 − U)·T`, and by `1/U` more
    /// for an overrun.
    pub lockout_max: Nanos,
    /// Longest time from `e` to the end of a use.
    pub late_max: Nanos,
}

/// An I/O VCPU's server. See the module for its rules.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Pibs {
    share: u32,
    active: bool,
    cap: Nanos,
    period: Nanos,
    eligible: Nanos,
    left: Nanos,
    /// Used since `eligible` was last moved.
    used: Nanos,
    /// Used beyond the last grant.
    ahead: Nanos,
    /// Deadline of what is `left`.
    due: Nanos,
    counters: PibsCounters,
}

impl Pibs {
    /// A server without a share, for an unused slot of a pool.
    pub const EMPTY: Pibs = Pibs::new(0, Nanos::ZERO, Nanos::ZERO);

    /// Returns a stopped server with `share` parts per million, no grant larger than `cap` entitles
    /// to, eligible from `start` on. Share and cap are the caller's to check.
    #[must_use]
    pub const fn new(share: u32, cap: Nanos, start: Nanos) -> Pibs {
        Pibs {
            share: if share > MILLION { MILLION } else { share },
            active: false,
            cap,
            period: Nanos::FOREVER,
            eligible: start,
            left: Nanos::ZERO,
            used: Nanos::ZERO,
            ahead: Nanos::ZERO,
            due: Nanos::FOREVER,
            counters: PibsCounters {
                overrun_max: Nanos::ZERO,
                lockout_max: Nanos::ZERO,
                late_max: Nanos::ZERO,
            },
        }
    }

    /// `U`, in parts per million.
    #[must_use]
    pub const fn share(&self) -> u32 {
        self.share
    }

    /// Returns the longest period that a grant is computed from.
    #[must_use]
    pub const fn cap(&self) -> Nanos {
        self.cap
    }

    /// Returns the inherited period, which is also the rank among fixed priorities.
    #[must_use]
    pub const fn period(&self) -> Nanos {
        self.period
    }

    /// Returns the observed maxima.
    #[must_use]
    pub const fn counters(&self) -> PibsCounters {
        self.counters
    }

    /// Returns whether there is work, as last told.
    #[must_use]
    pub const fn is_active(&self) -> bool {
        self.active
    }

    /// `Q(T)`: the budget granted on behalf of a beneficiary with `period`.
    #[must_use]
    pub fn quantum(&self, period: Nanos) -> Nanos {
        let period = period.min(self.cap).min(PERIOD_MAX);
        Nanos(period.0 * u64::from(self.share) / u64::from(MILLION))
    }

    /// Returns the shortest time between the starts of two whole grants to work for `period`.
    #[must_use]
    pub fn between(&self, period: Nanos) -> Nanos {
        let used = self.quantum(period).0 * u64::from(MILLION);
        Nanos(used.checked_div(self.share.into()).unwrap_or(0).saturating_sub(1).max(1))
    }

    /// Wakes the server: its most urgent work is for a beneficiary with `period` (P1).
    pub fn wake(&mut self, now: Nanos, period: Nanos) {
        if self.active {
            return self.inherit(now, period);
        }
        self.active = true;
        self.period = period;
        self.start(now);
    }

    /// Notes that the most urgent pending work is now for a beneficiary with `period` (P3).
    pub fn inherit(&mut self, now: Nanos, period: Nanos) {
        if period < self.period {
            self.settle();
            self.period = period;
            self.start(now);
        } else {
            self.period = period;
        }
    }

    /// Stops the server because no work is left (P2). Charge the use up to now first.
    pub fn stop(&mut self) {
        self.active = false;
        self.settle();
    }

    /// Returns the budget that can be used now.
    #[must_use]
    pub fn available(&self, now: Nanos) -> Nanos {
        if self.left > Nanos::ZERO {
            self.left
        } else if self.eligible <= now {
            self.quantum(self.period)
        } else {
            Nanos::ZERO
        }
    }

    /// Returns the time from which the server has budget.
    #[must_use]
    pub fn eligible_at(&self) -> Nanos {
        if self.left > Nanos::ZERO { Nanos::ZERO } else { self.eligible }
    }

    /// Returns `e`, by which the use so far is paid for.
    #[must_use]
    pub const fn eligibility(&self) -> Nanos {
        self.eligible
    }

    /// `e + T` of a grant; of the rest of one, `T` after the wake or the raise that goes on with it
    /// (`e` is later then, and would make the work late by what was used before).
    #[must_use]
    pub fn deadline(&self) -> Nanos {
        if self.left > Nanos::ZERO { self.due } else { self.eligible + self.period }
    }

    /// Charges the `used` nanoseconds before `now`, which were used without a break.
    #[inline(never)]
    pub fn charge(&mut self, used: Nanos, now: Nanos) {
        if used == Nanos::ZERO {
            return;
        }
        if self.left == Nanos::ZERO && self.eligible <= now - used {
            self.grant();
        }
        self.ahead += used - self.left;
        self.used += used;
        self.left = self.left - used;
        self.counters.overrun_max = self.counters.overrun_max.max(self.ahead);
        self.counters.late_max = self.counters.late_max.max(now - self.eligible);
        if self.left == Nanos::ZERO {
            self.settle();
        }
    }

    /// Charges the `used` nanoseconds before `now` and levies the rest of `due` besides, if some of
    /// the grant is left then. Returns whether it is; if not, nothing has changed.
    #[inline(never)]
    pub fn try_charge(&mut self, used: Nanos, due: Nanos, now: Nanos) -> bool {
        if due >= self.left {
            return false;
        }
        self.used += due;
        self.left = self.left - due;
        if used > Nanos::ZERO {
            self.counters.late_max = self.counters.late_max.max(now - self.eligible);
        }
        true
    }

    /// Wakes a stopped server if that brings budget at once. Returns the budget; if it is zero,
    /// nothing has changed.
    #[inline(never)]
    pub fn try_wake(&mut self, now: Nanos, period: Nanos) -> Nanos {
        if self.eligible > now && self.left == Nanos::ZERO || self.quantum(period) == Nanos::ZERO {
            return Nanos::ZERO;
        }
        self.wake(now, period);
        self.left
    }

    /// Takes `amount` as used without the processor being used: for work done in advance or by
    /// others. It delays the next grant as any use does.
    pub fn levy(&mut self, amount: Nanos) {
        self.used += amount;
        self.left = self.left - amount;
        if self.left == Nanos::ZERO {
            self.settle();
        }
    }

    /// Sets share and cap from now on. Nothing is granted that was not due anyway.
    pub fn set(&mut self, share: u32, cap: Nanos) {
        self.settle();
        self.share = share.min(MILLION);
        self.cap = cap;
        self.left = self.left.min(self.quantum(self.period));
    }

    fn start(&mut self, now: Nanos) {
        if self.eligible <= now {
            self.eligible = now;
            self.grant();
        } else if self.left > Nanos::ZERO {
            self.left = self.left.min(self.quantum(self.period));
            self.due = now + self.period;
        } else {
            let wait = self.eligible - now;
            self.counters.lockout_max = self.counters.lockout_max.max(wait);
        }
    }

    fn grant(&mut self) {
        self.left = self.quantum(self.period);
        self.due = self.eligible + self.period;
        self.ahead = Nanos::ZERO;
    }

    /// P2. A server without a share never pays back.
    fn settle(&mut self) {
        let paid = self.used.0.saturating_mul(u64::from(MILLION));
        let wait = match paid.checked_div(u64::from(self.share)) {
            Some(whole) if whole * u64::from(self.share) == paid => Nanos(whole),
            Some(whole) => Nanos(whole + 1),
            None if self.used == Nanos::ZERO => Nanos::ZERO,
            None => Nanos::FOREVER,
        };
        self.eligible += wait;
        self.used = Nanos::ZERO;
    }
}
