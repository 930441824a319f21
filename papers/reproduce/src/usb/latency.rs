//! `usb-latency`: five scenarios with equal load of the bus and growing messages (tables 2 to 4),
//! and the distribution of what was seen (figure 10).

use super::bound::{bus_ns, sum, terms};
use super::machine::{Machine, ROUTER, Spoken, process};
use super::seconds;
use crate::{Effort, Picture, Progress, ReproductionReport, Row};
use diapason::chart::{Distribution, LineChart, Series};
use diapason::table::{Align, TextTable};
use diapason::{Failure, duration};
use diapason_contract::settings::{CRITICAL, STREAMS};
use diapason_system::System;

/// A row of table 2: budget of an endpoint, its latency in microframes; and of table 4: the
/// longest, shortest and mean time seen, in µs.
struct Scenario {
    number: usize,
    bytes: u32,
    slots: u64,
    seen: [u64; 3],
}

const SCENARIOS: [Scenario; 5] = [
    Scenario { number: 1, bytes: 1_024, slots: 1, seen: [4_037, 3_033, 3_549] },
    Scenario { number: 2, bytes: 8_192, slots: 2, seen: [4_359, 3_426, 3_875] },
    Scenario { number: 3, bytes: 20_480, slots: 4, seen: [5_256, 2_859, 3_969] },
    Scenario { number: 4, bytes: 40_960, slots: 8, seen: [7_553, 3_268, 5_186] },
    Scenario { number: 5, bytes: 88_064, slots: 16, seen: [11_560, 3_521, 7_447] },
];
/// The longest pause of a board between two messages, in µs.
const PAUSE_US: u64 = 2_000;
/// Points of a curve.
const STEPS: usize = 200;

impl Scenario {
    /// An endpoint carries a board's messages and its answers: half a budget each.
    const fn message(&self) -> u32 {
        self.bytes / 2
    }

    /// Returns the packets that may wait on an endpoint.
    const fn waiting(&self) -> u32 {
        2 * self.message().next_multiple_of(super::bound::PACKET)
    }

    /// Equation 10, in µs.
    const fn article_us(&self) -> u64 {
        3_500 + 500 * self.slots
    }

    /// Two cameras, and messages of this scenario.
    fn fit(&self, host: usize, system: &mut System) {
        let message = u64::from(self.message());
        if host == ROUTER {
            system.usb.truncate(2);
            if let Some(server) = process(system, "usbd") {
                // Two links, two cameras: both critical, the second in every other interval.
                server.set(STREAMS, &[1, 2]);
                server.set(CRITICAL, &[0, 1]);
            }
            if let Some(router) = process(system, "link-router") {
                router.arguments[0] = message;
            }
        } else if let Some(ping) = process(system, "link-ping") {
            let seed = (16 * self.number + host) as u64;
            ping.arguments = [message, PAUSE_US, 0, seed];
        }
    }
}

/// The results of a scenario.
#[derive(Default)]
struct Seen {
    times: Vec<u64>,
    lost: u64,
    damaged: u64,
    /// Frames of cameras of which something was missing.
    broken: u64,
    frames: u64,
}

impl Seen {
    fn hear(&mut self, spoken: &Spoken) {
        let numbers = spoken.numbers();
        match &numbers[..] {
            times if spoken.is("RTT") => self.times.extend(times),
            [_, _, _, whole, broken] if spoken.is("STREAM") => {
                self.frames += whole;
                self.broken += broken;
            }
            _ => {}
        }
    }
}

/// Returns a board's last counts of lost and damaged packets.
fn losses(last: &[Vec<u64>; 3]) -> (u64, u64) {
    let at = |place: usize| last.iter().filter_map(|line| line.get(place)).sum();
    (at(3), at(4))
}

/// Runs the five scenarios.
pub fn reproduce(effort: Effort, progress: &Progress) -> Result<ReproductionReport, Failure> {
    let machine = Machine::new()?;
    let (mut rows, mut table, mut series) = (Vec::new(), seen_table(), Vec::new());
    for (done, scenario) in SCENARIOS.iter().enumerate() {
        progress.at("scenarios", done, SCENARIOS.len());
        let seen = run(&machine, scenario, seconds(effort))?;
        let bound = sum(&terms(&machine, bus_ns(scenario.waiting())?)?);
        let name = format!("scenario {}", scenario.number);
        let times = Distribution::new(name, seen.times.clone(), Some(bound));
        rows.extend(compared(scenario, &seen, &times, bound));
        table.row(described(scenario, &times, bound));
        series.push(curve(&times));
    }
    progress.end();
    let chart = LineChart {
        title: "Round trips of messages (figure 10)".into(),
        x: "ms".into(),
        y: "part that took no longer".into(),
        series,
    };
    let sections = vec![
        ("Table 3: what a round trip is made of, scenario 1".into(), stages(&machine)?),
        ("Table 4: round trips seen, in us".into(), table.render()),
    ];
    let figures = vec![Picture::lines("usb-latency-10", &chart)];
    Ok(ReproductionReport::new("usb-latency", rows, sections, figures))
}

fn run(machine: &Machine, scenario: &Scenario, seconds: u64) -> Result<Seen, Failure> {
    let (mut seen, mut last) = (Seen::default(), <[Vec<u64>; 3]>::default());
    machine.run(seconds, |host, system| scenario.fit(host, system), &mut |spoken| {
        seen.hear(&spoken);
        if spoken.is("LINK") {
            last[spoken.host] = spoken.numbers();
        }
    })?;
    (seen.lost, seen.damaged) = losses(&last);
    Ok(seen)
}

fn compared(scenario: &Scenario, seen: &Seen, times: &Distribution, bound: u64) -> Vec<Row> {
    let id = |what: &str| format!("scenario-{}.{what}", scenario.number);
    let micros = |ns: u64| ns as f64 / 1_000.0;
    let [longest, shortest, mean] = scenario.seen;
    let count = times.values().len();
    let note = format!(
        "of {count} messages of {} bytes; {} beyond; at most {:.1} us here, {} by \
         [USB 2023, eq. 10]",
        scenario.message(),
        times.beyond(),
        micros(bound),
        scenario.article_us(),
    );
    let row = |what: &str, paper: u64, ours: u64| {
        Row::numbers(&id(what), "us", Some(paper as f64), micros(ours))
    };
    let lost = seen.lost + seen.damaged + seen.broken;
    let whole = format!("messages, or frames of the cameras; {} whole frames", seen.frames);
    vec![
        row("bound", scenario.article_us(), bound),
        row("longest", longest, times.max()).holds(count > 0 && times.max() <= bound).note(note),
        row("shortest", shortest, times.min()),
        row("mean", mean, times.mean()),
        Row::numbers(&id("lost"), "", None, lost as f64)
            .holds(lost == 0 && seen.frames > 0)
            .note(whole),
    ]
}

fn seen_table() -> TextTable {
    TextTable::new(&[
        ("scenario", Align::Right),
        ("message", Align::Right),
        ("messages", Align::Right),
        ("shortest", Align::Right),
        ("mean", Align::Right),
        ("99 %", Align::Right),
        ("longest", Align::Right),
        ("bound", Align::Right),
        ("[USB 2023]: longest", Align::Right),
        ("bound", Align::Right),
    ])
}

fn described(scenario: &Scenario, times: &Distribution, bound: u64) -> Vec<String> {
    let micros = |ns: u64| format!("{:.1}", ns as f64 / 1_000.0);
    vec![
        scenario.number.to_string(),
        scenario.message().to_string(),
        times.values().len().to_string(),
        micros(times.min()),
        micros(times.mean()),
        micros(times.percentile(99)),
        micros(times.max()),
        micros(bound),
        scenario.seen[0].to_string(),
        scenario.article_us().to_string(),
    ]
}

/// Returns the terms of the bound.
fn stages(machine: &Machine) -> Result<String, Failure> {
    let mut table = TextTable::new(&[
        ("stage", Align::Left),
        ("at most", Align::Right),
        ("times", Align::Right),
    ]);
    let terms = terms(machine, bus_ns(SCENARIOS[0].waiting())?)?;
    for (what, ns, times) in &terms {
        table.row(vec![(*what).into(), duration::human(*ns), times.to_string()]);
    }
    table.row(vec!["in all".into(), duration::human(sum(&terms)), String::new()]);
    Ok(table.render())
}

/// Returns the distribution as a line.
fn curve(times: &Distribution) -> Series {
    let (values, count) = (times.values(), times.values().len());
    let point = |step: usize| {
        let rank = (step * count / STEPS).clamp(1, count.max(1));
        let value = values.get(rank - 1).copied().unwrap_or(0);
        (value as f64 / 1e6, rank as f64 / count.max(1) as f64)
    };
    Series { name: times.name.clone(), points: (0..=STEPS).map(point).collect() }
}
