//! The task sets of the dissertation: table 4.1, and the random ones of §4.4.1.

use crate::{BadTask, CsdTask, Random, TaskSet};
use alloc::vec::Vec;
use diapason_abi::Nanos;

/// Table 4.1: (P, c) in microseconds.
pub const TABLE_4_1: [(u64, u64); 10] = [
    (4_000, 1_000),
    (5_000, 1_000),
    (6_000, 1_000),
    (7_000, 1_000),
    (8_000, 500),
    (20_000, 500),
    (30_000, 500),
    (50_000, 500),
    (100_000, 500),
    (130_000, 500),
];

/// Returns the tasks of table 4.1.
///
/// # Panics
/// Never: the table makes sense.
#[must_use]
pub fn table_4_1() -> TaskSet {
    let task = |(period, cost)| CsdTask {
        period: Nanos::from_micros(period),
        cost: Nanos::from_micros(cost),
    };
    TaskSet::new(TABLE_4_1.map(task).to_vec()).expect("a table of sensible tasks")
}

/// How the execution times of random tasks are drawn; the dissertation says "random".
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum CostDraw {
    /// Uniform up to the task's period.
    ShareOfPeriod,
    /// Uniform up to one number for all tasks, so that short periods weigh most.
    Absolute,
}

/// Returns a workload of §4.4.1: periods of whole milliseconds with one, two or three digits, each
/// with the same probability; random costs; in all a utilization of about 1. The same `random`
/// gives the same workload for every `divisor`, with the periods divided by it.
///
/// # Errors
/// If there are too many tasks.
pub fn random(
    tasks: usize,
    divisor: u64,
    draw: CostDraw,
    random: &mut Random,
) -> Result<TaskSet, BadTask> {
    const FINENESS: u64 = 1 << 20;
    let drawn: Vec<(u64, u64)> = (0..tasks)
        .map(|_| {
            let millis = match random.between(1, 3) {
                1 => random.between(5, 9),
                2 => random.between(10, 99),
                _ => random.between(100, 999),
            };
            let period = millis * 1_000_000;
            let weight = random.between(1, FINENESS);
            let cost = match draw {
                CostDraw::ShareOfPeriod => period / FINENESS * weight,
                CostDraw::Absolute => weight,
            };
            (period, cost)
        })
        .collect();
    // All costs divided by the utilization they have together.
    let share = |(period, cost): &(u64, u64)| *cost as f64 / *period as f64;
    let whole: f64 = drawn.iter().map(share).sum();
    let task = |(period, cost): &(u64, u64)| {
        let cost = (*cost as f64 / whole) as u64 / divisor.max(1);
        CsdTask { period: Nanos(period / divisor.max(1)), cost: Nanos(cost) }
    };
    TaskSet::new(drawn.iter().map(task).collect())
}

/// Returns a small set for attacks: `tasks` periods of 3 to `longest` ticks and costs that fill
/// about `load` percent of the processor, never more than all of it.
///
/// # Errors
/// If there are too many tasks, or `longest` is too long.
pub fn small(
    tasks: usize,
    longest: u64,
    load: u64,
    random: &mut Random,
) -> Result<TaskSet, BadTask> {
    let drawn: Vec<(u64, u64)> =
        (0..tasks).map(|_| (random.between(3, longest.max(3)), random.between(1, 1_000))).collect();
    let whole: u64 = drawn.iter().map(|(_, weight)| weight).sum();
    let task = |(period, weight): &(u64, u64)| {
        let cost = (period * weight * load / (whole.max(1) * 100)).clamp(1, *period);
        CsdTask { period: Nanos(*period), cost: Nanos(cost) }
    };
    TaskSet::new(drawn.iter().map(task).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn table_4_1_has_utilization_0_88() {
        assert!((table_4_1().utilization() - 0.88).abs() < 0.005);
    }

    #[test]
    fn random_periods_have_the_digits_they_should_and_divide() {
        let draw =
            |divisor| random(300, divisor, CostDraw::ShareOfPeriod, &mut Random::new(1)).unwrap();
        let (whole, third) = (draw(1), draw(3));
        let mut classes = [0; 3];
        for (task, divided) in whole.tasks().iter().zip(third.tasks()) {
            let millis = task.period.0 / 1_000_000;
            assert!((5..1_000).contains(&millis) && task.period.0 % 1_000_000 == 0);
            assert_eq!(divided.period.0, task.period.0 / 3);
            classes[millis.ilog10() as usize] += 1;
        }
        assert!(classes.iter().all(|count| (70..130).contains(count)), "{classes:?}");
        assert!((whole.utilization() - 1.0).abs() < 0.001);
        assert!((third.utilization() - 1.0).abs() < 0.001);
    }
}
