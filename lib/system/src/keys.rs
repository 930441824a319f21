//! Keys that tables of several kinds have.

use crate::diagnostics::Problem;
use crate::limits::{CLOCK_HZ, PAGE_BYTES};
use crate::names;
use crate::source::At;
use crate::table::Table;
use crate::units;
use diapason_abi::layout;

/// The rates of clocks that bounds over several hosts count with.
const DRIFT_PPM: std::ops::RangeInclusive<i32> = -100..=100;

/// Largest segment, and largest device.
const SLOT: u64 = layout::SLOT;

/// Returns the name of what `table` declares; empty if it has none. A bad one is reported and kept,
/// so that what refers to it is not reported too.
pub(crate) fn name(table: &mut Table<'_, '_>) -> At<String> {
    let nothing = At::new(String::new(), table.place());
    if !table.has("name") {
        table.needs("name", "add `name = \"…\"`: how the rest of the system calls it");
        return nothing;
    }
    let Some(name) = table.text("name", "name = \"sensors\"") else { return nothing };
    if let Some((title, help)) = names::fault(&name.value) {
        table.report.push(Problem::new(&name.span, title, help));
    }
    name
}

/// Returns a text that has to be there.
pub(crate) fn required(
    table: &mut Table<'_, '_>,
    key: &'static str,
    what: &str,
) -> Option<At<String>> {
    let text = table.text(key, &format!("{key} = \"…\""));
    table.needs(key, &format!("add `{key} = \"…\"`: {what}"));
    text
}

/// Instructions a second, if the table says.
pub(crate) fn clock(table: &mut Table<'_, '_>) -> Option<u64> {
    let example = "clock = \"2400MHz\"";
    let clock = table.parsed("clock", "a frequency", example, units::frequency)?;
    if !CLOCK_HZ.contains(&clock.value) {
        let help = "write a frequency from `1MHz` to `10GHz`";
        table.report.push(Problem::new(&clock.span, "`clock` is out of range", help));
    }
    Some(clock.value)
}

/// Returns by how many millionths a clock of the simulation is fast; 0 if the table does not say.
pub(crate) fn drift(table: &mut Table<'_, '_>) -> i32 {
    let example = "drift = \"80ppm\"";
    let drift = table.parsed("drift", "a number of millionths", example, units::millionths);
    let Some(drift) = drift else { return 0 };
    if !DRIFT_PPM.contains(&drift.value) {
        let title = format!("a clock that is {} ppm wrong is no crystal's", drift.value);
        let help = "write `-100ppm` to `100ppm`: plans count with clocks that keep within";
        table.report.push(Problem::new(&drift.span, title, help));
        return 0;
    }
    drift.value
}

/// Returns a size that must be given.
pub(crate) fn required_size(table: &mut Table<'_, '_>, help: &str) -> u64 {
    if !table.has("size") {
        table.needs("size", help);
        return PAGE_BYTES;
    }
    table.size("size", PAGE_BYTES..=SLOT).map_or(PAGE_BYTES, |size| size.value)
}
