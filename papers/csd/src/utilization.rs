//! Utilization in integers, so that "at most 1" means it.

use crate::CsdTask;

/// Utilization 1 in the fixed point of [`ratio_up`].
pub const ONE: u128 = 1 << 62;

/// `part / whole` in units of 1/[`ONE`], rounded up. `whole` is not 0.
#[must_use]
pub fn ratio_up(part: u64, whole: u64) -> u128 {
    (u128::from(part) * ONE).div_ceil(u128::from(whole))
}

/// Returns an upper bound of the utilization of `tasks`, less than one unit per task too high.
pub(super) fn upper(tasks: &[CsdTask]) -> u128 {
    tasks.iter().map(|task| ratio_up(task.cost.0, task.period.0)).sum()
}

/// How a utilization compares with 1.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Load {
    /// Less than 1: this much is left, in units of 1/[`ONE`], rounded down.
    Below(u128),
    /// Exactly 1, or so close below that 62 bits do not tell.
    Full,
    /// More than 1, or so close that neither way of adding can tell.
    Above,
}

/// Compares the utilization of `tasks` with 1, never in favour of the tasks.
pub(super) fn load(tasks: &[CsdTask]) -> Load {
    let upper = upper(tasks);
    if upper < ONE {
        Load::Below(ONE - upper)
    } else if upper < ONE + tasks.len() as u128 && fits_as_fraction(tasks) {
        Load::Full
    } else {
        Load::Above
    }
}

/// Adds fractions exactly; false also if the common denominator outgrows 128 bits.
fn fits_as_fraction(tasks: &[CsdTask]) -> bool {
    let (mut numerator, mut denominator) = (0u128, 1u128);
    for task in tasks {
        let (cost, period) = (u128::from(task.cost.0), u128::from(task.period.0));
        let shared = gcd(denominator, period);
        let sum = numerator
            .checked_mul(period / shared)
            .zip(cost.checked_mul(denominator / shared))
            .and_then(|(left, right)| left.checked_add(right))
            .zip(denominator.checked_mul(period / shared));
        let Some((sum, product)) = sum else { return false };
        let common = gcd(sum, product);
        (numerator, denominator) = (sum / common, product / common);
    }
    numerator <= denominator
}

fn gcd(mut a: u128, mut b: u128) -> u128 {
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a.max(1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;
    use diapason_abi::Nanos;

    fn tasks(given: &[(u64, u64)]) -> Vec<CsdTask> {
        let task = |&(period, cost)| CsdTask { period: Nanos(period), cost: Nanos(cost) };
        given.iter().map(task).collect()
    }

    #[test]
    fn one_is_exactly_one() {
        assert_eq!(load(&tasks(&[(3, 1), (3, 1), (3, 1)])), Load::Full);
        assert_eq!(load(&tasks(&[(3, 1), (7, 3), (21, 5)])), Load::Full);
        assert_eq!(load(&tasks(&[(3, 1), (7, 3), (21, 5), (1 << 50, 1)])), Load::Above);
        assert_eq!(load(&tasks(&[(4, 1), (4, 2)])), Load::Below(ONE / 4));
        assert_eq!(load(&[]), Load::Below(ONE));
    }

    #[test]
    fn what_cannot_be_told_is_refused() {
        let primes = [1_000_003, 1_000_033, 1_000_037, 1_000_039, 1_000_081, 1_000_099, 1_000_117];
        let mut set: Vec<(u64, u64)> = primes.iter().map(|prime| (*prime, prime / 7)).collect();
        set.push((1_000_121, 0));
        assert!(matches!(load(&tasks(&set)), Load::Below(_)));
        let rest = ONE - upper(&tasks(&set));
        let cost = u64::try_from((rest << 10) / ONE).unwrap() + 1;
        set.push((1 << 10, cost));
        assert_eq!(load(&tasks(&set)), Load::Above);
    }
}
