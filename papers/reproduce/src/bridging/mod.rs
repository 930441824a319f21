//! `bridging`: a sensor's packets to another computer, over USB alone and over USB and Ethernet
//! with a time-aware shaper ([Bridging, §3.3 and §4]).

mod gated;
mod hosts;
mod machine;
mod model;
mod rates;
mod ring;
mod way;

use crate::{Effort, Picture, Progress, ReproductionReport, Row};
use diapason::chart::{Distribution, LineChart, Series};
use diapason::table::{Align, TextTable};
use diapason::{Failure, Workspace, metal};
use gated::{GateClock, WINDOWS_NS, aligned_bound, passed, phases, planned, port_bound};
use way::{PacketWay, TERMS, Ways, sum};

/// Table 1, in us: what the paper measured over USB alone on Quest, at least, at most, on average.
const QUEST: [f64; 3] = [81.55, 168.07, 108.61];
/// The standard deviation of these times, in us.
const QUEST_DEVIATION: f64 = 14.57;
/// The averages of table 1 with windows of 8, 16, 62 and 112 us, in us.
const TSN_MEANS: [f64; 4] = [696_740.65, 618.75, 550.21, 514.75];
/// The window whose gates are coordinated with the USB schedule: the smallest.
const COORDINATED_NS: u64 = WINDOWS_NS[0];
/// Points of a curve.
const STEPS: usize = 200;

/// Packets of a run: the paper has 5,000.
const fn packets(effort: Effort) -> u64 {
    match effort {
        Effort::Quick => 1_200,
        Effort::Full => 5_000,
        Effort::Long => 30_000,
    }
}

/// Computes the model, runs the computers, and sends what they had over Ethernet.
pub fn reproduce(effort: Effort, progress: &Progress) -> Result<ReproductionReport, Failure> {
    let mut rows = model::rows();
    let built = metal::build(&Workspace::find()?)?;
    progress.at("runs", 0, 3);
    let ways = Ways::simulated(packets(effort), &built)?;
    if ways.all.len() < 100 {
        return Err(Failure::Ours(format!("only {} packets came", ways.all.len())));
    }
    let mut table = table();
    let usb = times("USB alone", ways.all.iter().map(|way| way.here - way.made), sum(&TERMS));
    rows.extend(alone(&ways, &usb, packets(effort)));
    table.row(line(&usb, "-"));
    progress.at("runs", 1, 3);
    let mut all = vec![usb];
    rows.extend(dual(&ways.all, &mut all, &mut table)?);
    rows.extend(coordinated(&ways.all, &mut all, &mut table)?);
    rows.extend(against(&all));
    progress.at("runs", 2, 3);
    let (more, moved) = rates::rows(effort, &built)?;
    rows.extend(more);
    let (more, laps) = ring::rows(effort, &built)?;
    rows.extend(more);
    progress.end();
    let chart = LineChart {
        title: "From the sensor to the other computer (figures 9 to 13)".into(),
        x: "us".into(),
        y: "part that took no longer".into(),
        series: all.iter().map(curve).collect(),
    };
    let sections = vec![
        ("The bound over USB alone".into(), stages()),
        ("The parts of the way over USB alone, in us".into(), parts(&ways.all)),
        ("Table 1: from the sensor to the other computer, in us".into(), table.render()),
        ("Table 2: over USB, and the most that Ethernet carries, in Mbit/s".into(), moved),
        ("Tables 3 and 4: four hosts in a ring".into(), laps),
    ];
    let pictures = vec![Picture::lines("bridging-13", &chart)];
    Ok(ReproductionReport::new("bridging", rows, sections, pictures))
}

fn times(name: &str, values: impl Iterator<Item = u64>, bound: u64) -> Distribution {
    Distribution::new(name.into(), values.collect(), Some(bound))
}

fn micros(ns: u64) -> f64 {
    ns as f64 / 1_000.0
}

/// Returns the standard deviation of times, in us.
fn deviation(of: &Distribution) -> f64 {
    let (mean, count) = (micros(of.mean()), of.values().len().max(1));
    let squares = of.values().iter().map(|ns| (micros(*ns) - mean).powi(2));
    (squares.sum::<f64>() / count as f64).sqrt()
}

/// Compares the run over USB alone with its bound and with Quest.
fn alone(ways: &Ways, usb: &Distribution, wanted: u64) -> Vec<Row> {
    let [least, most, mean] = QUEST;
    let count = usb.values().len() as u64;
    let bound = sum(&TERMS);
    vec![
        Row::numbers("usb.packets", "", None, count as f64)
            .holds(count + 400 >= wanted)
            .note("packets of the run, less those while the link and the sensor start"),
        Row::numbers("usb.wrong", "", None, ways.wrong as f64)
            .holds(ways.wrong == 0)
            .note("packets lost, damaged or out of order, and times that go backwards"),
        Row::numbers("usb.longest", "us", Some(most), micros(usb.max()))
            .holds(usb.max() <= bound && micros(usb.max()) <= most)
            .note(format!("at most {:.1} us here, and what Quest took at most", micros(bound))),
        Row::numbers("usb.shortest", "us", Some(least), micros(usb.min())),
        Row::numbers("usb.mean", "us", Some(mean), micros(usb.mean()))
            .holds(micros(usb.mean()) <= mean)
            .note("no more than Quest's"),
        Row::numbers("usb.deviation", "us", Some(QUEST_DEVIATION), deviation(usb))
            .holds(deviation(usb) <= QUEST_DEVIATION)
            .note("no more than Quest's"),
    ]
}

/// USB and Ethernet with windows that nobody coordinates.
fn dual(
    ways: &[PacketWay],
    all: &mut Vec<Distribution>,
    table: &mut TextTable,
) -> Result<Vec<Row>, Failure> {
    // The bound of what is before the port spreads the packets that come to it.
    let (before, after) = (sum(&TERMS[..6]), sum(&TERMS[6..]));
    let mut rows = Vec::new();
    for (window, mean) in WINDOWS_NS.into_iter().zip(TSN_MEANS) {
        let seen = passed(ways, (window, 0), GateClock::Free)?;
        let port = port_bound(window, before)?;
        let name = format!("window of {} us", window / 1_000);
        let bound = before + port + after + hosts::CABLE_NS;
        let whole = times(&name, seen.iter().map(|it| it.whole_ns), bound);
        let longest = seen.iter().map(|it| it.port_ns).max().unwrap_or(0);
        let id = |what: &str| format!("tsn-{}.{what}", window / 1_000);
        rows.push(
            Row::numbers(&id("port"), "us", None, micros(longest))
                .holds(longest <= port && whole.beyond() == 0)
                .note(format!(
                    "longest time at the port, {:.3} us at most; the whole way {:.1} of {:.1} us",
                    micros(port),
                    micros(whole.max()),
                    micros(bound)
                )),
        );
        rows.push(Row::numbers(&id("mean"), "us", Some(mean), micros(whole.mean())));
        table.row(line(&whole, &format!("{:.3}", micros(port))));
        all.push(whole);
    }
    let falls = all.windows(2).skip(1).all(|pair| pair[0].mean() > pair[1].mean());
    let order = if falls { "a wider window is faster" } else { "a wider window is not faster" };
    rows.push(Row::words("tsn.order", Some("a wider window is faster"), order).holds(falls));
    Ok(rows)
}

/// Gates whose opening is planned from the packets of the first half, for the second half.
fn coordinated(
    ways: &[PacketWay],
    all: &mut Vec<Distribution>,
    table: &mut TextTable,
) -> Result<Vec<Row>, Failure> {
    let (known, new) = ways.split_at(ways.len() / 2);
    let seen = phases(known).ok_or_else(|| Failure::Ours("no packets".into()))?;
    let window = (COORDINATED_NS, planned(seen, COORDINATED_NS));
    let port = aligned_bound(window, seen)?;
    let passed_new = passed(new, window, GateClock::Steered)?;
    let free = passed(ways, (COORDINATED_NS, 0), GateClock::Free)?;
    // The wait of a packet is its time at the port without that on the wire.
    let wait = |all: &[gated::PassedPacket]| {
        let waits = all.iter().map(|it| it.port_ns.saturating_sub(gated::packet_ns()));
        waits.sum::<u64>() as f64 / all.len().max(1) as f64
    };
    let longest = passed_new.iter().map(|it| it.port_ns).max().unwrap_or(0);
    let gone = 1.0 - wait(&passed_new) / wait(&free).max(1.0);
    let whole = times("8 us, coordinated", passed_new.iter().map(|it| it.whole_ns), u64::MAX);
    table.row(line(&whole, &format!("{:.3}", micros(port))));
    all.push(whole);
    let note = format!(
        "the opening is planned from {} packets that were ready within {:.3} us; {} later ones",
        known.len(),
        micros(seen.1 - seen.0),
        new.len()
    );
    Ok(vec![
        Row::numbers("coordinated.port", "us", None, micros(longest))
            .holds(longest <= port)
            .note(format!("at most {:.3} us: no window is missed; {note}", micros(port))),
        Row::numbers("coordinated.penalty-gone", "%", None, 100.0 * gone)
            .holds(gone >= 0.9)
            .note("of the mean wait at the port with a window of 8 us; at least 90 %"),
    ])
}

/// Returns the paper's claim: USB alone takes less than a quarter of the best with Ethernet.
fn against(all: &[Distribution]) -> Vec<Row> {
    let best = all[1..=WINDOWS_NS.len()].iter().map(Distribution::max).min().unwrap_or(0);
    let ratio = best as f64 / all[0].max().max(1) as f64;
    vec![
        Row::numbers("usb.quarter", "", Some(4.0), ratio)
            .holds(ratio >= 4.0)
            .note("longest with the best window, divided by the longest over USB alone"),
    ]
}

fn table() -> TextTable {
    TextTable::new(&[
        ("", Align::Left),
        ("packets", Align::Right),
        ("shortest", Align::Right),
        ("mean", Align::Right),
        ("deviation", Align::Right),
        ("99 %", Align::Right),
        ("longest", Align::Right),
        ("bound of the port", Align::Right),
    ])
}

fn line(times: &Distribution, port: &str) -> Vec<String> {
    let shown = |ns: u64| format!("{:.2}", micros(ns));
    vec![
        times.name.clone(),
        times.values().len().to_string(),
        shown(times.min()),
        shown(times.mean()),
        format!("{:.2}", deviation(times)),
        shown(times.percentile(99)),
        shown(times.max()),
        port.into(),
    ]
}

/// Returns the terms of the bound.
fn stages() -> String {
    let mut table = TextTable::new(&[
        ("stage", Align::Left),
        ("at most, us", Align::Right),
        ("times", Align::Right),
    ]);
    for (what, ns, times) in TERMS {
        table.row(vec![what.into(), format!("{:.3}", micros(ns)), times.to_string()]);
    }
    table.row(vec!["in all".into(), format!("{:.3}", micros(sum(&TERMS))), String::new()]);
    table.render()
}

/// Returns the parts of the way over USB alone, as they were seen.
fn parts(ways: &[PacketWay]) -> String {
    let mut table = TextTable::new(&[
        ("part", Align::Left),
        ("shortest", Align::Right),
        ("mean", Align::Right),
        ("longest", Align::Right),
    ]);
    let mut part = |what: &str, of: fn(&PacketWay) -> u64| {
        let times = times(what, ways.iter().map(of), u64::MAX);
        let [least, mean, most] = [times.min(), times.mean(), times.max()].map(micros);
        let cells = [least, mean, most].map(|value| format!("{value:.3}"));
        table.row([what.to_owned()].into_iter().chain(cells).collect());
    };
    part("sensor, its bus, server, relay", |way| way.sent - way.made);
    part("debug server, link, server of the other computer", |way| way.came - way.sent);
    part("program of the other computer", |way| way.here - way.came);
    table.render()
}

/// Returns the distribution as a line.
fn curve(times: &Distribution) -> Series {
    let (values, count) = (times.values(), times.values().len());
    let point = |step: usize| {
        let rank = (step * count / STEPS).clamp(1, count.max(1));
        let value = values.get(rank - 1).copied().unwrap_or(0);
        (micros(value), rank as f64 / count.max(1) as f64)
    };
    Series { name: times.name.clone(), points: (0..=STEPS).map(point).collect() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_deviation_is_that_of_the_whole_run() {
        let of = |values: &[u64]| deviation(&Distribution::new(String::new(), values.into(), None));
        assert_eq!(of(&[]), 0.0);
        assert_eq!(of(&[5_000, 5_000]), 0.0);
        // A mean of 5 us, and squares of 9, 1, 1, 1, 0, 0, 4, 16.
        let known = [2_000, 4_000, 4_000, 4_000, 5_000, 5_000, 7_000, 9_000];
        assert_eq!(of(&known), 2.0);
    }
}
