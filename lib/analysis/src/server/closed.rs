//! Sums against a bound: sufficient, and cheap enough for a kernel to ask at run time.

use super::arith::{ONE, rate_up};
use super::model::{Queue, SharedCore};
use diapason_abi::Nanos;
use diapason_vcpu::Pibs;
use diapason_vcpu::admission::{Load, Overheads, Refusal, Reservation, Share, Test, liu_layland};

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

    /// Returns both sides in parts per million, rounded in the same directions.
    #[must_use]
    pub fn ppm(&self) -> (u64, u64) {
        let scaled = |value: u64| u128::from(value) * 1_000_000;
        let wanted = scaled(self.wanted).div_ceil(u128::from(ONE));
        (wanted as u64, (scaled(self.bound) / u128::from(ONE)) as u64)
    }
}

/// [USB 2023, eq. 1], with the n-th root: Σ C/T + Σ (2 − U)·U ≤ n·(2^(1/n) − 1) over n Main
/// VCPUs. Sufficient for fixed priorities, PIBS rules P1–P4, and a kernel that takes no time. Costs
/// of the kernel are not looked at: [`wide`] and the exact test do.
#[must_use]
pub fn equation_one(system: &SharedCore) -> ClosedForm {
    let mains = system.mains.iter().map(|main| rate_up(main.budget.0, main.period.0));
    let ios = system.ios.iter().map(|io| {
        let ppm = u64::from(io.share.ppm());
        rate_up(ppm * (2_000_000 - ppm), 1_000_000_000_000)
    });
    let wanted = mains.chain(ios).fold(0, u64::saturating_add);
    let mains = u32::try_from(system.mains.len()).unwrap_or(u32::MAX);
    ClosedForm { wanted, bound: fine(liu_layland(mains)) }
}

/// Returns the closed form that a kernel asks when programs make VCPUs at run time, with its costs:
/// that of one queue by deadline if all Main VCPUs are in one, else the wider one for queues in the
/// order of periods. Returns the sides for the first VCPU that does not fit, or those of all. A
/// system that makes no sense does not fit.
#[must_use]
pub fn wide(system: &SharedCore) -> ClosedForm {
    if system.check().is_err() {
        return ClosedForm { wanted: u64::MAX, bound: 0 };
    }
    let by_deadline = system.mains.iter().all(|main| main.queue == Queue::Dp(0));
    let test = if by_deadline { Test::Deadline } else { Test::Wide };
    match promised(system, test) {
        Ok(load) => sides(load.sides(test)),
        Err(refused) => sides(refused),
    }
}

/// Returns the promises of all VCPUs, or the sides of the test for the first that is refused.
fn promised(system: &SharedCore, test: Test) -> Result<Load, (Share, Share)> {
    // One that makes no sense may be refused for less than the bound.
    fn no<N>(refusal: Refusal<N>) -> (Share, Share) {
        (refusal.load.max(refusal.bound.plus(Share(1))), refusal.bound)
    }
    let mut load = Load::new(overheads(system));
    for main in &system.mains {
        let asked = Reservation { budget: Nanos(system.cost(main)), period: main.period };
        load = load.admit_main(test, asked).map_err(no)?;
    }
    for io in &system.ios {
        let periods = io.serves.iter().map(|main| system.mains[*main].period);
        let shortest = periods.min().unwrap_or(Nanos::FOREVER);
        let between = Pibs::new(io.share.ppm(), io.cap, Nanos::ZERO).between(shortest);
        load = load.with_grants(system.switch, between);
        load = load.admit_io(test, io.share.ppm()).map_err(no)?;
    }
    Ok(load)
}

/// Returns the kernel's own time.
fn overheads(system: &SharedCore) -> Overheads {
    let (section, overrun) = (system.kernel_section, system.overrun);
    let own = Overheads { section, overrun, ..Overheads::NONE };
    let sources = system.sources.iter().map(|source| (source.cost, source.gap));
    let switches = |wakes: u64| Nanos(system.switch.0.saturating_mul(2).saturating_mul(wakes));
    let ios = system.ios.iter().map(|io| (switches(io.wakes.into()), io.wake_gap));
    sources.chain(ios).fold(own, |sum, (cost, gap)| sum.with_top_half(cost, gap))
}

/// Returns the sides of a test in parts of [`ONE`].
fn sides((wanted, bound): (Share, Share)) -> ClosedForm {
    ClosedForm { wanted: fine(wanted), bound: fine(bound) }
}

/// Returns a share in parts of [`ONE`], which are finer.
fn fine(share: Share) -> u64 {
    share.0.saturating_mul(ONE / Share::ONE.0)
}
