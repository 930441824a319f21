//! `usb-network`: from point to point over a debug cable ([Bridging, §4.3 and §4.4]).

use super::way::{PacketWay, TERMS, Ways, sum};
use super::{deviation, micros, rates, times};
use crate::{Effort, Progress, ReproductionReport, Row};
use diapason::chart::Distribution;
use diapason::table::{Align, TextTable};
use diapason::{Failure, Workspace, metal};

/// Table 1, in us: what the paper measured over USB alone on Quest, at least, at most, on average.
const QUEST: [f64; 3] = [81.55, 168.07, 108.61];
/// The standard deviation of these times, in us.
const QUEST_DEVIATION: f64 = 14.57;

/// Sends a sensor's packets to another computer, and as much as the cable takes.
pub fn reproduce(effort: Effort, progress: &Progress) -> Result<ReproductionReport, Failure> {
    let built = metal::build(&Workspace::find()?)?;
    progress.at("runs", 0, 2);
    let ways = Ways::over_usb(effort, &built)?;
    let usb = times("USB alone", ways.all.iter().map(|way| way.here - way.made), sum(&TERMS));
    let mut rows = alone(&ways, &usb, Ways::wanted(effort));
    progress.at("runs", 1, 2);
    let (more, moved) = rates::rows(effort, &built)?;
    rows.extend(more);
    progress.end();
    let sections = vec![
        ("The bound from the sensor to the other computer".into(), stages()),
        ("The parts of the way, in us".into(), parts(&ways.all)),
        ("Table 2: the most from one computer to the other, in Mbit/s".into(), moved),
    ];
    Ok(ReproductionReport::new("usb-network", rows, sections, Vec::new()))
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
