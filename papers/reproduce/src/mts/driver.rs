//! Tables 7.3 and 7.4 in instructions of our own driver: the work of the library of `cand` for a
//! message and for a renewal, as the program `buffers` counts it in QEMU on registers that are
//! plain memory.
//!
//! Theirs are times of a 25 MHz 68040 without caches, here as cycles. A cycle executes at most one
//! instruction there. Theirs contain the kernel's part, a copy of the message and an interrupt.

use super::overheads::{
    DEDICATED, EPOCH, FILTER, INSERT, PER_PLACE, PREEMPT, QUEUED_OF_THREE, READ, TRANSFER, UPDATE,
};
use crate::boot::Bench;
use crate::{ReproductionReport, Row};
use diapason::Failure;
use diapason::table::{Align, TextTable};

const DESCRIPTION: &str = "[system]\nname = \"buffers\"\n[[process]]\nname = \"buffers\"\n\
                           program = \"buffers\"\npriority = 10\n";
const HORIZON_NS: u64 = 200_000_000;
/// MHz of the processor of table 7.3.
const MHZ: f64 = 25.0;
/// The cases that the program measures, and what each is.
const CASES: [(&str, &str); 6] = [
    ("dedicated", "a message with a buffer of its own"),
    ("queued", "the least urgent message goes into the queue"),
    ("urgent", "a message overwrites another, which goes into the queue"),
    ("refill", "an interrupt brings the next message into a buffer"),
    ("renew", "l messages in buffers of their own get the identifiers of another epoch"),
    ("hear", "a message of another node is taken out of its buffer"),
];
/// Messages of the epoch in §7.5.3.
const FIVE: u64 = 5;
/// Lengths of the queue in the table.
const SHOWN: [u64; 7] = [0, 1, 2, 4, 8, 16, 32];
/// From this length on the cost of a place in the queue is told.
const FROM: u64 = 8;

/// The cost of a case with a queue of some length.
#[derive(Clone, PartialEq, Eq, Debug)]
struct Cost {
    case: String,
    length: u64,
    instructions: u64,
    accesses: u64,
}

impl Cost {
    /// `BUFFERS case length instructions accesses`.
    fn read(line: &str) -> Option<Cost> {
        let words: Vec<&str> = line.split_ascii_whitespace().collect();
        let ["BUFFERS", case, length, instructions, accesses] = words[..] else { return None };
        let number = |word: &str| word.parse().ok();
        Some(Cost {
            case: case.into(),
            length: number(length)?,
            instructions: number(instructions)?,
            accesses: number(accesses)?,
        })
    }
}

/// Returns what a place in the queue costs: how steep these points are from [`FROM`] on.
fn per_place(points: &[(u64, u64)]) -> Option<f64> {
    let (first, last) = (points.iter().find(|it| it.0 >= FROM)?, points.last()?);
    let places = last.0.checked_sub(first.0).filter(|places| *places > 0)?;
    Some((last.1 as f64 - first.1 as f64) / places as f64)
}

/// Returns a of the line a + b l that is above all points.
fn above(points: &[(u64, u64)], b: f64) -> Option<f64> {
    points.iter().map(|(length, cost)| *cost as f64 - b * *length as f64).reduce(f64::max)
}

/// Measures, and adds what came out.
pub fn add(report: &mut ReproductionReport) -> Result<(), Failure> {
    let damaged = || Failure::Ours("buffers: damaged lines".into());
    let lines = Bench::new()?.lines("buffers", DESCRIPTION, HORIZON_NS)?;
    let all: Option<Vec<Cost>> = lines.iter().map(|line| Cost::read(line)).collect();
    let all = all.ok_or_else(damaged)?;
    report.sections.push((
        "Tables 7.3 and 7.4 by our driver, instructions and accesses to registers by the length of \
         the queue"
            .into(),
        table(&all),
    ));
    report.rows.extend(rows(&all).ok_or_else(damaged)?);
    Ok(())
}

/// Returns the instructions of a case by the length of the queue.
fn points(all: &[Cost], case: &str) -> Vec<(u64, u64)> {
    let of = all.iter().filter(|cost| cost.case == case);
    of.map(|cost| (cost.length, cost.instructions)).collect()
}

fn rows(all: &[Cost]) -> Option<Vec<Row>> {
    let cycles = |micros: f64| (micros * MHZ).round();
    let figure = |id: &str, micros: f64, ours: f64| {
        let id = format!("driver.{id}");
        Row::numbers(&id, "cycles, instructions", Some(cycles(micros)), ours)
    };
    let row =
        |id: &str, micros: f64, ours: f64| figure(id, micros, ours).holds(ours <= cycles(micros));
    let dedicated = points(all, "dedicated").into_iter().map(|(_, cost)| cost).max()?;
    let [refill, urgent, queued] = ["refill", "urgent", "queued"].map(|case| points(all, case));
    let steep = [&urgent, &queued].into_iter().map(|points| per_place(points));
    let b =
        steep.collect::<Option<Vec<f64>>>()?.into_iter().reduce(f64::max)? + per_place(&refill)?;
    // Each message goes into the queue, perhaps in the place of another, and is fetched from there.
    let sums = refill.iter().zip(&urgent).zip(&queued);
    let sums = sums.map(|((refill, urgent), queued)| (refill.0, refill.1 + urgent.1.max(queued.1)));
    let a = above(&sums.collect::<Vec<_>>(), b)?;
    let renew = points(all, "renew");
    let of = |messages| renew.iter().find(|it| it.0 == messages).map(|it| it.1 as f64);
    let each = (of(FROM)? - of(0)?) / FROM as f64;
    let heard = points(all, "hear").into_iter().map(|(_, cost)| cost).max()?;
    let overwrites = above(&urgent, per_place(&urgent)?)?;
    Some(vec![
        row("transfer", TRANSFER, dedicated as f64)
            .note("a message goes into a buffer of its own; theirs is the transfer alone"),
        row("overwrite", INSERT + TRANSFER + PREEMPT, overwrites).note(
            "a message goes into the queue, and from there into the buffer of another, which goes \
             back; theirs is insertion with a copy, transfer and preemption",
        ),
        row("per-place", PER_PLACE, b).note("b of a + b l"),
        row("renewal", UPDATE, each).note(
            "the identifier of one message is computed and its buffer loaded again; theirs is the \
             update of one identifier",
        ),
        row("heard", READ + FILTER, heard as f64).note(
            "a message of another node is taken out of its buffer, which is free for the next one \
             then; theirs is reading it, and filtering by software",
        ),
        figure("epoch", EPOCH, of(FIVE)?).note(
            "five identifiers; not compared: the kernel's part is in theirs, and two messages that \
             are received, which ours does without",
        ),
        figure("dedicated", DEDICATED, dedicated as f64)
            .note("not compared: the kernel's part of a message is in theirs and not in ours"),
        figure("queued", QUEUED_OF_THREE, a).note(
            "a of a + b l, with three shared buffers of which each interrupt fills one, and a \
             message that overwrites another; not compared: the kernel's part of the message and \
             of the interrupt is in theirs and not in ours",
        ),
    ])
}

fn table(all: &[Cost]) -> String {
    let mut columns = vec![("what".to_owned(), Align::Left)];
    columns.extend(SHOWN.map(|length| (format!("l = {length}"), Align::Right)));
    columns.push(("accesses".into(), Align::Right));
    let columns: Vec<(&str, Align)> = columns.iter().map(|(name, at)| (&**name, *at)).collect();
    let mut table = TextTable::new(&columns);
    for (case, what) in CASES {
        let of = points(all, case);
        let at = |length: u64| of.iter().find(|it| it.0 == length).map(|it| it.1.to_string());
        let mut row = vec![what.to_owned()];
        row.extend(SHOWN.map(|length| at(length).unwrap_or_default()));
        let accesses = all.iter().filter(|it| it.case == case).map(|it| it.accesses).max();
        row.push(accesses.unwrap_or_default().to_string());
        table.row(row);
    }
    table.render()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_above_all_points() {
        let points: Vec<(u64, u64)> = (0..=32).map(|l| (l, 100 + 7 * l + l % 2)).collect();
        assert_eq!((per_place(&points), above(&points, 7.0)), (Some(7.0), Some(101.0)));
        assert_eq!((per_place(&points[..9]), above(&[], 7.0)), (None, None));
    }

    #[test]
    fn damaged_lines_are_none() {
        assert!(Cost::read("BUFFERS queued 3 551 1").is_some());
        for wrong in ["BUFFERS queued 3 551", "BUFFERS queued x 551 1", "QUEUE a 1 2 3", ""] {
            assert_eq!(Cost::read(wrong), None);
        }
    }

    #[test]
    fn more_instructions_than_their_cycles_do_not_hold() {
        let cost = |case: &str, length: u64, instructions: u64| Cost {
            case: case.into(),
            length,
            instructions,
            accesses: 0,
        };
        let held = |most: u64| {
            let costs = |case: &'static str| {
                let steep = if ["dedicated", "hear"].contains(&case) { 0 } else { 10 };
                (0..=32).map(move |length| cost(case, length, most + steep * length))
            };
            let all: Vec<Cost> = CASES.iter().flat_map(|(case, _)| costs(case)).collect();
            rows(&all).unwrap().iter().map(|row| row.holds).collect::<Vec<_>>()
        };
        let (yes, no) = (Some(true), Some(false));
        assert_eq!(held(195)[..5], [yes; 5]);
        assert_eq!(held(196)[..5], [no, yes, yes, yes, yes]);
        assert_eq!(held(271)[..5], [no, yes, yes, yes, no]);
        assert_eq!(held(549)[..5], [no, no, yes, yes, no]);
        assert!(held(20)[5..].iter().all(Option::is_none), "figures have no verdict");
    }
}
