//! The runs as rows, tables and pictures.

use super::Runs;
use super::linux::About;
use super::measured::{Channel, Measured, SHARE, Scenario, System, cost, extremes};
use crate::fig12::ERROR_MAX;
use crate::{Picture, ReproductionReport, Row, Skipped};
use diapason::chart::{LineChart, Series};
use diapason::table::{Align, TextTable};
use diapason_abi::Key;

/// In the order of the report.
const SCENARIOS: [Scenario; 3] = [Scenario::Both, Scenario::Input, Scenario::Tasks];
/// Channels of the article's figure 13, from 0.
const PICTURED: [usize; 2] = [3, 4];

/// Returns the report of all runs.
pub fn report(runs: &Runs) -> ReproductionReport {
    let mut rows = Vec::new();
    let mut skipped = Vec::new();
    match &runs.package {
        Ok(package) => rows.push(kernel(runs, package)),
        Err(why) => skipped.push(Skipped { what: "Linux", why: why.clone() }),
    }
    for scenario in SCENARIOS {
        for run in runs.of(scenario) {
            rows.extend(input(run));
            rows.extend(progress(run));
        }
    }
    rows.extend(System::ALL.iter().filter_map(|system| price(runs, *system)));
    rows.extend(System::ALL.iter().filter_map(|system| repeated(runs, *system)));
    rows.push(fingerprint(runs));
    let sections = SCENARIOS.iter().filter(|scenario| !runs.of(**scenario).is_empty());
    let sections = sections.map(|scenario| section(runs, *scenario)).collect();
    let figures = PICTURED.iter().map(|channel| picture(runs, *channel)).collect();
    ReproductionReport { skipped, ..ReproductionReport::new("linux-twin", rows, sections, figures) }
}

impl Runs {
    /// Returns the first run of each system.
    fn of(&self, scenario: Scenario) -> Vec<&Measured> {
        System::ALL
            .iter()
            .filter_map(|system| self.both(*system, scenario).first().copied())
            .collect()
    }

    /// All runs of a system.
    fn both(&self, system: System, scenario: Scenario) -> Vec<&Measured> {
        let same = |run: &&Measured| run.system == system && run.scenario == scenario;
        self.all.iter().map(|(run, _)| run).filter(same).collect()
    }

    fn about(&self) -> Option<&About> {
        self.all.iter().find_map(|(run, about)| about.as_ref().filter(|_| run.scenario.tasks()))
    }
}

/// Returns the row about the kernel and how it was run.
fn kernel(runs: &Runs, (version, hz): &(String, String)) -> Row {
    let paper = Some("PREEMPT_RT, version not given");
    let Some(about) = runs.about() else {
        return Row::words("kernel", paper, "not run").holds(false);
    };
    let ours = format!("{}, package {version}, HZ={hz}", about.kernel);
    let phase = |start: &u64| format!("{:.3}", (start % SHARE.1) as f64 / 1e6);
    let phases: Vec<String> = about.started.iter().map(phase).collect();
    Row::words("kernel", paper, &ours).note(format!(
        "not modified, nor are its drivers; `-icount shift=0`: one instruction takes 1 ns; \
         ready at {:.3} s, looked at from {} s to {} s; its tasks start in scenario 3 at \
         {} ms after a multiple of 7 ms; linux is as shipped, linux-hrtick with HRTICK_DL \
         switched on in sched/features",
        about.ready as f64 / 1e9,
        runs.window.begin.0 / 1_000_000_000,
        runs.window.end.0 / 1_000_000_000,
        phases.join(", ")
    ))
}

/// Returns the rows about the frames.
fn input(run: &Measured) -> Vec<Row> {
    if !run.scenario.traffic() {
        return Vec::new();
    }
    let ours = run.system == System::Diapason;
    let id = |what: &str| format!("{}.{}.{what}", run.scenario.id(), run.system.id());
    let sent: u64 = run.channels.iter().map(|channel| channel.sent).sum();
    let count = |name: &str, paper, value: u64| {
        let row = Row::numbers(&id(name), "frames", paper, value as f64);
        if ours { row.holds(value == 0 && sent > 0) } else { row }
    };
    let latency = match run.channels.iter().filter_map(|channel| channel.latency.longest).max() {
        Some(longest) => format!("the longest of all is {} us from the bus", longest / 1_000),
        None => "the interface's clock is not related to the reader's".into(),
    };
    let quest = ours.then_some(0.0);
    let mut rows = vec![
        count("lost", None, run.lost()).note(format!("of {sent} that the buses carried")),
        count("overruns", quest, run.overruns()).note("overwritten in the interface"),
        Row::numbers(&id("latency"), "us", None, run.beyond() as f64 / 1e3)
            .note(format!("the longest from the bus to the reader, beyond the fastest; {latency}")),
    ];
    let reported: Option<u64> = run.channels.iter().map(|channel| channel.reported).sum();
    rows.extend(reported.map(|times| {
        let paper =
            (run.scenario == Scenario::Both && run.system == System::Shipped).then_some(230.0);
        Row::numbers(&id("reported"), "times", paper, times as f64).note(
            "rx_over_errors beside the buffer overruns of [USB 2023, table 9], which does not say \
             how they were counted",
        )
    }));
    rows
}

/// Returns how far the worst task is from its share.
fn progress(run: &Measured) -> Option<Row> {
    let id = format!("{}.{}.progress", run.scenario.id(), run.system.id());
    let promised = run.system == System::Diapason;
    let row = Row::numbers(&id, "%", None, run.error())
        .note("the worst task is behind 1 ms in every 7 ms by so much; negative is ahead");
    let row = if promised { row.holds(run.error().abs() <= ERROR_MAX) } else { row };
    (!run.behind.is_empty()).then_some(row)
}

/// Instructions for each frame, all of them: interrupts, drivers, copies, readers, switches.
fn price(runs: &Runs, system: System) -> Option<Row> {
    let with = runs.both(system, Scenario::Input).first().copied()?;
    let without = runs.both(system, Scenario::Silent).first().copied()?;
    let row = Row::numbers(
        &format!("cost.{}", system.id()),
        "instructions a frame",
        None,
        cost(with, without)?,
    );
    Some(row.note(format!(
        "{} instructions with {} frames, {} with silent buses, everything else the same",
        with.instructions, with.carried, without.instructions
    )))
}

/// Compares two runs of a system, which must be equal.
fn repeated(runs: &Runs, system: System) -> Option<Row> {
    let [first, second] = runs.both(system, Scenario::Both)[..] else { return None };
    let row = Row::words(
        &format!("repeat.{}", system.id()),
        None,
        &format!("{:016x}", second.fingerprint()),
    );
    Some(row.holds(first == second && first.fingerprint() == second.fingerprint()).note(
        "two runs of scenario 3 are equal in every number here and in every packet on the wire",
    ))
}

/// Over everything that was measured.
fn fingerprint(runs: &Runs) -> Row {
    let text: String = runs.all.iter().map(|run| format!("{run:?}")).collect();
    Row::words("table", None, &format!("{:016x}", Key::new(&text).0))
        .note("over every number of every run: the same on every host")
}

/// Returns the tables of a scenario.
fn section(runs: &Runs, scenario: Scenario) -> (String, String) {
    let seconds = (runs.window.end - runs.window.begin).0 / 1_000_000_000;
    let all = runs.of(scenario);
    let mut text = String::new();
    if scenario.traffic() {
        text += &channels(&all);
    }
    if scenario.tasks() {
        text += if text.is_empty() { "" } else { "\n" };
        text += &tasks(&all);
    }
    (format!("Table 8, {}, {seconds} s", scenario.title()), text)
}

fn channels(all: &[&Measured]) -> String {
    let mut table = TextTable::new(&[
        ("", Align::Left),
        ("", Align::Left),
        ("sent", Align::Right),
        ("received", Align::Right),
        ("lost", Align::Right),
        ("overruns", Align::Right),
        ("reported", Align::Right),
        ("dropped", Align::Right),
        ("least / s", Align::Right),
        ("most / s", Align::Right),
        ("longest us", Align::Right),
        ("beyond fastest", Align::Right),
        ("wait us", Align::Right),
    ]);
    for run in all {
        for (index, channel) in run.channels.iter().enumerate() {
            table.row(line(run.system, index, channel));
        }
    }
    table.render()
}

fn line(system: System, index: usize, channel: &Channel) -> Vec<String> {
    let micros = |time: Option<u64>| shown(time.map(|ns| ns / 1_000));
    let (least, most) = extremes(&channel.seconds);
    vec![
        system.id().into(),
        format!("CAN{}", index + 1),
        channel.sent.to_string(),
        channel.received.to_string(),
        channel.lost().to_string(),
        channel.overruns.to_string(),
        shown(channel.reported),
        channel.dropped.to_string(),
        least.to_string(),
        most.to_string(),
        micros(channel.latency.longest),
        micros(Some(channel.latency.beyond)),
        micros(channel.wait),
    ]
}

fn shown(number: Option<u64>) -> String {
    number.map_or("-".into(), |number| number.to_string())
}

fn tasks(all: &[&Measured]) -> String {
    let mut table = TextTable::new(&[
        ("behind the share by", Align::Left),
        ("task 1", Align::Right),
        ("task 2", Align::Right),
        ("task 3", Align::Right),
    ]);
    for run in all {
        let mut cells = vec![run.system.id().to_string()];
        cells.extend(run.behind.iter().map(|behind| format!("{behind:.4} %")));
        table.row(cells);
    }
    table.render()
}

/// Figure 13: what readers get in each second, beside tasks.
fn picture(runs: &Runs, channel: usize) -> Picture {
    let series = |run: &&Measured| {
        let seconds = run.channels.get(channel).map_or(&[][..], |channel| &channel.seconds);
        let points = (1..).zip(seconds).map(|(at, count)| (f64::from(at), *count as f64));
        Series { name: run.system.id().into(), points: points.collect() }
    };
    let chart = LineChart {
        title: format!("Frames a second received from CAN{}, scenario 3", channel + 1),
        x: "s".into(),
        y: "frames in this second".into(),
        series: runs.of(Scenario::Both).iter().map(series).collect(),
    };
    Picture::lines(&format!("linux-twin-can{}", channel + 1), &chart)
}

#[cfg(test)]
mod tests {
    use super::super::lockstep::Window;
    use super::super::measured::Latency;
    use super::*;
    use diapason_abi::Nanos;
    use serde_json::json;

    fn run(system: System, scenario: Scenario, received: u64) -> Measured {
        let channel = Channel {
            sent: 100,
            received,
            seconds: vec![received / 2; 2],
            latency: Latency { longest: Some(9_000), beyond: 5_000 },
            ..Channel::default()
        };
        Measured {
            system,
            scenario,
            channels: vec![channel; 5],
            behind: vec![0.05; 3],
            carried: 500,
            instructions: if scenario == Scenario::Silent { 1_000 } else { 6_000 },
            wire: 3,
        }
    }

    fn runs(all: Vec<Measured>) -> Runs {
        let about = About {
            kernel: "6.1 #1".into(),
            hrtick: "off".into(),
            ready: 2_500_000_000,
            started: vec![7_000_001, 14_000_000, 7_500_000],
        };
        let told = |run: Measured| {
            let linux = run.system != System::Diapason;
            (run, linux.then(|| about.clone()))
        };
        let window = Window { begin: Nanos::from_secs(6), end: Nanos::from_secs(8) };
        let package = Ok(("6.1.9".into(), "250".into()));
        Runs { window, all: all.into_iter().map(told).collect(), package }
    }

    #[test]
    fn linux_may_lose_and_we_may_not() {
        let both = |ours, theirs| {
            let ours = run(System::Diapason, Scenario::Both, ours);
            report(&runs(vec![ours, run(System::Shipped, Scenario::Both, theirs)]))
        };
        let fine = both(100, 90);
        assert_eq!(fine.holds(), Some(true));
        let value = |id: &str| fine.rows.iter().find(|row| row.id == id).unwrap().ours.clone();
        assert_eq!((value("3.linux.lost"), value("3.diapason.lost")), (json!(50.0), json!(0.0)));
        assert_eq!(value("kernel"), json!("6.1 #1, package 6.1.9, HZ=250"));
        assert_eq!(both(99, 100).holds(), Some(false));
    }

    #[test]
    fn our_tasks_must_get_their_share() {
        let mut late = run(System::Diapason, Scenario::Tasks, 0);
        let beside = |ours: &Measured| {
            let theirs = run(System::Shipped, Scenario::Tasks, 0);
            report(&runs(vec![ours.clone(), theirs])).holds()
        };
        assert_eq!(beside(&late), Some(true));
        late.behind[1] = -0.2;
        assert_eq!(beside(&late), Some(false));
    }

    #[test]
    fn two_runs_must_be_the_same() {
        let pair = |wire| {
            let first = run(System::Shipped, Scenario::Both, 90);
            report(&runs(vec![first.clone(), Measured { wire, ..first }]))
        };
        assert_eq!((pair(3).holds(), pair(4).holds()), (Some(true), Some(false)));
        let table = |report: &ReproductionReport| report.rows.last().unwrap().ours.clone();
        assert_ne!(table(&pair(3)), table(&pair(4)));
    }

    #[test]
    fn a_frame_costs_what_a_silent_bus_does_not() {
        let pair = [Scenario::Input, Scenario::Silent];
        let mut all = pair.map(|scenario| run(System::Diapason, scenario, 100)).to_vec();
        all.push(run(System::Shipped, Scenario::Both, 100));
        let report = report(&runs(all));
        let row = report.rows.iter().find(|row| row.id == "cost.diapason").unwrap();
        assert_eq!(row.ours, json!(10.0));
    }

    #[test]
    fn without_linux_a_part_is_skipped_and_says_why() {
        let mut runs = runs(vec![run(System::Diapason, Scenario::Both, 100)]);
        runs.package = Err("no apt".into());
        let report = report(&runs);
        assert_eq!(report.holds(), None);
        assert_eq!(report.skipped, [Skipped { what: "Linux", why: "no apt".into() }]);
        assert!(report.rows.iter().all(|row| row.id != "kernel"));
    }
}
