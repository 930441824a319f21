//! `usb-throughput`: three scenarios with growing guarantees of the bulk endpoints beside four
//! cameras (tables 5 and 6).

use super::machine::{Machine, ROUTER, Spoken, process};
use super::seconds;
use crate::{Effort, Progress, ReproductionReport, Row};
use diapason::Failure;
use diapason::table::{Align, TextTable};
use diapason_contract::settings::PROMISE;
use diapason_system::System;

/// Guarantee of a bulk endpoint, the cameras that the article keeps, and what it measured of an
/// endpoint: the least and the mean, in Mbit/s.
struct Scenario {
    number: usize,
    bytes: u64,
    period: u64,
    kept: [bool; CAMERAS],
    seen: [f64; 2],
}

const CAMERAS: usize = 4;
const SCENARIOS: [Scenario; 3] = [
    Scenario { number: 1, bytes: 4_096, period: 8, kept: [true; 4], seen: [34.32, 39.49] },
    Scenario { number: 2, bytes: 6_144, period: 2, kept: [true; 4], seen: [202.83, 234.20] },
    Scenario {
        number: 3,
        bytes: 8_192,
        period: 1,
        kept: [true, false, false, true],
        seen: [525.06, 573.20],
    },
];
/// Bytes of a message: the largest.
const MESSAGE: u64 = 65_536;
/// Microframes of a second.
const SLOTS: f64 = 8_000.0;
/// Intervals that may be counted to the second before or after.
const BATCH: f64 = 8.0;
/// Lines of a program that are not counted: the first seconds.
const SKIPPED: usize = 2;

impl Scenario {
    /// Returns the promise to an endpoint, in Mbit/s.
    fn promised(&self) -> f64 {
        self.bytes as f64 * 8.0 * SLOTS / self.period as f64 / 1e6
    }

    /// Programs that send as much as they can, and the guarantee.
    fn fit(&self, host: usize, system: &mut System) {
        let (program, links) = if host == ROUTER { ("link-router", 2) } else { ("link-ping", 1) };
        if let Some(flood) = process(system, program) {
            flood.program = "link-flood".into();
            flood.arguments = [links, MESSAGE, 0, 0];
        }
        if let Some(server) = process(system, "usbd") {
            server.set(PROMISE, &[self.period, self.bytes]);
        }
    }
}

/// The results of a scenario, second by second: of each bulk endpoint (b₁ to b₄) the Mbit/s.
#[derive(Default)]
struct Seen {
    bulk: [Vec<f64>; 4],
    /// Intervals of each camera.
    cameras: [Vec<u64>; CAMERAS],
    broken: u64,
}

impl Seen {
    fn hear(&mut self, spoken: &Spoken) {
        if spoken.host != ROUTER {
            return;
        }
        let megabits = |bytes: u64| bytes as f64 * 8.0 / 1e6;
        match spoken.numbers()[..] {
            [link, received, sent] if spoken.is("FLOOD") && link < 2 => {
                self.bulk[2 * link as usize].push(megabits(received));
                self.bulk[2 * link as usize + 1].push(megabits(sent));
            }
            [camera, intervals, _, _, broken] if spoken.is("STREAM") => {
                if let Some(seen) = self.cameras.get_mut(camera as usize) {
                    seen.push(intervals);
                    self.broken += broken;
                }
            }
            _ => {}
        }
    }

    /// Returns all seconds of all bulk endpoints but the first: least, mean, most, standard
    /// deviation.
    fn rates(&self) -> Option<[f64; 4]> {
        let all: Vec<f64> =
            self.bulk.iter().flat_map(|rates| rates.iter().skip(SKIPPED)).copied().collect();
        let count = all.len() as f64;
        let mean = all.iter().sum::<f64>() / count;
        let variance = all.iter().map(|rate| (rate - mean).powi(2)).sum::<f64>() / count;
        let least = all.iter().copied().reduce(f64::min)?;
        let most = all.iter().copied().reduce(f64::max)?;
        Some([least, mean, most, variance.sqrt()])
    }

    /// Intervals a second that the critical camera had, but for the first seconds.
    fn critical(&self) -> Option<f64> {
        let counted = self.cameras[0].get(SKIPPED..).filter(|counted| !counted.is_empty())?;
        Some(counted.iter().sum::<u64>() as f64 / counted.len() as f64)
    }

    /// Returns the cameras that ran in the last second.
    fn kept(&self) -> [bool; CAMERAS] {
        let seconds = self.bulk[0].len();
        // A camera reports at its own seconds: one report may be out.
        self.cameras.each_ref().map(|seen| seen.len() + 2 >= seconds && seconds > 2)
    }
}

/// Runs the three scenarios.
pub fn reproduce(effort: Effort, progress: &Progress) -> Result<ReproductionReport, Failure> {
    let machine = Machine::new()?;
    let (mut rows, mut table) = (Vec::new(), seen_table());
    for (done, scenario) in SCENARIOS.iter().enumerate() {
        progress.at("scenarios", done, SCENARIOS.len());
        let mut seen = Seen::default();
        let fit = |host: usize, system: &mut System| scenario.fit(host, system);
        machine.run(seconds(effort), fit, &mut |spoken| seen.hear(&spoken))?;
        let rates =
            seen.rates().ok_or_else(|| Failure::Ours("no endpoint said anything".into()))?;
        rows.extend(compared(scenario, &seen, rates));
        table.row(described(scenario, &seen, rates));
    }
    progress.end();
    let sections = vec![("Table 6: bulk endpoints, Mbit/s".to_owned(), table.render())];
    Ok(ReproductionReport::new("usb-throughput", rows, sections, Vec::new()))
}

fn names(kept: [bool; CAMERAS]) -> String {
    let name = |(number, kept): (usize, bool)| kept.then(|| format!("i{number}"));
    let names: Vec<String> = (1..).zip(kept).filter_map(name).collect();
    names.join(" ")
}

fn compared(scenario: &Scenario, seen: &Seen, [least, mean, _, _]: [f64; 4]) -> Vec<Row> {
    let id = |what: &str| format!("scenario-{}.{what}", scenario.number);
    let promised = scenario.promised();
    let note = format!(
        "of all seconds of b1 to b4; at least what is promised, {promised:.1}, and what \
         [USB 2023, table 6] measured"
    );
    let whole = "as [USB 2023, §6.1.2] prints it; docs/bus.md says what is feasible";
    let every = "intervals a second of the critical camera; 33,792 bytes each are its 2,162 Mbit/s";
    let had = seen.critical().unwrap_or(0.0);
    vec![
        Row::numbers(&id("least"), "Mbit/s", Some(scenario.seen[0]), least)
            .holds(least >= promised.max(scenario.seen[0]))
            .note(note),
        Row::numbers(&id("mean"), "Mbit/s", Some(scenario.seen[1]), mean),
        Row::words(&id("cameras"), Some(&names(scenario.kept)), &names(seen.kept()))
            .holds(seen.kept() == scenario.kept)
            .note(whole),
        Row::numbers(&id("frames-broken"), "", None, seen.broken as f64)
            .holds(seen.kept()[0] && seen.broken == 0)
            .note("frames of cameras of which something is missing; the critical one must run"),
        // Its seconds end with a batch of intervals.
        Row::numbers(&id("i1"), "", Some(SLOTS), had).holds(had >= SLOTS - BATCH).note(every),
    ]
}

fn seen_table() -> TextTable {
    TextTable::new(&[
        ("scenario", Align::Right),
        ("promised", Align::Right),
        ("least", Align::Right),
        ("mean", Align::Right),
        ("most", Align::Right),
        ("deviation", Align::Right),
        ("[USB 2023]: least", Align::Right),
        ("mean", Align::Right),
        ("cameras", Align::Left),
        ("intervals of i1 / s", Align::Right),
    ])
}

fn described(scenario: &Scenario, seen: &Seen, rates: [f64; 4]) -> Vec<String> {
    let [least, mean, most, deviation] = rates.map(|rate| format!("{rate:.2}"));
    vec![
        scenario.number.to_string(),
        format!("{:.1}", scenario.promised()),
        least,
        mean,
        most,
        deviation,
        scenario.seen[0].to_string(),
        scenario.seen[1].to_string(),
        names(seen.kept()),
        seen.critical().map_or("-".into(), |had| format!("{had:.1}")),
    ]
}
