//! Sums against a bound: sufficient, and cheap enough for a kernel to ask at run time.

use super::arith::{ONE, Share, rate_up};
use super::model::System;
use alloc::vec::Vec;
use diapason_vcpu::admission;

/// Both sides of an inequality in parts of [`ONE`]: the left rounded up, the right rounded down.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ClosedForm {
    /// The left side of the test.
    pub wanted: u64,
    /// The right side of the test.
    pub bound: u64,
}

impl ClosedForm {
    /// Returns whether the sum is within its bound.
    #[must_use]
    pub fn holds(&self) -> bool {
        self.wanted <= self.bound
    }

    /// Both sides in parts per million, rounded in the same directions.
    #[must_use]
    pub fn ppm(&self) -> (u64, u64) {
        let scaled = |value: u64| u128::from(value) * 1_000_000;
        let wanted = scaled(self.wanted).div_ceil(u128::from(ONE));
        (wanted as u64, (scaled(self.bound) / u128::from(ONE)) as u64)
    }
}

/// n · (2^(1/n) − 1) in parts of [`ONE`], rounded down: the number the kernel uses.
#[must_use]
pub fn liu_layland(n: usize) -> u64 {
    let bound = admission::liu_layland(u32::try_from(n).unwrap_or(u32::MAX));
    bound.0 << (ONE.trailing_zeros() - admission::Share::ONE.0.trailing_zeros())
}

/// [USB 2023, eq. 1], with the n-th root: Σ C/T + Σ (2 − U)·U ≤ n·(2^(1/n) − 1) over n Main
/// VCPUs. Sufficient for fixed priorities, PIBS rules P1–P4, and a kernel that takes no time. Costs
/// of the kernel are not looked at: [`wide`] and the exact test do.
#[must_use]
pub fn equation_one(system: &System) -> ClosedForm {
    let mains = system.mains.iter().map(|main| rate_up(main.budget.0, main.period.0));
    let ios = system.ios.iter().map(|io| {
        let ppm = u64::from(io.share.ppm());
        rate_up(ppm * (2_000_000 - ppm), 1_000_000_000_000)
    });
    let wanted = mains.chain(ios).fold(0, u64::saturating_add);
    ClosedForm { wanted, bound: liu_layland(system.mains.len()) }
}

/// The wider closed form: for each i, Σ C_j/T_j + Σ U(1 − U) + (B + interrupts in T_i)/T_i ≤ (1 − Σ
/// U)·i·(2^(1/i) − 1) over the i VCPUs down to it. Without kernel costs the last i decides. The
/// first i that fails, or the last. Sufficient for fixed priorities. A system that makes no sense
/// does not fit.
#[must_use]
pub fn wide(system: &System) -> ClosedForm {
    if system.check().is_err() {
        return ClosedForm { wanted: u64::MAX, bound: 0 };
    }
    let shares: Vec<Share> = system.ios.iter().map(|io| io.share).collect();
    let bursts = shares.iter().fold(0u64, |sum, share| {
        let ppm = u64::from(share.ppm());
        sum.saturating_add(rate_up(ppm * (1_000_000 - ppm), 1_000_000_000_000))
    });
    let slope = shares.iter().fold(0u64, |sum, share| sum.saturating_add(share.rate_up()));
    let speed = ONE.saturating_sub(slope);
    let order = system.precedence();
    let (mut servers, mut last) = (0u64, ClosedForm { wanted: slope, bound: ONE });
    for (place, index) in order.iter().enumerate() {
        let main = &system.mains[*index];
        servers = servers.saturating_add(rate_up(system.cost(main), main.period.0));
        let kernel = rate_up(kernel_in_period(system, &order, place), main.period.0);
        let wanted = servers.saturating_add(bursts).saturating_add(kernel);
        let whole = u128::from(speed) * u128::from(liu_layland(place + 1)) / u128::from(ONE);
        last = ClosedForm { wanted, bound: whole as u64 };
        if !last.holds() {
            return last;
        }
    }
    last
}

/// B, interrupts, and the context switches of I/O VCPUs in one period of a VCPU.
fn kernel_in_period(system: &System, order: &[usize], place: usize) -> u64 {
    let main = &system.mains[order[place]];
    let mut level = system.interrupts();
    level.add_once(system.overrun.0.saturating_mul(place as u64 + 1));
    system.add_lower_timers(&mut level, &order[place + 1..]);
    let interrupts = level.demand_at(main.period.0);
    system.set_grants(&mut level, order[place]);
    let switching = level.grants().iter().fold(0u64, |sum, grants| {
        let run = super::level::Grants { switches: 0, ..*grants }.demand(main.period.0);
        sum.saturating_add(grants.switching(run))
    });
    interrupts.saturating_add(switching)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn liu_and_layland_to_nine_places() {
        // n (2^(1/n) − 1) from tables; the value here may not be above.
        let table = [
            (1, 1_000_000_000u128),
            (2, 828_427_124),
            (3, 779_763_149),
            (4, 756_828_460),
            (10, 717_734_625),
            (100, 695_555_005),
        ];
        for (n, billionths) in table {
            let ours = u128::from(liu_layland(n)) * 1_000_000_000 / u128::from(ONE);
            assert!(ours <= billionths && ours.abs_diff(billionths) <= 5, "{n}: {ours}");
        }
        // ln 2 = 0.693147180559…, from above.
        let ours = u128::from(liu_layland(1_000_000)) * 1_000_000_000 / u128::from(ONE);
        assert_eq!(ours / 1_000, 693_147);
    }
}
