//! The cost of a scheduling decision against the number of VCPUs that could run, counted in QEMU:
//! the most urgent thread wakes by timer, or goes to sleep, and another one has to be found.
//!
//! The table of counts (`counts/kernel.txt`) and what `plan` charges for a switch come from here,
//! and each run of this checks that they still hold.

mod structures;

use super::boot::Bench;
use super::counts::{self, Measured};
use super::semaphores::scenario::{self, Decision, Kind};
use super::{Effort, Picture, Progress, ReproductionReport, Row};
use diapason::Failure;
use diapason::chart::{LineChart, Series};
use diapason::table::{Align, TextTable};
use diapason_costs::{KERNEL, Round};

/// The figure shows 5 to 50 tasks.
const TASKS: [u64; 10] = [5, 10, 15, 20, 25, 30, 35, 40, 45, 50];
/// Queues by deadline in the longest list.
const QUEUES: u8 = 7;
/// How far a count may be off, as a part of it.
const PARTS: f64 = 0.05;
/// Small counts may differ by this much besides.
const SLACK: u64 = 10;
/// Where the entries of the table of counts come from.
const SOURCE: &str = "diapason reproduce decisions";

/// Everything that was measured.
struct All {
    dp: Vec<Decision>,
    fp: Vec<Decision>,
    priorities: Vec<Decision>,
    /// Passing one queue by deadline, and passing seven.
    lists: [Decision; 2],
}

/// Runs the experiment. It is always done in full: it takes seconds.
pub fn reproduce(_: Effort, progress: &Progress) -> Result<ReproductionReport, Failure> {
    let bench = Bench::new()?;
    let most = TASKS[TASKS.len() - 1] - 2;
    let step = |done: usize| progress.at("boots", done, 5);
    step(0);
    let dp = scenario::decisions(&bench, Kind::Dp, most)?;
    step(1);
    let fp = scenario::decisions(&bench, Kind::Fp, most)?;
    step(2);
    let priorities = scenario::decisions(&bench, Kind::Priorities, most)?;
    step(3);
    let list = |queues| {
        let measured = scenario::decisions(&bench, Kind::Lists(queues), u64::from(QUEUES))?;
        measured.first().copied().ok_or_else(|| Failure::Ours("no decision measured".into()))
    };
    let lists = [list(1)?, list(QUEUES)?];
    progress.end();
    let mut report = report(&All { dp, fp, priorities, lists }, &counts::kernel()?)?;
    structures::reproduce(&bench, &mut report)?;
    Ok(report)
}

fn at(all: &[Decision], tasks: u64) -> Result<Decision, Failure> {
    let found = all.iter().find(|decision| decision.tasks == tasks);
    found.copied().ok_or_else(|| Failure::Ours(format!("no decision with {tasks} tasks")))
}

fn report(all: &All, table: &Measured) -> Result<ReproductionReport, Failure> {
    let lines = lines(all)?;
    let rows = vec![
        growth("dp", &all.dp, 2.0 * Round::Compare.price() as f64)?
            .note("a wake-up looks twice at each VCPU of the queue; `plan` charges three looks"),
        growth("fp", &all.fp, 0.0)?.note("the first VCPU by period is found by one instruction"),
        growth("priorities", &all.priorities, 0.0)?.note("the same for threads without VCPUs"),
        table_holds(&lines, table)?,
        plan_holds(all)?,
    ];
    let shown: Vec<String> = lines.iter().map(Count::line).collect();
    let sections = vec![
        ("A decision with entry and switch, instructions (median)".into(), medians(all)?),
        ("Maxima for counts/kernel.txt".into(), shown.join("\n")),
    ];
    let figures = vec![Picture::lines("decisions", &picture(all)?)];
    Ok(ReproductionReport::new("decisions", rows, sections, figures))
}

/// Instructions that each further task adds to waking, and what it should be.
fn growth(id: &str, all: &[Decision], expected: f64) -> Result<Row, Failure> {
    let (first, last) = (at(all, TASKS[0])?, at(all, TASKS[TASKS.len() - 1])?);
    let more = last.wake.0 as f64 - first.wake.0 as f64;
    let each = more / (last.tasks - first.tasks) as f64;
    let row = Row::numbers(&format!("{id}.growth"), "instructions per task", None, each);
    // The compiler may save an instruction of a look.
    Ok(row.holds((0.9 * expected..=expected).contains(&each)))
}

fn medians(all: &All) -> Result<String, Failure> {
    let mut table = TextTable::new(&[
        ("n", Align::Right),
        ("DP wakes", Align::Right),
        ("sleeps", Align::Right),
        ("FP wakes", Align::Right),
        ("sleeps", Align::Right),
        ("no VCPU wakes", Align::Right),
        ("sleeps", Align::Right),
    ]);
    for tasks in TASKS {
        let mut cells = vec![tasks.to_string()];
        for kind in [&all.dp, &all.fp, &all.priorities] {
            let decision = at(kind, tasks)?;
            cells.extend([decision.wake.0.to_string(), decision.block.0.to_string()]);
        }
        table.row(cells);
    }
    let [one, seven] = all.lists.map(|list| (list.wake.0, list.block.0));
    let lists = format!(
        "past one queue by deadline: {} and {}; past {QUEUES}: {} and {}\n",
        one.0, one.1, seven.0, seven.1
    );
    Ok(table.render() + &lists)
}

fn picture(all: &All) -> Result<LineChart, Failure> {
    let mut series = Vec::new();
    for (name, kind) in [("DP", &all.dp), ("FP", &all.fp), ("no VCPUs", &all.priorities)] {
        for (what, value) in
            [("wakes", (|d: Decision| d.wake.0) as fn(Decision) -> u64), ("sleeps", |d| d.block.0)]
        {
            let mut points = Vec::new();
            for tasks in TASKS {
                points.push((tasks as f64, value(at(kind, tasks)?) as f64));
            }
            series.push(Series { name: format!("{name} {what}"), points });
        }
    }
    Ok(LineChart {
        title: "A scheduling decision, kernel entry and switch included".into(),
        x: "tasks that could run".into(),
        y: "instructions".into(),
        series,
    })
}

/// One entry of the table of counts.
#[derive(Clone, PartialEq, Eq, Debug)]
struct Count {
    operation: &'static str,
    length: u64,
    instructions: u64,
    what: &'static str,
}

impl Count {
    fn line(&self) -> String {
        let Count { operation, length, instructions, what } = self;
        format!("{operation} {length} {instructions} {SOURCE}: {what}")
    }
}

/// Returns the counts that the table should have. A pair of waking and sleeping of a thread without
/// a VCPU is what is fixed; what a VCPU adds is its blocking and unblocking; and what each further
/// VCPU adds is selection.
fn lines(all: &All) -> Result<Vec<Count>, Failure> {
    let (shortest, longest) = (2, TASKS[TASKS.len() - 1]);
    let bare = at(&all.priorities, longest)?;
    let mut lines = Vec::new();
    let mut push = |operation, length, instructions, what| {
        lines.push(Count { operation, length, instructions, what });
    };
    let edf = at(&all.dp, shortest)?;
    let select = |tasks: u64| -> Result<u64, Failure> {
        let longer = at(&all.dp, tasks)?;
        let (wake, block) = (longer.wake.1, longer.block.1);
        Ok(wake.saturating_sub(edf.wake.1).max(block.saturating_sub(edf.block.1)))
    };
    let vcpu = "a VCPU sleeps, besides what is fixed";
    for length in [1, longest] {
        push("dp_block", length, edf.block.1.saturating_sub(bare.block.1), vcpu);
    }
    for length in [1, longest] {
        push("dp_unblock", length, edf.wake.1.saturating_sub(bare.wake.1), "a VCPU wakes");
    }
    push("dp_select", 1, 0, "each further VCPU that could run");
    for tasks in TASKS {
        push("dp_select", tasks, select(tasks)?, "each further VCPU that could run");
    }
    let fp = at(&all.fp, longest)?;
    for length in [1, longest] {
        push("fp_block", length, fp.block.1.saturating_sub(bare.block.1), vcpu);
    }
    for length in [1, longest] {
        push("fp_unblock", length, fp.wake.1.saturating_sub(bare.wake.1), "a VCPU wakes");
    }
    for length in [1, longest] {
        push("fp_select", length, 0, "longer queues cost nothing");
    }
    let [one, seven] = all.lists;
    let more = seven.wake.1.saturating_sub(one.wake.1);
    let more = more.max(seven.block.1.saturating_sub(one.block.1));
    push("queue", 0, more.div_ceil(u64::from(QUEUES) - 1), "past seven queues or one");
    push("fixed", 0, bare.wake.1 + bare.block.1, "a thread without VCPU wakes and sleeps");
    Ok(lines)
}

/// The table of counts says what was measured now, within one part in 20 both ways: otherwise it is
/// of another kernel, and time to take it over.
fn table_holds(lines: &[Count], table: &Measured) -> Result<Row, Failure> {
    let said = |count: &Count| {
        let mut entries = table.entries.iter();
        let same = |entry: &&(String, u32, u64, String)| {
            entry.0 == count.operation && u64::from(entry.1) == count.length
        };
        entries.find(same).map(|entry| entry.2)
    };
    let off = |count: &&Count| {
        let slack = count.instructions as f64 * PARTS + SLACK as f64;
        said(count).is_none_or(|said| said.abs_diff(count.instructions) as f64 > slack)
    };
    let off: Vec<String> = lines
        .iter()
        .filter(off)
        .map(|count| match said(count) {
            Some(said) => {
                format!("{} {}: {said}, now {}", count.operation, count.length, count.instructions)
            }
            None => {
                format!("{} {}: missing, now {}", count.operation, count.length, count.instructions)
            }
        })
        .collect();
    let note = match off.first() {
        None => format!("no operation is more than 5 % and {SLACK} instructions off"),
        Some(first) => format!("{} of its lines are off, the first: {first}", off.len()),
    };
    let ours = format!("{} of {} hold", lines.len() - off.len(), lines.len());
    Ok(Row::words("counts-table", None, &ours).holds(off.is_empty()).note(note))
}

/// Checks that `plan` charges no less for a switch.
fn plan_holds(all: &All) -> Result<Row, Failure> {
    let mut worst: (u64, u64) = (0, 0);
    let mut short = 0;
    let cases = [(&all.dp, 1), (&all.fp, 0), (&all.priorities, 0)];
    for (decisions, queues) in cases {
        for decision in decisions {
            let needed = decision.wake.1.max(decision.block.1);
            let queue = std::iter::repeat_n(Some(0), (queues * decision.tasks) as usize);
            let charged = KERNEL.switch_among(queue);
            if needed > worst.0 {
                worst = (needed, charged);
            }
            short = short.max(needed.saturating_sub(charged));
        }
    }
    let (needed, charged) = worst;
    Ok(Row::numbers("plan-switch-short-of", "instructions", None, short as f64)
        .holds(short == 0)
        .note(format!("the longest decision needs {needed}, `plan` charges {charged} for it")))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every further VCPU adds `step` by deadline; a bare thread needs 400, a VCPU twice as much.
    fn all(step: u64) -> All {
        let decision = |tasks, count| Decision {
            tasks,
            wake: (count, count + 3),
            block: (count - 100, count - 95),
        };
        let kind = |base, step| (2..=50).map(|n| decision(n, base + step * n)).collect();
        All {
            dp: kind(800, step),
            fp: kind(800, 0),
            priorities: kind(400, 0),
            lists: [decision(2, 800), decision(2, 800)],
        }
    }

    fn table(all: &All) -> Measured {
        let text: Vec<String> = lines(all).unwrap().iter().map(Count::line).collect();
        counts::parse(&text.join("\n")).unwrap()
    }

    #[test]
    fn the_table_made_from_a_run_is_complete_and_adds_up() {
        let all = all(10);
        let measured = table(&all);
        assert_eq!(measured.missing, [""; 0]);
        assert_eq!(measured.tasks_max(), 50);
        let last = |points: &Vec<(u32, u64)>| points.last().unwrap().1;
        let [block, unblock, select] = measured.counts.dp.each_ref().map(last);
        let decision = at(&all.dp, 50).unwrap();
        let sum = measured.counts.fixed + block + unblock + 2 * select;
        assert_eq!(sum, decision.wake.1 + decision.block.1);
    }

    #[test]
    fn a_table_that_says_less_or_more_does_not_hold() {
        let compare = |now: u64, said: u64| {
            table_holds(&lines(&all(now)).unwrap(), &table(&all(said))).unwrap()
        };
        assert_eq!(compare(10, 10).holds, Some(true));
        for row in [compare(12, 10), compare(10, 12)] {
            assert!(row.holds == Some(false) && row.note.contains("dp_select"), "{}", row.note);
        }
    }

    #[test]
    fn growth_by_period_and_a_plan_that_charges_too_little_do_not_hold() {
        let mut all = all(1);
        assert_eq!(growth("fp", &all.fp, 0.0).unwrap().holds, Some(true));
        all.fp[40].wake.0 += 1;
        all.fp[48].wake.0 += 1;
        assert_eq!(growth("fp", &all.fp, 0.0).unwrap().holds, Some(false));
        assert_eq!(growth("dp", &all.dp, 1.0).unwrap().holds, Some(true));
        assert_eq!(growth("dp", &all.dp, 2.0).unwrap().holds, Some(false));
        all.fp[7].wake.1 = KERNEL.switch_among(std::iter::empty()) + 1;
        let row = plan_holds(&all).unwrap();
        assert!(row.holds == Some(false) && row.ours == 1.0, "{row:?}");
    }
}
