//! The same question with the counts of this kernel: the best scheduler at each clock rate.

use super::figures::{picture, table};
use super::sampling::{EDF, Point, RM, SCHEDULERS, Workloads, point, task_counts};
use crate::counts::{self, Measured};
use crate::{Effort, Picture, Progress, ReproductionReport, Row};
use diapason::Failure;
use diapason::chart::{LineChart, Series};
use diapason::table::{Align, TextTable};
use diapason_csd::workload::CostDraw;
use diapason_csd::{ChargingReading, SchedulabilityTest};

/// Clock rates in MHz; one instruction per cycle.
const CLOCKS: [u64; 6] = [25, 50, 100, 400, 1_000, 2_400];

/// Adds the figures, or says what is not measured.
pub fn add(
    effort: Effort,
    progress: &Progress,
    report: &mut ReproductionReport,
) -> Result<(), Failure> {
    let measured = counts::kernel()?;
    report.sections.push(("Counts of this kernel, in instructions".into(), sources(&measured)));
    if !measured.missing.is_empty() {
        report.rows.push(not_measured(&measured));
        return Ok(());
    }
    curves(&measured, effort, progress, report)
}

fn not_measured(measured: &Measured) -> Row {
    let operations = counts::OPERATIONS.len() + counts::CONSTANTS.len();
    let there = operations - measured.missing.len();
    let note = format!(
        "not measured on this kernel: {}; the figures for it follow when \
         papers/reproduce/src/counts/kernel.txt has them",
        measured.missing.join(", ")
    );
    let ours = format!("{there} of {operations} measured");
    Row::words("kernel.counts", None, &ours).holds(false).note(note)
}

fn sources(measured: &Measured) -> String {
    let mut table = TextTable::new(&[
        ("operation", Align::Left),
        ("queue", Align::Right),
        ("instructions", Align::Right),
        ("measured by", Align::Left),
    ]);
    for (name, length, count, source) in &measured.entries {
        table.row(vec![name.clone(), length.to_string(), count.to_string(), source.clone()]);
    }
    table.render()
}

/// Workloads for one point: there are twice as many points as in the paper's figures.
fn samples(effort: Effort) -> usize {
    match effort {
        Effort::Quick => 10,
        Effort::Full | Effort::Long => 100,
    }
}

fn curves(
    measured: &Measured,
    effort: Effort,
    progress: &Progress,
    report: &mut ReproductionReport,
) -> Result<(), Failure> {
    let counts: Vec<usize> =
        task_counts(effort).into_iter().filter(|n| *n <= measured.tasks_max()).collect();
    let mut winners = TextTable::new(&[
        ("MHz", Align::Right),
        ("n", Align::Right),
        ("best", Align::Left),
        ("utilization", Align::Right),
    ]);
    let (mut all, mut worse) = (Vec::new(), 0);
    for megahertz in CLOCKS {
        let name = format!("kernel-{megahertz}MHz");
        let mut points = Vec::new();
        for &tasks in &counts {
            let prices =
                measured.counts.prices(tasks, megahertz * 1_000_000, ChargingReading::USUAL);
            let prices = prices.map_err(|bad| Failure::Ours(bad.to_string()))?;
            let kind = Workloads { tasks, divisor: 3, draw: CostDraw::ShareOfPeriod };
            let step = (progress, name.as_str());
            let point = point(kind, &prices, SchedulabilityTest::Exact, samples(effort), step)?;
            let winner = winner(&point);
            let share = format!("{:.4}", point.means[winner]);
            let cells =
                [megahertz.to_string(), tasks.to_string(), SCHEDULERS[winner].into(), share];
            winners.row(cells.to_vec());
            worse += point.worse;
            points.push(point);
        }
        let title = format!(
            "This kernel at {megahertz} MHz: average breakdown utilization, periods divided by 3"
        );
        report.sections.push((title.clone(), table(&points)));
        report.pictures.push(Picture::lines(&name, &picture(&title, &points)));
        all.push((megahertz, points));
    }
    report.sections.push(("Winners on this kernel".into(), winners.render()));
    report.pictures.push(Picture::lines("kernel-clocks", &clocks(&all)));
    report.rows.push(
        Row::numbers("kernel.csd-worse-than-ends", "workloads", None, worse as f64).note(
            "in which CSD-4, paying for four queues, is worse than RM or EDF; on this kernel a \
             queue that is passed costs what `queue` says",
        ),
    );
    Ok(())
}

/// Returns the scheduler with the highest mean; among equals the one with the fewest queues.
fn winner(point: &Point) -> usize {
    let better = |best: usize, place: usize| {
        if point.means[place] > point.means[best] + 0.000_05 { place } else { best }
    };
    (RM..SCHEDULERS.len()).fold(EDF, better)
}

/// Overhead of every scheduler at the largest number of tasks, against the clock rate.
fn clocks(all: &[(u64, Vec<Point>)]) -> LineChart {
    let series = SCHEDULERS.iter().enumerate().map(|(place, name)| {
        let at = |(megahertz, points): &(u64, Vec<Point>)| {
            let lost = 1.0 - points.last()?.means[place];
            Some(((*megahertz as f64).log10(), 100.0 * lost))
        };
        Series { name: (*name).into(), points: all.iter().filter_map(at).collect() }
    });
    LineChart {
        title: "This kernel: processor lost to scheduling at the largest n".into(),
        x: "log10 of the clock rate in MHz".into(),
        y: "1 - breakdown utilization, %".into(),
        series: series.collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn among_equals_the_simplest_wins() {
        let point = |means| Point { tasks: 5, means, paid: [0.0; 3], worse: 0 };
        let name = |means| SCHEDULERS[winner(&point(means))];
        assert_eq!(name([0.9, 0.9, 0.9, 0.9, 0.9]), "EDF");
        assert_eq!(name([0.95, 0.9, 0.95, 0.95, 0.95]), "RM");
        assert_eq!(name([0.9, 0.9, 0.92, 0.93, 0.93]), "CSD-3");
    }

    #[test]
    fn measured_counts_become_figures_and_missing_ones_a_row_that_does_not_hold() {
        let mut report = ReproductionReport::new("csd", vec![], vec![], vec![]);
        let line = |from, to| vec![(1, from), (5, to)];
        let mut measured = counts::kernel().unwrap();
        measured.counts.dp = [line(20, 20), line(30, 30), line(20, 60)];
        measured.counts.fp = [line(20, 50), line(20, 20), line(5, 5)];
        curves(&measured, Effort::Quick, &Progress::silent(), &mut report).unwrap();
        assert_eq!(report.pictures.len(), CLOCKS.len() + 1);
        assert_eq!(report.rows[0].holds, None, "a figure: {:?}", report.rows);
        measured.missing = vec!["dp_select"];
        let row = not_measured(&measured);
        assert!(row.holds == Some(false) && row.note.contains("dp_select"));
    }
}
