//! More than 100,000 random sets in the normal run, in four parts that run side by side; and the
//! long form, `cargo test --release -p diapason-vcpu --test attacks -- --ignored`.

use crate::case::{Case, Ranking};
use crate::checks;
use diapason_abi::Nanos;
use diapason_vcpu::SporadicServer;
use diapason_vcpu::sim::{Arrival, Happening, Main, Random, Slice, Who};

/// `sets` random sets from a seed; each has its own, printed when it fails.
fn campaign(seed: u64, sets: u64, ranking: Ranking, kernel: bool) {
    let mut reached = 0;
    for n in 0..sets {
        let _name = Named(seed, n);
        let mut random = Random::new(seed << 32 | n);
        let case = Case::random(&mut random, ranking, kernel);
        let run = case.system.clone().run(&case.arrivals, case.horizon);
        checks::all(&case, &run);
        reached += u64::from(run.idle == Nanos::ZERO);
    }
    assert!(reached * 50 > sets, "only {reached} of {sets} sets kept the processor busy");
}

/// Says which set failed.
struct Named(u64, u64);

impl Drop for Named {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("set {} of seed {}", self.1, self.0);
        }
    }
}

#[test]
fn rate_monotonic() {
    campaign(1, 30_000, Ranking::RateMonotonic, false);
}

#[test]
fn rate_monotonic_with_a_kernel() {
    campaign(2, 20_000, Ranking::RateMonotonic, true);
}

#[test]
fn deadlines() {
    campaign(3, 20_000, Ranking::Deadlines, false);
    campaign(4, 10_000, Ranking::Deadlines, true);
}

#[test]
fn queues() {
    campaign(5, 20_000, Ranking::Csd, false);
    campaign(6, 10_000, Ranking::Csd, true);
}

#[test]
#[ignore = "a million sets take minutes"]
fn a_million_sets() {
    for (seed, ranking) in
        [Ranking::RateMonotonic, Ranking::Deadlines, Ranking::Csd].into_iter().enumerate()
    {
        campaign(100 + seed as u64, 170_000, ranking, false);
        campaign(200 + seed as u64, 170_000, ranking, true);
    }
}

/// Somebody who only runs in the background is not noticed by anybody who does not.
#[test]
fn background_delays_nobody() {
    let mut served = 0;
    for n in 0..5_000 {
        let _name = Named(7, n);
        let mut random = Random::new(7 << 32 | n);
        let ranking = [Ranking::RateMonotonic, Ranking::Csd][random.below(2) as usize];
        let mut case = Case::random(&mut random, ranking, false);
        case.system.mains.iter_mut().for_each(|main| main.background = false);
        let mut crowded = case.clone();
        let idler = crowded.system.mains.len();
        let server = SporadicServer::new(Nanos::ZERO, Nanos(random.between(1, 50)), 8, Nanos::ZERO);
        crowded.system.mains.push(Main { background: true, ..Main::new(server) });
        let start = Nanos(random.below(100));
        let work = Happening::Work { main: idler, units: case.horizon };
        crowded.arrivals.push(Arrival::new(start, work));
        crowded.arrivals.sort_by_key(|arrival| arrival.at);
        let alone = case.system.run(&case.arrivals, case.horizon);
        let beside = crowded.system.run(&crowded.arrivals, case.horizon);
        let reserved = |slices: &[Slice]| whole(slices.iter().filter(|slice| !slice.background));
        assert_eq!(reserved(&alone.slices), reserved(&beside.slices));
        let background = beside.slices.iter().filter(|slice| slice.background);
        let background = background.fold(Nanos::ZERO, |sum, slice| sum + slice.length());
        assert_eq!(background + beside.idle, alone.idle);
        served += background.0;
    }
    assert!(served > 100_000, "the background had only {served}");
}

type Piece = (Who, Nanos, Nanos, Nanos);

/// Slices that touch made one, so that an event in between does not count.
fn whole<'a>(slices: impl Iterator<Item = &'a Slice>) -> Vec<Piece> {
    let mut pieces: Vec<Piece> = vec![];
    for slice in slices {
        match pieces.last_mut() {
            Some(last) if (last.0, last.2, last.3) == (slice.who, slice.from, slice.released) => {
                last.2 = slice.to;
            }
            _ => pieces.push((slice.who, slice.from, slice.to, slice.released)),
        }
    }
    pieces
}
