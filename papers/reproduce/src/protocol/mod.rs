//! EMERALDS, chapter 6: what it costs to receive datagrams by the conventional way, lazily, past
//! the layers, and with one copy instead of two; counted in QEMU on the 82574L, in instructions and
//! in misses of an instruction cache.

mod scenario;

use super::boot::Bench;
use super::{Effort, Picture, Progress, ReproductionReport, Row};
use diapason::Failure;
use diapason::chart::{LineChart, Series};
use diapason::table::{Align, TextTable};
use scenario::{Cost, Flooded, Plain, Way};
use std::ops::RangeInclusive;

/// The dissertation's short messages, in bytes.
const SHORT: RangeInclusive<u64> = 20..=100;
/// The lengths of messages that take several frames.
const FRAGMENTED: RangeInclusive<u64> = 1_459..=6_000;
/// The length at which its saving is greatest.
const BEST: u64 = 1_400;
/// The length of which a number of instructions is promised, and this number.
const PROMISED: (u64, u64) = (32, 180);
/// The period of the more urgent flow, in ns.
const PERIOD_NS: u64 = 1_500_000;
/// [EMERALDS 1998, table 6.1], in microseconds: an interrupt with driver and switch, the filter.
const PAPER_INTERRUPT: f64 = 40.0;
const PAPER_FILTER: f64 = 6.9;

/// Frames of each flood in a second.
const FLOODS: [u64; 3] = [1_000, 10_000, 100_000];
/// All boots of the experiment.
const BOOTS: usize = 13;

/// Everything that was measured.
struct All {
    /// The costs by each of [`Way::ALL`].
    costs: [Vec<Cost>; 4],
    plain: Vec<Plain>,
    /// The times between receptions by the conventional way, and lazily.
    turns: [Vec<u64>; 2],
    /// The flow beside floods of each of [`FLOODS`], by the conventional way, and lazily.
    floods: [Vec<Flooded>; 2],
}

impl All {
    fn of(&self, way: Way) -> &[Cost] {
        &self.costs[way as usize]
    }

    fn at(&self, way: Way, bytes: u64) -> Result<Cost, Failure> {
        let found = self.of(way).iter().find(|cost| cost.bytes == bytes);
        let missing = || Failure::Ours(format!("{}: no message of {bytes} bytes", way.name()));
        found.copied().ok_or_else(missing)
    }

    /// Returns the least saving of instructions of `new` against `old`, in percent, over messages
    /// of `lengths`.
    fn least_saving(
        &self,
        old: Way,
        new: Way,
        lengths: RangeInclusive<u64>,
    ) -> Result<f64, Failure> {
        self.least_saving_of(|cost| cost.instructions, old, new, lengths)
    }

    /// Returns the least saving of what `number` says of a cost.
    fn least_saving_of(
        &self,
        number: fn(&Cost) -> u64,
        old: Way,
        new: Way,
        lengths: RangeInclusive<u64>,
    ) -> Result<f64, Failure> {
        let mut least = f64::INFINITY;
        for before in self.of(old).iter().filter(|cost| lengths.contains(&cost.bytes)) {
            let (old, new) = (number(before) as f64, number(&self.at(new, before.bytes)?) as f64);
            least = least.min(100.0 * (old - new) / old);
        }
        if least.is_finite() { Ok(least) } else { Err(Failure::Ours("no message".into())) }
    }
}

/// Runs the experiment. It is always done in full: it takes seconds.
pub fn reproduce(_: Effort, progress: &Progress) -> Result<ReproductionReport, Failure> {
    let bench = Bench::new()?;
    let mut costs = [const { Vec::new() }; 4];
    for (done, way) in Way::ALL.into_iter().enumerate() {
        progress.at("boots", done, BOOTS);
        costs[done] = scenario::costs(&bench, way)?;
    }
    progress.at("boots", 4, BOOTS);
    let plain = scenario::plain(&bench)?;
    progress.at("boots", 5, BOOTS);
    let turns = [scenario::turns(&bench, Way::Conventional)?, scenario::turns(&bench, Way::Lazy)?];
    let flood = |way| {
        let outcomes = FLOODS.iter().map(|rate| scenario::flooded(&bench, way, *rate));
        outcomes.collect::<Result<Vec<Flooded>, Failure>>()
    };
    progress.at("boots", 7, BOOTS);
    let conventional = flood(Way::Conventional)?;
    progress.at("boots", 10, BOOTS);
    let floods = [conventional, flood(Way::Lazy)?];
    progress.end();
    report(&All { costs, plain, turns, floods })
}

fn report(all: &All) -> Result<ReproductionReport, Failure> {
    let mut rows = operations(all)?;
    rows.extend(short(all)?);
    rows.extend(missed(all)?);
    rows.extend(long(all)?);
    rows.push(jitter(all));
    rows.extend(flooded(all));
    let sections = vec![
        ("Receiving a message, instructions (median)".into(), table(all)?),
        ("Receiving a message, misses of the instruction cache (median)".into(), misses(all)?),
        ("The same without adapter and kernel (most)".into(), plain(&all.plain)),
    ];
    let figures = vec![
        Picture::lines("fig6.3", &lengths(all, SHORT, &Way::ALL[..3])),
        Picture::lines("fig6.5", &lengths(all, 20..=6_000, &[Way::TwoCopies, Way::Lazy])),
        Picture::lines("fig6.6", &timeline("Figure 6.6: conventional", &all.turns[0])),
        Picture::lines("fig6.7", &timeline("Figure 6.7: lazy", &all.turns[1])),
    ];
    Ok(ReproductionReport::new("protocol", rows, sections, figures))
}

/// Returns the operations of table 6.1, and what is promised of plain code.
fn operations(all: &All) -> Result<Vec<Row>, Failure> {
    let (bytes, most) = PROMISED;
    let missing = || Failure::Ours(format!("plain: no message of {bytes} bytes"));
    let plain = all.plain.iter().find(|plain| plain.bytes == bytes).ok_or_else(missing)?;
    let interrupt = all.at(Way::Bypass, 0)?.instructions;
    let part = 100.0 * plain.filter as f64 / interrupt as f64;
    let paper = 100.0 * PAPER_FILTER / PAPER_INTERRUPT;
    Ok(vec![
        Row::numbers("table6.1.interrupt", "instructions", None, interrupt as f64)
            .note("interrupt, driver and both switches, for a frame that nobody wants"),
        Row::numbers("table6.1.filter", "instructions", None, plain.filter as f64)
            .note("the filter alone, with two listeners"),
        Row::numbers("table6.1.filter-of-interrupt", "%", Some(paper), part)
            .holds(part <= paper)
            .note("the filter as a part of interrupt, driver and switch; promised: no more"),
        Row::numbers("plain.bypass", "instructions", None, plain.bypass as f64)
            .holds(plain.bypass <= most)
            .note(format!(
                "filter, bypass and copy of {bytes} bytes; promised: at most {most}. The full \
                 stack instead of the bypass takes {}, and the conventional way {}",
                plain.full, plain.conventional
            )),
    ])
}

/// Returns the claims about short messages.
fn short(all: &All) -> Result<Vec<Row>, Failure> {
    let (bytes, _) = PROMISED;
    let [old, new] = [all.at(Way::Conventional, bytes)?, all.at(Way::Lazy, bytes)?];
    let saved = old.switches as f64 - new.switches as f64;
    let lazy = all.least_saving(Way::Conventional, Way::Lazy, SHORT)?;
    let bypass = all.least_saving(Way::Lazy, Way::Bypass, SHORT)?;
    let both = all.least_saving(Way::Conventional, Way::Bypass, SHORT)?;
    let note = |what: &str| format!("{what}, the least saving of messages of 20 to 100 bytes");
    Ok(vec![
        Row::numbers("short.switches-saved", "switches", Some(1.0), saved)
            .holds(saved >= 1.0)
            .note(format!(
                "writes of CR3 for a message: {} conventionally, {} lazily",
                old.switches, new.switches
            )),
        Row::numbers("short.lazy", "%", None, lazy)
            .holds(lazy > 0.0)
            .note(note("lazy instead of conventional; promised: less at every length")),
        Row::numbers("short.bypass", "%", Some(20.0), bypass)
            .holds(bypass >= 20.0)
            .note(note("bypass instead of all layers")),
        Row::numbers("short.both", "%", None, both).note(note("bypass instead of conventional")),
    ])
}

/// Returns the claims about the instruction cache: a way with less code misses less.
fn missed(all: &All) -> Result<Vec<Row>, Failure> {
    let row = |id: &str, old: Way, new: Way| {
        let saved = all.least_saving_of(|cost| cost.misses, old, new, SHORT)?;
        let ways = format!("{} instead of {}", new.name(), old.name());
        let row = Row::numbers(id, "%", None, saved).holds(saved > 0.0);
        Ok(row.note(format!(
            "misses of a cache of 4 KB with lines of 16 bytes, {ways}; promised: fewer at every \
             length of 20 to 100 bytes"
        )))
    };
    Ok(vec![
        row("misses.lazy", Way::Conventional, Way::Lazy)?,
        row("misses.bypass", Way::Lazy, Way::Bypass)?,
    ])
}

/// Returns the claims about long messages.
fn long(all: &All) -> Result<Vec<Row>, Failure> {
    let best = all.least_saving(Way::TwoCopies, Way::Lazy, BEST..=BEST)?;
    let fragmented = all.least_saving(Way::TwoCopies, Way::Lazy, FRAGMENTED)?;
    let note = "one copy instead of two; an instruction of a copy moves eight bytes here, and \
                its data cause no miss of the instruction cache";
    Ok(vec![
        Row::numbers("long.single-copy", "%", Some(22.0), best).holds(best >= 22.0).note(note),
        Row::numbers("long.single-copy-fragmented", "%", Some(15.0), fragmented)
            .holds(fragmented >= 15.0)
            .note("messages of 1.5 to 6 kB, at least; each frame interrupts, as there"),
    ])
}

/// Returns the longest deviation from the period, in ns.
fn deviation(turns: &[u64]) -> u64 {
    turns.iter().map(|turn| turn.abs_diff(PERIOD_NS)).max().unwrap_or(0)
}

/// Returns the claim about predictability.
fn jitter(all: &All) -> Row {
    let [old, new] = [deviation(&all.turns[0]), deviation(&all.turns[1])];
    let saved = 100.0 * (1.0 - new as f64 / old.max(1) as f64);
    Row::numbers("jitter.saved", "%", Some(33.0), saved).holds(old > 0 && saved >= 33.0).note(
        format!(
            "the largest deviation from 1.5 ms of 100 receptions of 1 kB, beside 10 bytes every \
             4 ms for a less urgent program: {old} ns conventionally, {new} ns lazily (there \
             0.12 and 0.08 ms)"
        ),
    )
}

/// Returns the claims about floods of frames for a less urgent program.
fn flooded(all: &All) -> Vec<Row> {
    let [old, new] = &all.floods;
    let most = old.iter().map(|flood| flood.missed).max().unwrap_or(0);
    let lazy = new.iter().map(|flood| {
        let id = format!("flood.lazy-{}", flood.rate);
        Row::numbers(&id, "datagrams", None, flood.missed as f64).holds(flood.missed == 0).note(
            format!(
                "missed of 1,000, one each millisecond, beside {} frames for a less urgent \
                 program, with 31 million instructions a second; promised: none",
                flood.flooded
            ),
        )
    });
    let conventional = old.iter().map(|flood| format!("{} at {}", flood.missed, flood.rate));
    let conventional = conventional.collect::<Vec<_>>().join(", ");
    let row = Row::numbers("flood.conventional", "datagrams", None, most as f64);
    let row = row.holds(most > 0).note(format!(
        "the same by the conventional way, the most of all floods ({conventional} frames a \
         second); promised: some"
    ));
    lazy.chain([row]).collect()
}

fn table(all: &All) -> Result<String, Failure> {
    let mut columns = vec![("bytes", Align::Right), ("frames", Align::Right)];
    for way in Way::ALL {
        columns.extend([(way.name(), Align::Right), ("switches", Align::Right)]);
    }
    let mut table = TextTable::new(&columns);
    for first in all.of(Way::Conventional) {
        let mut cells = vec![first.bytes.to_string(), first.frames.to_string()];
        for way in Way::ALL {
            let cost = all.at(way, first.bytes)?;
            cells.extend([cost.instructions.to_string(), cost.switches.to_string()]);
        }
        table.row(cells);
    }
    Ok(table.render())
}

fn misses(all: &All) -> Result<String, Failure> {
    let mut columns = vec![("bytes", Align::Right), ("frames", Align::Right)];
    columns.extend(Way::ALL.map(|way| (way.name(), Align::Right)));
    let mut table = TextTable::new(&columns);
    for first in all.of(Way::Conventional) {
        let mut cells = vec![first.bytes.to_string(), first.frames.to_string()];
        for way in Way::ALL {
            cells.push(all.at(way, first.bytes)?.misses.to_string());
        }
        table.row(cells);
    }
    Ok(table.render())
}

fn plain(all: &[Plain]) -> String {
    let names = ["bytes", "filter", "bypass", "full stack", "conventional"];
    let mut table = TextTable::new(&names.map(|name| (name, Align::Right)));
    for plain in all {
        let numbers = [plain.bytes, plain.filter, plain.bypass, plain.full, plain.conventional];
        table.row(numbers.map(|number| number.to_string()).to_vec());
    }
    table.render()
}

fn lengths(all: &All, shown: RangeInclusive<u64>, ways: &[Way]) -> LineChart {
    let line = |way: &Way| {
        let costs = all.of(*way).iter().filter(|cost| shown.contains(&cost.bytes));
        let points = costs.map(|cost| (cost.bytes as f64, cost.instructions as f64)).collect();
        Series { name: way.name().into(), points }
    };
    LineChart {
        title: "Receiving a message".into(),
        x: "bytes".into(),
        y: "instructions".into(),
        series: ways.iter().map(line).collect(),
    }
}

fn timeline(title: &str, turns: &[u64]) -> LineChart {
    let late = |turn: &u64| *turn as f64 - PERIOD_NS as f64;
    let points = turns.iter().enumerate().map(|(number, turn)| (number as f64, late(turn)));
    LineChart {
        title: title.into(),
        x: "reception".into(),
        y: "ns from its period".into(),
        series: vec![Series { name: "1 kB every 1.5 ms".into(), points: points.collect() }],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns a measurement in which every claim of the paper comes out just so.
    fn all() -> All {
        // The cache misses at every second instruction.
        let cost = |bytes, instructions, switches| Cost {
            bytes,
            frames: 1,
            instructions,
            switches,
            misses: instructions / 2,
        };
        let way = |short, best, long, switches| {
            vec![
                cost(0, 1_000, 2),
                cost(20, short, switches),
                cost(32, short, switches),
                cost(1_400, best, switches),
                cost(6_000, long, switches),
            ]
        };
        let costs = [
            way(2_000, 4_000, 9_000, 4),
            way(1_000, 780, 850, 3),
            way(800, 700, 800, 3),
            way(1_100, 1_000, 1_000, 3),
        ];
        let plain = Plain { bytes: 32, filter: 172, bypass: 180, full: 400, conventional: 600 };
        let turns = [vec![1_500_300, 1_499_700], vec![1_500_200, 1_499_800]];
        let flood = |missed| vec![Flooded { rate: 100_000, flooded: 99_000, missed }];
        All { costs, plain: vec![plain], turns, floods: [flood(1), flood(0)] }
    }

    fn broken(all: &All) -> Vec<String> {
        let report = report(all).unwrap();
        let rows = report.rows.into_iter().filter(|row| row.holds == Some(false));
        rows.map(|row| row.id).collect()
    }

    #[test]
    fn each_claim_holds_at_its_limit_and_breaks_beyond() {
        assert_eq!(broken(&all()), Vec::<String>::new());
        let alter = |change: &dyn Fn(&mut All)| {
            let mut altered = all();
            change(&mut altered);
            broken(&altered)
        };
        assert_eq!(alter(&|all| all.plain[0].bypass = 181), ["plain.bypass"]);
        assert_eq!(alter(&|all| all.plain[0].filter = 173), ["table6.1.filter-of-interrupt"]);
        assert_eq!(alter(&|all| all.costs[2][1].instructions = 801), ["short.bypass"]);
        assert_eq!(alter(&|all| all.costs[1][1].misses = 1_000), ["misses.lazy"]);
        assert_eq!(alter(&|all| all.costs[2][2].misses = 500), ["misses.bypass"]);
        assert_eq!(alter(&|all| all.costs[1][2].switches = 4), ["short.switches-saved"]);
        assert_eq!(alter(&|all| all.costs[0][1].instructions = 1_000), ["short.lazy"]);
        assert_eq!(alter(&|all| all.costs[1][3].instructions = 781), ["long.single-copy"]);
        let long = alter(&|all| all.costs[1][4].instructions = 851);
        assert_eq!(long, ["long.single-copy-fragmented"]);
        assert_eq!(alter(&|all| all.turns[1][0] = 1_500_202), ["jitter.saved"]);
        assert_eq!(alter(&|all| all.floods[1][0].missed = 1), ["flood.lazy-100000"]);
        assert_eq!(alter(&|all| all.floods[0][0].missed = 0), ["flood.conventional"]);
    }

    #[test]
    fn a_missing_length_is_our_fault() {
        let mut all = all();
        all.costs[2].remove(2);
        assert_eq!(report(&all).unwrap_err().exit_code(), 3);
    }
}
