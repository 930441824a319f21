//! Table 2: what two hosts send each other over USB, and the most that Ethernet carries.

use super::gated::{CYCLE_NS, WINDOWS_NS, most_mbits};
use super::hosts::two;
use super::machine::{numbers, run};
use crate::{Effort, Row};
use diapason::Failure;
use diapason::metal::Built;
use diapason::table::{Align, TextTable};

/// A row of table 2: bytes of a message, and the paper's Mbit/s over USB and over TSN.
const TABLE: [(u64, f64, f64); 3] =
    [(512, 1_014.153, 936.0), (1_024, 1_010.859, 934.0), (2_048, 1_006.255, 934.0)];
/// Seconds that are not counted: the link is not there yet.
const START: usize = 2;
/// Bytes of the longest payload of Ethernet.
const LONGEST: u64 = 1_500;

/// Returns the rows of the table, and the table.
///
/// # Errors
/// If a host breaks a promise, or nothing moves.
pub fn rows(effort: Effort, built: &Built) -> Result<(Vec<Row>, String), Failure> {
    let seconds = match effort {
        Effort::Quick => 3,
        Effort::Full => 12,
        Effort::Long => 62,
    };
    let (mut rows, mut table) = (Vec::new(), heading());
    for (bytes, usb, tsn) in TABLE {
        let mut rates = Vec::new();
        let horizon = seconds * 1_000_000_000 + 100_000_000;
        run(&two(bytes), built, horizon, |host, words| {
            // Both directions are full at the same time. The lesser one counts.
            if let (1, Some([_, came, sent])) = (host, numbers(words, "FLOOD").as_deref()) {
                rates.push(*came.min(sent) as f64 * 8.0 / 1e6);
            }
        })?;
        let counted = rates.get(START..).unwrap_or(&[]);
        let Some(least) = counted.iter().copied().reduce(f64::min) else {
            return Err(Failure::Ours("nothing moved over the link".into()));
        };
        // A longer message is two frames.
        let open = most_mbits(bytes.min(LONGEST), CYCLE_NS);
        rows.push(
            Row::numbers(&format!("rate-{bytes}.usb"), "Mbit/s", Some(usb), least)
                .holds(least >= usb)
                .note(format!(
                    "each direction while the other is full, too; Ethernet carries {open:.1} \
                     of such payloads, and the paper's TSN {tsn}"
                )),
        );
        let mut cells = vec![bytes.to_string(), format!("{least:.1}"), usb.to_string()];
        let windows = [CYCLE_NS].into_iter().chain(WINDOWS_NS);
        cells.extend(windows.map(|it| format!("{:.1}", most_mbits(bytes.min(LONGEST), it))));
        cells.push(tsn.to_string());
        table.row(cells);
    }
    Ok((rows, table.render()))
}

fn heading() -> TextTable {
    TextTable::new(&[
        ("bytes", Align::Right),
        ("USB", Align::Right),
        ("[Bridging]", Align::Right),
        ("Ethernet, open", Align::Right),
        ("8 us", Align::Right),
        ("16 us", Align::Right),
        ("62 us", Align::Right),
        ("112 us", Align::Right),
        ("[Bridging]: TSN", Align::Right),
    ])
}
