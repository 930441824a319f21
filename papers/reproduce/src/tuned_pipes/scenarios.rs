//! Table 8: six scenarios; what was lost in each (table 9), and how far the tasks got (figure 12).

use super::{Bench, Effort, Machine, Progress, Row, Seen};
use crate::concentrator::TASKS;
use diapason::Failure;
use diapason::outcome::PipeRow;
use diapason::table::{Align, TextTable};
use diapason_system::System;

/// A row of table 8.
#[derive(Clone, Copy, Debug)]
struct Scenario {
    number: u32,
    seconds: u64,
    tasks: bool,
    input: bool,
}

const TABLE_8: [Scenario; 6] = [
    Scenario { number: 1, seconds: 30, tasks: false, input: true },
    Scenario { number: 2, seconds: 30, tasks: true, input: false },
    Scenario { number: 3, seconds: 30, tasks: true, input: true },
    Scenario { number: 4, seconds: 60, tasks: false, input: true },
    Scenario { number: 5, seconds: 60, tasks: true, input: false },
    Scenario { number: 6, seconds: 60, tasks: true, input: true },
];
const START: u64 = 2;
/// A run that is only to show that everything works.
const QUICK: u64 = 6;
/// Messages a second on the five buses of table 7.
const RATE: f64 = 7_000.0;
/// Largest accepted difference of the rate from that, in per cent.
const AWAY: f64 = 1.0;
/// Largest accepted difference of a task from its promise, in per cent.
const NEAR: f64 = 0.1;

/// All scenarios on both machines; a quick look at the third on the simulated one.
pub fn run(
    bench: &Bench,
    effort: Effort,
    progress: &Progress,
) -> Result<(Vec<Row>, String), Failure> {
    let jobs: Vec<(Scenario, Machine, u64)> = match effort {
        Effort::Quick => vec![(TABLE_8[2], Machine::Simulated, QUICK)],
        Effort::Full | Effort::Long => {
            let both =
                |scenario: &Scenario| Machine::BOTH.map(|m| (*scenario, m, scenario.seconds));
            TABLE_8.iter().flat_map(both).collect()
        }
    };
    let mut table = TextTable::new(&[
        ("scenario", Align::Right),
        ("machine", Align::Left),
        ("seconds", Align::Right),
        ("messages", Align::Right),
        ("lost", Align::Right),
        ("farthest task", Align::Right),
    ]);
    let mut rows = Vec::new();
    for (done, (scenario, machine, seconds)) in jobs.iter().enumerate() {
        progress.at("scenarios", done, jobs.len());
        let seen = bench.run(system(bench, *scenario)?, START + seconds, *machine)?;
        let (messages, lost) = counted(&seen);
        let farthest = farthest(&seen);
        let id = |what: &str| format!("scenario-{}.{}.{what}", scenario.number, machine.id());
        if scenario.input {
            let note =
                format!("{messages} messages; Linux loses in 3 and 6 of [USB 2023, table 9]");
            rows.push(
                Row::numbers(&id("lost"), "messages", Some(0.0), lost as f64)
                    .holds(lost == 0)
                    .note(note),
            );
            let rate = steady(&seen.outcome.pipes)
                .ok_or_else(|| Failure::Ours("no pipe told of its seconds".into()))?;
            rows.push(
                Row::numbers(&id("rate"), "messages/s", Some(RATE), rate)
                    .holds((rate - RATE).abs() <= RATE * AWAY / 100.0)
                    .note(format!(
                        "read by all channels, mean of all seconds but the first {START}; within \
                         {AWAY} % of the sum of [USB 2023, table 7]"
                    )),
            );
        }
        if scenario.tasks {
            let far = farthest.ok_or_else(|| Failure::Ours("the tasks were not watched".into()))?;
            rows.push(
                Row::numbers(&id("progress"), "%", None, far)
                    .holds(far.abs() <= NEAR)
                    .note(format!("the task farthest from its promise; at most {NEAR} %")),
            );
        }
        table.row(vec![
            scenario.number.to_string(),
            machine.id().into(),
            seconds.to_string(),
            messages.to_string(),
            lost.to_string(),
            farthest.map_or("-".into(), |far| format!("{far:.4} %")),
        ]);
    }
    Ok((rows, table.render()))
}

/// Returns the system of a scenario: without input, nothing is plugged in.
fn system(bench: &Bench, scenario: Scenario) -> Result<System, Failure> {
    let mut system = bench.concentrator.describe(scenario.tasks)?;
    if !scenario.input {
        system.usb.clear();
        system.pipes.clear();
    }
    Ok(system)
}

/// Messages read, and lost.
fn counted(seen: &Seen) -> (u64, u64) {
    let pipes = &seen.outcome.pipes;
    let sum = |of: fn(&PipeRow) -> u64| pipes.iter().map(of).sum();
    (sum(|pipe| pipe.messages), sum(|pipe| pipe.lost))
}

/// Messages a second of all pipes together, once everything runs: the mean of the seconds that
/// every pipe told of.
fn steady(pipes: &[PipeRow]) -> Option<f64> {
    let seconds = pipes.iter().map(|pipe| pipe.rates.len()).min()?;
    let steady = START as usize..seconds;
    let count = steady.len();
    let sum = |pipe: &PipeRow| pipe.rates.get(steady.clone()).map(|all| all.iter().sum::<u64>());
    let all: u64 = pipes.iter().map(sum).sum::<Option<u64>>()?;
    (count > 0).then(|| all as f64 / count as f64)
}

/// Returns by how much the task farthest from its promise is off, in per cent.
fn farthest(seen: &Seen) -> Option<f64> {
    let errors = (0..TASKS).filter_map(|task| seen.looks.error(task));
    errors.max_by(|a, b| a.abs().total_cmp(&b.abs()))
}
