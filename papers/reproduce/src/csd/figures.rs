//! Figures 4.3 to 4.5: average breakdown utilization against the number of tasks, and the claims
//! that hang on them.

use super::sampling::{
    CSD_2, CSD_3, CSD_4, EDF, PAID, Point, RM, SCHEDULERS, Workloads, point, samples, saving,
    task_counts,
};
use crate::{Effort, Picture, Progress, ReproductionReport, Row};
use diapason::Failure;
use diapason::chart::{LineChart, Series};
use diapason::table::{Align, TextTable};
use diapason_csd::workload::CostDraw;
use diapason_csd::{Allocation, ChargingReading, Dissertation, SchedulabilityTest};

/// Adds the three figures and their claims.
pub fn add(
    effort: Effort,
    progress: &Progress,
    report: &mut ReproductionReport,
) -> Result<(), Failure> {
    for (divisor, number) in [(1, 3), (2, 4), (3, 5)] {
        let name = format!("fig4.{number}");
        let mut points = Vec::new();
        for tasks in task_counts(effort) {
            let prices = Dissertation::prices(tasks, ChargingReading::USUAL);
            let kind = Workloads { tasks, divisor, draw: CostDraw::ShareOfPeriod };
            let step = (progress, name.as_str());
            points.push(point(kind, &prices, SchedulabilityTest::Exact, samples(effort), step)?);
        }
        let title = format!(
            "Figure 4.{number}: average breakdown utilization, periods divided by {divisor}"
        );
        report.sections.push((title.clone(), table(&points)));
        report.pictures.push(Picture::lines(&name, &picture(&title, &points)));
        claims(&name, &points, report);
    }
    report.rows.push(heap());
    Ok(())
}

/// From how many tasks on RM with a heap costs less than with a list (table 4.3).
fn heap() -> Row {
    let costs_less = |tasks: &usize| {
        let list = Dissertation::prices(*tasks, ChargingReading::USUAL);
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
    let columns = SCHEDULERS.iter().chain(&PAID).map(|name| (*name, Align::Right));
    let columns: Vec<(&str, Align)> = columns.collect();
    let mut table = TextTable::new(&[&[("n", Align::Right)][..], &columns].concat());
    for point in points {
        let means = point.means.iter().chain(&point.paid).map(|mean| format!("{mean:.4}"));
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

/// Checks the claims of §4.4 about every figure, and about this one.
fn claims(name: &str, points: &[Point], report: &mut ReproductionReport) {
    report.rows.push(best(name, points));
    report.rows.push(crossing(name, points));
    let Some(last) = points.iter().find(|point| point.tasks == 40) else { return };
    let steps = [CSD_2, CSD_3, CSD_4].map(|place| last.means[place]);
    let (second, third) = (steps[1] - steps[0], steps[2] - steps[1]);
    let row = Row::numbers(&format!("{name}.csd4-gain"), "of CSD-3's", None, third / second);
    report.rows.push(row.holds(third < MINIMAL * second).note(format!(
        "gain of CSD-4 over CSD-3 against that of CSD-3 over CSD-2 at n = 40; [EMERALDS 1998, \
         §4.4.2] calls the first minimal, the second significant; taken as: less than {MINIMAL}",
    )));
}

/// A gain is called minimal beside another if it is less than this part of it.
const MINIMAL: f64 = 0.5;

/// CSD-4 against the better of RM and EDF, at every number of tasks.
fn best(name: &str, points: &[Point]) -> Row {
    let ends = |point: &Point| point.means[RM].max(point.means[EDF]);
    let beaten: Vec<String> = points
        .iter()
        .filter(|point| point.paid[2] < ends(point))
        .map(|point| format!("{} ({:.4}, not {:.4})", point.tasks, point.paid[2], ends(point)))
        .collect();
    let ours = match &beaten[..] {
        [] => "CSD is best".into(),
        all => format!("not at n = {}", all.join(", ")),
    };
    let worse: usize = points.iter().map(|point| point.worse).sum();
    Row::words(&format!("{name}.csd-best"), Some("CSD is best"), &ours)
        .holds(beaten.is_empty())
        .note(format!(
            "CSD-4 pays for four queues, used or not, as [EMERALDS 1998, §4.4.2] charges it; then \
             it is worse than RM or EDF in {worse} workloads. With at most four queues it cannot \
             be worse, because RM and EDF are among the choices"
        ))
}

/// From which n on RM has less overhead than EDF.
fn crossing(name: &str, points: &[Point]) -> Row {
    let wins = |point: &Point| point.means[RM] > point.means[EDF];
    let from = points.iter().position(&wins);
    let ours = from
        .map_or("EDF up to n = 50".into(), |place| format!("RM from n = {}", points[place].tasks));
    let id = format!("{name}.rm-over-edf");
    let ahead_at = |tasks: usize| points.iter().any(|point| point.tasks == tasks && wins(point));
    match name {
        "fig4.3" => Row::words(&id, Some("EDF at n = 15 and 40"), &ours)
            .holds(!ahead_at(15) && !ahead_at(40))
            .note("the text compares CSD with the better of the two, which is EDF at both"),
        "fig4.4" => Row::words(&id, Some("EDF at n = 15, RM at n = 40"), &ours)
            .holds(!ahead_at(15) && ahead_at(40))
            .note(
                "it depends on RM's loss of schedulability, hence on how periods and execution \
                 times are drawn, which the dissertation does not say in full",
            ),
        _ => Row::words(&id, Some("RM quickly overtakes EDF"), &ours)
            .holds(!points.first().is_some_and(wins) && ahead_at(40))
            .note("taken as: EDF at the smallest n, RM at n = 40"),
    }
}

/// Returns the savings that the paper names: n = 15 and 40.
pub fn savings([at_15, at_40]: [&Point; 2], divisor: u64, paid: bool) -> [f64; 2] {
    let against = if divisor == 1 { EDF } else { RM };
    let csd = |point: &Point| if paid { point.paid[2] } else { point.means[CSD_4] };
    [saving(csd(at_15), at_15.means[EDF]), saving(csd(at_40), at_40.means[against])]
}
