//! Average breakdown utilizations of random workloads: one point of a figure.

use super::SEED;
use crate::{Effort, Progress, parallel};
use diapason::Failure;
use diapason_csd::breakdown::{of_allocation, of_csd};
use diapason_csd::workload::{self, CostDraw};
use diapason_csd::{Allocation, QueuePrices, Random, SchedulabilityTest, TaskSet};

/// The schedulers, in the order of all results.
pub const SCHEDULERS: [&str; 5] = ["RM", "EDF", "CSD-2", "CSD-3", "CSD-4"];
/// Places of the ends and of the best in [`SCHEDULERS`].
pub const RM: usize = 0;
pub const EDF: usize = 1;
pub const CSD_2: usize = 2;
pub const CSD_3: usize = 3;
pub const CSD_4: usize = 4;

/// Random workloads of one kind.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Workloads {
    pub tasks: usize,
    /// Periods are divided by it.
    pub divisor: u64,
    /// How execution times are drawn.
    pub draw: CostDraw,
}

/// The results for some workloads.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) struct Point {
    /// Tasks in each workload.
    pub tasks: usize,
    /// Mean breakdown utilization of each of [`SCHEDULERS`], CSD-x with at most x queues.
    pub means: [f64; 5],
    /// Mean breakdown utilization of [`PAID`]: CSD-x pays for a list of x queues, used or not.
    pub paid: [f64; 3],
    /// Workloads in which CSD-4, paying for four queues, is worse than RM or EDF.
    pub worse: usize,
}

/// CSD as §4.4.2 charges it, in the order of [`Point::paid`].
pub const PAID: [&str; 3] = ["CSD-2 paid", "CSD-3 paid", "CSD-4 paid"];

/// Workloads for one point.
pub fn samples(effort: Effort) -> usize {
    match effort {
        Effort::Quick => 40,
        Effort::Full | Effort::Long => 500,
    }
}

/// Numbers of tasks for one curve.
pub fn task_counts(effort: Effort) -> Vec<usize> {
    match effort {
        Effort::Quick => vec![5, 15, 25, 40, 50],
        Effort::Full | Effort::Long => (1..=10).map(|step| 5 * step).collect(),
    }
}

/// Breakdown utilizations of one workload under each of [`SCHEDULERS`], and of [`PAID`].
fn breakdowns(
    set: &TaskSet,
    prices: &QueuePrices,
    test: SchedulabilityTest,
) -> ([f64; 5], [f64; 3]) {
    let rm = of_allocation(set, prices, &Allocation::rm(set.len()), test);
    let edf = of_allocation(set, prices, &Allocation::edf(set.len()), test);
    let two = of_csd(set, prices, 2, test, if edf.scale > rm.scale { edf } else { rm });
    let three = of_csd(set, prices, 3, test, two);
    let four = of_csd(set, prices, 4, test, three);
    let paid = [(2, two), (3, three), (4, four)].map(|(queues, at_most)| {
        let prices = prices.paying(queues);
        let known = of_allocation(set, &prices, &at_most.allocation, test);
        of_csd(set, &prices, queues, test, known).utilization(set)
    });
    ([rm, edf, two, three, four].map(|breakdown| breakdown.utilization(set)), paid)
}

/// Returns the mean over `samples` workloads. The i-th workload of as many tasks has the same base
/// for every divisor and price.
pub fn point(
    kind: Workloads,
    prices: &QueuePrices,
    test: SchedulabilityTest,
    samples: usize,
    (progress, step): (&Progress, &str),
) -> Result<Point, Failure> {
    let Workloads { tasks, divisor, draw } = kind;
    let one = |index: usize| {
        let mut random = Random::stream(SEED + tasks as u64, index as u64);
        let set = workload::random(tasks, divisor, draw, &mut random)?;
        Ok(breakdowns(&set, prices, test))
    };
    let step = format!("{step}, n = {tasks}");
    let all = parallel::map(samples, one, |done| progress.at(&step, done, samples));
    let all: Result<Vec<([f64; 5], [f64; 3])>, _> = all.into_iter().collect();
    let all = all.map_err(|bad: diapason_csd::BadTask| Failure::Ours(bad.to_string()))?;
    let mean = |place: usize| all.iter().map(|one| one.0[place]).sum::<f64>() / samples as f64;
    let paid = |place: usize| all.iter().map(|one| one.1[place]).sum::<f64>() / samples as f64;
    let worse = all.iter().filter(|(one, paid)| paid[2] < one[RM].max(one[EDF])).count();
    let (means, paid) = (std::array::from_fn(mean), std::array::from_fn(paid));
    Ok(Point { tasks, means, paid, worse })
}

/// Returns how much less overhead one scheduler has than another, in percent, from their breakdown
/// utilizations: overhead is what is missing to 1.
pub fn saving(of: f64, against: f64) -> f64 {
    100.0 * (1.0 - (1.0 - of) / (1.0 - against))
}

#[cfg(test)]
mod tests {
    use super::*;
    use diapason_csd::{ChargingReading, Dissertation};

    #[test]
    fn a_point_is_the_same_every_time_and_in_order() {
        let kind = Workloads { tasks: 12, divisor: 2, draw: CostDraw::Absolute };
        let prices = Dissertation::prices(12, ChargingReading::USUAL);
        let progress = Progress::silent();
        let draw = || point(kind, &prices, SchedulabilityTest::Exact, 6, (&progress, "")).unwrap();
        let point = draw();
        assert_eq!(point, draw());
        assert!(point.means.iter().all(|mean| (0.3..1.0).contains(mean)), "{point:?}");
        assert!(point.means[CSD_4] >= point.means[CSD_3]);
        let ends = point.means[RM].max(point.means[EDF]);
        assert!(point.means[CSD_4] >= ends, "at most four queues: RM and EDF are among them");
        assert!(point.paid[2] <= point.means[CSD_4], "to pay for queues never helps");
        let (rm, csd) = (point.means[RM], point.means[CSD_4]);
        assert!(saving(csd, rm) > 0.0 && saving(rm, csd) < 0.0);
    }
}
