//! Whether a core can keep one more promise: closed forms in integers, from running sums.
//!
//! Notation: main VCPUs `(C, T)`, `n` of them, the smallest period `T_min`; I/O VCPUs with shares
//! `U`; `B` the longest kernel path; top halves of cost `h` at least `τ` apart; `ω` the largest
//! overrun. `F = (B + Σh + ω·VCPUs) / T_min` is what happens once in a busy period, `S = Σ h/τ`
//! what top halves take in the long run (`⌈w/τ⌉·h ≤ h + w·h/τ`), `LL(n) = n(2^(1/n) − 1)`.
//!
//! | [`Test`] | admitted if |
//! |---|---|
//! | `Paper` | `ΣC/T + Σ(2 − U)U + S + F ≤ LL(n)`: [USB 2023, eq. 1] and the kernel's time |
//! | `Wide` | `ΣC/T + ΣU(1 − U) + F ≤ (1 − ΣU − S)·LL(n)` |
//! | `Deadline` | `ΣC/T + ΣU + S + F ≤ 1` |
//!
//! **Theorem (fixed priorities).** If `Wide` holds and priorities are by period, every chunk of a
//! main VCPU is used by `e + T`. *Proof.* In a level-i busy period the I/O VCPUs take at most
//! `U·L + (1 − U)·U·T_i` each, top halves `S·L + Σh`, kernel paths `B`, overruns `ω` per VCPU. The
//! constant parts count as part of `C_i` and add at most `ΣU(1 − U) + F`, because `T_i ≥ T_min`.
//! The parts that grow with `L` slow the processor to `1 − ΣU − S`. Liu and Layland's theorem does
//! the rest, and `LL` falls with `n`, so the test for all covers the test for the first `i`. ∎
//! `Paper` implies `Wide`, because `LL ≤ 1`.
//!
//! The switches of an I/O VCPU, 2κ to a grant and back, count as a top half of 6κ at distance `τ`,
//! the shortest time between two grants. *Proof.* Grants of at least `q = U·τ` make up what it
//! runs, so there are at most `L/τ + (1 − U)·T_i/τ + 2` of them. A top half of 6κ adds 6κ at once,
//! and takes `6κ/τ·LL(n)` from the right side. Needed are 4κ at once, `2κ/τ` on the left and
//! `2κ/τ·LL(n)` on the right; and `4·LL(n) ≥ 2`. ∎
//!
//! **Theorem (CSD).** If `Wide` holds and the queues are in the order of periods, the same is true
//! whatever queues are ordered by deadline. *Proof.* Take the releases of any run as a fixed set of
//! jobs. Ordered by period all of it, they meet their deadlines. Time left by the queues above
//! does not depend on the order inside these queues, each being work-conserving. On any pattern of
//! time left, EDF meets all deadlines that some order meets. A job of a later deadline inside a
//! section is one `B` of missing time at the begin of the window in which only earlier deadlines
//! and higher queues run; by period the same jobs bear the same gap. ∎ Not covered: an I/O VCPU
//! whose beneficiaries are in different queues (attacked, not proved), queues that are not in that
//! order.
//!
//! **Theorem (deadlines).** If `Deadline` holds and there is one queue by deadline, every chunk and
//! every grant is used by its deadline: the demand of any `L ≥ T_min` is at most
//! `L·(ΣC/T + ΣU + S) + B + Σh + ω·VCPUs ≤ L`, and shorter windows have none. (So here `T_min` must
//! not be larger than any inherited period: true if beneficiaries are on the same core.)
//!
//! All that is on the left is rounded up and all that is on the right rounded down.

mod share;

pub use share::{Share, liu_layland};

use crate::PERIOD_MAX;
use crate::pibs::MILLION;
use diapason_abi::Nanos;

/// A closed form. See the module for what each asks.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Test {
    Paper,
    /// The wider test for fixed priorities and CSD.
    Wide,
    /// For one queue by deadline.
    Deadline,
}

/// The budget and period that a main VCPU asks for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Reservation {
    pub budget: Nanos,
    pub period: Nanos,
}

/// Why something was not admitted.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Reason {
    /// The period is zero.
    NoPeriod,
    /// The period is longer than [`PERIOD_MAX`].
    PeriodTooLong,
    /// The budget or the share is zero.
    NoBudget,
    /// The budget is larger than the period, or the share than the whole processor.
    MoreThanAll,
    /// Less than a nanosecond is granted at the shortest period.
    GrantTooSmall,
    /// The request makes sense, but does not fit.
    Overloaded,
}

/// A refusal, with its numbers. `N` is [`Nanos`] of budget or a share in parts per million.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Refusal<N> {
    pub reason: Reason,
    /// The left side of the test, with what was asked for.
    pub load: Share,
    pub bound: Share,
    /// The most that would have been admitted instead, at the same period; zero if nothing.
    pub fits: N,
}

/// Time that the kernel itself takes from a core.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Overheads {
    /// `B`: the longest path that cannot be preempted.
    pub section: Nanos,
    /// `ω`: how late a budget may be enforced.
    pub overrun: Nanos,
    pub top_halves: Nanos,
    pub top_half_share: Share,
}

impl Overheads {
    /// A kernel that takes no time.
    pub const NONE: Overheads = Overheads {
        section: Nanos::ZERO,
        overrun: Nanos::ZERO,
        top_halves: Nanos::ZERO,
        top_half_share: Share::ZERO,
    };

    /// Adds a top half of this cost, at least `distance` apart.
    #[must_use]
    pub fn with_top_half(self, cost: Nanos, distance: Nanos) -> Overheads {
        Overheads {
            top_halves: self.top_halves + cost,
            top_half_share: self.top_half_share.plus(Share::of(cost, distance)),
            ..self
        }
    }
}

/// The switches counted for a grant of an I/O VCPU: three times there and back, as proved above.
pub const GRANT_SWITCHES: u64 = 6;

/// The promises made on a core, as running sums of the tests.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Load {
    overheads: Overheads,
    /// `T_min`, [`Nanos::FOREVER`] without a main VCPU.
    shortest: Nanos,
    mains: u32,
    ios: u32,
    main_share: Share,
    io_share: Share,
    io_burst: Share,
}

impl Load {
    /// Returns a core without VCPUs.
    #[must_use]
    pub const fn new(overheads: Overheads) -> Load {
        Load {
            overheads,
            shortest: Nanos::FOREVER,
            mains: 0,
            ios: 0,
            main_share: Share::ZERO,
            io_share: Share::ZERO,
            io_burst: Share::ZERO,
        }
    }

    /// Returns the sums with another I/O VCPU, whose grants come at least `distance` apart and
    /// whose switches take `switch` each.
    #[must_use]
    pub fn with_grants(&self, switch: Nanos, distance: Nanos) -> Load {
        let cost = Nanos(switch.0.saturating_mul(GRANT_SWITCHES));
        Load { overheads: self.overheads.with_top_half(cost, distance), ..*self }
    }

    /// Returns the sums if grants that came `from` apart come `to` apart.
    #[must_use]
    pub fn regranted(&self, switch: Nanos, from: Nanos, to: Nanos) -> Load {
        let cost = Nanos(switch.0.saturating_mul(GRANT_SWITCHES));
        let all = self.overheads.top_half_share;
        let top_half_share = all.minus(Share::of(cost, from)).plus(Share::of(cost, to));
        Load { overheads: Overheads { top_half_share, ..self.overheads }, ..*self }
    }

    /// Returns the left and the right side of `test`.
    #[must_use]
    pub fn sides(&self, test: Test) -> (Share, Share) {
        let linear = self.io_share.plus(self.overheads.top_half_share);
        let fixed = self.main_share.plus(self.once());
        if linear > Share::ONE {
            return (fixed.plus(linear), Share::ONE);
        }
        match test {
            Test::Paper => (fixed.plus(self.io_burst).plus(linear), liu_layland(self.mains)),
            Test::Wide => {
                let speed = Share::ONE.minus(linear);
                (fixed.plus(self.io_burst), speed.times(liu_layland(self.mains)))
            }
            Test::Deadline => (fixed.plus(linear), Share::ONE),
        }
    }

    /// Returns whether all promises can be kept.
    #[must_use]
    pub fn holds(&self, test: Test) -> bool {
        let (load, bound) = self.sides(test);
        load <= bound
    }

    fn once(&self) -> Share {
        if self.mains == 0 {
            return Share::ZERO;
        }
        let vcpus = u64::from(self.mains) + u64::from(self.ios);
        let overruns = Nanos(self.overheads.overrun.0.saturating_mul(vcpus));
        let time = self.overheads.section + self.overheads.top_halves + overruns;
        Share::of(time, self.shortest)
    }

    /// Returns the sums with one more main VCPU, if the core can keep it.
    ///
    /// # Errors
    /// A [`Refusal`] with the largest budget that fits at this period.
    pub fn admit_main(&self, test: Test, asked: Reservation) -> Result<Load, Refusal<Nanos>> {
        let Reservation { budget, period } = asked;
        let with = |budget| Load {
            shortest: self.shortest.min(period),
            mains: self.mains + 1,
            main_share: self.main_share.plus(Share::of(budget, period)),
            ..*self
        };
        let (rest, bound) = with(Nanos::ZERO).sides(test);
        let refused = |reason, fits| {
            let (load, bound) = with(budget).sides(test);
            Err(Refusal { reason, load, bound, fits })
        };
        if period == Nanos::ZERO {
            return refused(Reason::NoPeriod, Nanos::ZERO);
        }
        if period > PERIOD_MAX {
            return refused(Reason::PeriodTooLong, Nanos::ZERO);
        }
        let fits = bound.minus(rest).part_of(period);
        if budget == Nanos::ZERO {
            return refused(Reason::NoBudget, fits);
        }
        if budget > period {
            return refused(Reason::MoreThanAll, fits);
        }
        if budget > fits {
            return refused(Reason::Overloaded, fits);
        }
        Ok(with(budget))
    }

    /// Returns the sums with one more I/O VCPU, if the core can keep it. Admit its beneficiaries
    /// first.
    ///
    /// # Errors
    /// A [`Refusal`] with the largest share that fits, in parts per million.
    pub fn admit_io(&self, test: Test, share: u32) -> Result<Load, Refusal<u32>> {
        let refused = |reason, fits| {
            let (load, bound) = self.with_io(share.min(MILLION)).sides(test);
            Err(Refusal { reason, load, bound, fits })
        };
        if share == 0 || share > MILLION {
            let reason = if share == 0 { Reason::NoBudget } else { Reason::MoreThanAll };
            return refused(reason, self.largest_io(test));
        }
        if self.shortest.min(PERIOD_MAX).0 * u64::from(share) < u64::from(MILLION) {
            return refused(Reason::GrantTooSmall, self.largest_io(test));
        }
        let with = self.with_io(share);
        if with.holds(test) {
            return Ok(with);
        }
        refused(Reason::Overloaded, self.largest_io(test))
    }

    fn with_io(&self, share: u32) -> Load {
        let (u, all) = (u64::from(share), u64::from(MILLION));
        Load {
            ios: self.ios + 1,
            io_share: self.io_share.plus(Share::of(Nanos(u), Nanos(all))),
            io_burst: self.io_burst.plus(Share::of(Nanos(u * (all - u)), Nanos(all * all))),
            ..*self
        }
    }

    /// By halving: what is admitted at some share is admitted at every smaller one, except next to
    /// the whole processor on a core without main VCPUs.
    fn largest_io(&self, test: Test) -> u32 {
        let (mut fits, mut too_much) = (0, MILLION + 1);
        while too_much - fits > 1 {
            let middle = fits + (too_much - fits) / 2;
            if self.with_io(middle).holds(test) {
                fits = middle;
            } else {
                too_much = middle;
            }
        }
        let granted = self.shortest.min(PERIOD_MAX).0 * u64::from(fits) >= u64::from(MILLION);
        if granted { fits } else { 0 }
    }

    /// Returns the sums without one of the main VCPUs; `shortest` is the smallest period of the
    /// others, or [`Nanos::FOREVER`]. The released share is free after a period of the slowest
    /// VCPU, or at an instant when nothing reserved is ready: its last chunk cannot matter any more
    /// then.
    #[must_use]
    pub fn without_main(&self, leaving: Reservation, shortest: Nanos) -> Load {
        Load {
            shortest,
            mains: self.mains.saturating_sub(1),
            main_share: self.main_share.minus(Share::of(leaving.budget, leaving.period)),
            ..*self
        }
    }

    /// Returns the sums without one of the I/O VCPUs; free as in
    /// [`without_main`](Self::without_main).
    #[must_use]
    pub fn without_io(&self, share: u32) -> Load {
        let alone = Load::new(Overheads::NONE).with_io(share.min(MILLION));
        Load {
            ios: self.ios.saturating_sub(1),
            io_share: self.io_share.minus(alone.io_share),
            io_burst: self.io_burst.minus(alone.io_burst),
            ..*self
        }
    }

    /// Returns the sums with one main VCPU changed; `shortest` as in
    /// [`without_main`](Self::without_main).
    ///
    /// # Errors
    /// A [`Refusal`] with the largest budget that fits at the new period.
    pub fn change_main(
        &self,
        test: Test,
        from: Reservation,
        to: Reservation,
        shortest: Nanos,
    ) -> Result<Load, Refusal<Nanos>> {
        self.without_main(from, shortest).admit_main(test, to)
    }
}
