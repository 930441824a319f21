//! How late a budget in a DP queue is used: response times by deadline, after Spuri.
//!
//! Let a unit of budget become eligible with deadline D = e + T, and be used at f. Let s be the
//! last instant up to e at which nothing is pending in the queues above, nor in this queue for a
//! deadline of at most D. From s to f the processor runs only
//!
//! - what the queues above, interrupts and one section take from a window that begins at s;
//! - budgets of this queue that become eligible from s on and are due by D. A Main VCPU of (C', T')
//!   has no more than C' of them in each T', so with a = e − s at most
//!   min(⌈(f − s)/T'⌉, ⌊(a + T − T')/T'⌋ + 1)·C', its own VCPU included;
//! - grants from s on that are due by D: at most ⌊U·(a + T)⌋, and at most W(f − s).
//!
//! So f − e ≤ w(a) − a, with w(a) the least window that this fits into. Beyond the longest busy
//! period of the queue and those above, w(a) ≤ a. The largest w(a) − a below it bounds every unit.
//! `docs/analysis.md` has the proof in full, under "Response times by deadline".

use super::demand::Members;
use super::level::STEPS_MAX;
use super::model::{Queue, SharedCore};
use diapason_abi::Nanos;

/// Terms that are computed before the search gives up.
const TERMS_MAX: u64 = 3_000_000;

/// Shares grow between two releases. So many pieces of a period are looked at apart, each with the
/// share at its end.
const PIECES: u64 = 64;

/// Returns the longest time from the release of a unit of budget in `queue`, with a deadline
/// `period` after it, until the unit is used. It is never more than `period`, which is all that is
/// known if the search takes too long.
///
/// The queue must be admitted.
pub(super) fn latest(system: &SharedCore, queue: Queue, period: Nanos) -> Nanos {
    let search = Search { members: Members::of(system, queue), period: period.0 };
    let longest = search.longest(evaluations(system));
    longest.map_or(period, |longest| Nanos(longest).min(period))
}

/// Returns the longest time from when a bottom half hears of work until a unit of budget in `queue`
/// is used that does this work, and that is due `period` after the work is passed on. That is at
/// most `brought` after the bottom half has heard of it. The bottom half is in the queue, too. All
/// its grants are due `inherited` after they begin. `docs/analysis.md` has the proof, under "Work
/// that a bottom half brings".
///
/// The queue must be admitted.
pub(super) fn latest_behind(
    system: &SharedCore,
    queue: Queue,
    (inherited, period): (Nanos, Nanos),
    brought: Nanos,
) -> Nanos {
    let search = Search { members: Members::of(system, queue), period: inherited.0 };
    let longest = search.longest_behind(period.0, brought.0, evaluations(system));
    let limit = period + brought;
    longest.map_or(limit, |longest| Nanos(longest).min(limit))
}

/// Returns how often the demand in a window is computed before the search gives up.
const fn evaluations(system: &SharedCore) -> u64 {
    let each = system.mains.len() + system.ios.len() + system.sources.len() + 1;
    TERMS_MAX / each as u64
}

struct Search {
    members: Members,
    /// T of the unit.
    period: u64,
}

impl Search {
    /// max over a of w(a) − a; `None` if it takes too many evaluations.
    fn longest(&self, mut evaluations: u64) -> Option<u64> {
        let busy = self.busy(&mut evaluations)?;
        let (mut a, mut window, mut longest) = (0, 1, 0);
        while a < busy {
            let next = self.next(a).min(busy);
            window = self.least(self.due(next - 1), window, &mut evaluations)?;
            longest = longest.max(window.saturating_sub(a));
            if longest >= self.period {
                return Some(self.period);
            }
            a = next;
        }
        Some(longest)
    }

    /// max over a of w(a) − a, where a is from s until the bottom half hears of the work, and the
    /// work is due `period` after the longest that the bottom half may take with such an a.
    fn longest_behind(&self, period: u64, brought: u64, mut evaluations: u64) -> Option<u64> {
        let busy = self.busy(&mut evaluations)?;
        let (mut a, mut half, mut both) = (0, 1, 1);
        let (mut passed, mut longest) = (0, 0);
        while a < busy {
            let next = self.next(a).min(busy);
            half = self.least(self.due(next - 1), half, &mut evaluations)?;
            passed = half.saturating_sub(a).max(passed).min(brought);
            let due = (next - 1).saturating_add(passed).saturating_add(period);
            both = self.least(due, both, &mut evaluations)?;
            longest = longest.max(both.saturating_sub(a));
            a = next;
        }
        Some(longest)
    }

    /// Returns the longest time for which this queue and those above are pending.
    fn busy(&self, evaluations: &mut u64) -> Option<u64> {
        self.least(u64::MAX, 1, evaluations)
    }

    /// Returns when a unit is due that is released by `last`.
    const fn due(&self, last: u64) -> u64 {
        last.saturating_add(self.period)
    }

    /// Returns the least window at or above `from` for a unit that is due by `due`.
    fn least(&self, due: u64, from: u64, evaluations: &mut u64) -> Option<u64> {
        let mut window = from;
        for _ in 0..STEPS_MAX {
            *evaluations = evaluations.checked_sub(1)?;
            let next = self.demand(due, window);
            if next <= window {
                return (window < u64::MAX).then_some(window);
            }
            window = next;
        }
        None
    }

    /// Returns the most that runs in `window` until a unit is used that is due by `due`.
    fn demand(&self, due: u64, window: u64) -> u64 {
        let mains = self.members.mains.iter().map(|(cost, period)| {
            let releases = due.checked_sub(*period).map_or(0, |since| since / period + 1);
            releases.min(window.div_ceil(*period)).saturating_mul(*cost)
        });
        let ios = self.members.ios.iter();
        let ios = ios.map(|(period, grants)| grants.due(due, *period).min(grants.demand(window)));
        let above = self.members.above.demand_at(window);
        mains.chain(ios).fold(above, u64::saturating_add)
    }

    /// Returns the next release after `a` for which more may be due.
    fn next(&self, a: u64) -> u64 {
        let due = self.due(a);
        let mains = self.members.mains.iter().map(|(_, period)| {
            let next = (due / period).saturating_add(1).saturating_mul(*period);
            next.saturating_sub(self.period)
        });
        let steps = mains.min().unwrap_or(u64::MAX);
        if self.members.ios.is_empty() {
            return steps;
        }
        steps.min(a.saturating_add((self.period / PIECES).max(1)))
    }
}

#[cfg(test)]
mod tests {
    use super::super::arith::Utilization;
    use super::super::model::{IoVcpu, MainVcpu, Woken};
    use super::*;
    use alloc::vec;

    fn by_deadline(mains: &[(u64, u64)]) -> SharedCore {
        let mains = mains.iter().map(|(budget, period)| {
            MainVcpu::new(Nanos(*budget), Nanos(*period)).in_queue(Queue::Dp(0))
        });
        SharedCore::new(mains.collect(), vec![])
    }

    fn latest_of(system: &SharedCore, period: u64) -> u64 {
        latest(system, Queue::Dp(0), Nanos(period)).0
    }

    #[test]
    fn alone_a_budget_takes_its_own_time() {
        assert_eq!(latest_of(&by_deadline(&[(3, 10)]), 10), 3);
    }

    /// The second budget of (2, 4) comes when (4, 8) has had 2, and both are due at 8.
    #[test]
    fn a_longer_deadline_goes_first_where_it_came_early_enough() {
        let system = by_deadline(&[(2, 4), (4, 8)]);
        assert_eq!((latest_of(&system, 4), latest_of(&system, 8)), (4, 8));
        let system = by_deadline(&[(1, 4), (4, 16)]);
        assert_eq!((latest_of(&system, 4), latest_of(&system, 16)), (1, 6));
    }

    #[test]
    fn a_share_counts_and_so_does_what_a_waking_uses() {
        let mut system = by_deadline(&[(10, 100), (30, 300)]);
        let share = Utilization::from_ppm(400_000).unwrap();
        let io = IoVcpu { wake_gap: Nanos(100), ..IoVcpu::new(share, vec![0]) };
        let without = latest_of(&system, 100);
        system.ios.push(io);
        let unknown = latest_of(&system, 100);
        let done = Nanos(100);
        system.ios[0].woken = Some(Woken { used: Nanos(5), joined: 0, done });
        let known = latest_of(&system, 100);
        assert!(without < known && known < unknown, "{without} {known} {unknown}");
    }
}
