//! Figures 4.3 to 4.5: average breakdown utilization against the number of tasks, and the claims
//! that hang on them.

use super::sampling::{
    CSD_2, CSD_3, CSD_4, EDF, Point, RM, SCHEDULERS, Workloads, point, samples, saving, task_counts,
};
use crate::{Effort, Figure, Progress, Report, Row};
use diapason::Failure;
use diapason::chart::{LineChart, Series};
use diapason::table::{Align, Table};
use diapason_csd::workload::CostDraw;
use diapason_csd::{Allocation, Dissertation, Reading, Test};

/// Adds the three figures and their claims.
pub fn add(effort: Effort, progress: &Progress, report: &mut Report) -> Result<(), Failure> {
    for (divisor, number) in [(1, 3), (2, 4), (3, 5)] {
        let name = format!("fig4.{number}");
        let mut points = Vec::new();
        for tasks in task_counts(effort) {
            let prices = Dissertation::prices(tasks, Reading::USUAL);
            let kind = Workloads { tasks, divisor, draw: CostDraw::ShareOfPeriod };
            let step = (progress, name.as_str());
            points.push(point(kind, &prices, Test::Exact, samples(effort), step)?);
        }
        let title = format!(
            "Figure 4.{number}: average breakdown utilization, periods divided by {divisor}"
        );
        report.sections.push((title.clone(), table(&points)));
        report.figures.push(Figure::lines(&name, &picture(&title, &points)));
        claims(&name, &points, report);
    }
    report.rows.push(heap());
    Ok(())
}

/// From how many tasks on RM with a heap costs less than with a list (table 4.3).
fn heap() -> Row {
    let costs_less = |tasks: &usize| {
        let list = Dissertation::prices(*tasks, Reading::USUAL);
        Dissertation::heap(*tasks) < list.charge(&Allocation::rm(*tasks), 0)
    };
    let wins: Vec<usize> = (1..=128).filter(costs_less).collect();
    let first = wins.first().copied().unwrap_or(0);
    let gaps = (first..=128).filter(|tasks| !wins.contains(tasks));
    let gaps: Vec<String> = gaps.map(|tasks| tasks.to_string()).collect();
    Row::numbers("table4.3.heap-wins-from", "tasks", Some(59.0), first as f64)
        .holds(first == 59)
        .note(format!("but the list costs less again for {} tasks", gaps.join(", ")))
}

/// Points as a table, one row for each number of tasks.
pub fn table(points: &[Point]) -> String {
    let columns = SCHEDULERS.map(|name| (name, Align::Right));
    let mut table = Table::new(&[&[("n", Align::Right)][..], &columns].concat());
    for point in points {
        let means = point.means.iter().map(|mean| format!("{mean:.4}"));
        table.row([point.tasks.to_string()].into_iter().chain(means).collect());
    }
    table.render()
}

/// Points as a chart, one line for each scheduler.
pub fn picture(title: &str, points: &[Point]) -> LineChart {
    let series = SCHEDULERS.iter().enumerate().map(|(place, name)| Series {
        name: (*name).into(),
        points: points.iter().map(|point| (point.tasks as f64, point.means[place])).collect(),
    });
    LineChart {
        title: title.into(),
        x: "tasks".into(),
        y: "breakdown utilization".into(),
        series: series.collect(),
    }
}

/// What §4.4 says about every figure, and about this one.
fn claims(name: &str, points: &[Point], report: &mut Report) {
    let worse: usize = points.iter().map(|point| point.worse).sum();
    let row = Row::words(&format!("{name}.csd-best"), "CSD is best", &best(points));
    report.rows.push(
        row.holds(worse == 0 && best(points) == "CSD is best")
            .note(format!("workloads in which CSD-4 is worse than RM or EDF: {worse}")),
    );
    report.rows.push(crossing(name, points));
    let Some(last) = points.iter().find(|point| point.tasks == 40) else { return };
    let steps = [CSD_2, CSD_3, CSD_4].map(|place| last.means[place]);
    let (second, third) = (steps[1] - steps[0], steps[2] - steps[1]);
    let row = Row::numbers(&format!("{name}.csd4-gain"), "of CSD-3's", None, third / second);
    report.rows.push(row.holds(third < second).note(
        "gain of CSD-4 over CSD-3 against that of CSD-3 over CSD-2 at n = 40; the paper calls the \
         first minimal, the second significant",
    ));
}

fn best(points: &[Point]) -> String {
    let beaten = |point: &&Point| point.means[CSD_4] < point.means[RM].max(point.means[EDF]);
    match points.iter().find(beaten) {
        None => "CSD is best".into(),
        Some(point) => format!("not at n = {}", point.tasks),
    }
}

/// From which n on RM has less overhead than EDF.
fn crossing(name: &str, points: &[Point]) -> Row {
    let wins = |point: &Point| point.means[RM] > point.means[EDF];
    let from = points.iter().position(&wins);
    let ours = from
        .map_or("EDF up to n = 50".into(), |place| format!("RM from n = {}", points[place].tasks));
    let id = format!("{name}.rm-over-edf");
    match name {
        "fig4.3" => Row::words(&id, "EDF is better for small n", &ours)
            .holds(!points.first().is_some_and(wins)),
        "fig4.4" => Row::words(&id, "EDF first, later RM", &ours)
            .holds(from.is_some_and(|from| from > 0) && points.last().is_some_and(wins))
            .note(
                "the order is reproduced, the place not quite: the paper has RM ahead at n = 40; \
                 it depends on RM's loss of schedulability, hence on how periods and execution \
                 times are drawn, which the paper does not say in full",
            ),
        _ => Row::words(&id, "RM quickly overtakes EDF", &ours)
            .holds(from.is_some_and(|from| points[from].tasks <= 40)),
    }
}

/// The savings that the paper names: n = 15 and 40.
pub fn savings(at_15: &Point, at_40: &Point, divisor: u64) -> [f64; 2] {
    let against = if divisor == 1 { EDF } else { RM };
    [saving(at_15, CSD_4, EDF), saving(at_40, CSD_4, against)]
}
