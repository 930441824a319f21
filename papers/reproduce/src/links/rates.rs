//! Table 2, and messages of 64 KiB: how much one host sends another over a debug cable.

use super::hosts::two;
use super::machine::{numbers, run};
use crate::{Effort, Row};
use diapason::Failure;
use diapason::metal::Built;
use diapason::table::{Align, TextTable};

/// A row of table 2: bytes of a message, and the paper's Mbit/s over USB.
const TABLE: [(u64, f64); 3] = [(512, 1_014.153), (1_024, 1_010.859), (2_048, 1_006.255)];
/// Messages under way at once. More than the servers keep at their controllers, so that they have
/// others when some end.
const UNDER_WAY: u64 = 48;
/// The longest message, and how many of them are under way: the memory has room for no more than
/// twice as many.
const LONG: (u64, u64) = (65_536, 12);
/// Super speed in Mbit/s: 5 Gbit/s, of which the line code leaves eight bits of ten.
const WIRE: f64 = 4_000.0;
/// The part of the wire that long messages have to reach.
const MOST_OF_IT: f64 = 0.9;
/// Lines of a program that are not counted: the link is not there at first.
const START: usize = 1;

/// Returns the rows of the table, and the table.
///
/// # Errors
/// If a host breaks a promise, or nothing moves.
pub fn rows(effort: Effort, built: &Built) -> Result<(Vec<Row>, String), Failure> {
    let (mut rows, mut table) = (Vec::new(), heading());
    let mut line = |bytes: u64, ways: [f64; 2], paper: Option<f64>| {
        let [from, to] = ways.map(|rate| format!("{rate:.1}"));
        let paper = paper.map_or("-".into(), |rate| rate.to_string());
        table.row(vec![bytes.to_string(), from, to, paper]);
    };
    for (bytes, usb) in TABLE {
        let ways = both_ways(effort, built, (bytes, UNDER_WAY))?;
        let least = ways[0].min(ways[1]);
        rows.push(
            Row::numbers(&format!("rate-{bytes}.usb"), "Mbit/s", Some(usb), least)
                .holds(least >= usb)
                .note("the slower direction; each is alone, as in iPerf3"),
        );
        line(bytes, ways, Some(usb));
    }
    let ways = both_ways(effort, built, LONG)?;
    let least = ways[0].min(ways[1]);
    rows.push(
        Row::numbers(&format!("rate-{}.usb", LONG.0), "Mbit/s", None, least)
            .holds(least >= MOST_OF_IT * WIRE)
            .note(format!(
                "{:.1} % of the {WIRE} Mbit/s that the wire carries behind its line code; at \
                 least {:.0} % wanted",
                100.0 * least / WIRE,
                100.0 * MOST_OF_IT
            )),
    );
    line(LONG.0, ways, None);
    Ok((rows, table.render()))
}

/// Returns how much moves from the debug target to the debug host, and the other way, in the least
/// second, in Mbit/s.
fn both_ways(
    effort: Effort,
    built: &Built,
    (bytes, under_way): (u64, u64),
) -> Result<[f64; 2], Failure> {
    let seconds = match effort {
        Effort::Quick => 2,
        Effort::Full => 12,
        Effort::Long => 62,
    };
    let horizon = seconds * 1_000_000_000 + 100_000_000;
    let mut least = [0.0; 2];
    for (way, least) in least.iter_mut().enumerate() {
        let (from_target, mut rates) = (way == 0, Vec::new());
        let takes = usize::from(from_target);
        run(&two(bytes, from_target, under_way), built, horizon, |host, words| {
            if host == takes
                && let Some([_, came, _]) = numbers(words, "FLOOD").as_deref()
            {
                rates.push(*came as f64 * 8.0 / 1e6);
            }
        })?;
        let counted = rates.get(START..).unwrap_or(&[]);
        let found = counted.iter().copied().reduce(f64::min);
        *least = found.ok_or_else(|| Failure::Ours("nothing moved over the link".into()))?;
    }
    Ok(least)
}

fn heading() -> TextTable {
    TextTable::new(&[
        ("bytes", Align::Right),
        ("from the target", Align::Right),
        ("to the target", Align::Right),
        ("[Bridging]", Align::Right),
    ])
}
