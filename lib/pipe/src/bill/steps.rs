//! Step functions: most events of a kind in a closed window, and the longest delay of their work.

use super::apart::{self, Coming, Found};
use super::rate::{Line, Rate};
use super::service::{Merging, Service};
use crate::size::{self, Bucket};
use diapason_abi::Nanos;

/// Steps looked at one by one; beyond, the line above them serves as the bound.
const STEPS_MAX: u32 = 1_024;
pub(super) const NEVER: u64 = u64::MAX;

/// Most events of a kind in a closed window.
pub(super) trait Steps {
    /// In a window of this length.
    fn most(&self, window: u64) -> u64;
    /// Returns the next longer window that may hold more, or [`NEVER`].
    fn next(&self, window: u64) -> u64;
    /// Above [`Steps::most`] everywhere; `None` if nothing bounds it.
    fn line(&self) -> Option<Line>;
}

/// Messages of several channels, in windows that are all longer by `ahead`.
#[derive(Clone, Copy)]
pub(super) struct Messages<'a> {
    pub(super) channels: &'a [&'a [Bucket]],
    pub(super) ahead: Nanos,
}

/// One event in each `gap`; no bound if it is zero. In windows that are longer by `ahead`.
#[derive(Clone, Copy)]
pub(super) struct Spaced {
    pub(super) gap: Nanos,
    pub(super) ahead: Nanos,
}

/// Transfers that begin in a window. They carry the messages `all`, at least one and at most `each`
/// of them; and `fresh` are those that came after the first began.
///
/// A transfer that is not full takes all that wait. So each whose predecessor is not full carries a
/// message that came later than that. With f full ones there are at most 1 + fresh + f, and at most
/// all − f·(each − 1). If the device `empties`, f empty ones come to these, and to the second bound
/// one that ends a full transfer from before the window.
pub(super) struct Carried<'a> {
    pub(super) all: Messages<'a>,
    pub(super) fresh: Messages<'a>,
    pub(super) each: u64,
    pub(super) empties: bool,
}

/// The least of several that all hold.
pub(super) struct Least<'a>(pub(super) &'a [&'a dyn Steps]);

impl Steps for Messages<'_> {
    fn most(&self, window: u64) -> u64 {
        let window = Nanos(window) + self.ahead;
        let each = self.channels.iter().map(|contract| size::arrivals(contract, window));
        each.fold(0, u64::saturating_add)
    }

    fn next(&self, window: u64) -> u64 {
        let window = window.saturating_add(self.ahead.0);
        let each = self.channels.iter().map(|contract| {
            let least = size::arrivals(contract, Nanos(window));
            let binding = contract.iter().filter(|bucket| bucket.most(Nanos(window)) == least);
            binding.map(|bucket| bucket.next_step(Nanos(window)).0).max().unwrap_or(NEVER)
        });
        each.min().map_or(NEVER, |next| later(next, self.ahead))
    }

    fn line(&self) -> Option<Line> {
        self.channels.iter().try_fold(Line::ZERO, |sum, contract| {
            let lines = contract.iter().map(|bucket| {
                let rate = if bucket.messages == 0 {
                    Rate::ZERO
                } else {
                    Rate::new(bucket.messages, bucket.per)
                };
                let before = rate.within(self.ahead.0.saturating_add(bucket.jitter.0));
                Line { base: u128::from(bucket.burst) + before, rate }
            });
            lines.reduce(Line::lower).map(|line| sum.plus(line))
        })
    }
}

impl Steps for Spaced {
    fn most(&self, window: u64) -> u64 {
        let window = window.saturating_add(self.ahead.0);
        window.checked_div(self.gap.0).map_or(u64::MAX, |gaps| gaps.saturating_add(1))
    }

    fn next(&self, window: u64) -> u64 {
        let window = window.saturating_add(self.ahead.0);
        let Some(gaps) = window.checked_div(self.gap.0) else { return NEVER };
        let next = gaps.checked_add(1).and_then(|gaps| gaps.checked_mul(self.gap.0));
        next.map_or(NEVER, |next| later(next, self.ahead))
    }

    fn line(&self) -> Option<Line> {
        let rate = Rate::new(1, self.gap);
        (self.gap.0 > 0).then(|| Line { base: 1 + rate.within(self.ahead.0), rate })
    }
}

impl Carried<'_> {
    /// Returns the largest of the least of the two bounds, over all numbers of full transfers.
    const fn most_of(&self, all: u64, fresh: u64) -> u64 {
        if self.each < 2 {
            return all;
        }
        let empty = self.empties as u64;
        let all = all.saturating_add(empty);
        let Some(more) = all.saturating_sub(fresh).checked_sub(1) else { return all };
        // The bounds cross here: one grows with the number of full transfers, the other falls.
        let full = more / self.each;
        let grown = fresh + 1 + full * (1 + empty);
        let fallen = all.saturating_sub((full + 1) * (self.each - 1 - empty));
        if grown > fallen { grown } else { fallen }
    }
}

impl Steps for Carried<'_> {
    fn most(&self, window: u64) -> u64 {
        self.most_of(self.all.most(window), self.fresh.most(window))
    }

    fn next(&self, window: u64) -> u64 {
        self.all.next(window).min(self.fresh.next(window))
    }

    fn line(&self) -> Option<Line> {
        let line = self.all.line()?;
        Some(Line { base: line.base + u128::from(self.empties), ..line })
    }
}

impl Steps for Least<'_> {
    fn most(&self, window: u64) -> u64 {
        self.0.iter().map(|steps| steps.most(window)).min().unwrap_or(u64::MAX)
    }

    fn next(&self, window: u64) -> u64 {
        // The least grows when all have grown that are the least.
        let least = self.most(window);
        let binding = self.0.iter().filter(|steps| steps.most(window) == least);
        binding.map(|steps| steps.next(window)).max().unwrap_or(NEVER)
    }

    fn line(&self) -> Option<Line> {
        self.0.iter().filter_map(|steps| steps.line()).reduce(Line::lower)
    }
}

/// Returns a step of a window that is longer by `ahead`, as a step of the window.
fn later(next: u64, ahead: Nanos) -> u64 {
    if next == NEVER { NEVER } else { next - ahead.0.min(next) }
}

/// Work per event of each kind.
pub(super) type Demand<'a> = [(Nanos, &'a dyn Steps)];

/// u(d): most work that is asked for in a closed window.
pub(super) fn work(demand: &Demand<'_>, window: u64) -> Nanos {
    let each = demand.iter().map(|(cost, steps)| match cost.0 {
        0 => 0,
        cost => cost.saturating_mul(steps.most(window)),
    });
    Nanos(each.fold(0, u64::saturating_add))
}

/// Returns a line above [`work`]; `None` if nothing bounds it.
fn line(demand: &Demand<'_>) -> Option<Line> {
    let costly = demand.iter().filter(|(cost, _)| cost.0 > 0);
    let mut lines = costly.map(|(cost, steps)| steps.line().map(|line| line.times(cost.0)));
    lines.try_fold(Line::ZERO, |sum, line| line.map(|line| sum.plus(line)))
}

/// Work that is asked for faster than a stage is served; `None`: nothing bounds it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Overload {
    pub(super) wanted: Option<Rate>,
    pub(super) given: Rate,
}

/// max over d of D_sync(u(d)) − d: the longest delay on a server of its own, from the moment the
/// work may begin.
pub(super) fn longest_delay(service: &dyn Service, demand: &Demand<'_>) -> Result<Nanos, Overload> {
    let (budget, period) = (service.budget(), service.period());
    let given = if budget == Nanos::ZERO { Rate::ZERO } else { Rate::new(budget.0, period) };
    let Some(line) = line(demand) else { return Err(Overload { wanted: None, given }) };
    if line.base == 0 {
        return Ok(Nanos::ZERO);
    }
    if budget == Nanos::ZERO || line.rate.is_above(given) {
        return Err(Overload { wanted: Some(line.rate), given });
    }
    let last_part = service.sync(budget);
    // D_sync(u) ≤ T·u/C + R(C): it falls from here on, or never rises.
    let above = |window: u64| {
        let wide = u128::from(budget.0);
        let periods = line.at(window).checked_mul(u128::from(period.0));
        let done = periods.map_or(u128::MAX, |all| all.div_ceil(wide));
        let late = done.saturating_add(u128::from(last_part.0));
        Nanos(u64::try_from(late.saturating_sub(u128::from(window))).unwrap_or(u64::MAX))
    };
    Ok(highest(service, demand, above))
}

/// max over d of D_sync(u(d)) − d, where `above` is never less, from any d on.
///
/// Once a window of k periods asks for at most k budgets, no longer one adds anything: it can be
/// cut into such windows and a shorter rest, and so can its work and its time.
fn highest(service: &dyn Service, demand: &Demand<'_>, above: impl Fn(u64) -> Nanos) -> Nanos {
    let (budget, period) = (service.budget().0, service.period().0.max(1));
    let (mut window, mut longest) = (0, Nanos::ZERO);
    let mut cut = 0;
    for _ in 0..STEPS_MAX {
        longest = longest.max(service.sync(work(demand, window)) - Nanos(window));
        let steps = demand.iter().filter(|(cost, _)| cost.0 > 0);
        window = steps.map(|(_, steps)| steps.next(window)).min().unwrap_or(NEVER);
        if window == NEVER {
            return longest;
        }
        let periods = window / period;
        if periods > cut {
            cut = periods;
            let asked = work(demand, periods.saturating_mul(period) - 1);
            if asked.0 <= periods.saturating_mul(budget) {
                return longest;
            }
        }
        if above(window) <= longest {
            return longest;
        }
    }
    longest.max(above(window))
}

/// Returns the longest delay of a stream on a server of its own whose wake-ups find this.
pub(super) fn delay(
    service: &dyn Service,
    demand: &Demand<'_>,
    found: Found,
) -> Result<Nanos, Overload> {
    match found {
        Found::Apart => longest_delay(service, demand),
        Found::Late(late) => longest_delay(service, demand).map(|delay| late + delay),
        Found::Unknown => longest_delay(&Merging(service), demand),
    }
}

/// [`apart::found`] for the wake-ups and the demand of a stage, in windows that are longer by
/// `ahead`.
pub(super) fn found(
    service: &dyn Service,
    wakeups: impl Fn(u64) -> u64,
    demand: &Demand<'_>,
    ahead: Nanos,
) -> Found {
    let costs = demand.iter().map(|(cost, _)| *cost).filter(|cost| cost.0 > 0);
    let coming = Coming {
        wakeups: |window: Nanos| wakeups(window.0),
        work: |window: Nanos| work(demand, (window + ahead).0),
        least: costs.min().unwrap_or_default(),
    };
    apart::found(service, &coming)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An interface with empty transfers may begin a window with one, whatever comes.
    #[test]
    fn an_empty_transfer_may_be_the_first_of_a_window() {
        let messages = Messages { channels: &[], ahead: Nanos::ZERO };
        let carried =
            |empties| Carried { all: messages, fresh: messages, each: 8, empties }.most_of(3, 3);
        assert_eq!((carried(false), carried(true)), (3, 4));
    }
}
