//! The printed test of §7.3.6 against the simulated bus: workloads that it accepts and that are
//! late, and none such among those that the sound test accepts.

use super::SEED;
use crate::{Effort, Progress, ReproductionReport, Row, parallel};
use diapason::Failure;
use diapason_abi::Nanos;
use diapason_mts::late::{life, real};
use diapason_mts::printed::{self, Extra, MtsVerdict};
use diapason_mts::workload::{FrameLengths, Workload, WorkloadKind};
use diapason_random::Random;

/// Clocks of nodes are off by so much at most.
const CLOCKS: Nanos = Nanos::from_micros(20);
/// Lives of a workload that only the printed test accepts, and of one that is promised.
const LIVES: (u64, u64) = (40, 2);
/// How long a life is.
const LONG: u64 = 20_000_000;
const MS: u64 = 1_000_000;

#[derive(Clone, Copy, Default)]
struct Found {
    /// Accepted by the printed test alone, and late on the bus.
    printed: bool,
    refuted: bool,
    /// Accepted by the sound test, and late on the bus or out of order.
    sound: bool,
    broken: bool,
}

/// Adds the printed test and the sound one against the bus.
pub fn add(
    effort: Effort,
    progress: &Progress,
    report: &mut ReproductionReport,
) -> Result<(), Failure> {
    let count = match effort {
        Effort::Quick => 600,
        Effort::Full | Effort::Long => 20_000,
    };
    let done = |done| progress.at("lives on the bus", done, count);
    let found = parallel::map(count, |number| one(number as u64), done);
    let of = |is: fn(&Found) -> bool| found.iter().filter(|found| is(found)).count();
    let (printed, refuted) = (of(|found| found.printed), of(|found| found.refuted));
    let (sound, broken) = (of(|found| found.sound), of(|found| found.broken));
    let row = Row::numbers("printed-test.late", "workloads", Some(0.0), refuted as f64);
    report.rows.push(row.note(format!(
        "of {count} random workloads with stuff bits, {printed} are accepted by the printed test \
         of §7.3.6 alone; so many of those were seen late on the bus"
    )));
    let row = Row::numbers("sound-test.late", "workloads", None, broken as f64);
    report.rows.push(row.holds(broken == 0 && sound > 0).note(format!(
        "of {sound} that the sound test accepts, clocks off by up to {CLOCKS} and renewals as \
         nodes do them included"
    )));
    Ok(())
}

fn one(number: u64) -> Found {
    let mut random = Random::new(SEED ^ number);
    let kind = WorkloadKind {
        high: (random.between(3, 7) as usize, 0),
        low: (random.below(3) as usize, 0),
        high_deadlines: (MS / 2, MS / 2 + random.between(100_000, MS)),
        low_deadlines: (4 * MS, 20 * MS),
        epoch: 2 * MS,
    };
    let workload = Workload::random(kind, FrameLengths::Stuffed, SEED, number);
    let Some(set) = real(&workload, CLOCKS) else { return Found::default() };
    let promised = set.spare_ppm().ok().flatten().is_some_and(|spare| spare >= 0);
    let printed = printed::mts(&workload, Extra::USUAL) == MtsVerdict::Feasible;
    let mut wrong = |lives: u64| {
        (0..lives).any(|_| {
            let outcome = life(&workload, &set, LONG, &mut random);
            outcome.is_ok_and(|it| !it.late.is_empty() || it.inverted > 0)
        })
    };
    Found {
        sound: promised,
        broken: promised && wrong(LIVES.1),
        printed: printed && !promised,
        refuted: printed && !promised && wrong(LIVES.0),
    }
}
