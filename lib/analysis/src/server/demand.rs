//! Processor demand: does what must be done in a window fit into it, for every window.
//!
//! Demand never falls when a window grows, so the search of Zhang and Burns (QPA) finds a window
//! that is too full, or shows that there is none, by jumping from the end: if the demand in a
//! window t is h(t) < t, no window between h(t) and t can be too full.

use super::arith;
use super::level::Interference;
use super::model::{Queue, SharedCore};
use alloc::vec::Vec;

/// Jumps after which the search gives up and the set counts as not schedulable.
const STEPS_MAX: u32 = 1_000_000;

/// How a search for a window that is too full ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Overfull {
    /// A window and the demand in it.
    Window(u64, u64),
    /// The long-run demand is more than the processor.
    Rate,
    /// Not found in a bounded number of steps. Counts as too full.
    Undecided,
}

/// Checks whether `demand(t)` ≤ t for all t in `least..=most`. `demand` must not fall.
pub(super) fn fits(least: u64, most: u64, demand: impl Fn(u64) -> u64) -> Result<(), Overfull> {
    let mut window = most;
    for _ in 0..STEPS_MAX {
        if window < least || window == 0 {
            return Ok(());
        }
        let wanted = demand(window);
        match wanted.cmp(&window) {
            core::cmp::Ordering::Greater => return Err(Overfull::Window(window, wanted)),
            core::cmp::Ordering::Less => window = wanted,
            core::cmp::Ordering::Equal => window -= 1,
        }
    }
    Err(Overfull::Undecided)
}

/// The members of one DP queue, and everything above them.
pub(super) struct Members {
    pub above: Interference,
    /// (cost, period) of the Main VCPUs.
    pub mains: Vec<(u64, u64)>,
    /// The I/O VCPUs that work for one of them: the shortest such period, and their longest grant
    /// for one of them.
    pub ios: Vec<(u64, super::level::Grants)>,
}

impl Members {
    /// Returns the members of a queue of a system that makes sense.
    pub fn of(system: &SharedCore, queue: Queue) -> Members {
        let mut above = system.interrupts();
        let mut mains = Vec::new();
        for (index, main) in system.mains.iter().enumerate() {
            let cost = system.cost(main);
            match main.queue.cmp(&queue) {
                core::cmp::Ordering::Less => system.add_main(&mut above, index),
                core::cmp::Ordering::Equal => {
                    mains.push((cost, main.period.0));
                    above.add_once(spill(system));
                }
                core::cmp::Ordering::Greater => {}
            }
        }
        let mut ios = Vec::new();
        for io in &system.ios {
            let served = io.serves.iter().map(|main| &system.mains[*main]);
            let periods = served.filter(|main| main.queue == queue).map(|main| main.period);
            let Some((period, longest)) = periods.clone().min().zip(periods.max()) else {
                continue;
            };
            let quantum = io.quantum(longest).0;
            let least = system.least_quantum(io).map_or(1, |least| least.0);
            let switches = system.switch.0.saturating_mul(2);
            let (share, woken) = (io.share, io.wakings());
            let grants = super::level::Grants { quantum, least, share, switches, woken };
            above.add_once(spill(system));
            ios.push((period.0, grants));
        }
        system.grants_where(&mut above, |other, _| other < queue);
        Members { above, mains, ios }
    }

    /// Returns the most that must be done inside a window of length `window`: everything from
    /// above, and of this queue what is released and due in it.
    fn demand(&self, window: u64) -> u64 {
        let mut sum = self.above.demand_at(window);
        for (cost, period) in &self.mains {
            sum = sum.saturating_add(arith::due(window, *period, *cost));
        }
        for (period, grants) in &self.ios {
            sum = sum.saturating_add(grants.due(window, *period));
        }
        sum
    }

    /// Σ C/T + Σ U, exactly.
    fn parts(&self) -> Vec<(u64, u64)> {
        let ios = self.ios.iter().map(|(_, grants)| (u64::from(grants.share.ppm()), 1_000_000));
        self.mains.iter().copied().chain(ios).collect()
    }

    /// No window longer than this is too full, if the long-run demand leaves something.
    fn horizon(&self) -> Option<u64> {
        let (mut at_once, mut rate) = self.above.line();
        for (cost, period) in &self.mains {
            rate = rate.saturating_add(arith::rate_up(*cost, *period));
        }
        for (_, grants) in &self.ios {
            let (start, share) = super::level::Grants { quantum: 0, ..*grants }.line();
            (at_once, rate) = (at_once.saturating_add(start), rate.saturating_add(share));
        }
        arith::stretched_up(at_once, rate)
    }
}

/// Returns the most that a member of a DP queue runs once in a window for a deadline after it: a
/// kernel section that begins with the last of one replenishment ends with the next, which is due
/// later. (In the FP queue both have the same priority.) An overrun is the same with budget that is
/// not eligible yet.
fn spill(system: &SharedCore) -> u64 {
    system.overrun.max(system.kernel_section).0
}

/// Checks whether every VCPU of a DP queue gets its budget in every period, under the queues above.
pub(super) fn of_queue(system: &SharedCore, queue: Queue) -> Result<(), Overfull> {
    let members = Members::of(system, queue);
    let Some(least) = members.mains.iter().map(|(_, period)| *period).min() else {
        return Ok(());
    };
    if members.above == Interference::default() && system.switch.0 == 0 {
        // Plain EDF: the sum decides, also when it is exactly one.
        let fits = arith::fits_exactly(&members.parts());
        return if fits { Ok(()) } else { Err(Overfull::Rate) };
    }
    let horizon = members.horizon().ok_or(Overfull::Rate)?;
    fits(least, horizon, |window| members.demand(window))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_search_finds_what_looking_everywhere_finds() {
        // Demand that is released and due, of (5, 10) and (4, 7), and one with a shorter deadline.
        let demand = |late: u64| {
            move |t: u64| {
                let third = if t < 4 { 0 } else { ((t - 4) / 12 + 1) * late };
                t / 10 * 5 + t / 7 * 2 + third
            }
        };
        for late in 0..5 {
            let everywhere = (1..=200).all(|t| demand(late)(t) <= t);
            assert_eq!(fits(1, 200, demand(late)).is_ok(), everywhere, "{late}");
        }
    }
}
