//! The nearest system that fits: budgets, periods and margins, by bisection on the same test.

use super::model::{PERIOD_MAX, SharedCore};
use super::test::test;
use alloc::vec::Vec;
use diapason_abi::Nanos;

/// Most factor that [`breakdown`] looks for, in per mille.
const FACTOR_MAX: u64 = 1_000_000;

/// Returns whether a system that makes sense holds; of an order known to hold up to `place`, only
/// the rest is looked at.
fn holds(system: &SharedCore, place: usize) -> bool {
    system.check_numbers().is_ok() && test(system, &system.precedence(), place, |_| ()).is_ok()
}

/// Returns whether everything above `vcpu` holds, and where it stands. Its own budget and period
/// change nothing above it, as long as it does not move up.
fn place_if_above_holds(system: &SharedCore, vcpu: usize) -> Option<usize> {
    system.check_numbers().ok()?;
    let order = system.precedence();
    let place = order.iter().position(|index| *index == vcpu)?;
    let mut above = system.clone();
    above.mains.get_mut(vcpu)?.budget = Nanos(1);
    // If others fail below, that is found when the whole is tested.
    match test(&above, &order, 0, |_| ()) {
        Err((first, _)) if order[..place].contains(&first) => None,
        _ => Some(place),
    }
}

/// Returns the largest budget of `vcpu` at its period with which the whole system holds, if any.
#[must_use]
pub fn largest_budget(system: &SharedCore, vcpu: usize) -> Option<Nanos> {
    let place = place_if_above_holds(system, vcpu)?;
    let mut trial = system.clone();
    let mut with = |budget: u64| {
        trial.mains[vcpu].budget = Nanos(budget);
        holds(&trial, place)
    };
    let period = system.mains[vcpu].period.0;
    if !with(1) {
        return None;
    }
    Some(Nanos(greatest(1, period, with)))
}

/// Returns a period of `vcpu` for its budget with which the whole system holds, if any is found:
/// the smallest, if the system holds for every longer one, which shared I/O VCPUs may prevent.
#[must_use]
pub fn smallest_period(system: &SharedCore, vcpu: usize) -> Option<Nanos> {
    let place = place_if_above_holds(system, vcpu)?;
    let mut trial = system.clone();
    let mut with = |period: u64| {
        trial.mains[vcpu].period = Nanos(period);
        holds(&trial, place)
    };
    let first = system.mains[vcpu].period.0;
    if with(first) {
        return Some(Nanos(first));
    }
    let (mut fails, mut fits) = (first, first);
    while !with(fits) {
        fails = fits;
        fits = fits.checked_mul(2).filter(|period| *period <= PERIOD_MAX.0)?;
    }
    while fits - fails > 1 {
        let middle = fails + (fits - fails) / 2;
        if with(middle) { fits = middle } else { fails = middle }
    }
    Some(Nanos(fits))
}

/// Returns the breakdown factor in per mille: every budget may become this much, and no more, and
/// the system still holds. `None` if it does not hold even with budgets of a nanosecond.
#[must_use]
pub fn breakdown(system: &SharedCore) -> Option<u64> {
    let mut trial = system.clone();
    let budgets: Vec<u64> = system.mains.iter().map(|main| main.budget.0).collect();
    let mut with = |factor: u64| {
        for (main, budget) in trial.mains.iter_mut().zip(&budgets) {
            let scaled = (u128::from(*budget) * u128::from(factor)).div_ceil(1000);
            main.budget = Nanos(u64::try_from(scaled).unwrap_or(u64::MAX).max(1));
        }
        holds(&trial, 0)
    };
    if !with(0) {
        return None;
    }
    // No budget may exceed its period: that is the first factor that is too much for certain.
    let ratios = system.mains.iter().map(|main| {
        let ratio = u128::from(main.period.0) * 1000 / u128::from(main.budget.0.max(1));
        u64::try_from(ratio).unwrap_or(u64::MAX)
    });
    let most = ratios.min().unwrap_or(FACTOR_MAX).min(FACTOR_MAX);
    Some(greatest(0, most, with))
}

/// Returns the greatest value in `fits..=most` for which `with` is true, if it is true for `fits`,
/// and false for all above one for which it is.
fn greatest(mut fits: u64, most: u64, mut with: impl FnMut(u64) -> bool) -> u64 {
    if fits >= most || with(most) {
        return most.max(fits);
    }
    let mut fails = most;
    while fails - fits > 1 {
        let middle = fits + (fails - fits) / 2;
        if with(middle) { fits = middle } else { fails = middle }
    }
    fits
}
