//! The four percentages of §4.4.1, and which reading of the dissertation gives which.
//!
//! Open are: how execution times are drawn, how the walk over the list of queues is charged, and
//! which list is parsed after a DP2 task blocked (table 4.2, or the reasoning of §4.2.4). As long
//! as nothing is lost in schedulability, every overhead grows with the scale in proportion, and
//! the saving against EDF does not depend on the scale at all: 17 % at scale 1 and 25 % at scale 2
//! for the same n need different readings.

use super::figures::savings;
use super::sampling::{Point, Workloads, point, samples};
use crate::{Effort, Progress, ReproductionReport, Row};
use diapason::Failure;
use diapason::table::{Align, TextTable};
use diapason_csd::workload::CostDraw;
use diapason_csd::{ChargingReading, Dissertation, DpBlock, QueueList, SchedulabilityTest};

/// One way to read the dissertation.
struct Way {
    name: &'static str,
    draw: CostDraw,
    reading: ChargingReading,
    test: SchedulabilityTest,
    /// Whether CSD-4 pays for four queues, used or not.
    paid: bool,
}

const fn way(
    name: &'static str,
    draw: CostDraw,
    queue_list: QueueList,
    dp_block: DpBlock,
    test: SchedulabilityTest,
) -> Way {
    Way { name, draw, reading: ChargingReading { queue_list, dp_block }, test, paid: false }
}

/// The first is the reading of the figures, by which the percentages are judged.
const WAYS: [Way; 9] = {
    use CostDraw::{Absolute, ShareOfPeriod};
    use DpBlock::{Reasoned, Table42};
    use QueueList::{Free, OncePerPair, PerSelection};
    use SchedulabilityTest::{Dissertation, Exact};
    [
        way("share, once, exact", ShareOfPeriod, OncePerPair, Reasoned, Exact),
        Way {
            paid: true,
            ..way("share, once, exact, four paid", ShareOfPeriod, OncePerPair, Reasoned, Exact)
        },
        way("share, once, printed", ShareOfPeriod, OncePerPair, Reasoned, Dissertation),
        way("share, table 4.2, printed", ShareOfPeriod, OncePerPair, Table42, Dissertation),
        way("share, twice, printed", ShareOfPeriod, PerSelection, Reasoned, Dissertation),
        way("share, free, printed", ShareOfPeriod, Free, Reasoned, Dissertation),
        way("absolute, once, exact", Absolute, OncePerPair, Reasoned, Exact),
        way("absolute, once, printed", Absolute, OncePerPair, Reasoned, Dissertation),
        way("absolute, table 4.2, printed", Absolute, OncePerPair, Table42, Dissertation),
    ]
};

/// A percentage of the paper: row, divisor, index of one of the two [`savings`], value, and true if
/// it says "more than".
const CLAIMS: [(&str, u64, usize, f64, bool); 4] = [
    ("fig4.3.n15.csd4-vs-edf", 1, 0, 17.0, false),
    ("fig4.3.n40.csd4-vs-edf", 1, 1, 40.0, true),
    ("fig4.4.n15.csd4-vs-edf", 2, 0, 25.0, false),
    ("fig4.4.n40.csd4-vs-rm", 2, 1, 50.0, false),
];

/// How far a percentage may be off, in points: the paper's are rounded and read off 500 workloads
/// that we cannot draw again.
const TOLERANCE: f64 = 3.0;

/// Adds the table of readings and the claims.
pub fn add(
    effort: Effort,
    progress: &Progress,
    report: &mut ReproductionReport,
) -> Result<(), Failure> {
    let mut found = Vec::new();
    for way in &WAYS {
        let mut savings = [[0.0; 2]; 2];
        for divisor in [1, 2] {
            savings[divisor as usize - 1] = both(way, divisor, effort, progress)?;
        }
        found.push(savings);
    }
    let heading = "Less total overhead of CSD-4 in percent, by reading: execution times, list of \
                   queues, test";
    report.sections.push((heading.into(), table(&found)));
    report.rows.extend(CLAIMS.map(|claim| claimed(claim, &found)));
    report.rows.push(at_once(&found));
    Ok(())
}

fn both(way: &Way, divisor: u64, effort: Effort, progress: &Progress) -> Result<[f64; 2], Failure> {
    let at = |tasks: usize| -> Result<Point, Failure> {
        let prices = Dissertation::prices(tasks, way.reading);
        let kind = Workloads { tasks, divisor, draw: way.draw };
        point(kind, &prices, way.test, samples(effort), (progress, way.name))
    };
    Ok(savings([&at(15)?, &at(40)?], divisor, way.paid))
}

fn table(found: &[[[f64; 2]; 2]]) -> String {
    let mut table = TextTable::new(&[
        ("reading", Align::Left),
        ("scale 1, n 15", Align::Right),
        ("n 40", Align::Right),
        ("scale 2, n 15", Align::Right),
        ("n 40 against RM", Align::Right),
    ]);
    let claimed =
        CLAIMS.iter().map(|claim| format!("{}{}", if claim.4 { ">" } else { "" }, claim.3));
    table.row(["[EMERALDS 1998, §4.4.1]".to_string()].into_iter().chain(claimed).collect());
    for (way, savings) in WAYS.iter().zip(found) {
        let numbers = savings.iter().flatten().map(|saving| format!("{saving:.1}"));
        table.row([way.name.to_string()].into_iter().chain(numbers).collect());
    }
    table.render()
}

fn supports(claim: (&str, u64, usize, f64, bool), ours: f64) -> bool {
    if claim.4 { ours > claim.3 } else { (ours - claim.3).abs() <= TOLERANCE }
}

/// Returns the claim beside the reading of the figures, which alone decides; the note names all
/// readings that would support it.
fn claimed(claim: (&'static str, u64, usize, f64, bool), found: &[[[f64; 2]; 2]]) -> Row {
    let (id, divisor, which, paper, _) = claim;
    let ours = |place: usize| found[place][divisor as usize - 1][which];
    let with: Vec<&str> = (0..WAYS.len())
        .filter(|place| supports(claim, ours(*place)))
        .map(|place| WAYS[place].name)
        .collect();
    let with = if with.is_empty() { "none".into() } else { with.join("; ") };
    Row::numbers(id, "%", Some(paper), ours(0)).holds(supports(claim, ours(0))).note(format!(
        "by the reading of the figures, `{}`; of {} readings these give it: {with}",
        WAYS[0].name,
        WAYS.len(),
    ))
}

/// Looks for a reading that gives both 17 % and 25 % for n = 15.
fn at_once(found: &[[[f64; 2]; 2]]) -> Row {
    let most = found.iter().map(|savings| savings[1][0] - savings[0][0]).fold(0.0, f64::max);
    let both = |savings: &&[[f64; 2]; 2]| {
        supports(CLAIMS[0], savings[0][0]) && supports(CLAIMS[2], savings[1][0])
    };
    let ours = found.iter().find(both).map_or("no reading gives both", |_| "a reading gives both");
    Row::words("n15.17-and-25-at-once", None, ours).note(format!(
        "from scale 1 to scale 2 the saving grows by {most:.1} points at most; the paper's \
         8 cannot be had without a loss of schedulability at scale 1 that goes away at scale 2"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_claim_is_judged_by_the_reading_of_the_figures_alone() {
        let mut found = vec![[[0.0; 2]; 2]; WAYS.len()];
        found[4][0][0] = 17.0;
        let row = claimed(CLAIMS[0], &found);
        assert_eq!((row.holds, &row.ours), (Some(false), &0.0.into()), "another's does not count");
        assert!(row.note.ends_with(&format!("give it: {}", WAYS[4].name)), "{}", row.note);
        found[0][0][0] = 19.5;
        assert_eq!(claimed(CLAIMS[0], &found).holds, Some(true));
        found[0][0][0] = 20.5;
        assert_eq!(claimed(CLAIMS[0], &found).holds, Some(false));
        found[0][0][1] = 40.1;
        assert_eq!(claimed(CLAIMS[1], &found).holds, Some(true));
        found[0][0][1] = 39.9;
        assert_eq!(claimed(CLAIMS[1], &found).holds, Some(false));
        assert_eq!(at_once(&found).ours, "no reading gives both");
        found[4][1][0] = 24.0;
        assert_eq!(at_once(&found).ours, "a reading gives both");
        assert_eq!(at_once(&found).holds, None);
    }
}
