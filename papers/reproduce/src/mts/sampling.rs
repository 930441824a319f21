//! Shares of random workloads that fit: one point of a figure.

use super::SEED;
use crate::{Effort, parallel};
use diapason_mts::printed::{self, Extra, MtsVerdict};
use diapason_mts::sound;
use diapason_mts::workload::{FrameLengths, Workload, WorkloadKind};

/// The high-speed periodic streams of the points of a line.
pub const STREAMS: std::ops::RangeInclusive<usize> = 8..=15;

/// Workloads for one point.
pub fn samples(effort: Effort) -> usize {
    match effort {
        Effort::Quick => 100,
        Effort::Full | Effort::Long => 1_000,
    }
}

/// Everything about the workloads of one number of streams, in per cent.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Point {
    /// Number of high-speed periodic streams of each workload.
    pub streams: usize,
    /// Mean utilization of the workloads.
    pub load: f64,
    /// Feasible by the printed tests.
    pub ed: f64,
    pub mts: f64,
    pub dm: f64,
    /// Feasible by the sound tests, frames counted alike; 0 if not asked for.
    pub mts_sound: f64,
    pub dm_sound: f64,
    /// The share that low-speed messages cause of those that do not fit under MTS.
    pub low_share: f64,
}

#[derive(Clone, Copy)]
struct One {
    load: u64,
    ed: bool,
    mts: MtsVerdict,
    dm: bool,
    sound: Option<(MtsVerdict, bool)>,
}

/// Returns the points of a line: workloads of this kind with 8 to 15 high-speed periodic streams.
pub fn line(kind: WorkloadKind, extra: Extra, effort: Effort, is_sound: bool) -> Vec<Point> {
    let each = STREAMS.map(|streams| {
        let kind = WorkloadKind { high: (streams, kind.high.1), ..kind };
        let one = |number: usize| one(kind, extra, number as u64, is_sound);
        point(streams, &parallel::map(samples(effort), one, |_| ()))
    });
    each.collect()
}

fn one(kind: WorkloadKind, extra: Extra, number: u64, is_sound: bool) -> One {
    let streams = kind.high.0 as u64;
    let workload = Workload::random(kind, FrameLengths::Printed, SEED ^ (streams << 32), number);
    let sound = is_sound.then(|| (sound::mts(&workload), sound::dm(&workload)));
    One {
        load: workload.load_ppm(),
        ed: printed::ed(&workload, extra),
        mts: printed::mts(&workload, extra),
        dm: printed::dm(&workload, extra),
        sound,
    }
}

fn point(streams: usize, all: &[One]) -> Point {
    let count = |fits: &dyn Fn(&One) -> bool| all.iter().filter(|one| fits(one)).count() as f64;
    let percent = |fits: &dyn Fn(&One) -> bool| 100.0 * count(fits) / all.len().max(1) as f64;
    let load = all.iter().map(|one| one.load as f64 / 10_000.0).sum::<f64>() / all.len() as f64;
    let unfit = count(&|one| one.mts != MtsVerdict::Feasible);
    Point {
        streams,
        load,
        ed: percent(&|one| one.ed),
        mts: percent(&|one| one.mts == MtsVerdict::Feasible),
        dm: percent(&|one| one.dm),
        mts_sound: percent(&|one| one.sound.is_some_and(|(mts, _)| mts == MtsVerdict::Feasible)),
        dm_sound: percent(&|one| one.sound.is_some_and(|(_, dm)| dm)),
        low_share: 100.0 * count(&|one| one.mts == MtsVerdict::Low) / unfit.max(1.0),
    }
}

/// Returns the mean of a value over the points whose load is in a range.
pub fn mean(points: &[Point], loads: (f64, f64), value: impl Fn(&Point) -> f64) -> f64 {
    let within = |point: &&Point| (loads.0..=loads.1).contains(&point.load);
    let found: Vec<f64> = points.iter().filter(within).map(value).collect();
    if found.is_empty() { f64::NAN } else { found.iter().sum::<f64>() / found.len() as f64 }
}
