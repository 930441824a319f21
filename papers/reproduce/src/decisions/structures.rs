//! The dissertation's one list of blocked and ready tasks beside the kernel's ranks, both as plain
//! structures, counted in QEMU by `semaphores-queues`.
//!
//! A pair is what the dissertation counts of a task that blocks and becomes ready again: both, and
//! a selection after each.

use super::super::boot::Bench;
use super::super::{Picture, ReproductionReport, Row};
use diapason::Failure;
use diapason::chart::{LineChart, Series};
use diapason::table::{Align, TextTable};

const DESCRIPTION: &str = "[system]\nname = \"queues\"\n[[process]]\nname = \"queues\"\n\
                           program = \"semaphores-queues\"\npriority = 10\n";
const HORIZON_NS: u64 = 100_000_000;
const ORDERS: [(&str, &str); 2] = [("dp", "by deadline"), ("fp", "by period")];

/// The most instructions of each operation, for one structure and one number of tasks.
#[derive(Clone, PartialEq, Eq, Debug)]
struct Cost {
    tasks: u64,
    order: String,
    structure: String,
    block: u64,
    unblock: u64,
    select: u64,
}

impl Cost {
    /// `QUEUE n order structure block unblock select`.
    fn read(line: &str) -> Option<Cost> {
        let words: Vec<&str> = line.split_ascii_whitespace().collect();
        let ["QUEUE", tasks, order, structure, block, unblock, select] = words[..] else {
            return None;
        };
        let number = |word: &str| word.parse().ok();
        Some(Cost {
            tasks: number(tasks)?,
            order: order.into(),
            structure: structure.into(),
            block: number(block)?,
            unblock: number(unblock)?,
            select: number(select)?,
        })
    }

    const fn pair(&self) -> u64 {
        self.block + self.unblock + 2 * self.select
    }
}

/// Measures, and adds what came out to the report on decisions.
pub fn reproduce(bench: &Bench, report: &mut ReproductionReport) -> Result<(), Failure> {
    let lines = bench.lines("queues", DESCRIPTION, HORIZON_NS)?;
    let all: Option<Vec<Cost>> = lines.iter().map(|line| Cost::read(line)).collect();
    let all = all.filter(|all| !all.is_empty());
    add(&all.ok_or_else(|| Failure::Ours("queues: damaged lines".into()))?, report);
    Ok(())
}

fn add(all: &[Cost], report: &mut ReproductionReport) {
    report.rows.extend(ORDERS.map(|order| row(all, order)));
    let title = "One list of blocked and ready tasks beside ranks, instructions (most)";
    report.sections.push((title.into(), table(all)));
    report.pictures.push(Picture::lines("decisions-structures", &picture(all)));
}

/// Returns, for one order, the numbers of tasks and the cost of a pair in the list and in ranks.
fn pairs(all: &[Cost], order: &str) -> Vec<(u64, u64, u64)> {
    let of = |structure: &'static str| {
        all.iter().filter(move |cost| cost.order == order && cost.structure == structure)
    };
    of("list").zip(of("ranks")).map(|(l, r)| (l.tasks, l.pair(), r.pair())).collect()
}

/// The kernel has the right one of the two if ranks take no more at any number of tasks.
fn row(all: &[Cost], (order, what): (&str, &str)) -> Row {
    let pairs = pairs(all, order);
    let more = |(_, list, ranks): &(u64, u64, u64)| *ranks as f64 - *list as f64;
    let worst = pairs.iter().map(more).fold(f64::NEG_INFINITY, f64::max);
    let ends = [pairs.first(), pairs.last()].map(|end| {
        let (tasks, list, ranks) = end.copied().unwrap_or_default();
        format!("{tasks} tasks: {list} in the list, {ranks} in ranks")
    });
    Row::numbers(&format!("{order}.ranks-over-list"), "instructions", None, worst)
        .holds(worst <= 0.0)
        .note(format!(
            "the most that a pair {what} takes more than in the list; {}",
            ends.join("; ")
        ))
}

fn table(all: &[Cost]) -> String {
    let mut table = TextTable::new(&[
        ("n", Align::Right),
        ("order", Align::Left),
        ("structure", Align::Left),
        ("block", Align::Right),
        ("unblock", Align::Right),
        ("select", Align::Right),
        ("pair", Align::Right),
    ]);
    for cost in all {
        let numbers = [cost.block, cost.unblock, cost.select, cost.pair()];
        let mut cells = vec![cost.tasks.to_string(), cost.order.clone(), cost.structure.clone()];
        cells.extend(numbers.map(|number| number.to_string()));
        table.row(cells);
    }
    table.render()
}

fn picture(all: &[Cost]) -> LineChart {
    let mut series = Vec::new();
    for (order, what) in ORDERS {
        let pairs = pairs(all, order);
        let line = |name: &str, value: fn(&(u64, u64, u64)) -> u64| Series {
            name: format!("{name} {what}"),
            points: pairs.iter().map(|pair| (pair.0 as f64, value(pair) as f64)).collect(),
        };
        series.extend([line("list", |pair| pair.1), line("ranks", |pair| pair.2)]);
    }
    LineChart {
        title: "Blocking, becoming ready and two selections, as plain structures".into(),
        x: "tasks".into(),
        y: "instructions".into(),
        series,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_become_costs() {
        let cost = Cost::read("QUEUE 5 dp list 6 7 40").unwrap();
        assert_eq!((cost.tasks, cost.pair()), (5, 93));
        for bad in ["QUEUE 5 dp list 6 7", "QUEUE x dp list 6 7 40", "QUEUE 5 dp list 6 7 -4", ""] {
            assert_eq!(Cost::read(bad), None);
        }
    }

    #[test]
    fn ranks_that_take_more_at_any_length_do_not_hold() {
        let all = |ranks: [u64; 2]| {
            let lines = [
                "QUEUE 5 dp list 6 7 40".to_string(),
                format!("QUEUE 5 dp ranks 6 7 {}", ranks[0]),
                "QUEUE 10 dp list 6 7 80".into(),
                format!("QUEUE 10 dp ranks 6 7 {}", ranks[1]),
            ];
            lines.iter().map(|line| Cost::read(line).unwrap()).collect::<Vec<_>>()
        };
        assert_eq!(row(&all([40, 80]), ORDERS[0]).holds, Some(true));
        assert_eq!(row(&all([41, 70]), ORDERS[0]).holds, Some(false));
        assert_eq!(row(&all([40, 81]), ORDERS[0]).holds, Some(false));
    }
}
