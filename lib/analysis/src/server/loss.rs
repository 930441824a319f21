//! The part of a budget that the kernel's own time takes.
//!
//! A switch, and an interrupt, ends with a path that is charged to the budget of the next VCPU.
//! The kernel spares a VCPU so much of it; the rest is lost to the threads. A bill counts useful
//! work, so it needs what is left.
//!
//! In any window of a VCPU's period T, of a server with a list of n parts:
//!
//! - it begins at most n times, because each beginning uses a part that comes back T later;
//! - it is preempted at most as often as everything more urgent begins: n'·⌈T/T'⌉ times by a Main
//!   VCPU, once for each wake-up and each grant by an I/O VCPU;
//! - each interrupt source fires at most ⌈T/τ⌉ times, and takes what of it the budget is charged.
//!
//! Each of these numbers, and so their sum λ, is subadditive: a window of m periods loses at most
//! m·λ. So a server of C in T that loses λ does useful work like one of C − λ in T whose R(c) is
//! R(c + λ): in k periods and R(r + λ) it loses at most (k + 1)·λ, and kC + r + λ is what it does
//! in that time. Where work may wait up to a period before any of that, in D_any and D_merge, the
//! window is one period longer, and λ more is counted.

use super::model::{IoVcpu, Losses, Nonsense, Queue, SharedCore};
use diapason_abi::Nanos;

/// A budget makes sense if it is at least so many times what the kernel takes of it.
const LEAST: u64 = 2;

impl SharedCore {
    /// λ of a Main VCPU: the most that the kernel takes of its budget in any window of its period.
    #[must_use]
    pub fn lost_of(&self, vcpu: usize) -> Nanos {
        let Some(main) = self.mains.get(vcpu) else { return Nanos::ZERO };
        let level = (main.queue, main.period, vcpu);
        let mains = |other: usize| other != vcpu && self.goes_before(other, level);
        let ios = |io: usize| self.reaches(io, main.queue, main.period);
        self.lost(main.period, main.chunks.into(), mains, ios)
    }

    /// λ of an I/O VCPU that works for `vcpu`, in the time `cycle` in which a grant is its share.
    pub(super) fn lost_of_io(&self, io: usize, vcpu: usize, cycle: Nanos) -> Nanos {
        let (server, main) = (&self.ios[io], &self.mains[vcpu]);
        // It goes before Main VCPUs of the same period.
        let level = (main.queue, main.period, 0);
        let mains = |other: usize| self.goes_before(other, level);
        let ios = |other: usize| other != io && self.reaches(other, main.queue, main.period);
        self.lost(cycle, self.begins_of(server, cycle), mains, ios)
    }

    /// Returns whether a Main VCPU may be chosen before one of this queue, period and index.
    fn goes_before(&self, other: usize, (queue, period, index): (Queue, Nanos, usize)) -> bool {
        let main = &self.mains[other];
        match queue {
            // Deadlines move: inside the queue anybody may be the more urgent one.
            Queue::Dp(_) => main.queue <= queue,
            Queue::Fp => (main.queue, main.period, other) < (queue, period, index),
        }
    }

    /// Returns whether an I/O VCPU works for somebody of this queue and period or above.
    fn reaches(&self, io: usize, queue: Queue, period: Nanos) -> bool {
        self.ios[io].serves.iter().filter_map(|main| self.mains.get(*main)).any(|main| {
            let level = queue != Queue::Fp || main.period <= period;
            main.queue < queue || main.queue == queue && level
        })
    }

    /// Beginnings of an I/O VCPU in a window: its wake-ups, and each grant it may use.
    fn begins_of(&self, io: &IoVcpu, window: Nanos) -> u64 {
        let served = || io.serves.iter().filter_map(|main| self.mains.get(*main));
        let grants = || served().map(|main| io.quantum(main.period).0);
        let least = grants().min().unwrap_or(0).max(1);
        let run = grants().max().unwrap_or(0).saturating_add(io.share.of(window.0));
        io.wakeups(window).saturating_add(run.div_ceil(least)).saturating_add(1)
    }

    fn lost(
        &self,
        window: Nanos,
        begins: u64,
        mains: impl Fn(usize) -> bool,
        ios: impl Fn(usize) -> bool,
    ) -> Nanos {
        let Losses { begin, preemption, rare } = self.losses;
        let often = |gap: Nanos| window.0.div_ceil(gap.0.max(1));
        let parts = self.mains.iter().enumerate().filter(|(other, _)| mains(*other));
        let parts =
            parts.map(|(_, main)| u64::from(main.chunks).saturating_mul(often(main.period)));
        let grants = self.ios.iter().enumerate().filter(|(io, _)| ios(*io));
        let grants = grants.map(|(_, io)| self.begins_of(io, window));
        let preempted = parts.chain(grants).fold(0, u64::saturating_add);
        let charged = self.sources.iter().map(|source| (source.charged, often(source.gap)));
        let counted = [(begin, begins), (preemption, preempted)].into_iter().chain(charged);
        Nanos(
            counted.fold(rare.0, |sum, (loss, count)| {
                sum.saturating_add(loss.0.saturating_mul(count))
            }),
        )
    }

    /// Checks whether every budget is worth having: the kernel takes no more than half of it.
    pub(super) fn check_losses(&self) -> Result<(), Nonsense> {
        let charged = self.sources.iter().any(|source| source.charged > Nanos::ZERO);
        if self.losses == Losses::default() && !charged {
            return Ok(());
        }
        let least = |lost: Nanos| Nanos(lost.0.saturating_mul(LEAST));
        for (index, main) in self.mains.iter().enumerate() {
            let least = least(self.lost_of(index));
            if main.budget < least {
                return Err(Nonsense::BudgetLost(index, least));
            }
        }
        for (index, io) in self.ios.iter().enumerate() {
            let urgency = |main: &usize| (self.mains[*main].queue, self.mains[*main].period);
            let first = io.serves.iter().copied().min_by_key(urgency);
            let Some((first, grant)) = first.zip(self.least_quantum(io)) else { continue };
            let least = least(self.lost_of_io(index, first, super::io::cycle(io, grant)));
            if grant < least {
                return Err(Nonsense::GrantLost(index, least));
            }
        }
        Ok(())
    }
}
