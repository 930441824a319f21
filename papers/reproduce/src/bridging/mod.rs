//! `bridging`: a sensor's packets to another computer, over USB alone and over USB and Ethernet
//! with a time-aware shaper ([Bridging, §3.3 and §4]).

mod gated;
mod model;

use crate::links::{
    BEFORE_PORT, BEHIND_PORT, PacketWay, TERMS, Ways, deviation, micros, sum, times,
};
use crate::{Effort, Picture, Progress, ReproductionReport, Row};
use diapason::chart::{Distribution, LineChart, Series};
use diapason::metal::Built;
use diapason::table::{Align, TextTable};
use diapason::{Failure, Workspace, metal};
use gated::{
    CYCLE_NS, GateClock, WINDOWS_NS, aligned_bound, most_mbits, passed, phases, planned, port_bound,
};

/// The averages of table 1 with windows of 8, 16, 62 and 112 us, in us.
const TSN_MEANS: [f64; 4] = [696_740.65, 618.75, 550.21, 514.75];
/// The window whose gates are coordinated with the USB schedule: the smallest.
const COORDINATED_NS: u64 = WINDOWS_NS[0];
/// Points of a curve.
const STEPS: usize = 200;

/// Bytes of a payload in table 2, and the paper's Mbit/s over TSN.
const TSN_RATES: [(u64, f64); 3] = [(512, 936.0), (1_024, 934.0), (2_048, 934.0)];
/// Bytes of the longest payload of Ethernet.
const LONGEST: u64 = 1_500;

/// Computes the model, runs the computers, and sends what they had over Ethernet.
pub fn reproduce(effort: Effort, progress: &Progress) -> Result<ReproductionReport, Failure> {
    let mut rows = model::rows();
    let built = metal::build(&Workspace::find()?)?;
    progress.at("runs", 0, 2);
    let ways = Ways::over_usb(effort, &built)?;
    let mut table = table();
    let usb = times("USB alone", ways.all.iter().map(|way| way.here - way.made), sum(&TERMS));
    table.row(line(&usb, "-"));
    progress.at("runs", 1, 2);
    let mut all = vec![usb];
    rows.extend(dual((effort, &built), &mut all, &mut table)?);
    rows.extend(coordinated(&ways.all)?);
    rows.extend(against(&all));
    progress.end();
    let chart = LineChart {
        title: "From the sensor to the other computer (figures 9 to 13)".into(),
        x: "us".into(),
        y: "part that took no longer".into(),
        series: all.iter().map(curve).collect(),
    };
    let sections = vec![
        ("Table 1: from the sensor to the other computer, in us".into(), table.render()),
        ("Table 2: the most that Ethernet carries, in Mbit/s".into(), carried()),
    ];
    let pictures = vec![Picture::lines("bridging-13", &chart)];
    Ok(ReproductionReport::new("bridging", rows, sections, pictures))
}

/// USB and Ethernet with windows that nobody coordinates: hosts with adapters at a switch.
fn dual(
    (effort, built): (Effort, &Built),
    all: &mut Vec<Distribution>,
    table: &mut TextTable,
) -> Result<Vec<Row>, Failure> {
    // The bound of what is before the port spreads the packets that come to it.
    let (before, behind) = (sum(&BEFORE_PORT), sum(&BEHIND_PORT));
    let mut rows = Vec::new();
    for (window, mean) in WINDOWS_NS.into_iter().zip(TSN_MEANS) {
        let ways = Ways::over_ethernet(window, effort, built)?;
        let port = port_bound(window, before)?;
        let name = format!("window of {} us", window / 1_000);
        let bound = before + port + behind;
        let whole = times(&name, ways.all.iter().map(|way| way.here - way.made), bound);
        let id = |what: &str| format!("tsn-{}.{what}", window / 1_000);
        rows.push(
            Row::numbers(&id("longest"), "us", None, micros(whole.max()))
                .holds(whole.beyond() == 0 && ways.wrong == 0)
                .note(format!(
                    "of {} packets, none lost or damaged; at most {:.1} us, of which the port has \
                     {:.3}",
                    whole.values().len(),
                    micros(bound),
                    micros(port)
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
fn coordinated(ways: &[PacketWay]) -> Result<Vec<Row>, Failure> {
    let (known, new) = ways.split_at(ways.len() / 2);
    let seen = phases(known).ok_or_else(|| Failure::Ours("no packets".into()))?;
    let window = (COORDINATED_NS, planned(seen, COORDINATED_NS));
    let port = aligned_bound(window, seen)?;
    let passed_new = passed(new, window, GateClock::Steered)?;
    let free = passed(ways, (COORDINATED_NS, 0), GateClock::Free)?;
    // The wait of a packet is its time at the port without that on the wire.
    let wait = |all: &[u64]| {
        let waits = all.iter().map(|time| time.saturating_sub(gated::packet_ns()));
        waits.sum::<u64>() as f64 / all.len().max(1) as f64
    };
    let longest = passed_new.iter().copied().max().unwrap_or(0);
    let gone = 1.0 - wait(&passed_new) / wait(&free).max(1.0);
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

/// Returns the most that fits on the wire, with open gates and with windows.
fn carried() -> String {
    let mut table = TextTable::new(&[
        ("bytes", Align::Right),
        ("open", Align::Right),
        ("8 us", Align::Right),
        ("16 us", Align::Right),
        ("62 us", Align::Right),
        ("112 us", Align::Right),
        ("[Bridging]: TSN", Align::Right),
    ]);
    for (bytes, tsn) in TSN_RATES {
        let windows = [CYCLE_NS].into_iter().chain(WINDOWS_NS);
        // A longer message is two frames.
        let most = windows.map(|window| format!("{:.1}", most_mbits(bytes.min(LONGEST), window)));
        let cells = [bytes.to_string()].into_iter().chain(most);
        table.row(cells.chain([tsn.to_string()]).collect());
    }
    table.render()
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
