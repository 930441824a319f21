//! The search for the best allocation: what it finds is what trying everything finds.

use diapason_abi::Nanos;
use diapason_csd::breakdown::{self, Breakdown};
use diapason_csd::workload::{self, CostDraw};
use diapason_csd::{
    Affine, Allocation, ChargingReading, Dissertation, DpBlock, OperationCounts, QueueList,
    QueuePrices, Random, SchedulabilityTest, TaskSet, check, inflate, search,
};

const TESTS: [SchedulabilityTest; 2] =
    [SchedulabilityTest::Dissertation, SchedulabilityTest::Exact];

fn readings() -> impl Iterator<Item = ChargingReading> {
    let lists = [QueueList::Free, QueueList::OncePerPair, QueueList::PerSelection];
    let blocks = [DpBlock::Reasoned, DpBlock::Table42];
    lists.into_iter().flat_map(move |queue_list| {
        blocks.into_iter().map(move |dp_block| ChargingReading { queue_list, dp_block })
    })
}

/// Returns a set of the size of microseconds, so that the dissertation's prices weigh heavily.
fn drawn(tasks: usize, load: u64, random: &mut Random) -> TaskSet {
    let small = workload::small(tasks, 30, load, random).unwrap();
    let grown = small.tasks().iter().map(|task| {
        let by = |time: Nanos| Nanos(time.0 * 40_000);
        diapason_csd::CsdTask { period: by(task.period), cost: by(task.cost) }
    });
    TaskSet::new(grown.collect()).unwrap()
}

#[test]
fn the_cheapest_allocation_is_that_of_the_exhaustive_search() {
    let mut random = Random::new(11);
    let (mut found, mut none, mut saved) = (0, 0, 0);
    for round in 0..30 {
        for reading in readings() {
            let tasks = 3 + round % 6;
            let load = random.between(40, 95);
            let set = drawn(tasks, load, &mut random);
            let prices = Dissertation::prices(tasks, reading);
            for (queues, test) in (1..=4).flat_map(|queues| TESTS.map(|test| (queues, test))) {
                let clever = search::cheapest(&set, &prices, queues, test);
                let all = search::exhaustive(&set, &prices, queues, test);
                let key = |choice: search::BestAllocation| (choice.allocation, choice.overhead);
                assert_eq!(clever.map(key), all.map(key), "{set:?} {queues} {test:?}");
                match clever.zip(all) {
                    Some((clever, all)) => {
                        found += 1;
                        saved += usize::from(clever.tested < all.tested);
                        let inflated = inflate(set.tasks(), &clever.allocation, &prices);
                        assert_eq!(check(&inflated, &clever.allocation, test), Ok(()));
                    }
                    None => none += 1,
                }
            }
        }
    }
    assert!(found > 300 && none > 300 && saved > 50, "{found} {none} {saved}");
}

fn rm(set: &TaskSet, prices: &QueuePrices, test: SchedulabilityTest) -> Breakdown {
    breakdown::of_allocation(set, prices, &Allocation::rm(set.len()), test)
}

#[test]
fn breakdown_is_that_of_the_exhaustive_search_and_more_queues_never_hurt() {
    let mut random = Random::new(12);
    for round in 0..10 {
        for reading in readings() {
            let tasks = 3 + round % 4;
            let set = drawn(tasks, 80, &mut random);
            let prices = Dissertation::prices(tasks, reading);
            for test in TESTS {
                let mut known = rm(&set, &prices, test);
                for queues in 2..=4 {
                    let clever = breakdown::of_csd(&set, &prices, queues, test, known);
                    let all = breakdown::exhaustive(&set, &prices, queues, test);
                    assert_eq!(clever.scale, all.scale, "{set:?} {queues} {test:?}");
                    assert!(clever.scale >= known.scale);
                    known = clever;
                }
            }
        }
    }
}

#[test]
fn csd_is_never_worse_than_both_ends() {
    let mut random = Random::new(13);
    for round in 0..40 {
        let tasks = 5 + round % 16;
        let set = workload::random(tasks, 1 + round as u64 % 3, draw(round), &mut random).unwrap();
        let line = |price: Affine| vec![(0, price.base), (64, price.base + 64 * price.step)];
        let mut price =
            || line(Affine { base: random.between(1, 300), step: random.between(0, 30) });
        let counts = OperationCounts {
            dp: [price(), price(), price()],
            fp: [price(), price(), price()],
            queue: 8,
            fixed: 300,
        };
        let hertz = 25_000_000 << random.between(0, 6);
        let prices = counts.prices(tasks, hertz, ChargingReading::USUAL).unwrap();
        let edf = breakdown::of_allocation(
            &set,
            &prices,
            &Allocation::edf(tasks),
            SchedulabilityTest::Exact,
        );
        let rm = rm(&set, &prices, SchedulabilityTest::Exact);
        let csd = breakdown::of_csd(&set, &prices, 3, SchedulabilityTest::Exact, rm);
        assert!(csd.scale >= edf.scale.max(rm.scale), "{set:?}");
    }
}

fn draw(round: usize) -> CostDraw {
    if round.is_multiple_of(2) { CostDraw::ShareOfPeriod } else { CostDraw::Absolute }
}

#[test]
fn a_hundred_tasks_need_few_tests() {
    for seed in 0..6 {
        let mut random = Random::new(seed);
        let base = workload::random(100, 1, CostDraw::ShareOfPeriod, &mut random).unwrap();
        let percent = 60 + 5 * seed;
        let set = TaskSet::new(base.scaled(percent, 100)).unwrap();
        let prices = Dissertation::prices(100, ChargingReading::USUAL);
        let choice = search::cheapest(&set, &prices, 3, SchedulabilityTest::Exact);
        println!("{percent} %: {choice:?}");
        if let Some(choice) = choice {
            assert!(choice.tested < 1_500, "{choice:?}");
        }
    }
}

#[test]
fn no_set_makes_it_panic() {
    let mut random = Random::new(14);
    let mut refused = 0;
    for _ in 0..300 {
        let tasks = random.between(0, 8) as usize;
        let extreme = |random: &mut Random, low: u64, high: u64| match random.between(0, 3) {
            0 => low,
            1 => high,
            2 => low + (high - low) / 2,
            _ => random.between(low, high),
        };
        let drawn = (0..tasks).map(|_| {
            let period = extreme(&mut random, 1, TaskSet::PERIOD_MAX.0);
            let cost = extreme(&mut random, 0, period);
            let small = random.between(0, 1) == 0;
            let cost = if small { cost / 9 } else { cost };
            diapason_csd::CsdTask { period: Nanos(period), cost: Nanos(cost) }
        });
        let set = TaskSet::new(drawn.collect()).unwrap();
        let prices =
            [QueuePrices::free(tasks), Dissertation::prices(tasks, ChargingReading::USUAL)];
        for (prices, test) in prices.iter().zip(TESTS.into_iter().cycle()) {
            refused += u32::from(search::cheapest(&set, prices, 4, test).is_none());
            let found = breakdown::of_csd(&set, prices, 3, test, rm(&set, prices, test));
            assert!(found.utilization(&set) <= 1.001);
        }
    }
    assert!(refused > 100);
}

#[test]
#[ignore = "for an optimized build: a hundred tasks in four queues, at every load"]
fn a_hundred_tasks_in_four_queues() {
    for percent in (70..96).chain([78; 4]) {
        let mut random = Random::new(percent);
        let base = workload::random(100, 1, CostDraw::ShareOfPeriod, &mut random).unwrap();
        let set = TaskSet::new(base.scaled(percent, 100)).unwrap();
        let prices = Dissertation::prices(100, ChargingReading::USUAL);
        let choice = search::cheapest(&set, &prices, 4, SchedulabilityTest::Exact);
        println!("{percent} %: {:?}", choice.map(|choice| choice.tested));
    }
}
