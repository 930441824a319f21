//! The statements of §7.5 about its figures, beside ours.
//!
//! The dissertation's numbers are read off its curves by its author; a mean over the same loads may
//! be off by the tolerance that each row names.

use super::sampling::{Point, mean};
use crate::{ReproductionReport, Row};

/// Loads at which curves are compared if the text does not say.
const LOADS: (f64, f64) = (60.0, 100.0);
/// Points in per cent that are no significant difference.
const SLIGHT: f64 = 5.0;

/// MTS less DM, and what low-speed messages cause, in figures 7.6 to 7.8.
pub fn of_deadlines(name: &str, points: &[Point], report: &mut ReproductionReport) {
    let (loads, least, most, share) = match name {
        "fig7.6" => ((80.0, 100.0), 15.0, 25.0, Some((86.0, 89.0))),
        "fig7.7" => ((75.0, 100.0), 25.0, 40.0, None),
        _ => ((70.0, 100.0), 30.0, 45.0, Some((85.0, 63.0))),
    };
    let gain = mean(points, loads, |point| point.mts - point.dm);
    let sound = mean(points, loads, |point| point.mts_sound - point.dm_sound);
    let row = Row::numbers(
        &format!("{name}.mts-less-dm"),
        "points",
        Some(f64::midpoint(least, most)),
        gain,
    );
    report.rows.push(row.holds((least..=most).contains(&gain)).note(format!(
        "mean over utilizations of {} to {} %; [EMERALDS 1998, §7.5.2] says {least} to {most}{}; \
         by the sound tests {sound:.1}",
        loads.0,
        loads.1,
        if name == "fig7.6" { " (about 20, taken as 5 more or less)" } else { "" },
    )));
    let Some((load, paper)) = share else { return };
    let nearest =
        points.iter().min_by(|a, b| (a.load - load).abs().total_cmp(&(b.load - load).abs()));
    let Some(nearest) = nearest else { return };
    let row = Row::numbers(&format!("{name}.low-speed-share"), "%", Some(paper), nearest.low_share);
    report.rows.push(row.holds((nearest.low_share - paper).abs() <= 15.0).note(format!(
        "of the workloads that do not fit under MTS at {load} %, those whose high-speed messages \
         do; ours at {:.1} %; within 15 points",
        nearest.load
    )));
}

/// At every point ED* fits no fewer workloads than MTS, and MTS no fewer than DM.
pub fn order(name: &str, points: &[Point], report: &mut ReproductionReport) {
    let wrong: Vec<String> = points
        .iter()
        .filter(|point| point.mts > point.ed || point.dm > point.mts)
        .map(|point| format!("{} streams", point.streams))
        .collect();
    let ours = match &wrong[..] {
        [] => "ED* ≥ MTS ≥ DM".to_owned(),
        all => format!("not with {}", all.join(", ")),
    };
    let row = Row::words(&format!("{name}.order"), Some("ED* ≥ MTS ≥ DM"), &ours);
    report.rows.push(row.holds(wrong.is_empty()));
}

/// Figures 7.9 and 7.10: sporadic streams harm DM more than MTS.
pub fn of_sporadic(few: &[Point], many: &[Point], report: &mut ReproductionReport) {
    let lost = |value: fn(&Point) -> f64| mean(few, LOADS, value) - mean(many, LOADS, value);
    let (dm, mts) = (lost(|point| point.dm), lost(|point| point.mts));
    let row = Row::numbers("fig7.10.dm-loses-more", "points", None, dm - mts);
    report.rows.push(row.holds(dm > mts && mts > 0.0).note(format!(
        "from 0 to 4 sporadic streams DM loses {dm:.1} points, MTS {mts:.1}; [EMERALDS 1998, \
         §7.5.2]: DM declines sharply, MTS not as much"
    )));
}

/// Figure 7.11: two and six sporadic streams with epochs of 2 and 4 ms.
pub fn of_epochs([two, two_long, six, six_long]: [&[Point]; 4], report: &mut ReproductionReport) {
    let gain = |short: &[Point], long: &[Point]| {
        mean(long, LOADS, |point| point.mts) - mean(short, LOADS, |point| point.mts)
    };
    let (few, many) = (gain(two, two_long), gain(six, six_long));
    let row = Row::numbers("fig7.11.2-sporadic", "points", None, few).holds(few > 0.0);
    report.rows.push(row.note("epochs of 4 ms instead of 2; said to be slightly better"));
    let row = Row::numbers("fig7.11.6-sporadic", "points", Some(-1.5), many);
    report.rows.push(
        row.holds((-4.0..0.0).contains(&many)).note("said to be 1 to 2 points worse; up to 4"),
    );
}

/// The cost of renewals: none, the dissertation's 16 bits, and 22 with stuff bits.
pub fn of_renewals(
    none: &[Point],
    printed: &[Point],
    stuffed: &[Point],
    report: &mut ReproductionReport,
) {
    let mts = |points: &[Point]| mean(points, LOADS, |point| point.mts);
    let (cost, worst) = (mts(none) - mts(printed), mts(none) - mts(stuffed));
    let row = Row::numbers("renewals.cost", "points", Some(2.5), cost);
    report.rows.push(row.holds((1.0..=4.0).contains(&cost)).note(format!(
        "feasible without the 16 bits of each epoch less with them; said to be 2 to 3, held from 1 \
         to 4; with the 22 that stuffing can make, {worst:.1}"
    )));
}

/// Figure 7.12: three, two and one buffers.
pub fn of_buffers([three, two, one]: [&[Point]; 3], report: &mut ReproductionReport) {
    let lost = |points: &[Point], value: fn(&Point) -> f64| {
        mean(three, LOADS, value) - mean(points, LOADS, value)
    };
    let mts: fn(&Point) -> f64 = |point| point.mts;
    let (second, last) = (lost(two, mts), lost(one, mts));
    let dm = lost(one, |point| point.dm);
    let row = Row::numbers("fig7.12.one-less", "points", None, second);
    report.rows.push(row.holds(second <= SLIGHT).note(format!(
        "MTS with L = 2 loses no significant number of workloads, taken as {SLIGHT}"
    )));
    let row = Row::numbers("fig7.12.two-less", "points", None, last);
    report.rows.push(row.holds(last > SLIGHT).note("MTS with L = 1 loses significantly"));
    let row = Row::numbers("fig7.12.dm", "points", None, dm).holds(dm <= SLIGHT);
    report.rows.push(row.note("DM with L = 1 loses no significant number"));
}

/// Figure 7.13: priority inheritance costs up to ten points, and DM more.
pub fn of_inheritance(
    free: &[Point],
    alone: &[Point],
    waits: &[Point],
    report: &mut ReproductionReport,
) {
    let most = |waits: &[Point], value: fn(&Point) -> f64| {
        let pairs = free.iter().zip(waits);
        pairs.map(|(free, waits)| value(free) - value(waits)).fold(0.0, f64::max)
    };
    let (mts, dm) = (most(waits, |point| point.mts), most(waits, |point| point.dm));
    let row = Row::numbers("fig7.13.first-only", "points", Some(10.0), most(alone, |it| it.mts));
    report.rows.push(row.note(
        "if the frame of 111 us that inherited priority delays the most urgent message only, as \
         §7.5.5 says: that one has room for it; the rows below let it delay all",
    ));
    let row = Row::numbers("fig7.13.mts", "points", Some(10.0), mts);
    report
        .rows
        .push(row.holds((5.0..=15.0).contains(&mts)).note("the most at one point; within 5 of 10"));
    let row = Row::numbers("fig7.13.dm", "points", None, dm).holds(dm > mts);
    report.rows.push(row.note("said to be even worse than under MTS"));
}
