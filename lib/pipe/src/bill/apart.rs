//! When the wake-ups of a server find budget, although its list of replenishments is short.
//!
//! A list with room for all wake-ups of a period is not enough: a server that waits for budget
//! keeps the parts of it apart for ever, and they fill the list. And a list without that room
//! delays wake-ups until it has a place. The theorems are in `docs/pipes-proofs.md`, under
//! "Replenishments that merge".

use super::service::{Merging, Service};
use diapason_abi::Nanos;

/// Steps to a fixed point before it is given up.
const STEPS_MAX: u32 = 1_024;
/// Windows of no more periods are looked at. With more, wake-ups come faster than places.
const PERIODS_MAX: u64 = 8;

/// The demand on a server as it really comes, jitter included.
pub struct Coming<W, D> {
    /// Most wake-ups in a closed window.
    pub wakeups: W,
    /// u: most work in a closed window.
    pub work: D,
    /// The least of which one event adds to `work`: each wake-up is one.
    pub least: Nanos,
}

/// The budget that the wake-ups of a server find.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Found {
    /// All that is needed, at once. The list is never full.
    Apart,
    /// All that is needed, as soon as the list has a place: after this time at most.
    Late(Nanos),
    /// Perhaps not all that is needed.
    Unknown,
}

/// Returns what the wake-ups of `service` find.
pub fn found<W, D>(service: &dyn Service, coming: &Coming<W, D>) -> Found
where
    W: Fn(Nanos) -> u64,
    D: Fn(Nanos) -> Nanos,
{
    if service.wakeups() == u64::MAX {
        return Found::Apart;
    }
    if !suffices(service, coming, Nanos::ZERO) {
        return Found::Unknown;
    }
    if (coming.wakeups)(service.period() - Nanos(1)) <= service.wakeups() {
        return Found::Apart;
    }
    // A server computes this when a pipe is opened, so the cheaper questions come first.
    let late = late(service, &coming.wakeups);
    if suffices(service, coming, late) { Found::Late(late) } else { Found::Unknown }
}

/// Returns the time that `work` takes on a server whose wake-ups find this.
pub fn done(service: &dyn Service, work: Nanos, found: Found) -> Nanos {
    match (work, found) {
        (Nanos::ZERO, _) => Nanos::ZERO,
        (work, Found::Apart) => service.sync(work),
        (work, Found::Late(late)) => late + service.sync(work),
        (work, Found::Unknown) => Merging(service).sync(work),
    }
}

/// Returns the longest time from a wake-up until the server is idle again. All that comes in that
/// time is done within it, in any order. `None`: there may be no end.
pub fn busy_period<W, D>(service: &dyn Service, coming: &Coming<W, D>) -> Option<Nanos>
where
    W: Fn(Nanos) -> u64,
    D: Fn(Nanos) -> Nanos,
{
    let found = found(service, coming);
    let mut busy = Nanos::ZERO;
    for _ in 0..STEPS_MAX {
        let next = done(service, (coming.work)(busy), found);
        if next == Nanos::FOREVER {
            return None;
        }
        if next <= busy {
            return Some(busy);
        }
        busy = next;
    }
    None
}

/// Returns whether `service` never merges replenishments, and its wake-ups never wait for budget:
/// it wakes up no more often in a period than its list has places for, and each time with enough
/// budget for all it does until it blocks.
pub fn keeps_apart<W, D>(service: &dyn Service, coming: &Coming<W, D>) -> bool
where
    W: Fn(Nanos) -> u64,
    D: Fn(Nanos) -> Nanos,
{
    found(service, coming) == Found::Apart
}

/// Returns the longest time that a wake-up waits for a place in the list: each begins a period
/// after the one as many before it as there are places, at the earliest.
fn late(service: &dyn Service, wakeups: impl Fn(Nanos) -> u64) -> Nanos {
    let (period, places) = (service.period(), service.wakeups() + 1);
    // Those that take the places are woken one after the other.
    let filled = period - shortest(&wakeups, places, period);
    let mut late = Nanos::ZERO;
    for periods in 1..=PERIODS_MAX {
        let window = Nanos(period.0.saturating_mul(periods));
        let free = places.saturating_mul(periods);
        if wakeups(window - Nanos(1)) <= free {
            // A longer window can be cut into this one and a rest.
            return late.min(filled);
        }
        late = late.max(window - shortest(&wakeups, free + 1, window));
    }
    filled
}

/// Returns the shortest window with so many wake-ups, if it is shorter than this one.
fn shortest(wakeups: impl Fn(Nanos) -> u64, count: u64, window: Nanos) -> Nanos {
    let (mut shorter, mut longer) = (Nanos::ZERO, window);
    while shorter < longer {
        let middle = Nanos(shorter.0 + (longer - shorter).0 / 2);
        if wakeups(middle) >= count { longer = middle } else { shorter = middle + Nanos(1) }
    }
    longer
}

/// Returns whether each wake-up finds budget for all that comes until the server blocks, if each
/// begins `late` at most.
fn suffices<W, D>(service: &dyn Service, coming: &Coming<W, D>, late: Nanos) -> bool
where
    W: Fn(Nanos) -> u64,
    D: Fn(Nanos) -> Nanos,
{
    let before = service.period() - Nanos(1) + late;
    if (coming.work)(before) > service.budget() {
        return false;
    }
    let Some(busy) = busy(service, |window| (coming.work)(window + late)) else { return false };
    let busy = busy + late;
    // The wake-up itself is in both windows.
    let parted = (coming.work)(before) + (coming.work)(busy) - coming.least;
    let asked = parted.min((coming.work)(before + busy - late));
    // That may take more than one period, and the kernel takes its part in each.
    let more = busy.0.div_ceil(service.period().0.max(1)).max(1);
    asked + Nanos(service.lost().0.saturating_mul(more)) <= service.budget()
}

/// Returns the longest time from a wake-up until the server blocks, if it never waits for budget
/// then.
fn busy(service: &dyn Service, work: impl Fn(Nanos) -> Nanos) -> Option<Nanos> {
    let mut busy = Nanos::ZERO;
    for _ in 0..STEPS_MAX {
        let asked = work(busy);
        if asked > service.budget() {
            return None;
        }
        let next = service.sync(asked);
        if next <= busy {
            return Some(busy);
        }
        busy = next;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::super::service::Promised;
    use super::*;

    const MS: fn(u64) -> Nanos = Nanos::from_millis;

    /// Returns what a server with four places finds that is woken so often, by work of 1 us.
    fn found_by(budget: Nanos, gap: Nanos) -> Found {
        let service = Promised { chunks: 4, ..Promised::main(budget, MS(5)) };
        let wakeups = |window: Nanos| window.0 / gap.0 + 1;
        let work = |window| Nanos(1_000 * wakeups(window));
        found(&service, &Coming { wakeups, work, least: Nanos(1_000) })
    }

    #[test]
    fn wake_ups_beyond_the_places_wait_for_one() {
        assert_eq!(found_by(MS(1), MS(2)), Found::Apart);
        // Four in a period take all places, and the fifth comes when the first is free.
        assert_eq!(found_by(MS(1), Nanos(1_250_000)), Found::Late(Nanos::ZERO));
        // The places are taken for 3 ms at least when another one comes.
        assert_eq!(found_by(MS(1), MS(1)), Found::Late(MS(2)));
        assert_eq!(found_by(Nanos(9_000), MS(1)), Found::Unknown);
    }

    #[test]
    fn a_wait_that_grows_for_ever_ends_with_the_places_that_are_taken() {
        // Faster than four in a period by a hair: the first windows alone would say 0.03 ms.
        let found = found_by(MS(1), Nanos(1_249_500));
        assert_eq!(found, Found::Late(MS(5) - Nanos(3 * 1_249_500)));
    }
}
