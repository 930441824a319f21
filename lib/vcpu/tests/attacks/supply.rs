//! How soon a main VCPU gets its budget, whatever drained it before: `D_any`, and if a list was
//! full `T` for `T − C` in it.

use crate::case::{Case, Ranking};
use diapason_abi::Nanos;
use diapason_vcpu::sim::{Random, Run, Who};

/// `R(c)` of main VCPU `i` under fixed priorities, without a kernel: the least `w` with
/// `w = c + Σ ⌈w/T⌉·C + Σ W(w)` over what is above.
fn response(case: &Case, i: usize, c: u64) -> u64 {
    let level = |j: usize| (case.system.mains[j].server.period(), j);
    let mut w = c;
    loop {
        let above = (0..case.system.mains.len()).filter(|j| level(*j) < level(i));
        let mains = above.map(|j| {
            let server = &case.system.mains[j].server;
            w.div_ceil(server.period().0) * server.budget().0
        });
        let ios = (0..case.system.ios.len()).map(|k| io_demand(case, k, level(i).0, w));
        let next = c + mains.sum::<u64>() + ios.sum::<u64>();
        if next <= w {
            return w;
        }
        w = next;
        assert!(
            w <= level(i).0.0,
            "the closed form admitted what the exact test refuses: {case:?}"
        );
    }
}

fn io_demand(case: &Case, k: usize, level: Nanos, w: u64) -> u64 {
    let io = &case.system.ios[k];
    let periods = case.beneficiaries[k].iter().map(|i| case.system.mains[*i].server.period());
    let q = periods.filter(|period| *period <= level).map(|period| io.quantum(period).0).max();
    match q {
        None => 0,
        Some(q) if w <= q => w,
        Some(q) => q + (w - q) * u64::from(io.share()) / 1_000_000,
    }
}

/// Checks the supply of `i`, backlogged from `start` on. Gives how often the bound was reached.
fn supply(case: &Case, run: &Run, i: usize, start: Nanos) -> u64 {
    let server = &case.system.mains[i].server;
    let (budget, period) = (server.budget().0, server.period().0);
    let merged = run.system.mains[i].server.counters().merges > 0;
    let wait = if merged { period } else { period - budget };
    let mut reached = 0;
    for (rounds, rest) in [(0, 1), (0, budget), (1, 1), (1, budget), (2, budget)] {
        let within = Nanos(wait + rounds * period + response(case, i, rest));
        if start + within > case.horizon {
            continue;
        }
        let most = Nanos(rounds * budget + rest);
        let reserved = |end| {
            let mine = run.slices.iter().filter(|s| s.who == Who::Main(i) && !s.background);
            let inside = mine.filter(|s| s.from < end && s.to > start);
            inside.fold(Nanos::ZERO, |sum, s| sum + (s.to.min(end) - s.from.max(start)))
        };
        let used = reserved(start + within);
        assert!(used >= most, "main {i} has {used:?} of {most:?} {within:?} after {start:?}");
        reached += u64::from(reserved(start + within - Nanos(1)) < most);
    }
    reached
}

#[test]
fn a_drained_server_is_supplied_in_time() {
    let (mut checked, mut reached) = (0, 0);
    for n in 0..10_000 {
        let mut random = Random::new(21 << 32 | n);
        let case = Case::random(&mut random, Ranking::RateMonotonic, false);
        let run = case.system.clone().run(&case.arrivals, case.horizon);
        for (i, saturated) in case.saturated.iter().enumerate() {
            let Some((start, _)) = saturated else { continue };
            checked += 1;
            reached += supply(&case, &run, i, *start);
        }
    }
    assert!(checked > 5_000 && reached > 20, "{checked} checked, {reached} reached");
}
