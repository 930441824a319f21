//! Properties that every run must have, read from its trace and not from the servers.

use crate::case::{Case, Ranking};
use diapason_abi::Nanos;
use diapason_vcpu::sim::{Run, Slice, Who};

/// Checks all properties of `run`.
pub fn all(case: &Case, run: &Run) {
    time_in_is_time_out(case, run);
    for i in 0..case.system.mains.len() {
        releases(case, run, i);
        deadlines(case, run, i);
        saturation(case, run, i);
    }
    for k in 0..case.system.ios.len() {
        grants(case, run, k);
    }
    if case.ranking == Ranking::RateMonotonic {
        for i in 0..case.system.mains.len() {
            interference(case, run, i);
        }
    }
    counters(case, run);
}

fn sum<'a>(slices: impl Iterator<Item = &'a Slice>) -> Nanos {
    slices.fold(Nanos::ZERO, |sum, slice| sum + slice.length())
}

/// Every instant is somebody's, and no work is done that did not arrive.
fn time_in_is_time_out(case: &Case, run: &Run) {
    let top_halves = run.top_halves.iter().fold(Nanos::ZERO, |sum, (a, b)| sum + (*b - *a));
    assert_eq!(sum(run.slices.iter()) + top_halves + run.idle, case.horizon);
    assert!(run.slices.windows(2).all(|pair| pair[0].to <= pair[1].from));
    let everybody = (0..case.system.mains.len()).map(Who::Main);
    for who in everybody.chain((0..case.system.ios.len()).map(Who::Io)) {
        let used = sum(run.slices.iter().filter(|slice| slice.who == who));
        let mine = || run.jobs.iter().filter(move |job| job.who == who);
        let done: u64 = mine().filter(|job| job.done.is_some()).map(|job| job.units.0).sum();
        let arrived: u64 = mine().map(|job| job.units.0).sum();
        assert!(done <= used.0 && used.0 <= arrived, "{who:?}: {done} {used:?} {arrived}");
    }
}

fn reserved(run: &Run, who: Who) -> impl Iterator<Item = &Slice> {
    run.slices.iter().filter(move |slice| slice.who == who && !slice.background)
}

/// Any half-open window of `T` holds releases of at most `C`.
fn releases(case: &Case, run: &Run, i: usize) {
    let server = &case.system.mains[i].server;
    let all: Vec<&Slice> = reserved(run, Who::Main(i)).collect();
    let mut first = 0;
    let mut inside = Nanos::ZERO;
    for slice in &all {
        inside += slice.length();
        while all[first].released + server.period() <= slice.released {
            inside = inside - all[first].length();
            first += 1;
        }
        assert!(inside <= server.budget(), "main {i} had {inside:?} released in one period");
    }
}

/// Every chunk is used by `e + T`.
fn deadlines(case: &Case, run: &Run, i: usize) {
    let period = case.system.mains[i].server.period();
    for slice in reserved(run, Who::Main(i)) {
        assert!(slice.to <= slice.released + period, "main {i} late: {slice:?}");
    }
}

/// A main VCPU that stays backlogged gets its budget in every period.
fn saturation(case: &Case, run: &Run, i: usize) {
    let Some((start, true)) = case.saturated[i] else { return };
    let server = &case.system.mains[i].server;
    let mut from = start;
    while from + server.period() <= case.horizon {
        let to = from + server.period();
        let inside = |slice: &&Slice| slice.from < to && slice.to > from;
        let length = |slice: &Slice| slice.to.min(to) - slice.from.max(from);
        let used = reserved(run, Who::Main(i)).filter(inside).map(length);
        let used = used.fold(Nanos::ZERO, |sum, length| sum + length);
        let (least, most) =
            (server.budget() - case.overheads.overrun, server.budget() + case.overheads.overrun);
        assert!(least <= used && used <= most, "main {i} got {used:?} from {from:?} on");
        from = to;
    }
}

/// A grant for one beneficiary is used within its period.
fn grants(case: &Case, run: &Run, k: usize) {
    let [first, rest @ ..] = case.beneficiaries[k].as_slice() else { return };
    if rest.iter().any(|other| other != first) {
        return;
    }
    let period = case.system.mains[*first].server.period();
    for slice in reserved(run, Who::Io(k)).filter(|slice| slice.released <= slice.from) {
        assert!(slice.to <= slice.released + period, "I/O {k} late: {slice:?}");
    }
    let io = &case.system.ios[k];
    if 1_000_000 % io.share() == 0 && !case.system.overrun {
        let lockout = run.system.ios[k].counters().lockout_max;
        let quantum = io.quantum(period).0;
        let wait = quantum * u64::from(1_000_000 / io.share()) - quantum;
        assert!(lockout.0 <= wait, "I/O {k} locked out for {lockout:?}");
    }
}

/// In each busy period of level `i`: what main VCPUs use is at most `⌈L/T⌉·C`, what I/O VCPUs use
/// at most `q + U(L − q)`, each plus an overrun, at the end of every slice.
fn interference(case: &Case, run: &Run, i: usize) {
    let level = (case.system.mains[i].server.period(), i);
    let counts = |slice: &Slice| match slice.who {
        Who::Main(j) => !slice.background && (slice.period, j) <= level,
        Who::Io(_) => slice.period <= level.0,
    };
    let mut mains = vec![Nanos::ZERO; case.system.mains.len()];
    let mut ios = vec![Nanos::ZERO; case.system.ios.len()];
    let (mut start, mut end) = (Nanos::ZERO, Nanos::ZERO);
    for slice in run.slices.iter().filter(|slice| counts(slice)) {
        if slice.from - end > top_half_time(run, end, slice.from) {
            mains.fill(Nanos::ZERO);
            ios.fill(Nanos::ZERO);
            start = slice.from - case.overheads.section - top_half_time_before(run, slice.from);
        }
        end = slice.to;
        let length = end - start;
        match slice.who {
            Who::Main(j) => {
                mains[j] += slice.length();
                let server = &case.system.mains[j].server;
                let most = length.0.div_ceil(server.period().0) * server.budget().0;
                assert!(mains[j].0 <= most + case.overheads.overrun.0, "main {j} in level {i}");
            }
            Who::Io(k) => {
                ios[k] += slice.length();
                let most = io_bound(case, k, level.0, length);
                assert!(ios[k] <= most + case.overheads.overrun, "I/O {k} in level {i}: {slice:?}");
            }
        }
    }
}

fn io_bound(case: &Case, k: usize, level: Nanos, length: Nanos) -> Nanos {
    let io = &case.system.ios[k];
    let periods = case.beneficiaries[k].iter().map(|i| case.system.mains[*i].server.period());
    let quantum = periods.filter(|period| *period <= level).map(|period| io.quantum(period)).max();
    let quantum = quantum.unwrap_or(Nanos::ZERO);
    if length <= quantum {
        return length;
    }
    quantum + Nanos((length - quantum).0 * u64::from(io.share()) / 1_000_000)
}

/// Returns how much of `[from, to)` went to top halves.
fn top_half_time(run: &Run, from: Nanos, to: Nanos) -> Nanos {
    let inside = |(a, b): &(Nanos, Nanos)| (*b).min(to) - (*a).max(from);
    run.top_halves.iter().map(inside).fold(Nanos::ZERO, |sum, part| sum + part)
}

/// The top half that ends at `at`, in which something may have arrived.
fn top_half_time_before(run: &Run, at: Nanos) -> Nanos {
    run.top_halves.iter().find(|(_, to)| *to == at).map_or(Nanos::ZERO, |(from, to)| *to - *from)
}

/// Compares the servers' counters with the trace and with the assumed limits.
fn counters(case: &Case, run: &Run) {
    for (i, main) in run.system.mains.iter().enumerate() {
        let counters = main.server.counters();
        let late = reserved(run, Who::Main(i)).map(|slice| slice.to - slice.released).max();
        assert_eq!(counters.late_max, late.unwrap_or(Nanos::ZERO), "main {i}");
        assert!(counters.overrun_max <= case.overheads.overrun, "main {i}: {counters:?}");
    }
    for io in &run.system.ios {
        assert!(io.counters().overrun_max <= case.overheads.overrun);
    }
}
