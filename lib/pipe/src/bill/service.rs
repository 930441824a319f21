//! The supply that a stage of a pipe gets from a processor, as far as a bill must know it.

use diapason_abi::Nanos;

/// A budget C that comes back once per period T, for one stage alone. All bounds count budget time
/// and hold for a server that was admitted.
pub trait Service {
    /// C, or the grant of an I/O VCPU, less what the kernel takes of it.
    fn budget(&self) -> Nanos;

    /// λ: what the kernel takes of a budget in a period. [`Self::sync`] and [`Self::any`] count it;
    /// work that waits a period more has to count it once more.
    fn lost(&self) -> Nanos {
        Nanos::ZERO
    }

    /// T, or the time in which a grant is the share of an I/O VCPU.
    fn period(&self) -> Nanos;

    /// D_sync: the time that `work` takes on a server which nothing else has drained. It never
    /// falls with `work`, and C more takes exactly T longer.
    fn sync(&self, work: Nanos) -> Nanos;

    /// D_any: the time that `work` takes whatever happened before.
    fn any(&self, work: Nanos) -> Nanos;

    /// Returns the time that `work` takes that finds its budget, counted from when a bottom half
    /// hears of it. The bottom half goes before this server and passes the work on `brought` later
    /// at most. `None`: nothing is known but that both delays add up.
    fn behind(&self, _work: Nanos, _brought: Nanos) -> Option<Nanos> {
        None
    }

    /// Returns the most wake-ups in a period for which the server keeps all its replenishments
    /// apart.
    fn wakeups(&self) -> u64;
}

/// A server whose list may be full: D_merge in the place of D_sync. It waits for a period before
/// everything else, in which the kernel takes its part, too.
pub(super) struct Merging<'a>(pub &'a dyn Service);

impl Service for Merging<'_> {
    fn budget(&self) -> Nanos {
        self.0.budget()
    }

    fn lost(&self) -> Nanos {
        self.0.lost()
    }

    fn period(&self) -> Nanos {
        self.0.period()
    }

    fn sync(&self, work: Nanos) -> Nanos {
        match work {
            Nanos::ZERO => Nanos::ZERO,
            work => self.0.period() + self.0.sync(work + self.0.lost()),
        }
    }

    fn any(&self, work: Nanos) -> Nanos {
        self.sync(work)
    }

    fn wakeups(&self) -> u64 {
        self.0.wakeups()
    }
}

/// A server and the bottom half that brings its work, as one: times count from when the bottom half
/// hears of the work.
pub(super) struct Joined<'a> {
    pub(super) service: &'a dyn Service,
    /// The longest time until the bottom half has passed the work on.
    pub(super) brought: Nanos,
}

impl Service for Joined<'_> {
    fn budget(&self) -> Nanos {
        self.service.budget()
    }

    fn lost(&self) -> Nanos {
        self.service.lost()
    }

    fn period(&self) -> Nanos {
        self.service.period()
    }

    fn sync(&self, work: Nanos) -> Nanos {
        if work == Nanos::ZERO {
            return Nanos::ZERO;
        }
        let joined = self.service.behind(work, self.brought);
        joined.unwrap_or_else(|| self.brought + self.service.sync(work))
    }

    fn any(&self, work: Nanos) -> Nanos {
        if work == Nanos::ZERO { Nanos::ZERO } else { self.brought + self.service.any(work) }
    }

    fn wakeups(&self) -> u64 {
        self.service.wakeups()
    }
}

/// The supply that a running system knows of a VCPU that a closed form admitted: each part of its
/// budget is used within one period of becoming eligible. R := T, whatever the queue.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Promised {
    pub budget: Nanos,
    pub period: Nanos,
    /// Places in its list of replenishments; `u32::MAX` for an I/O VCPU, which needs no list.
    pub chunks: u32,
    /// Time that the kernel takes of C in each T.
    pub lost: Nanos,
}

impl Promised {
    /// Returns a Main VCPU with a list of eight.
    #[must_use]
    pub const fn main(budget: Nanos, period: Nanos) -> Promised {
        Promised { budget, period, chunks: 8, lost: Nanos::ZERO }
    }

    /// Returns an I/O VCPU with `ppm` millionths of the processor that works for threads of one
    /// period and is woken at least `wake_gap` apart.
    #[must_use]
    pub const fn io(ppm: u32, period: Nanos, wake_gap: Nanos) -> Promised {
        let budget = (period.0 as u128 * ppm as u128 / 1_000_000) as u64;
        // A share that is not one divided by a whole number is rounded at each stop, by less than
        // a nanosecond; there is at most one stop per wake-up, and per nanosecond of a grant.
        let stops = if ppm != 0 && 1_000_000 % ppm == 0 {
            0
        } else {
            let gap = if wake_gap.0 == 0 { 1 } else { wake_gap.0 };
            let wakes = (period.0 / gap).saturating_add(2);
            if wakes < budget { wakes } else { budget }
        };
        let period = Nanos(period.0.saturating_add(stops));
        Promised { budget: Nanos(budget), period, chunks: u32::MAX, lost: Nanos::ZERO }
    }

    /// Returns the service if the kernel takes `lost` of the budget in each period.
    #[must_use]
    pub const fn losing(self, lost: Nanos) -> Promised {
        Promised { lost, ..self }
    }

    /// Whole periods before the last part of `work`, and that part; none if there is no work.
    fn split(&self, work: Nanos) -> Option<(u64, u64)> {
        let before = work.0.checked_sub(1)?;
        let useful = Service::budget(self).0;
        match before.checked_div(useful) {
            Some(whole) => Some((whole, before % useful + 1)),
            None => Some((u64::MAX, 1)),
        }
    }
}

impl Service for Promised {
    fn budget(&self) -> Nanos {
        self.budget - self.lost
    }

    fn lost(&self) -> Nanos {
        self.lost
    }

    fn period(&self) -> Nanos {
        self.period
    }

    fn sync(&self, work: Nanos) -> Nanos {
        let Some((whole, _)) = self.split(work) else { return Nanos::ZERO };
        Nanos(self.period.0.saturating_mul(whole)) + self.period
    }

    fn any(&self, work: Nanos) -> Nanos {
        if work == Nanos::ZERO {
            return Nanos::ZERO;
        }
        let work = work + self.lost;
        let Some((_, rest)) = self.split(work) else { return Nanos::ZERO };
        // Units that became eligible one after the other each have a period of their own.
        let apart = self.lost + Nanos(rest - 1);
        (self.period - self.budget) + self.sync(work) + apart
    }

    fn wakeups(&self) -> u64 {
        match self.chunks {
            u32::MAX => u64::MAX,
            chunks => u64::from(chunks).saturating_sub(1),
        }
    }
}
