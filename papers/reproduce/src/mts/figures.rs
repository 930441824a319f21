//! Figures 7.6 to 7.13.

use super::claims;
use super::sampling::{Point, line};
use crate::{Effort, Picture, Progress, ReproductionReport};
use diapason::chart::{LineChart, Series};
use diapason::table::{Align, TextTable};
use diapason_mts::printed::Extra;
use diapason_mts::workload::{BIT, WorkloadKind};

const MS: u64 = 1_000_000;

/// A line of a figure: its name and a value of each point.
type Line<'a> = (&'a str, &'a [Point], fn(&Point) -> f64);

/// Adds the figures and their claims.
pub fn add(effort: Effort, progress: &Progress, report: &mut ReproductionReport) {
    let usual = WorkloadKind::usual(0);
    let run = |name: &str, kind: WorkloadKind, extra: Extra, is_sound: bool| {
        progress.at(name, 0, 1);
        line(kind, extra, effort, is_sound)
    };
    for (number, longest) in [(6, 50), (7, 100), (8, 200)] {
        let name = format!("fig7.{number}");
        let kind = WorkloadKind { low_deadlines: (2 * MS, longest * MS), ..usual };
        let points = run(&name, kind, Extra::USUAL, true);
        let title = format!("Figure 7.{number}: deadlines of low-speed messages 2-{longest} ms");
        three(&name, &title, &points, report);
        claims::of_deadlines(&name, &points, report);
    }
    let sporadic = |count| WorkloadKind { high: (0, count), ..usual };
    let few = run("fig7.9", sporadic(0), Extra::USUAL, true);
    three("fig7.9", "Figure 7.9: no high-speed sporadic streams", &few, report);
    let many = run("fig7.10", sporadic(4), Extra::USUAL, true);
    three("fig7.10", "Figure 7.10: 4 high-speed sporadic streams", &many, report);
    claims::of_sporadic(&few, &many, report);
    epochs(&run, report);
    buffers(&run, report);
    inheritance(&run, report);
}

type Run<'a> = dyn Fn(&str, WorkloadKind, Extra, bool) -> Vec<Point> + 'a;

/// Figure 7.11, and what the renewals cost.
fn epochs(run: &Run<'_>, report: &mut ReproductionReport) {
    let kind = |count, epoch| WorkloadKind {
        high: (0, count),
        epoch: epoch * MS,
        ..WorkloadKind::usual(0)
    };
    let lines: Vec<Vec<Point>> = [(2, 2), (2, 4), (6, 2), (6, 4)]
        .map(|(count, epoch)| run("fig7.11", kind(count, epoch), Extra::USUAL, false))
        .to_vec();
    let names = ["2 sporadic, 2 ms", "2 sporadic, 4 ms", "6 sporadic, 2 ms", "6 sporadic, 4 ms"];
    let mts: fn(&Point) -> f64 = |point| point.mts;
    let drawn: Vec<Line<'_>> =
        names.iter().zip(&lines).map(|(name, points)| (*name, &points[..], mts)).collect();
    draw("fig7.11", "Figure 7.11: length of epochs under MTS", &drawn, report);
    claims::of_epochs([&lines[0], &lines[1], &lines[2], &lines[3]], report);
    let free = Extra { update_bits: 0, ..Extra::USUAL };
    let stuffed = Extra { update_bits: 22, ..Extra::USUAL };
    let without = run("renewals", kind(2, 2), free, false);
    let with = run("renewals", kind(2, 2), stuffed, false);
    claims::of_renewals(&without, &lines[0], &with, report);
}

/// Figure 7.12: a bus that is idle after messages that wait for a buffer.
fn buffers(run: &Run<'_>, report: &mut ReproductionReport) {
    let idle = |bits: u64| Extra { idle: bits * BIT, ..Extra::USUAL };
    let lines = [0, 47, 94].map(|bits| run("fig7.12", WorkloadKind::usual(0), idle(bits), false));
    let [three, two, one] = &lines;
    let mts = |point: &Point| point.mts;
    let dm = |point: &Point| point.dm;
    let drawn: [Line<'_>; 6] = [
        ("MTS, L = 3", three, mts),
        ("MTS, L = 2", two, mts),
        ("MTS, L = 1", one, mts),
        ("DM, L = 3", three, dm),
        ("DM, L = 2", two, dm),
        ("DM, L = 1", one, dm),
    ];
    draw("fig7.12", "Figure 7.12: fewer buffers for low-speed messages", &drawn, report);
    claims::of_buffers([three, two, one], report);
}

/// Figure 7.13: the most urgent message waits for one that cannot be taken back.
fn inheritance(run: &Run<'_>, report: &mut ReproductionReport) {
    let first = Extra { inherited: 111 * BIT, ..Extra::USUAL };
    let all = Extra { before_all: true, ..first };
    let free = run("fig7.13", WorkloadKind::usual(0), Extra::USUAL, false);
    let alone = run("fig7.13", WorkloadKind::usual(0), first, false);
    let waits = run("fig7.13", WorkloadKind::usual(0), all, false);
    let mts = |point: &Point| point.mts;
    let dm = |point: &Point| point.dm;
    let drawn: [Line<'_>; 4] =
        [("MTS", &free, mts), ("MTS, PI", &waits, mts), ("DM", &free, dm), ("DM, PI", &waits, dm)];
    draw("fig7.13", "Figure 7.13: priority inheritance instead of preemption", &drawn, report);
    claims::of_inheritance(&free, &alone, &waits, report);
}

/// A figure of the three schedulers, by the printed tests and by the sound ones.
fn three(name: &str, title: &str, points: &[Point], report: &mut ReproductionReport) {
    let lines: [Line<'_>; 5] = [
        ("ED*", points, |point| point.ed),
        ("MTS", points, |point| point.mts),
        ("DM", points, |point| point.dm),
        ("MTS, sound", points, |point| point.mts_sound),
        ("DM, sound", points, |point| point.dm_sound),
    ];
    draw(name, title, &lines, report);
    claims::order(name, points, report);
}

fn draw(name: &str, title: &str, lines: &[Line<'_>], report: &mut ReproductionReport) {
    let mut columns = vec![("streams", Align::Right), ("load %", Align::Right)];
    columns.extend(lines.iter().map(|(name, ..)| (*name, Align::Right)));
    let mut table = TextTable::new(&columns);
    let Some((_, first, _)) = lines.first() else { return };
    for (place, point) in first.iter().enumerate() {
        let mut row = vec![point.streams.to_string(), format!("{:.1}", point.load)];
        let value = |(_, points, value): &Line<'_>| {
            points.get(place).map_or("-".to_owned(), |point| format!("{:.1}", value(point)))
        };
        row.extend(lines.iter().map(value));
        table.row(row);
    }
    report.sections.push((format!("{title}; feasible, in per cent"), table.render()));
    let series = lines.iter().map(|(name, points, value)| Series {
        name: (*name).into(),
        points: points.iter().map(|point| (point.load, value(point))).collect(),
    });
    let chart = LineChart {
        title: title.into(),
        x: "utilization, %".into(),
        y: "feasible workloads, %".into(),
        series: series.collect(),
    };
    report.pictures.push(Picture::lines(name, &chart));
}
