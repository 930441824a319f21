//! The tests against the schedule, and the search against the number of allocations.

use super::SEED;
use crate::{Effort, Progress, ReproductionReport, Row, parallel};
use diapason::table::{Align, TextTable};
use diapason_csd::attack::{self, AttackPlan, AttackTally};
use diapason_csd::workload::{self, CostDraw};
use diapason_csd::{ChargingReading, Dissertation, Random, SchedulabilityTest, TaskSet, search};

/// Sets are attacked in batches of this many.
const BATCH: u64 = 500;

/// Adds the campaign, one kind of scheduler after the other.
pub fn add(effort: Effort, progress: &Progress, report: &mut ReproductionReport) {
    let batches = if effort == Effort::Quick { 16 } else { 100 };
    let mut table = TextTable::new(&[
        ("queues", Align::Right),
        ("sets", Align::Right),
        ("exact: accepted", Align::Right),
        ("missed", Align::Right),
        ("refused in vain", Align::Right),
        ("printed: accepted", Align::Right),
        ("missed", Align::Right),
    ]);
    let mut total = AttackTally::default();
    for queues in 1..=4 {
        let plan = AttackPlan::small(SEED, queues);
        let step = format!("attack on CSD-{queues}");
        let batch = |index: usize| {
            let from = index as u64 * BATCH;
            attack::range(&plan, from..from + BATCH)
        };
        let tallies = parallel::map(batches, batch, |done| progress.at(&step, done, batches));
        let tally = tallies.into_iter().fold(AttackTally::default(), AttackTally::plus);
        let numbers = [
            queues as u64,
            tally.sets,
            tally.exact,
            tally.exact_missed,
            tally.exact_pessimistic,
            tally.printed,
            tally.printed_missed,
        ];
        table.row(numbers.map(|number| number.to_string()).to_vec());
        if queues == 3 {
            report.rows.push(printed(&tally));
        }
        total = total.plus(tally);
    }
    report.sections.push(("Attack by simulation on both tests".into(), table.render()));
    report.rows.extend(exact(&total));
    report.rows.extend(searched());
}

/// Returns how often the printed CSD-3 test is wrong, among sets with which it can be.
fn printed(tally: &AttackTally) -> Row {
    let share = 100.0 * tally.printed_missed as f64 / tally.hard.max(1) as f64;
    let all = 100.0 * tally.printed_missed as f64 / tally.printed.max(1) as f64;
    Row::numbers("csd3.printed-test.missed", "%", None, share).note(format!(
        "sets that the test of [EMERALDS 1998, §4.3.4] accepts and that miss a deadline in \
         simulation, in percent of the {} accepted sets with a utilization of at least 0.9 and \
         two tasks or more in DP2; {all:.2} % of all accepted sets; no promise uses the test",
        tally.hard
    ))
}

fn exact(tally: &AttackTally) -> [Row; 2] {
    [
        Row::numbers("exact-test.missed", "sets", None, tally.exact_missed as f64)
            .holds(tally.exact_missed == 0)
            .note(format!("of {} accepted", tally.exact)),
        Row::numbers("exact-test.refused-in-vain", "sets", None, tally.exact_pessimistic as f64)
            .holds(tally.exact_pessimistic == 0)
            .note(format!(
                "of {} refused; {} more were too close to a full load to decide",
                tally.sets - tally.exact - tally.undecided,
                tally.undecided
            )),
    ]
}

/// Allocations of 100 tasks to up to four queues.
const ALLOCATIONS: usize = 1 + 100 + 4_950 + 161_700;

/// Returns how many tests the search needs for 100 tasks, where the dissertation tries them all.
fn searched() -> Option<Row> {
    let mut random = Random::new(SEED);
    let base = workload::random(100, 1, CostDraw::ShareOfPeriod, &mut random).ok()?;
    let prices = Dissertation::prices(100, ChargingReading::USUAL);
    let mut most = 0;
    for percent in 60..95 {
        let set = TaskSet::new(base.scaled(percent, 100)).ok()?;
        let choice = search::cheapest(&set, &prices, 4, SchedulabilityTest::Exact);
        most = choice.map_or(0, |choice| choice.tested).max(most);
    }
    let row = Row::numbers("search.csd4.n100.tests", "tests", None, most as f64);
    Some(row.holds(most < ALLOCATIONS / 2).note(
        "most tests for any of 35 loads, of 166,751 allocations; the exhaustive search \
         of [EMERALDS 1998, §4.3.3] tries 5,051 for CSD-3 in 2 to 3 minutes",
    ))
}
