//! Figure 12 of [USB 2023]: tasks that never stop get their share, and nothing else, beside
//! interrupts and beside runaways.
//!
//! `examples/share.toml`, booted three times. Three tasks count units of 10 us of processor time;
//! expected is what their budget of 1 ms in every 7 ms makes of the time that has passed.

use super::boot::{Bench, numbers};
use super::{Effort, Picture, Progress, ReproductionReport, Row, parallel};
use diapason::Failure;
use diapason::chart::{LineChart, Series};
use diapason::table::{Align, TextTable};
use diapason_system::System;

/// The description, below the workspace's root.
pub const SYSTEM: &str = "examples/share.toml";
/// The tasks: their processes.
pub const TASKS: [&str; 3] = ["task-1", "task-2", "task-3"];
/// Largest difference from what is expected, in percent.
pub const ERROR_MAX: f64 = 0.1;
/// Budget and period of each task, in ms.
const SHARE: (f64, f64) = (1.0, 7.0);
/// Runs are this long, and until the monitor has looked first.
const FULL_NS: u64 = 30_000_000_000;
const QUICK_NS: u64 = 3_000_000_000;
const START_NS: u64 = 300_000_000;

/// The load beside the tasks.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Beside {
    /// Nothing: scenarios 2 and 5 of table 8.
    Nothing,
    /// A device that interrupts, and the task that receives its data: scenarios 3 and 6.
    Interrupts,
    /// Interrupts, and two runaways, one with a share of its own and one without.
    Runaways,
}

impl Beside {
    const ALL: [Beside; 3] = [Beside::Nothing, Beside::Interrupts, Beside::Runaways];

    const fn id(self) -> &'static str {
        match self {
            Beside::Nothing => "alone",
            Beside::Interrupts => "interrupts",
            Beside::Runaways => "runaways",
        }
    }

    /// The system with what does not belong to it switched off: programs see it in an argument.
    fn choose(self, system: &mut System) {
        for process in &mut system.processes {
            match process.name.as_str() {
                "bottom-half" if self == Beside::Nothing => process.arguments[0] = 0,
                "hog" | "stray" if self != Beside::Runaways => process.arguments[1] = 1,
                _ => {}
            }
        }
    }
}

/// One look of the monitor.
#[derive(Clone, PartialEq, Debug)]
pub struct MonitorSample {
    pub time: u64,
    /// Interrupts so far, and those whose data was processed.
    pub interrupts: [u64; 2],
    /// Units done by the three tasks and by the two runaways.
    pub counts: [u64; 5],
}

/// All looks of a run.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Looks {
    pub units: Vec<u64>,
    pub looks: Vec<MonitorSample>,
}

impl Looks {
    /// Takes in a line that a process logged.
    pub fn hear(&mut self, text: &str) {
        if let Some(units) = numbers(text, "UNITS") {
            self.units = units;
        } else if let Some([time, seen, done, a, b, c, d, e]) = numbers(text, "PROGRESS").as_deref()
        {
            self.looks.push(MonitorSample {
                time: *time,
                interrupts: [*seen, *done],
                counts: [*a, *b, *c, *d, *e],
            });
        }
    }

    /// Time since the first look in s, units done, and units expected, of one of the three tasks.
    pub fn progress(&self, task: usize) -> Vec<(f64, f64, f64)> {
        let unit = self.units.get(task).copied().unwrap_or(0).max(1) as f64;
        let Some(first) = self.looks.first() else { return Vec::new() };
        let point = |look: &MonitorSample| {
            let passed = (look.time - first.time) as f64;
            let done = (look.counts[task] - first.counts[task]) as f64;
            (passed / 1e9, done, passed / unit * SHARE.0 / SHARE.1)
        };
        self.looks.iter().map(point).collect()
    }

    /// Returns by how many percent a task is behind at each look but the first.
    pub fn behind(&self, task: usize) -> Vec<(f64, f64)> {
        let points = self.progress(task);
        let late = |(time, done, expected): &(f64, f64, f64)| {
            (*time, 100.0 * (expected - done) / expected.max(1.0))
        };
        points.iter().skip(1).map(late).collect()
    }

    /// Returns the error at the end of the run, in percent; positive is behind. None without two
    /// looks.
    pub fn error(&self, task: usize) -> Option<f64> {
        self.behind(task).last().map(|point| point.1)
    }

    fn rate(&self) -> f64 {
        let (Some(first), Some(last)) = (self.looks.first(), self.looks.last()) else {
            return 0.0;
        };
        let passed = (last.time - first.time).max(1) as f64 / 1e9;
        (last.interrupts[0] - first.interrupts[0]) as f64 / passed
    }
}

pub(super) fn reproduce(
    effort: Effort,
    progress: &Progress,
) -> Result<ReproductionReport, Failure> {
    let bench = Bench::new()?;
    let length = if effort == Effort::Quick { QUICK_NS } else { FULL_NS };
    let step = |done| progress.at("boots", done, Beside::ALL.len());
    step(0);
    let boot = |index: usize| {
        let beside = Beside::ALL[index];
        let mut system = bench.describe(SYSTEM)?;
        beside.choose(&mut system);
        let mut looks = Looks::default();
        bench.run(system, length + START_NS, &mut |_, text| looks.hear(text))?;
        Ok((beside, looks))
    };
    let all = parallel::map(Beside::ALL.len(), boot, step);
    let all = all.into_iter().collect::<Result<Vec<_>, Failure>>()?;
    progress.end();
    report(&all)
}

fn report(all: &[(Beside, Looks)]) -> Result<ReproductionReport, Failure> {
    let mut table = TextTable::new(&[
        ("beside", Align::Left),
        ("interrupts / s", Align::Right),
        ("task", Align::Left),
        ("expected", Align::Right),
        ("done", Align::Right),
        ("behind", Align::Right),
        ("most", Align::Right),
    ]);
    let (mut rows, mut figures) = (Vec::new(), Vec::new());
    for (beside, looks) in all {
        for (task, name) in TASKS.iter().enumerate() {
            let missing =
                || Failure::Ours(format!("fig12, {}: the monitor is silent", beside.id()));
            let error = looks.error(task).ok_or_else(missing)?;
            let (_, done, expected) = looks.progress(task).pop().ok_or_else(missing)?;
            let most = looks.behind(task).iter().map(|point| point.1.abs()).fold(0.0, f64::max);
            table.row(vec![
                beside.id().into(),
                format!("{:.0}", looks.rate()),
                (*name).into(),
                format!("{expected:.0}"),
                format!("{done:.0}"),
                format!("{error:.4} %"),
                format!("{most:.4} %"),
            ]);
            rows.push(row(*beside, name, error, looks.rate()));
        }
        figures.extend(pictures(*beside, looks));
    }
    let heading = "Figure 12: progress of tasks of 1 ms in every 7 ms, in units of 10 us";
    let sections = vec![(heading.into(), table.render())];
    Ok(ReproductionReport::new("fig12", rows, sections, figures))
}

fn row(beside: Beside, name: &str, error: f64, rate: f64) -> Row {
    let beside_what = match beside {
        Beside::Nothing => "nothing else running".into(),
        Beside::Interrupts => format!("beside {rate:.0} interrupts a second"),
        Beside::Runaways => format!("beside {rate:.0} interrupts a second and two runaways"),
    };
    Row::numbers(&format!("{}.{name}", beside.id()), "%", None, error)
        .holds(error.abs() <= ERROR_MAX)
        .note(format!(
            "behind what the budget promises, {beside_what}; promised: within {ERROR_MAX} % \
             (in [USB 2023, figure 12] Quest is close to what is expected, and Linux lags)"
        ))
}

fn pictures(beside: Beside, looks: &Looks) -> [Picture; 2] {
    let done = |task: usize| {
        let points = looks.progress(task);
        Series {
            name: TASKS[task].into(),
            points: points.iter().map(|point| (point.0, point.1)).collect(),
        }
    };
    let expected = looks.progress(0).iter().map(|point| (point.0, point.2)).collect();
    let mut lines = vec![Series { name: "expected".into(), points: expected }];
    lines.extend((0..TASKS.len()).map(done));
    let progress = LineChart {
        title: format!("Progress of tasks of 1 ms in every 7 ms: {}", beside.id()),
        x: "s".into(),
        y: "units of 10 us done".into(),
        series: lines,
    };
    let behind = |task: usize| Series { name: TASKS[task].into(), points: looks.behind(task) };
    let error = LineChart {
        title: format!("How far behind, figure 12: {}", beside.id()),
        x: "s".into(),
        y: "% of what is expected".into(),
        series: (0..TASKS.len()).map(behind).collect(),
    };
    let name = |what: &str| format!("fig12-{}-{what}", beside.id());
    [Picture::lines(&name("progress"), &progress), Picture::lines(&name("error"), &error)]
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns a run whose second task loses one unit in `loses`.
    fn looks(loses: u64) -> Looks {
        let mut looks = Looks::default();
        looks.hear("UNITS 10000 10000 10000 10000 10000");
        for second in 0..=10u64 {
            let time = 100_000_000 + second * 700_000_000;
            let full = 50 + second * 10_000;
            let less = full - second * 10_000 / loses;
            looks.hear(&format!("PROGRESS {time} {second} 0 {full} {less} {full} 0 0"));
        }
        looks.hear("something else");
        looks
    }

    #[test]
    fn progress_is_compared_with_the_budget() {
        let looks = looks(2_000);
        assert_eq!(looks.looks.len(), 11);
        assert!(looks.error(0).unwrap().abs() < 1e-9);
        assert!((looks.error(1).unwrap() - 0.05).abs() < 1e-9);
        assert!(Looks::default().error(0).is_none());
    }

    #[test]
    fn a_task_that_lags_does_not_hold() {
        let holds = |loses| {
            let report = report(&[(Beside::Interrupts, looks(loses))]).unwrap();
            assert_eq!((report.rows.len(), report.pictures.len()), (3, 2));
            report.holds()
        };
        assert_eq!((holds(1_001), holds(990)), (Some(true), Some(false)));
        assert!(report(&[(Beside::Nothing, Looks::default())]).is_err());
    }
}
