//! The interference above a level of priority, and the response time of work at that level.

use super::arith::{self, Utilization};
use alloc::vec::Vec;
use diapason_abi::Nanos;

/// Steps after which a fixed point counts as not found. Real systems need a few dozen; more means
/// a processor so full that the answer could not be used.
pub(super) const STEPS_MAX: u32 = 20_000;

/// The most that may delay work at a level of priority: a kernel section once, servers and
/// interrupts again and again, PIBS servers with their grants.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Interference {
    blocking: u64,
    releases: Vec<(u64, u64)>,
    grants: Vec<Grants>,
    /// Σ cost/period and Σ U, rounded down.
    rate: u64,
    /// Σ cost of one release each.
    once: u64,
}

/// An I/O VCPU, seen from a level it can preempt.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Grants {
    /// q: the longest grant at this level or above.
    pub quantum: u64,
    /// The shortest grant at any level: more of them mean more context switches.
    pub least: u64,
    pub share: Utilization,
    /// Cost of two context switches.
    pub switches: u64,
    pub woken: Option<Wakings>,
}

/// Wake-ups of an I/O VCPU that never waits for a grant.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Wakings {
    /// The least distance of two; above zero.
    pub gap: u64,
    /// The most that it uses for one.
    pub used: u64,
    /// The most that are done on the grant of one before them.
    pub joined: u64,
}

impl Wakings {
    /// Returns the most that is used for wake-ups in a half-open window.
    fn within(&self, window: u64) -> u64 {
        window.div_ceil(self.gap).saturating_mul(self.used)
    }

    /// Returns the most that is used on grants that are released in a closed window.
    fn released(&self, window: u64) -> u64 {
        let wakings = (window / self.gap).saturating_add(1).saturating_add(self.joined);
        wakings.saturating_mul(self.used)
    }
}

/// Why there is no response time.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Late {
    /// Later than the limit; at least this late.
    After(u64),
    /// Never: those above leave nothing.
    Never,
    /// Not found in a bounded number of steps. Counts as too late.
    Undecided,
}

impl Grants {
    /// W(L): the most an I/O VCPU runs in a window that begins when nothing at its level waits.
    pub fn demand(&self, window: u64) -> u64 {
        let run = if window <= self.quantum {
            window
        } else {
            self.quantum.saturating_add(self.share.of(window - self.quantum))
        };
        let run = self.woken.map_or(run, |woken| run.min(woken.within(window)));
        run.saturating_add(self.switching(run))
    }

    /// Returns the most that it runs in a window for deadlines in it, if the deadline of a grant is
    /// `period` after it.
    pub fn due(&self, window: u64, period: u64) -> u64 {
        let Some(releases) = window.checked_sub(period) else { return 0 };
        let run = self.share.of(window);
        let run = self.woken.map_or(run, |woken| run.min(woken.released(releases)));
        run.saturating_add(self.switching(run))
    }

    /// Returns a rate in parts of [`ONE`](super::ONE) below which [`Self::demand`] never is by one
    /// unit or more.
    fn rate_down(&self) -> u64 {
        let share = self.share.rate_down();
        self.woken.map_or(share, |woken| share.min(arith::rate_down(woken.used, woken.gap)))
    }

    /// Context switches of the grants that `run` is made of: it may start in the middle of one.
    pub fn switching(&self, run: u64) -> u64 {
        if self.switches == 0 || run == 0 {
            return 0;
        }
        self.switches.saturating_mul(run.div_ceil(self.least.max(1)).saturating_add(1))
    }

    /// Returns the least line above [`Self::demand`]: what there is at once, and the rate.
    pub fn line(&self) -> (u64, u64) {
        let whole = self.switches.saturating_mul(2).saturating_add(self.switching(self.quantum));
        // switches · U/least: a shortest grant comes back no sooner than after least/U.
        let apart = self.share.time_for(self.least.max(1)).saturating_sub(1).max(1);
        let switching = arith::rate_up(self.switches, apart);
        (self.quantum.saturating_add(whole), self.share.rate_up().saturating_add(switching))
    }
}

impl Interference {
    /// Returns the interference of a kernel section of at most `blocking`, and of nothing else.
    #[must_use]
    pub fn new(blocking: Nanos) -> Interference {
        Interference { blocking: blocking.0, ..Interference::default() }
    }

    /// Something that takes `cost` once in every `period`.
    pub fn add(&mut self, period: Nanos, cost: Nanos) {
        if cost == Nanos::ZERO {
            return;
        }
        self.releases.push((period.0, cost.0));
        self.rate = self.rate.saturating_add(arith::rate_down(cost.0, period.0));
        self.once = self.once.saturating_add(cost.0);
    }

    /// Something that takes `cost` once.
    pub(super) fn add_once(&mut self, cost: u64) {
        self.blocking = self.blocking.saturating_add(cost);
    }

    pub(super) fn add_grants(&mut self, grants: Grants) {
        self.rate = self.rate.saturating_add(grants.rate_down());
        self.grants.push(grants);
    }

    /// Takes the I/O VCPUs away, to put those of the next level.
    pub(super) fn clear_grants(&mut self) {
        for grants in self.grants.drain(..) {
            // Saturated sums stay saturated: a full processor is full at every level below.
            if self.rate != u64::MAX {
                self.rate -= grants.rate_down();
            }
        }
    }

    pub(super) fn grants(&self) -> &[Grants] {
        &self.grants
    }

    /// Returns the most that is taken from a window of length `window` that begins when nothing at
    /// this level or above is pending.
    #[must_use]
    pub fn demand(&self, window: Nanos) -> Nanos {
        Nanos(self.demand_at(window.0))
    }

    /// Returns the next release at or after `window`; `u64::MAX` if nothing is released.
    pub(super) fn next_release(&self, window: u64) -> u64 {
        let next = self
            .releases
            .iter()
            .map(|(period, _)| window.div_ceil((*period).max(1)).saturating_mul(*period));
        next.min().unwrap_or(u64::MAX)
    }

    pub(super) fn demand_at(&self, window: u64) -> u64 {
        let releases = self.releases.iter();
        let mut sum = releases.fold(self.blocking, |sum, (period, cost)| {
            sum.saturating_add(arith::released(window, *period, *cost))
        });
        for grants in &self.grants {
            sum = sum.saturating_add(grants.demand(window));
        }
        sum
    }

    /// Returns the least line above [`Self::demand`]: what there is at once, and the rate in parts
    /// of [`ONE`](super::ONE).
    pub(super) fn line(&self) -> (u64, u64) {
        let start = self.blocking.saturating_add(self.once);
        let rounding = self.releases.len() as u64;
        let released = self.releases.iter().fold(rounding, |sum, (period, cost)| {
            sum.saturating_add(arith::rate_down(*cost, *period))
        });
        self.grants.iter().fold((start, released), |(at_once, rate), grants| {
            let (more, share) = grants.line();
            (at_once.saturating_add(more), rate.saturating_add(share))
        })
    }

    /// R(c): the least w = c + demand(w), at most `limit`.
    ///
    /// # Errors
    /// No such w up to the limit.
    pub fn response(&self, work: Nanos, limit: Nanos) -> Result<Nanos, Late> {
        self.response_from(work.0, 0, limit.0).map(Nanos)
    }

    /// Returns the longest time in which all that is released is pending without a break; `None` if
    /// it is not found in a bounded number of steps.
    pub(super) fn busy(&self) -> Option<u64> {
        let mut window = self.blocking.saturating_add(self.once);
        for _ in 0..STEPS_MAX {
            let next = self.demand_at(window);
            if next <= window {
                return (window < u64::MAX).then_some(window);
            }
            window = next;
        }
        None
    }

    /// [`Self::response`], when it is known that the answer is at least `from`.
    pub(super) fn response_from(&self, work: u64, from: u64, limit: u64) -> Result<u64, Late> {
        self.response_in(work, (from, limit), &mut { STEPS_MAX })
    }

    /// Returns the response, within the steps that are left. A caller that asks for many responses
    /// shares the steps among them, so that all of them together are bounded.
    pub(super) fn response_in(
        &self,
        work: u64,
        (from, limit): (u64, u64),
        steps: &mut u32,
    ) -> Result<u64, Late> {
        // Demand is never below its rate; each I/O VCPU's, rounded down, is less than one below.
        let certain = work.saturating_add(self.blocking).saturating_sub(self.grants.len() as u64);
        let line = arith::stretched_down(certain, self.rate).ok_or(Late::Never)?;
        let at_once = work.saturating_add(self.blocking).saturating_add(self.once);
        let mut window = from.max(line).max(at_once).max(work);
        while *steps > 0 {
            *steps -= 1;
            if window > limit || window == u64::MAX {
                return Err(Late::After(window));
            }
            let next = work.saturating_add(self.demand_at(window));
            if next <= window {
                return Ok(window);
            }
            window = next;
        }
        Err(Late::Undecided)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn above(servers: &[(u64, u64)]) -> Interference {
        let mut above = Interference::new(Nanos::ZERO);
        servers.iter().for_each(|(cost, period)| above.add(Nanos(*period), Nanos(*cost)));
        above
    }

    #[test]
    fn response_of_the_textbook_set() {
        let set = above(&[(1, 4), (2, 6)]);
        assert_eq!(set.response(Nanos(3), Nanos(100)), Ok(Nanos(10)));
        assert_eq!(set.response(Nanos(3), Nanos(9)), Err(Late::After(10)));
    }

    #[test]
    fn nothing_left_is_never_and_almost_nothing_ends() {
        assert_eq!(above(&[(1, 1)]).response(Nanos(1), Nanos::FOREVER), Err(Late::Never));
        let nearly = above(&[(999_999_999, 1_000_000_000)]);
        assert_eq!(nearly.response(Nanos(2), Nanos::FOREVER), Ok(Nanos(2_000_000_000)));
    }

    /// A wake-up that is done on the grant of one before it is due with that grant.
    #[test]
    fn wake_ups_that_share_a_grant_are_due_together() {
        let share = Utilization::from_ppm(400_000).unwrap();
        let due = |joined| {
            let woken = Some(Wakings { gap: 100, used: 5, joined });
            Grants { quantum: 40, least: 40, share, switches: 0, woken }.due(350, 100)
        };
        // Wake-ups at 0, 100 and 200, and those before that went on the first grant.
        assert_eq!([0, 1, 2].map(due), [15, 20, 25]);
    }

    #[test]
    fn a_line_lies_above_the_demand() {
        let mut set = above(&[(3, 10), (5, 17)]);
        let share = Utilization::from_ppm(100_000).unwrap();
        set.add_grants(Grants { quantum: 4, least: 2, share, switches: 1, woken: None });
        let (at_once, rate) = set.line();
        for window in 1..500u64 {
            let line = u128::from(at_once)
                + (u128::from(window) * u128::from(rate)).div_ceil(u128::from(arith::ONE));
            assert!(u128::from(set.demand_at(window)) <= line, "{window}");
        }
    }
}
