//! `usb-latency`: five scenarios with equal load of the bus and growing messages (tables 2 to 4),
//! and the distribution of what was seen (figure 10).

use super::bound::{Term, sum, terms};
use super::machine::{FittedHosts, Machine, ROUTER, Spoken, process};
use super::seconds;
use super::stay::WORKS;
use crate::{Effort, Picture, Progress, ReproductionReport, Row};
use diapason::chart::{Distribution, LineChart, Series};
use diapason::table::{Align, TextTable};
use diapason::{Failure, duration};
use diapason_contract::settings::{CRITICAL, STREAMS};
use diapason_system::{ServerSpec, System, WorkSpec};

/// A row of table 2: budget of an endpoint, its latency in microframes; and of table 4: the
/// longest, shortest and mean time seen, in µs. A board pauses for `pause` µs at least.
struct Scenario {
    number: usize,
    bytes: u32,
    slots: u64,
    seen: [u64; 3],
    pause: u64,
}

const SCENARIOS: [Scenario; 5] = [
    Scenario { number: 1, bytes: 1_024, slots: 1, seen: [4_037, 3_033, 3_549], pause: 1_700 },
    Scenario { number: 2, bytes: 8_192, slots: 2, seen: [4_359, 3_426, 3_875], pause: 1_790 },
    Scenario { number: 3, bytes: 20_480, slots: 4, seen: [5_256, 2_859, 3_969], pause: 1_850 },
    Scenario { number: 4, bytes: 40_960, slots: 8, seen: [7_553, 3_268, 5_186], pause: 2_340 },
    Scenario { number: 5, bytes: 88_064, slots: 16, seen: [11_560, 3_521, 7_447], pause: 3_790 },
];
/// The longest pause of a board is so many times its shortest.
const PAUSES: u64 = 4;
/// Memory that the router lends to each link. It is more than what can be on its way, so the router
/// is not woken when a message has gone.
const LENT: u64 = 8;
/// Budget, period and list of VCPUs that carry the messages, and shares of I/O VCPUs, as wide as
/// the works of messages want them.
const MAINS: [(&str, u64, u64, u8); 4] = [
    ("usb-manage", 100_000, 2_500_000, 8),
    ("route", 50_000, 500_000, 6),
    ("dbc", 60_000, 250_000, 8),
    ("ping", 60_000, 250_000, 8),
];
const LINK_PPM: u32 = 140_000;
/// The longest time seen is at least so many percent of its bound.
const TIGHT: f64 = 50.0;
/// Points of a curve.
const STEPS: usize = 200;

impl Scenario {
    /// An endpoint carries a board's messages and its answers: half a budget each.
    const fn message(&self) -> u32 {
        self.bytes / 2
    }

    /// Equation 10, in µs.
    const fn article_us(&self) -> u64 {
        3_500 + 500 * self.slots
    }

    /// Returns the terms of the bound of a round trip.
    fn terms(&self, machine: &FittedHosts) -> Result<Vec<Term>, Failure> {
        let systems = machine.fitted(|host, system| self.fit(host, system));
        terms(&systems, machine.cable_ns(), (self.message(), 1_000 * self.pause))
    }

    /// Two cameras, and messages of this scenario.
    fn fit(&self, host: usize, system: &mut System) {
        let message = u64::from(self.message());
        widen(system);
        if host == ROUTER {
            system.usb.truncate(2);
            if let Some(server) = process(system, "usbd") {
                // Two links, two cameras: both critical, the second in every other interval.
                server.set(STREAMS, &[1, 2]);
                server.set(CRITICAL, &[0, 1]);
            }
            if let Some(router) = process(system, "link-router") {
                [router.arguments[0], router.arguments[1]] = [message, LENT];
            }
        } else if let Some(ping) = process(system, "link-ping") {
            let seed = (16 * self.number + host) as u64;
            ping.arguments = [message, PAUSES * self.pause, 0, seed];
        }
    }
}

/// Declares what messages take, and gives their threads budget for it.
fn widen(system: &mut System) {
    let declared =
        |(name, worst_ns): (&str, u64)| WorkSpec { name: name.into(), best_ns: worst_ns, worst_ns };
    system.works = WORKS.map(declared).into();
    for vcpu in &mut system.vcpus {
        let known = MAINS.iter().find(|(name, ..)| *name == vcpu.name);
        match (&mut vcpu.server, known) {
            (
                ServerSpec::Main { budget_ns, period_ns, replenishments, .. },
                Some((_, budget, period, list)),
            ) => (*budget_ns, *period_ns, *replenishments) = (*budget, *period, *list),
            (ServerSpec::Io { utilization_ppm, .. }, _) if vcpu.name.starts_with("usb-link") => {
                *utilization_ppm = LINK_PPM;
            }
            _ => {}
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
        let bound = sum(&scenario.terms(&machine.hosts)?);
        let seen = run(&machine, scenario, seconds(effort))?;
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
    let (count, article_us) = (times.values().len(), scenario.article_us() as f64);
    let tightness = 100.0 * times.max() as f64 / bound as f64;
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
        row("bound", scenario.article_us(), bound).holds(micros(bound) <= article_us),
        row("longest", longest, times.max()).holds(count > 0 && times.max() <= bound).note(note),
        row("shortest", shortest, times.min()),
        row("mean", mean, times.mean()),
        Row::numbers(&id("tightness"), "%", None, tightness)
            .holds(tightness >= TIGHT)
            .note(format!("longest of the bound; at least {TIGHT} % wanted")),
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
        ("tightness", Align::Right),
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
        format!("{:.1} %", 100.0 * times.max() as f64 / bound as f64),
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
    let terms = SCENARIOS[0].terms(&machine.hosts)?;
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

#[cfg(test)]
mod tests {
    use super::*;
    use diapason::Workspace;

    fn hosts() -> FittedHosts {
        FittedHosts::read(&Workspace::find().unwrap()).unwrap()
    }

    /// No bound is above the article's, and each counts that both cameras send in a microframe.
    #[test]
    fn no_bound_is_longer_than_equation_10() {
        let hosts = hosts();
        for scenario in &SCENARIOS {
            let bound = sum(&scenario.terms(&hosts).unwrap());
            let least = 1_000 * scenario.seen[1] / 10;
            assert!((least..1_000 * scenario.article_us()).contains(&bound), "{bound}");
        }
    }

    /// The bound rests on budgets that are never used up, and on pauses longer than a trip.
    #[test]
    fn there_is_no_bound_if_budgets_or_pauses_are_too_short() {
        let hosts = hosts();
        let said = |pause: u64, change: &dyn Fn(&mut ServerSpec)| {
            let scenario = &SCENARIOS[0];
            let systems = hosts.fitted(|host, system| {
                scenario.fit(host, system);
                system.vcpus.iter_mut().for_each(|vcpu| change(&mut vcpu.server));
            });
            match terms(&systems, hosts.cable_ns(), (scenario.message(), 1_000 * pause)) {
                Err(Failure::Ours(why)) => why,
                other => format!("{:?}", other.is_ok()),
            }
        };
        let shares = |ppm: u32| {
            move |server: &mut ServerSpec| {
                if let ServerSpec::Io { utilization_ppm, .. } = server {
                    *utilization_ppm = (*utilization_ppm).min(ppm);
                }
            }
        };
        let lists = |server: &mut ServerSpec| {
            if let ServerSpec::Main { replenishments, .. } = server {
                *replenishments = 3;
            }
        };
        assert_eq!(said(SCENARIOS[0].pause, &|_| ()), "true");
        assert!(said(SCENARIOS[0].pause, &shares(80_000)).starts_with("usb-link0 needs"));
        assert!(said(SCENARIOS[0].pause, &lists).contains("needs"));
        let urgent = |server: &mut ServerSpec| {
            if let ServerSpec::Main { period_ns, .. } = server {
                *period_ns = (*period_ns).min(500_000);
            }
        };
        assert!(said(SCENARIOS[0].pause, &urgent).contains("go before"));
        let short = said(1_200, &|_| ());
        assert!(short.contains("may meet 2 others"), "{short}");
    }
}
