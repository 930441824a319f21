//! The cost of being scheduled for a task, by the lengths of the queues (§4.2.4, 4.3.2).
//!
//! A task is unblocked and blocks at least once in a period, each followed by a selection; half
//! the tasks block once more, hence 1.5 (Δt_b + Δt_u + 2 Δt_s). Δt_s is what parsing the longest
//! DP queue costs that may have to be parsed: after a task of a queue blocked, that queue or a
//! lower one; after it was unblocked, that queue or a higher one.

use crate::{Allocation, QUEUES_MAX};
use alloc::vec::Vec;
use core::fmt;
use diapason_abi::Nanos;

/// `base + step × length`, in picoseconds.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Affine {
    pub base: u64,
    /// For each task in the queue.
    pub step: u64,
}

impl Affine {
    const fn micros(base_hundredths: u64, step_hundredths: u64) -> Affine {
        Affine { base: base_hundredths * 10_000, step: step_hundredths * 10_000 }
    }

    const fn at(self, length: usize) -> u64 {
        self.base + self.step * length as u64
    }
}

/// How the walk over the list of queues is charged; the dissertation does not say.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum QueueList {
    Free,
    /// Once for a pair of blocking and unblocking.
    OncePerPair,
    /// With each of the two selections of a pair.
    PerSelection,
}

/// The DP queue that is parsed after a task of DP2 or below has blocked.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum DpBlock {
    /// By the reasoning of §4.2.4: its own or a lower one, as those above must be empty.
    Reasoned,
    /// As table 4.2 prints it: all DP queues, O(r).
    Table42,
}

/// A reading of the rules about charging that the dissertation leaves open.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ChargingReading {
    /// The list of queues.
    pub queue_list: QueueList,
    /// Blocking of a task of DP2 or below.
    pub dp_block: DpBlock,
}

impl ChargingReading {
    /// The reading that comes closest to the dissertation's claims.
    pub const USUAL: ChargingReading =
        ChargingReading { queue_list: QueueList::OncePerPair, dp_block: DpBlock::Reasoned };
}

/// Table 4.3: measured on a 25 MHz 68040.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Dissertation;

impl Dissertation {
    const EDF: [Affine; 3] =
        [Affine::micros(160, 0), Affine::micros(120, 0), Affine::micros(120, 25)];
    const RM: [Affine; 3] =
        [Affine::micros(100, 36), Affine::micros(140, 0), Affine::micros(60, 0)];
    const QUEUE_PS: u64 = 550_000;

    /// Prices for queues of up to `tasks` tasks.
    #[must_use]
    pub fn prices(tasks: usize, reading: ChargingReading) -> QueuePrices {
        let table = |price: Affine| (0..=tasks).map(|length| price.at(length)).collect();
        let [dp_block, dp_unblock, dp_select] = Dissertation::EDF.map(table);
        let [fp_block, fp_unblock, fp_select] = Dissertation::RM.map(table);
        let (queue, fixed) = (Dissertation::QUEUE_PS, 0);
        let dp = [dp_block, dp_unblock, dp_select];
        QueuePrices { dp, fp: [fp_block, fp_unblock, fp_select], queue, fixed, paid: 0, reading }
    }

    /// Δt of RM with a sorted heap of `tasks` tasks, the last column of table 4.3.
    #[must_use]
    pub fn heap(tasks: usize) -> Nanos {
        let levels = (tasks + 1).next_power_of_two().trailing_zeros() as u64;
        let pair = (400 + 2_800 * levels) + (1_900 + 700 * levels) + 2 * 600;
        Nanos((3 * pair).div_ceil(2))
    }
}

/// Instructions that scheduler operations need, each at several queue lengths: measured, never
/// guessed. Between two measured lengths a straight line; beyond the longest nothing is known. A
/// longer queue never counts as cheaper than a shorter one.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct OperationCounts {
    /// Block, unblock, select of a DP queue: (length, instructions), by rising length.
    pub dp: [Vec<(u32, u64)>; 3],
    /// Block, unblock, select of the FP queue: (length, instructions), by rising length.
    pub fp: [Vec<(u32, u64)>; 3],
    /// Passing one queue of the list.
    pub queue: u64,
    /// The cost of a pair of unblocking and blocking besides queues: kernel entries, switches.
    pub fixed: u64,
}

/// Why counts cannot be used.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum BadCounts {
    /// An operation (0 to 2 DP block, unblock, select; 3 to 5 FP) lacks this length.
    NotMeasured(usize, usize),
    /// The lengths of an operation do not rise.
    Unsorted(usize),
    /// A clock of 0 Hz.
    NoClock,
}

impl fmt::Display for BadCounts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const NAMES: [&str; 6] =
            ["DP block", "DP unblock", "DP select", "FP block", "FP unblock", "FP select"];
        let name = |operation: &usize| NAMES.get(*operation).copied().unwrap_or("operation");
        match self {
            BadCounts::NotMeasured(operation, length) => {
                let name = name(operation);
                write!(f, "{name}: not measured up to length {length}; measure it, or ask for less")
            }
            BadCounts::Unsorted(operation) => {
                write!(f, "{}: give the lengths in rising order", name(operation))
            }
            BadCounts::NoClock => write!(f, "the clock rate is 0; give at least 1 Hz"),
        }
    }
}

impl core::error::Error for BadCounts {}

impl OperationCounts {
    /// Prices for up to `tasks` tasks on a processor of one instruction per cycle at `hertz`.
    ///
    /// # Errors
    /// If an operation was not measured up to `tasks`.
    pub fn prices(
        &self,
        tasks: usize,
        hertz: u64,
        reading: ChargingReading,
    ) -> Result<QueuePrices, BadCounts> {
        if hertz == 0 {
            return Err(BadCounts::NoClock);
        }
        let picos = |count: u64| {
            let time = (u128::from(count) * 1_000_000_000_000).div_ceil(u128::from(hertz));
            u64::try_from(time).unwrap_or(u64::MAX)
        };
        let mut tables: [Vec<u64>; 6] = Default::default();
        for (operation, points) in self.dp.iter().chain(&self.fp).enumerate() {
            if !points.is_sorted_by(|a, b| a.0 < b.0) {
                return Err(BadCounts::Unsorted(operation));
            }
            let mut most = 0;
            for length in 0..=tasks {
                let missing = BadCounts::NotMeasured(operation, tasks);
                most = picos(between(points, length).ok_or(missing)?).max(most);
                tables[operation].push(most);
            }
        }
        let [a, b, c, d, e, f] = tables;
        let (queue, fixed) = (picos(self.queue), picos(self.fixed));
        Ok(QueuePrices { dp: [a, b, c], fp: [d, e, f], queue, fixed, paid: 0, reading })
    }
}

/// Returns the straight line through the neighbours of `length`, rounded up; before the first
/// point, its value.
fn between(points: &[(u32, u64)], length: usize) -> Option<u64> {
    let above = points.iter().position(|(at, _)| *at as usize >= length)?;
    let (right, high) = points[above];
    let Some((left, low)) = above.checked_sub(1).map(|below| points[below]) else {
        return Some(high);
    };
    let (run, step) = (u64::from(right - left), length as u64 - u64::from(left));
    Some((low * (run - step) + high * step).div_ceil(run))
}

/// Prices of the three operations of each kind of queue, in picoseconds by queue length. They
/// never fall with the length: the search relies on it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct QueuePrices {
    dp: [Vec<u64>; 3],
    fp: [Vec<u64>; 3],
    queue: u64,
    fixed: u64,
    /// The list of queues has at least so many, used or not.
    paid: usize,
    reading: ChargingReading,
}

/// Δt of the tasks of each queue; DP queues first, then the FP queue.
pub(super) type Charges = [u64; QUEUES_MAX];

impl QueuePrices {
    /// Scheduling for nothing: the ideal conditions of §4.2.
    #[must_use]
    pub fn free(tasks: usize) -> QueuePrices {
        let zeros = || [(); 3].map(|()| alloc::vec![0; tasks + 1]);
        let reading = ChargingReading { queue_list: QueueList::Free, dp_block: DpBlock::Reasoned };
        QueuePrices { dp: zeros(), fp: zeros(), queue: 0, fixed: 0, paid: 0, reading }
    }

    /// Returns the same prices of a scheduler that always walks over a list of `queues` queues:
    /// CSD-x as §4.4.2 charges it, "overhead of managing x queues". Without it a queue that no task
    /// is in costs nothing, so that CSD-x is CSD with *at most* x queues.
    #[must_use]
    pub fn paying(&self, queues: usize) -> QueuePrices {
        QueuePrices { paid: queues, ..self.clone() }
    }

    /// Δt of a task in queue `queue` (the FP queue comes after the DP queues).
    ///
    /// # Panics
    /// If there are no prices for queues that long.
    #[must_use]
    pub fn charge(&self, allocation: &Allocation, queue: usize) -> Nanos {
        Nanos(self.charges(allocation)[queue])
    }

    /// Δt of every queue, in ns.
    pub(super) fn charges(&self, allocation: &Allocation) -> Charges {
        self.at_least(allocation, allocation.queues())
    }

    /// Δt of every queue if the scheduler has `queues` queues. With more queues than `allocation`
    /// has, those of the DP queues are lower bounds for every allocation made from it by splitting
    /// DP queues off its FP queue.
    pub(super) fn at_least(&self, allocation: &Allocation, queues: usize) -> Charges {
        let mut charges = [0; QUEUES_MAX];
        let dp = allocation.dp();
        let [blocked, unblocked, select] = &self.dp;
        let list = self.list(queues);
        let mut above = 0;
        for (queue, &length) in dp.iter().enumerate() {
            let length = usize::from(length);
            above = length.max(above);
            let below = dp[queue..].iter().copied().max().map_or(0, usize::from);
            let block = match self.reading.dp_block {
                DpBlock::Table42 if queue > 0 => allocation.in_dp(),
                _ => below,
            };
            let pair = blocked[length] + unblocked[length] + select[block] + select[above];
            charges[queue] = one_and_a_half(pair + list);
        }
        charges[dp.len()] = self.fp_charge(allocation.fp(), above, list);
        charges
    }

    /// Δt of a task of an FP queue of `length` tasks, the longest DP queue having `longest`.
    fn fp_charge(&self, length: usize, longest: usize, list: u64) -> u64 {
        let [blocked, unblocked, select] = &self.fp;
        let parse = if longest == 0 { 0 } else { self.dp[2][longest] };
        let selections = select[length] + select[length].max(parse);
        one_and_a_half(blocked[length] + unblocked[length] + selections + list)
    }

    /// Lower bounds of Δt if `in_dp` of the tasks are in at most `dp_queues` DP queues and the
    /// rest is in the FP queue: of DP tasks, and of FP tasks. One of the two selections of every
    /// DP task may have to parse the longest DP queue.
    pub(super) fn whatever_the_split(
        &self,
        tasks: usize,
        in_dp: usize,
        dp_queues: usize,
    ) -> (u64, u64) {
        let list = self.list(usize::from(in_dp > 0) + usize::from(tasks > in_dp));
        let longest = in_dp.div_ceil(dp_queues.max(1));
        let fp = self.fp_charge(tasks - in_dp, longest, list);
        if in_dp == 0 {
            return (0, fp);
        }
        let [blocked, unblocked, select] = &self.dp;
        (one_and_a_half(blocked[1] + unblocked[1] + select[1] + select[longest] + list), fp)
    }

    /// Returns the walk over a list of `queues` queues; one queue needs no list.
    fn list(&self, queues: usize) -> u64 {
        let times = match self.reading.queue_list {
            QueueList::Free => 0,
            QueueList::OncePerPair => 1,
            QueueList::PerSelection => 2,
        };
        let queues = queues.max(self.paid);
        let walk = if queues > 1 { self.queue * queues as u64 * times } else { 0 };
        walk + self.fixed
    }
}

/// 1.5 times picoseconds as whole nanoseconds, rounded up.
const fn one_and_a_half(picos: u64) -> u64 {
    (3 * picos).div_ceil(2_000)
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::string::ToString;
    use alloc::vec;

    fn charge(dp: &[usize], tasks: usize, queue: usize, reading: ChargingReading) -> u64 {
        let prices = Dissertation::prices(tasks, reading);
        prices.charge(&Allocation::new(dp, tasks).unwrap(), queue).0
    }

    #[test]
    fn rm_and_edf_cost_what_table_4_3_says() {
        let prices = Dissertation::prices(20, ChargingReading::USUAL);
        // 1.5 (1.0 + 0.36 × 20 + 1.4 + 2 × 0.6) and 1.5 (1.6 + 1.2 + 2 (1.2 + 0.25 × 20)) µs.
        assert_eq!(prices.charge(&Allocation::rm(20), 0), Nanos(16_200));
        assert_eq!(prices.charge(&Allocation::edf(20), 0), Nanos(22_800));
    }

    #[test]
    fn csd_2_costs_what_section_4_2_4_says() {
        let reading = ChargingReading { queue_list: QueueList::Free, ..ChargingReading::USUAL };
        // DP: both selections parse 5 tasks. FP: 15 tasks are walked, 5 are parsed once.
        assert_eq!(charge(&[5], 20, 0, reading), 3 * (1_600 + 1_200 + 2 * 2_450) / 2);
        assert_eq!(charge(&[5], 20, 1, reading), 3 * (6_400 + 1_400 + 600 + 2_450) / 2);
        let list = |queue_list| {
            charge(&[5], 20, 1, ChargingReading { queue_list, ..ChargingReading::USUAL })
        };
        assert_eq!(list(QueueList::OncePerPair) - list(QueueList::Free), 1_650);
        assert_eq!(list(QueueList::PerSelection) - list(QueueList::Free), 3_300);
    }

    #[test]
    fn queues_that_are_paid_cost_the_same_used_or_not() {
        let prices = Dissertation::prices(20, ChargingReading::USUAL);
        let (four, rm) = (prices.paying(4), Allocation::rm(20));
        // 1.5 × 4 × 0.55 µs more than RM alone, which needs no list.
        assert_eq!(four.charge(&rm, 0), Nanos(16_200 + 3_300));
        let whole = Allocation::new(&[3, 6, 4], 20).unwrap();
        assert_eq!(four.charges(&whole), prices.charges(&whole));
    }

    #[test]
    fn csd_3_costs_what_table_4_2_says_where_the_readings_agree() {
        let reading = ChargingReading { queue_list: QueueList::Free, ..ChargingReading::USUAL };
        let printed = ChargingReading { dp_block: DpBlock::Table42, ..reading };
        let select = |length: u64| 1_200 + 250 * length;
        for reading in [reading, printed] {
            let dp1 = 3 * (2_800 + select(6) + select(3)) / 2;
            assert_eq!(charge(&[3, 6], 20, 0, reading), dp1);
            assert_eq!(charge(&[3, 6], 20, 2, reading), 3 * (4_960 + 2_000 + select(6)) / 2);
        }
        assert_eq!(charge(&[3, 6], 20, 1, reading), 3 * (2_800 + 2 * select(6)) / 2);
        assert_eq!(charge(&[3, 6], 20, 1, printed), 3 * (2_800 + select(9) + select(6)) / 2);
    }

    #[test]
    fn the_heap_wins_from_59_tasks_on_but_loses_again_from_64_to_67() {
        let list = |tasks| Dissertation::prices(tasks, ChargingReading::USUAL);
        let wins = |tasks: &usize| {
            Dissertation::heap(*tasks) < list(*tasks).charge(&Allocation::rm(*tasks), 0)
        };
        let loses: Vec<usize> = (1..200).filter(|tasks| !wins(tasks)).collect();
        let expected: Vec<usize> = (1..59).chain(64..68).collect();
        assert_eq!(loses, expected);
    }

    #[test]
    fn counts_become_time_and_are_never_guessed() {
        let flat = |count| vec![(0, count), (10, count)];
        let counts = OperationCounts {
            dp: [flat(10), flat(20), vec![(1, 30), (5, 40), (10, 100)]],
            fp: [vec![(1, 10), (10, 100)], flat(5), flat(1)],
            queue: 2,
            fixed: 100,
        };
        let prices = counts.prices(10, 100_000_000, ChargingReading::USUAL).unwrap();
        // Instructions of 10 ns: 1.5 (10 + 20 + 2 × 100 + 100) and 1.5 (100 + 5 + 2 + 100).
        assert_eq!(prices.charge(&Allocation::edf(10), 0), Nanos(4_950));
        assert_eq!(prices.charge(&Allocation::rm(10), 0), Nanos(3_105));
        assert_eq!((between(&counts.dp[2], 0), between(&counts.dp[2], 4)), (Some(30), Some(38)));
        let refused = counts.prices(11, 1, ChargingReading::USUAL).unwrap_err();
        assert_eq!(refused, BadCounts::NotMeasured(0, 11));
        assert!(refused.to_string().starts_with("DP block: not measured up to length 11"));
        assert_eq!(counts.prices(1, 0, ChargingReading::USUAL), Err(BadCounts::NoClock));
        let unsorted = OperationCounts { fp: [flat(1), flat(1), vec![(3, 1), (3, 1)]], ..counts };
        assert_eq!(unsorted.prices(3, 1, ChargingReading::USUAL), Err(BadCounts::Unsorted(5)));
    }

    /// Checks the search's assumptions, for all allocations of nine tasks to up to four queues.
    #[test]
    fn bounds_for_prefixes_and_splits_are_no_higher_than_what_is_charged() {
        const TASKS: usize = 9;
        let blocks = [DpBlock::Reasoned, DpBlock::Table42];
        for dp_block in blocks {
            let reading = ChargingReading { queue_list: QueueList::PerSelection, dp_block };
            let prices = Dissertation::prices(TASKS, reading);
            let mut seen = 0;
            for code in 0..1_000 {
                let lengths = [code / 100, code / 10 % 10, code % 10];
                let Ok(whole) = Allocation::new(&lengths, TASKS) else { continue };
                prefixes_are_bounded(&prices, &whole);
                let charges = prices.charges(&whole);
                let (dp, fp) = prices.whatever_the_split(TASKS, whole.in_dp(), 3);
                let queues = whole.dp().len();
                assert!(charges[..queues].iter().all(|charge| dp <= *charge), "{whole}");
                assert!(fp <= charges[queues], "{whole}");
                seen += 1;
            }
            assert!(seen > 100);
        }
    }

    fn prefixes_are_bounded(prices: &QueuePrices, whole: &Allocation) {
        let charges = prices.charges(whole);
        let mut prefix = Allocation::rm(whole.tasks());
        for (queue, length) in whole.dp().iter().enumerate() {
            prefix = prefix.split(usize::from(*length));
            if prefix.fp() > 0 && whole.fp() > 0 {
                let bounds = prices.at_least(&prefix, queue + 2);
                let holds = |place: usize| bounds[place] <= charges[place];
                assert!((0..=queue).all(holds), "{prefix} of {whole}");
            }
        }
    }
}
