//! Integers that stand for utilizations of a processor, and products that cannot overflow.

/// The whole processor in the fixed point that sums of utilizations are kept in.
pub const ONE: u64 = 1 << 62;

/// A share of the processor in parts per million, more than none and at most all.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Hash)]
pub struct Utilization(u32);

const MILLION: u64 = 1_000_000;

impl Utilization {
    /// `ppm` parts per million; `None` for zero and for more than the whole.
    #[must_use]
    pub const fn from_ppm(ppm: u32) -> Option<Utilization> {
        if ppm == 0 || ppm as u64 > MILLION { None } else { Some(Utilization(ppm)) }
    }

    /// Returns the share in parts per million.
    #[must_use]
    pub const fn ppm(self) -> u32 {
        self.0
    }

    /// Returns ⌊U · time⌋.
    #[must_use]
    pub fn of(self, time: u64) -> u64 {
        let ppm = u64::from(self.0);
        match time.checked_mul(ppm) {
            Some(product) => product / MILLION,
            None => saturated(u128::from(time) * u128::from(ppm) / u128::from(MILLION)),
        }
    }

    /// ⌈used / U⌉: the time in which `used` is this share.
    #[must_use]
    pub fn time_for(self, used: u64) -> u64 {
        let ppm = u64::from(self.0);
        match used.checked_mul(MILLION) {
            Some(product) => product.div_ceil(ppm),
            None => saturated((u128::from(used) * u128::from(MILLION)).div_ceil(u128::from(ppm))),
        }
    }

    /// One divided by a whole number: [`Self::time_for`] then never rounds.
    #[must_use]
    pub const fn is_unit_fraction(self) -> bool {
        MILLION.is_multiple_of(self.0 as u64)
    }

    /// Returns the share in the fixed point of [`ONE`], rounded up.
    pub(super) fn rate_up(self) -> u64 {
        rate_up(u64::from(self.0), MILLION)
    }

    /// Returns the share in the fixed point of [`ONE`], rounded down.
    pub(super) fn rate_down(self) -> u64 {
        rate_down(u64::from(self.0), MILLION)
    }
}

/// How often [`released`] was computed in this process.
#[cfg(feature = "counted")]
pub static TERMS: core::sync::atomic::AtomicU64 = core::sync::atomic::AtomicU64::new(0);

/// ⌈window / period⌉ · cost. A period of zero has no end of releases.
pub(super) fn released(window: u64, period: u64, cost: u64) -> u64 {
    #[cfg(feature = "counted")]
    TERMS.fetch_add(1, core::sync::atomic::Ordering::Relaxed);
    if window == 0 || cost == 0 {
        return 0;
    }
    if period == 0 {
        return u64::MAX;
    }
    window.div_ceil(period).saturating_mul(cost)
}

/// ⌊window / period⌋ · cost: what is released and due inside a window.
pub(super) fn due(window: u64, period: u64, cost: u64) -> u64 {
    match window.checked_div(period) {
        Some(times) => times.saturating_mul(cost),
        None if cost == 0 => 0,
        None => u64::MAX,
    }
}

/// cost / period in the fixed point of [`ONE`], rounded down.
pub(super) fn rate_down(cost: u64, period: u64) -> u64 {
    match (u128::from(cost) * u128::from(ONE)).checked_div(u128::from(period)) {
        Some(rate) => saturated(rate),
        None => u64::MAX,
    }
}

/// cost / period in the fixed point of [`ONE`], rounded up.
pub(super) fn rate_up(cost: u64, period: u64) -> u64 {
    if period == 0 {
        return u64::MAX;
    }
    saturated((u128::from(cost) * u128::from(ONE)).div_ceil(u128::from(period)))
}

/// work / (1 − rate), rounded down: when a processor of which `rate` is gone has done `work`.
/// `None` if nothing is left of it.
pub(super) fn stretched_down(work: u64, rate: u64) -> Option<u64> {
    let left = ONE.checked_sub(rate).filter(|left| *left > 0)?;
    Some(saturated(u128::from(work) * u128::from(ONE) / u128::from(left)))
}

/// work / (1 − rate), rounded up.
pub(super) fn stretched_up(work: u64, rate: u64) -> Option<u64> {
    let left = ONE.checked_sub(rate).filter(|left| *left > 0)?;
    Some(saturated((u128::from(work) * u128::from(ONE)).div_ceil(u128::from(left))))
}

fn saturated(value: u128) -> u64 {
    u64::try_from(value).unwrap_or(u64::MAX)
}

/// Returns whether Σ cost/period ≤ 1, decided without rounding. `false` also if the exact sum
/// cannot be represented, which a sum that is not exactly one never needs.
pub(super) fn fits_exactly(parts: &[(u64, u64)]) -> bool {
    let (mut low, mut high) = (0u64, 0u64);
    for &(cost, period) in parts {
        low = low.saturating_add(rate_down(cost, period));
        high = high.saturating_add(rate_up(cost, period));
    }
    if high <= ONE || low > ONE {
        return high <= ONE;
    }
    let mut sum = Some((0u128, 1u128));
    for &(cost, period) in parts {
        sum = sum.and_then(|sum| added(sum, u128::from(cost), u128::from(period)));
    }
    sum.is_some_and(|(over, under)| over <= under)
}

/// over/under + cost/period in lowest terms.
fn added((over, under): (u128, u128), cost: u128, period: u128) -> Option<(u128, u128)> {
    let common = gcd(under, period);
    let left = over.checked_mul(period / common)?;
    let right = cost.checked_mul(under / common)?;
    let (over, under) = (left.checked_add(right)?, under.checked_mul(period / common)?);
    let lowest = gcd(over, under).max(1);
    Some((over / lowest, under / lowest))
}

/// Returns the greatest common divisor.
pub(super) fn gcd(mut a: u128, mut b: u128) -> u128 {
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_share_rounds_against_its_owner() {
        let third = Utilization::from_ppm(333_333).unwrap();
        assert_eq!((third.of(10), third.time_for(3)), (3, 10));
        assert!(!third.is_unit_fraction());
        let eighth = Utilization::from_ppm(125_000).unwrap();
        assert_eq!((eighth.of(64), eighth.time_for(8)), (8, 64));
        assert!(eighth.is_unit_fraction());
        assert_eq!(Utilization::from_ppm(0), None);
        assert_eq!(Utilization::from_ppm(1_000_001), None);
        let whole = Utilization::from_ppm(1_000_000).unwrap();
        assert_eq!((whole.of(u64::MAX), whole.time_for(u64::MAX)), (u64::MAX, u64::MAX));
        assert_eq!(third.time_for(u64::MAX), u64::MAX);
    }

    #[test]
    fn products_saturate() {
        assert_eq!(released(10, 3, 2), 8);
        assert_eq!(released(u64::MAX, 1, 2), u64::MAX);
        assert_eq!((released(1, 0, 1), released(0, 0, 1), due(1, 0, 0)), (u64::MAX, 0, 0));
        assert_eq!(due(10, 3, 2), 6);
    }

    #[test]
    fn exactly_one_is_not_more_than_one() {
        assert!(fits_exactly(&[(3, 7), (4, 7)]));
        assert!(fits_exactly(&[(1, 3), (1, 3), (1, 3)]));
        assert!(!fits_exactly(&[(1, 3), (1, 3), (1, 3), (1, u64::MAX)]));
        let primes = [(1, 1_000_003), (2, 1_000_033), (3, 1_000_037)];
        assert!(fits_exactly(&primes));
        assert!(!fits_exactly(&[(1, 0)]));
    }

    #[test]
    fn work_on_what_is_left_of_a_processor() {
        assert_eq!(stretched_down(10, ONE / 2), Some(20));
        assert_eq!(stretched_up(10, ONE / 2 + 1), Some(21));
        assert_eq!(stretched_up(10, ONE), None);
    }
}
