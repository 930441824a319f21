//! The avionics workload of table 7.2: planned, simulated, and how much faster it could be.

use super::SEED;
use crate::{ReproductionReport, Row};
use diapason::Failure;
use diapason_abi::Nanos;
use diapason_mts::late::{life, real};
use diapason_mts::printed::{self, Extra, MtsVerdict};
use diapason_mts::sound;
use diapason_mts::workload::{FrameLengths, Workload};
use diapason_random::Random;

const EPOCH: u64 = 4_000_000;
const CLOCKS: Nanos = Nanos::from_micros(20);
/// Twice the longest period.
const LONG: u64 = 2_000_000_000;
/// Times are divided by up to so many thousandths.
const FASTEST: u64 = 200_000;

/// Adds the rows of the avionics workload.
pub fn add(report: &mut ReproductionReport) -> Result<(), Failure> {
    let workload = Workload::avionics(FrameLengths::Stuffed, EPOCH);
    let set = real(&workload, CLOCKS);
    let spare = set.as_ref().and_then(|set| set.spare_ppm().ok().flatten());
    let row = Row::numbers(
        "avionics.spare",
        "% of a deadline",
        None,
        spare.unwrap_or(-1_000_000) as f64 / 10_000.0,
    );
    report.rows.push(row.holds(spare.is_some_and(|spare| spare > 0)).note(
        "left at least to every message under MTS; each task of table 7.2 sends eight bytes a \
         period at 1 Mbit/s",
    ));
    if let Some(set) = set {
        let mut random = Random::new(SEED);
        let outcome = life(&workload, &set, LONG, &mut random)
            .map_err(|refusal| Failure::Input(refusal.to_string()))?;
        let late = outcome.late.len();
        let row = Row::numbers("avionics.late", "messages", None, late as f64);
        let holds = late == 0 && outcome.inverted == 0 && outcome.missed == 0;
        report.rows.push(row.holds(holds && outcome.sent > 500).note(format!(
            "of {} frames in two simulated seconds; {} of them told to renew identifiers",
            outcome.sent, outcome.told
        )));
    }
    let fastest = |fits: &dyn Fn(&Workload) -> bool| {
        let (mut low, mut high) = (1_000, FASTEST);
        while low < high {
            let middle = u64::midpoint(low, high + 1);
            if fits(&workload.faster(middle)) { low = middle } else { high = middle - 1 }
        }
        low as f64 / 1_000.0
    };
    let dm = fastest(&sound::dm);
    let mts = fastest(&|workload| sound::mts(workload) == MtsVerdict::Feasible);
    let ed = fastest(&|workload| printed::ed(workload, Extra::USUAL));
    for (id, ours) in [("avionics.faster.dm", dm), ("avionics.faster.mts", mts)] {
        let note = "all periods and deadlines could be shorter by this factor; sound test";
        report.rows.push(Row::numbers(id, "times", None, ours).note(note));
    }
    report.rows.push(Row::numbers("avionics.faster.ed", "times", None, ed));
    Ok(())
}
