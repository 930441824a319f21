//! Table 4.1 and its schedules under RM and EDF, figures 4.1 and 4.2.

use crate::{Picture, ReproductionReport, Row};
use diapason::chart::{ScheduleChart, Stretch};
use diapason::table::{Align, TextTable};
use diapason_abi::Nanos;
use diapason_csd::simulate::{self, MissedDeadline, Span, Synchronous, TimeSlice};
use diapason_csd::workload::table_4_1;
use diapason_csd::{
    Allocation, ChargingReading, Dissertation, SchedulabilityTest, TaskSet, search,
};

/// How much of the schedules is drawn.
const DRAWN: Nanos = Nanos::from_millis(20);
/// The least common multiple of the periods.
const HYPERPERIOD: Nanos = Nanos::from_millis(54_600);

/// Adds table, schedules and what they show.
pub fn add(report: &mut ReproductionReport) {
    let set = table_4_1();
    let (rm, edf) = (Allocation::rm(set.len()), Allocation::edf(set.len()));
    report.sections.push(("Table 4.1".into(), table(&set)));
    let utilization = set.utilization();
    let rounded = (utilization * 100.0).floor() == 88.0;
    report.rows.push(Row::numbers("table4.1.u", "", Some(0.88), utilization).holds(rounded));
    let titles = [
        ("fig4.1", "Figure 4.1: RM scheduling of table 4.1", &rm),
        ("fig4.2", "Figure 4.2: EDF scheduling of table 4.1", &edf),
    ];
    for (name, title, allocation) in titles {
        let chart = drawn(title, &set, allocation);
        report.sections.push((title.into(), chart.text(4)));
        report.pictures.push(Picture::drawing(name, chart.svg()));
    }
    report.rows.push(first_miss(&set, &rm));
    let (miss, _) = schedule(&set, &edf, HYPERPERIOD);
    let ours = if miss.is_none() { "feasible" } else { "misses" };
    let row = Row::words("fig4.2.edf", Some("feasible"), ours).holds(miss.is_none());
    report.rows.push(row.note("simulated over the whole hyperperiod, 54.6 s"));
    report.rows.push(troublesome(&set));
}

fn table(set: &TaskSet) -> String {
    let mut table =
        TextTable::new(&[("i", Align::Right), ("P ms", Align::Right), ("c ms", Align::Right)]);
    for (place, task) in set.tasks().iter().enumerate() {
        let millis = |time: Nanos| format!("{}", time.0 as f64 / 1e6);
        table.row(vec![(place + 1).to_string(), millis(task.period), millis(task.cost)]);
    }
    table.render()
}

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

fn first_miss(set: &TaskSet, rm: &Allocation) -> Row {
    let (miss, _) = schedule(set, rm, HYPERPERIOD);
    let words = |miss: MissedDeadline| {
        format!("task {} misses at {} ms", miss.task + 1, miss.deadline.0 / 1_000_000)
    };
    let ours = miss.map_or("feasible".into(), words);
    let paper = "task 5 misses at 8 ms";
    Row::words("fig4.1.rm", Some(paper), &ours).holds(ours == paper)
}

/// Returns the first task that does not fit under RM: CSD-2's DP queue ends with it.
fn troublesome(set: &TaskSet) -> Row {
    let prices = Dissertation::prices(set.len(), ChargingReading::USUAL);
    let found = search::cheapest(set, &prices, 2, SchedulabilityTest::Exact);
    let in_dp = found.map_or(0, |choice| choice.allocation.in_dp());
    Row::numbers("section4.2.3.r", "tasks", Some(5.0), in_dp as f64)
        .holds(in_dp == 5)
        .note("DP queue of the cheapest CSD-2 that holds, by [EMERALDS 1998, table 4.3]")
}

fn drawn(title: &str, set: &TaskSet, allocation: &Allocation) -> ScheduleChart {
    let (miss, slices) = schedule(set, allocation, DRAWN);
    let end = miss.map_or(DRAWN, |miss| miss.deadline);
    let millis = |time: Nanos| time.0 as f64 / 1e6;
    let stretch = |slice: &TimeSlice| Stretch {
        row: slice.task,
        start: millis(slice.start),
        end: millis(slice.end),
    };
    let releases = set.tasks().iter().enumerate().flat_map(|(row, task)| {
        let period = task.period.0;
        (0..=end.0 / period).map(move |job| (row, millis(Nanos(job * period))))
    });
    ScheduleChart {
        title: title.into(),
        unit: "ms".into(),
        rows: (1..=set.len()).map(|task| format!("τ{task}")).collect(),
        stretches: slices.iter().map(stretch).collect(),
        releases: releases.collect(),
        misses: miss.iter().map(|miss| (miss.task, millis(miss.deadline))).collect(),
        end: millis(end),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn table_4_1_and_its_figures_are_reproduced() {
        let mut report = ReproductionReport::new("csd", vec![], vec![], vec![]);
        add(&mut report);
        assert_eq!(report.holds(), Some(true), "{:?}", report.rows);
        assert_eq!((report.rows.len(), report.pictures.len()), (4, 2));
        let rm = &report.sections[1].1;
        assert!(rm.contains("   τ5 ................................X\n"), "{rm}");
        assert!(report.sections[2].1.contains("   τ5 ....................##"), "{rm}");
    }
}
