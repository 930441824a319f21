//! CSD by hand: table 4.1, the counter-example to the printed test, and the ends RM and EDF.

use diapason_abi::Nanos;
use diapason_csd::simulate::{self, MissedDeadline, Span, Synchronous, TimeSlice};
use diapason_csd::workload::table_4_1;
use diapason_csd::{
    Allocation, ChargingReading, CsdTask, Dissertation, QueuePrices, SchedulabilityTest, TaskSet,
    Unschedulable, check, search,
};

fn set(tasks: &[(u64, u64)]) -> TaskSet {
    let task = |(period, cost): &(u64, u64)| CsdTask { period: Nanos(*period), cost: Nanos(*cost) };
    TaskSet::new(tasks.iter().map(task).collect()).unwrap()
}

fn allocation(dp: &[usize], tasks: usize) -> Allocation {
    Allocation::new(dp, tasks).unwrap()
}

/// Returns the schedule after a simultaneous release.
fn schedule(
    set: &TaskSet,
    allocation: &Allocation,
    until: Nanos,
) -> (Option<MissedDeadline>, Vec<TimeSlice>) {
    let span = Span { horizon: until, until_idle: false };
    let mut slices = Vec::new();
    let outcome =
        simulate::run(set.tasks(), allocation, &mut Synchronous, span, |slice| slices.push(slice));
    (outcome.miss, slices)
}

#[test]
fn table_4_1_fails_under_rm_at_8_ms_and_holds_under_edf_and_csd() {
    let set = table_4_1();
    let late = Unschedulable::Late { task: 4, deadline: Nanos::from_millis(8) };
    for test in [SchedulabilityTest::Dissertation, SchedulabilityTest::Exact] {
        assert_eq!(check(set.tasks(), &Allocation::rm(10), test), Err(late));
        assert_eq!(check(set.tasks(), &Allocation::edf(10), test), Ok(()));
        assert_eq!(check(set.tasks(), &allocation(&[5], 10), test), Ok(()));
    }
}

#[test]
fn figure_4_1_is_what_the_schedule_under_rm_is() {
    let (miss, slices) = schedule(&table_4_1(), &Allocation::rm(10), Nanos::from_millis(20));
    let expected =
        MissedDeadline { task: 4, released: Nanos::ZERO, deadline: Nanos::from_millis(8) };
    assert_eq!(miss, Some(expected));
    let order: Vec<usize> = slices.iter().map(|slice| slice.task).collect();
    assert_eq!(order, [0, 1, 2, 3, 0, 1, 2, 3]);
    assert!(slices.iter().all(|slice| slice.end - slice.start == Nanos::from_millis(1)));
}

#[test]
fn figure_4_2_runs_the_fifth_task_before_the_second_is_released_again() {
    let hyperperiod = Nanos::from_millis(54_600);
    let (miss, slices) = schedule(&table_4_1(), &Allocation::edf(10), hyperperiod);
    assert_eq!(miss, None);
    // Its deadline, 8, is also that of the first task's second job, which is served before it.
    let fifth = slices.iter().find(|slice| slice.task == 4).unwrap();
    assert_eq!((fifth.start, fifth.end), (Nanos::from_millis(5), Nanos::from_micros(5_500)));
    let order: Vec<usize> = slices.iter().take(7).map(|slice| slice.task).collect();
    assert_eq!(order, [0, 1, 2, 3, 0, 4, 1]);
    let busy: u64 = slices.iter().map(|slice| (slice.end - slice.start).0).sum();
    let demanded: u64 =
        table_4_1().tasks().iter().map(|task| hyperperiod.0 / task.period.0 * task.cost.0).sum();
    assert_eq!(busy, demanded);
}

#[test]
fn the_troublesome_task_of_table_4_1_is_the_fifth() {
    let set = table_4_1();
    let prices = Dissertation::prices(10, ChargingReading::USUAL);
    let choice = search::cheapest(&set, &prices, 2, SchedulabilityTest::Dissertation).unwrap();
    assert_eq!(choice.allocation, allocation(&[5], 10));
}

#[test]
fn a_set_that_the_printed_csd_3_test_accepts_misses_at_40() {
    let set = set(&[(15, 7), (18, 4), (20, 4), (30, 1)]);
    let allocation = allocation(&[2, 2], 4);
    assert_eq!(check(set.tasks(), &allocation, SchedulabilityTest::Dissertation), Ok(()));
    let refusal = check(set.tasks(), &allocation, SchedulabilityTest::Exact);
    assert_eq!(refusal, Err(Unschedulable::Late { task: 2, deadline: Nanos(40) }));
    let (miss, _) = schedule(&set, &allocation, Nanos(180));
    assert_eq!(miss, Some(MissedDeadline { task: 2, released: Nanos(20), deadline: Nanos(40) }));
    // With an allocation that holds, nothing is missed.
    let free = QueuePrices::free(4);
    let choice = search::cheapest(&set, &free, 3, SchedulabilityTest::Exact).unwrap();
    assert_eq!(schedule(&set, &choice.allocation, Nanos(180)).0, None);
}

#[test]
fn a_full_processor_is_full_and_no_more() {
    let full = set(&[(2, 1), (4, 1), (8, 2)]);
    for dp in [&[3][..], &[1, 2], &[1, 1], &[]] {
        assert_eq!(
            check(full.tasks(), &allocation(dp, 3), SchedulabilityTest::Exact),
            Ok(()),
            "{dp:?}"
        );
    }
    let over = set(&[(2, 1), (4, 1), (8, 2), (1_000, 1)]);
    let refusal = check(over.tasks(), &Allocation::edf(4), SchedulabilityTest::Exact);
    assert_eq!(refusal, Err(Unschedulable::Overload { queue: 0 }));
    let refusal = check(over.tasks(), &allocation(&[1, 1], 4), SchedulabilityTest::Exact);
    assert_eq!(refusal, Err(Unschedulable::Overload { queue: 2 }));
}

#[test]
fn nothing_to_do_is_feasible() {
    assert_eq!(check(&[], &Allocation::rm(0), SchedulabilityTest::Exact), Ok(()));
    let set = set(&[]);
    let choice =
        search::cheapest(&set, &QueuePrices::free(0), 3, SchedulabilityTest::Exact).unwrap();
    assert_eq!(choice.allocation, Allocation::rm(0));
}
