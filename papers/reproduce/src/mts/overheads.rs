//! Tables 7.1, 7.3 and 7.4: what the measured operations add up to.
//!
//! The arithmetic of §7.5.3 can be checked, and how it depends on a queue and on buffers. The
//! module `driver` has the counts of our own driver.

use crate::{ReproductionReport, Row};
use diapason::table::{Align, TextTable};

/// Table 7.3 in µs: identifier, insertion, per place in the queue, transfer, preemption, interrupt,
/// the rest.
const IDENTIFIER: f64 = 3.0;
pub const INSERT: f64 = 6.3;
pub const PER_PLACE: f64 = 1.55;
pub const TRANSFER: f64 = 7.8;
pub const PREEMPT: f64 = 7.8;
const INTERRUPT: f64 = 42.4;
const REST: f64 = 6.0;
/// §7.5.3 in µs: a message with a buffer of its own, and one that shares three with others.
pub const DEDICATED: f64 = 16.8;
pub const QUEUED_OF_THREE: f64 = 73.3;
/// Table 7.4 in µs: the periodic task, an arrival with reading and looking up, one identifier.
const TASK: f64 = 68.0;
pub const READ: f64 = 7.8;
pub const FILTER: f64 = 3.0;
const ARRIVAL: f64 = 40.4 + READ + FILTER;
pub const UPDATE: f64 = 2.8;
/// §7.5.3 in µs: an epoch with five identifiers.
pub const EPOCH: f64 = 184.4;
/// The dissertation rounds to a tenth.
const ROUNDED: f64 = 0.1;

/// Table 7.1: a message with a buffer of its own.
fn dedicated() -> f64 {
    IDENTIFIER + TRANSFER + REST
}

/// Table 7.1: a message that is queued, with Q − I buffers refilled by one interrupt, at the head.
fn queued(refilled: f64, identifier: f64) -> f64 {
    identifier + INSERT + TRANSFER + PREEMPT + INTERRUPT / refilled + REST
}

/// Adds the tables and their sums.
pub fn add(report: &mut ReproductionReport) {
    let sums = [
        ("table7.3.dedicated", DEDICATED, dedicated()),
        ("table7.3.queued", 36.2, queued(8.0, IDENTIFIER)),
        ("table7.3.queued-low", 33.2, queued(8.0, 0.0)),
        ("table7.3.queued-low-3-buffers", 70.3, queued(1.0, 0.0)),
        ("table7.3.queued-high-3-buffers", QUEUED_OF_THREE, queued(1.0, IDENTIFIER)),
        ("table7.3.average", 23.9, 0.9 * dedicated() + 0.1 * (queued(1.0, 0.0) + 11.0 * PER_PLACE)),
        ("table7.4.epoch", EPOCH, TASK + 2.0 * ARRIVAL + 5.0 * UPDATE),
    ];
    let mut table = TextTable::new(&[
        ("sum", Align::Left),
        ("said, us", Align::Right),
        ("added up, us", Align::Right),
    ]);
    for (id, said, ours) in sums {
        table.row(vec![id.to_owned(), format!("{said:.1}"), format!("{ours:.2}")]);
        let row = Row::numbers(id, "us", Some(said), ours);
        report.rows.push(row.holds((said - ours).abs() <= ROUNDED));
    }
    let heading = "Tables 7.3 and 7.4 by table 7.1, on a 68040 at 25 MHz; + 1.55 us for each place \
                   of the queue";
    report.sections.push((heading.into(), table.render()));
    for (id, epoch, said) in [("2ms", 2_000.0, 9.0), ("3ms", 3_000.0, 6.0), ("4ms", 4_000.0, 4.6)] {
        let share = 100.0 * (TASK + 2.0 * ARRIVAL + 5.0 * UPDATE) / epoch;
        let row = Row::numbers(&format!("table7.4.share-{id}"), "%", Some(said), share);
        report
            .rows
            .push(row.holds((said - share).abs() <= 0.5).note("of the processor for renewals"));
    }
}
