//! EMERALDS, figures 5.9 to 5.11: what a contended pair of lock and unlock costs with the standard
//! semaphores and with hints, against the number of tasks, counted in QEMU.

pub mod scenario;

use super::boot::Bench;
use super::{Effort, Picture, Progress, ReproductionReport, Row};
use diapason::Failure;
use diapason::chart::{LineChart, Series};
use diapason::table::{Align, TextTable};
use scenario::{Kind, Pair};

/// The figures show 3 to 30 tasks.
const TASKS: [u64; 10] = [3, 6, 9, 12, 15, 18, 21, 24, 27, 30];
/// The length that the dissertation calls typical.
const TYPICAL: u64 = 15;
/// The least promised saving, in percent.
const SAVING: f64 = 20.0;
/// How far a ratio may be from the dissertation's, as a part of it.
const NEAR: f64 = 0.1;

/// One kind of scheduling, measured.
struct Measured {
    kind: Kind,
    pairs: Vec<Pair>,
}

impl Measured {
    /// Returns the pair with so many tasks.
    fn at(&self, tasks: u64, own: bool) -> Result<Pair, Failure> {
        let found = self.pairs.iter().find(|pair| pair.tasks == tasks && pair.own == own);
        let missing = || format!("{}: no pair with {tasks} tasks", self.kind.id());
        found.copied().ok_or_else(|| Failure::Ours(missing()))
    }

    /// Returns the pairs of the figures.
    fn shown(&self, own: bool) -> Result<Vec<Pair>, Failure> {
        TASKS.iter().map(|tasks| self.at(*tasks, own)).collect()
    }
}

/// Runs the experiment. It is always done in full: it takes seconds.
pub fn reproduce(_: Effort, progress: &Progress) -> Result<ReproductionReport, Failure> {
    let bench = Bench::new()?;
    let kinds = [Kind::Dp, Kind::Fp, Kind::Priorities];
    let mut all = Vec::new();
    for (done, kind) in kinds.into_iter().enumerate() {
        progress.at("boots", done, kinds.len());
        let most = TASKS[TASKS.len() - 1] - 2;
        all.push(Measured { kind, pairs: scenario::pairs(&bench, kind, most)? });
    }
    progress.end();
    report(&all)
}

fn report(all: &[Measured]) -> Result<ReproductionReport, Failure> {
    let (mut rows, mut sections) = (Vec::new(), Vec::new());
    for measured in all {
        let own = measured.shown(true)?;
        sections.push((title(measured.kind).into(), table(&own, &measured.shown(false)?)));
        rows.extend(typical(measured)?);
        rows.push(growth(measured.kind, &own));
    }
    let mut figures = Vec::new();
    for (name, measured) in ["fig5.9", "fig5.10", "fig5.10-priorities"].into_iter().zip(all) {
        figures.push(Picture::lines(name, &costs(measured.kind, &measured.shown(true)?)));
    }
    figures.push(Picture::lines("fig5.11", &savings(all)?));
    Ok(ReproductionReport::new("semaphores", rows, sections, figures))
}

const fn title(kind: Kind) -> &'static str {
    match kind {
        Kind::Dp => "Figure 5.9: VCPUs by earliest deadline, instructions",
        Kind::Fp => "Figure 5.10: VCPUs by period, instructions",
        Kind::Priorities => "Figure 5.10 again: threads by priority, no VCPUs, instructions",
        Kind::Lists(_) => "Several queues by deadline",
    }
}

fn table(own: &[Pair], other: &[Pair]) -> String {
    let mut table = TextTable::new(&[
        ("n", Align::Right),
        ("pair, standard", Align::Right),
        ("new", Align::Right),
        ("saved", Align::Right),
        ("event to lock, standard", Align::Right),
        ("new", Align::Right),
        ("saved", Align::Right),
        ("switches", Align::Right),
        ("with Tx, standard", Align::Right),
        ("new", Align::Right),
        ("saved", Align::Right),
        ("switches", Align::Right),
    ]);
    let percent = |share: f64| format!("{share:.1} %");
    let arrow = |pair: &Pair| format!("{} → {}", pair.standard.switches, pair.hinted.switches);
    for (pair, third) in own.iter().zip(other) {
        table.row(vec![
            pair.tasks.to_string(),
            pair.old().to_string(),
            pair.renewed().to_string(),
            percent(pair.saving()),
            pair.standard.whole.to_string(),
            pair.hinted.whole.to_string(),
            percent(pair.saving_of_whole()),
            arrow(pair),
            third.standard.whole.to_string(),
            third.hinted.whole.to_string(),
            percent(third.saving_of_whole()),
            arrow(third),
        ]);
    }
    table.render()
}

/// Returns the claims at the typical number of tasks.
fn typical(measured: &Measured) -> Result<Vec<Row>, Failure> {
    let id = |what: &str| format!("{}.{what}", measured.kind.id());
    let (own, other) = (measured.at(TYPICAL, true)?, measured.at(TYPICAL, false)?);
    let paper = match measured.kind {
        Kind::Dp => Some(28.0),
        Kind::Fp => Some(26.0),
        Kind::Priorities | Kind::Lists(_) => None,
    };
    let pair = Row::numbers(&id("saved"), "%", paper, own.saving())
        .holds(own.saving() >= SAVING)
        .note(format!(
            "of a pair at {TYPICAL} tasks, {} instead of {} instructions, counted as \
             [EMERALDS 1998, §5.5.1] does; promised: at least {SAVING} %",
            own.renewed(),
            own.old()
        ));
    let whole = |id: String, pair: Pair, where_: &str| {
        Row::numbers(&id, "%", None, pair.saving_of_whole())
            .holds(pair.saving_of_whole() >= SAVING)
            .note(format!(
                "from the event, raised {where_}, to T2 holding the mutex: {} instead of {} \
                 instructions; promised: at least {SAVING} %",
                pair.hinted.whole, pair.standard.whole
            ))
    };
    let switches = |id: String, pair: Pair, paper: f64| {
        let saved = pair.standard.switches as f64 - pair.hinted.switches as f64;
        Row::numbers(&id, "switches", Some(paper), saved)
            .holds(saved >= paper)
            .note("writes of CR3, each task being a process of its own")
    };
    Ok(vec![
        pair,
        whole(id("saved-from-event"), own, "by T1"),
        whole(id("saved-from-event-with-tx"), other, "while Tx runs"),
        switches(id("switches-saved"), own, 1.0),
        switches(id("switches-saved-with-tx"), other, 1.0),
    ])
}

/// Instructions that each further task adds, from the first to the last point.
fn slope(pairs: &[Pair], cost: impl Fn(&Pair) -> u64) -> f64 {
    let (Some(first), Some(last)) = (pairs.first(), pairs.last()) else { return 0.0 };
    let tasks = last.tasks.saturating_sub(first.tasks).max(1);
    (cost(last) as f64 - cost(first) as f64) / tasks as f64
}

/// Returns how costs grow with the number of tasks.
fn growth(kind: Kind, pairs: &[Pair]) -> Row {
    let (old, new) = (slope(pairs, Pair::old), slope(pairs, Pair::renewed));
    let id = format!("{}.growth", kind.id());
    match kind {
        Kind::Dp => Row::numbers(&id, "standard / new", Some(2.0), old / new)
            .holds((old / new - 2.0).abs() <= 2.0 * NEAR)
            .note(format!(
                "each further task that could run adds {old:.0} instructions to a standard pair \
                 and {new:.0} to a new one: an EDF queue is looked through at each switch; \
                 compared within {:.0} %",
                100.0 * NEAR
            )),
        _ => Row::numbers(&id, "instructions per task", Some(0.0), new).holds(new == 0.0).note(
            format!(
                "the new pair is constant; the standard one, which grows in [EMERALDS 1998], \
                 grows by {old:.0} here: inheriting moves nobody in a queue"
            ),
        ),
    }
}

fn costs(kind: Kind, pairs: &[Pair]) -> LineChart {
    let line = |name: &str, cost: &dyn Fn(&Pair) -> u64| Series {
        name: name.into(),
        points: pairs.iter().map(|pair| (pair.tasks as f64, cost(pair) as f64)).collect(),
    };
    LineChart {
        title: title(kind).into(),
        x: "ready tasks".into(),
        y: "instructions of a contended pair".into(),
        series: vec![line("standard", &Pair::old), line("new", &Pair::renewed)],
    }
}

fn savings(all: &[Measured]) -> Result<LineChart, Failure> {
    let mut series = Vec::new();
    for measured in all {
        let points = measured.shown(true)?;
        let points = points.iter().map(|pair| (pair.tasks as f64, pair.saving())).collect();
        series.push(Series { name: measured.kind.id().into(), points });
    }
    Ok(LineChart {
        title: "Figure 5.11: what the new semaphores save".into(),
        x: "ready tasks".into(),
        y: "% of a contended pair".into(),
        series,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use scenario::Cost;

    /// Returns a kind whose new pairs save `saved` instructions of 1,000 and whose costs grow.
    fn measured(kind: Kind, saved: u64, grow: u64) -> Measured {
        let cost = |whole, lock, switches| Cost { whole, lock, switches };
        let pair = |tasks: u64, own| Pair {
            tasks,
            own,
            standard: cost(2_000 + 2 * grow * tasks, 1_000 + 2 * grow * tasks, 3),
            hinted: cost(2_000 - saved + grow * tasks, 70, 2),
        };
        let pairs = (2..=31).flat_map(|tasks| [pair(tasks, true), pair(tasks, false)]);
        Measured { kind, pairs: pairs.collect() }
    }

    #[test]
    fn a_saving_holds_and_too_small_a_one_does_not() {
        let report = report(&[measured(Kind::Dp, 500, 10), measured(Kind::Fp, 500, 0)]).unwrap();
        assert_eq!(report.holds(), Some(true), "{:?}", report.rows);
        assert_eq!(report.pictures.len(), 3);
        let row = |id: &str| report.rows.iter().find(|row| row.id == id).unwrap();
        assert_eq!(row("dp.growth").ours, 2.0);
        assert_eq!(row("fp.saved").ours, 50.0);
        let small = super::report(&[measured(Kind::Fp, 199, 0)]).unwrap();
        assert_eq!(small.holds(), Some(false));
        let growing = super::report(&[measured(Kind::Fp, 500, 1)]).unwrap();
        let found = |report: &ReproductionReport, id: &str| {
            report.rows.iter().find(|row| row.id == id).unwrap().holds
        };
        assert_eq!(found(&growing, "fp.growth"), Some(false));
        let mut less = measured(Kind::Dp, 500, 10);
        less.pairs.iter_mut().for_each(|pair| pair.standard.lock -= 8 * pair.tasks);
        less.pairs.iter_mut().for_each(|pair| pair.standard.whole -= 8 * pair.tasks);
        assert_eq!(found(&super::report(&[less]).unwrap(), "dp.growth"), Some(false));
    }

    #[test]
    fn a_missing_point_is_our_fault() {
        let mut one = measured(Kind::Dp, 500, 10);
        one.pairs.retain(|pair| pair.tasks != 21);
        assert_eq!(report(&[one]).unwrap_err().exit_code(), 3);
    }
}
