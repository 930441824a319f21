//! The largest number of CAN frames a second that one core carries without loss, and how many of
//! them `plan` promises.
//!
//! Five buses as full as they can be are no load for a core of 1 GHz, so it is made slower, by a
//! half at a time, until it is the core that ends it and not the buses. At each speed three numbers
//! are sought by halving: what `plan` admits with the best of several ways to share the core, what
//! the simulator carries, where everything takes its longest, and what QEMU carries, where
//! everything takes the instructions that it has.

mod core;
mod search;

use self::core::{Core, LOADED, LOADS, Laid, Load, Speed, Spent};
use super::{Effort, Progress, ReproductionReport, Row, parallel};
use diapason::table::{Align, TextTable};
use diapason::tools::{Missing, QEMU};
use diapason::{Failure, Workspace};
use diapason_abi::Nanos;
use search::largest;

/// Speeds: from 1 GHz, where the buses are the limit, to where the core is.
const SPEEDS: [Speed; 6] = [Speed(0), Speed(2), Speed(3), Speed(4), Speed(5), Speed(6)];
const QUICK: [Speed; 2] = [Speed(2), Speed(6)];

/// The load that a core carried at its largest rate, and its cost beside that of silence.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
struct Carried {
    load: Load,
    messages: u64,
    busy: Nanos,
    server: Nanos,
}

/// The findings at a speed.
#[derive(Clone, Debug)]
struct Found {
    speed: Speed,
    promised: Load,
    laid: Option<Laid>,
    simulated: Carried,
    emulated: Option<Carried>,
}

pub(super) fn reproduce(
    effort: Effort,
    progress: &Progress,
) -> Result<ReproductionReport, Failure> {
    let workspace = Workspace::find()?;
    let quick = effort == Effort::Quick;
    let speeds: &[Speed] = if quick { &QUICK } else { &SPEEDS };
    if !quick {
        QEMU.require(Missing::Say)?;
    }
    let core = Core::prepare(&workspace)?;
    let find = |index: usize| find(&core, &workspace, speeds[index], quick);
    let step = |done| progress.at("speeds", done, speeds.len());
    step(0);
    let found = parallel::map(speeds.len(), find, step);
    let found = found.into_iter().collect::<Result<Vec<_>, Failure>>()?;
    progress.end();
    let rows = found.iter().flat_map(rows).collect();
    let sections = vec![
        ("Largest number of frames a second".to_owned(), rates(&found)),
        ("Where the time goes then".to_owned(), shares(&found)),
    ];
    Ok(ReproductionReport::new("largest-rate", rows, sections, Vec::new()))
}

fn find(core: &Core, workspace: &Workspace, speed: Speed, quick: bool) -> Result<Found, Failure> {
    let (promised, laid) = core.promised(speed);
    let simulated = most(|load| core.simulate(speed, load))?;
    let emulate = || most(|load| core.emulate(workspace, speed, load));
    let emulated = (!quick).then(emulate).transpose()?;
    Ok(Found { speed, promised, laid, simulated, emulated })
}

/// Returns the most of which every frame is read.
fn most(mut run: impl FnMut(Load) -> Result<Spent, Failure>) -> Result<Carried, Failure> {
    let silent = run(Load(0))?;
    let mut best = Carried::default();
    largest(LOADS, |load| {
        let load = Load(load);
        let Spent { whole, messages, busy, server, .. } = run(load)?;
        if whole {
            let (busy, server) = (busy - silent.busy, server - silent.server);
            best = Carried { load, messages, busy, server };
        }
        Ok::<bool, Failure>(whole)
    })?;
    Ok(best)
}

impl Carried {
    /// Instructions for each message.
    fn each(&self, speed: Speed) -> u64 {
        (self.busy.0 >> speed.0).checked_div(self.messages).unwrap_or_default()
    }
}

/// Returns the limit that ends the search at a load.
fn limit(load: Load) -> &'static str {
    if load.0 == LOADS { "the buses" } else { "the core" }
}

/// Promised is at most what is carried where everything takes longest, and that at most what is
/// carried where it takes what it takes.
fn rows(found: &Found) -> Vec<Row> {
    let id = |what: &str| format!("{}.{what}", found.speed.id());
    let row = |what: &str, load: Load| {
        Row::numbers(&id(what), "frames/s", None, load.frames() as f64).note(limit(load))
    };
    let mut rows = vec![
        row("promised", found.promised),
        row("simulator", found.simulated.load)
            .holds(found.simulated.load >= found.promised && found.simulated.load > Load(0)),
    ];
    rows.extend(
        found.emulated.map(|emulated| {
            row("qemu", emulated.load).holds(emulated.load >= found.simulated.load)
        }),
    );
    rows
}

fn rates(all: &[Found]) -> String {
    let mut table = TextTable::new(&[
        ("core", Align::Right),
        ("promised", Align::Right),
        ("limit", Align::Left),
        ("shared as", Align::Left),
        ("simulator", Align::Right),
        ("limit", Align::Left),
        ("qemu", Align::Right),
        ("limit", Align::Left),
    ]);
    for found in all {
        let of = |load: Load| [load.frames().to_string(), limit(load).to_owned()];
        let laid = found.laid.map_or("-".to_owned(), |laid| laid.to_string());
        let mut cells = vec![found.speed.to_string()];
        cells.extend(of(found.promised));
        cells.push(laid);
        cells.extend(of(found.simulated.load));
        cells.extend(found.emulated.iter().flat_map(|emulated| of(emulated.load)));
        table.row(cells);
    }
    table.render()
}

fn shares(all: &[Found]) -> String {
    let mut table = TextTable::new(&[
        ("core", Align::Right),
        ("machine", Align::Left),
        ("frames/s", Align::Right),
        ("server", Align::Right),
        ("readers", Align::Right),
        ("idle", Align::Right),
        ("instructions a frame", Align::Right),
    ]);
    for found in all {
        let runs = [("sim", Some(found.simulated)), ("qemu", found.emulated)];
        for (machine, run) in runs.into_iter().filter_map(|(name, run)| Some((name, run?))) {
            let part = |time: Nanos| format!("{:.1} %", time.0 as f64 * 100.0 / LOADED.0 as f64);
            table.row(vec![
                found.speed.to_string(),
                machine.to_owned(),
                run.load.frames().to_string(),
                part(run.server),
                part(run.busy - run.server),
                part(LOADED - run.busy),
                run.each(found.speed).to_string(),
            ]);
        }
    }
    table.render()
}
