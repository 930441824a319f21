//! Cases a pencil can follow in which the rules of [USB 2023] break; `n` in the names is theirs in
//! the notes on bounds.

use crate::case::{Case, Ranking};
use crate::rejected::{AddsToTheLast, PaperPibs};
use core::cmp::Reverse;
use diapason_abi::Nanos;
use diapason_vcpu::admission::{Load, Overheads, Reservation, Test};
use diapason_vcpu::sim::{
    Arrival, Happening, IoServer, Job, Main, MainServer, Random, Run, System, Who,
};
use diapason_vcpu::{Pibs, SporadicServer};

fn server(budget: u64, period: u64, limit: usize) -> SporadicServer {
    SporadicServer::new(Nanos(budget), Nanos(period), limit, Nanos::ZERO)
}

fn work(at: u64, main: usize, units: u64) -> Arrival {
    Arrival::new(Nanos(at), Happening::Work { main, units: Nanos(units) })
}

fn bottom_half(at: u64, units: u64, beneficiary: usize) -> Arrival {
    let what = Happening::BottomHalf { io: 0, units: Nanos(units), beneficiary };
    Arrival::new(Nanos(at), what)
}

fn done(jobs: &[Job]) -> Vec<u64> {
    jobs.iter().map(|job| job.done.expect("it is done by the horizon").0).collect()
}

/// 1: not every stage ends within a period. [USB 2023, eq. 1] holds, `0.771 ≤ 0.828`, and the
/// second VCPU's message takes 14, which is `T − C + R(C) = 10 − 2 + 6`.
#[test]
fn one_a_drained_server_takes_longer_than_a_period() {
    let mut system: System = System::rate_monotonic();
    system.mains = vec![Main::new(server(4, 7, 8)), Main::new(server(2, 10, 8))];
    let mut arrivals = vec![work(0, 1, 2), work(2, 1, 2)];
    arrivals.extend((10..40).step_by(7).map(|at| work(at, 0, 4)));
    let run = system.run(&arrivals, Nanos(40));
    assert_eq!(done(&run.jobs[..2]), [2, 16]);
}

fn two<I: IoServer>(io: I, fifo: bool) -> u64 {
    let mut system = System::rate_monotonic();
    system.fifo = fifo;
    let mains = [server(10, 80, 8), server(20, 100, 8), server(10, 1000, 8)];
    system.mains = mains.into_iter().map(Main::new).collect();
    system.ios = vec![io];
    let arrivals = [bottom_half(0, 100, 2), bottom_half(0, 10, 0), work(0, 1, 20)];
    let run = system.run(&arrivals, Nanos(3000));
    done(&run.jobs)[2]
}

/// 2: a raise that keeps the budget of the longer period. [USB 2023, eq. 1] holds, `0.525 ≤ 0.780`,
/// and the job of (20, 100) ends at 120. (All times of the notes tenfold, so that no grant is below
/// one unit.)
#[test]
fn two_a_raised_server_must_not_keep_its_budget() {
    assert_eq!(two(PaperPibs::new(10), true), 120);
    // The I/O VCPU has Q(80) = 8 before V, with or without P4.
    let io = Pibs::new(100_000, Nanos(1000), Nanos::ZERO);
    assert_eq!((two(io, false), two(io, true)), (28, 28));
}

/// The latency of a message that passes the I/O VCPU, RX and the user, in that order.
fn three<I: IoServer + Clone>(io: I, fifo: bool) -> u64 {
    let mut system = System::rate_monotonic();
    system.fifo = fifo;
    let mains = [server(2, 8, 8), server(1, 8, 8), server(1, 100, 8)];
    system.mains = mains.into_iter().map(Main::new).collect();
    system.ios = vec![io];
    // The message comes at 12 and is on the bus for 1.
    let mut arrivals = vec![bottom_half(0, 12, 2), bottom_half(13, 1, 0)];
    let end = |arrivals: &[Arrival], job: usize| {
        done(&system.clone().run(arrivals, Nanos(400)).jobs)[job]
    };
    let bottom_half_done = end(&arrivals, 1);
    arrivals.push(work(bottom_half_done, 0, 2));
    let received = end(&arrivals, 2);
    arrivals.push(work(received, 1, 1));
    end(&arrivals, 3) - 12
}

/// 3: one I/O VCPU for several periods. [USB 2023, eq. 9] says 25; without the cap it is 88.
#[test]
fn three_a_shared_server_needs_a_cap() {
    assert_eq!(three(PaperPibs::new(8), false), 88);
    let uncapped = Pibs::new(125_000, Nanos(1000), Nanos::ZERO);
    assert_eq!(three(uncapped, false), 88, "P3 alone does not help");
    let capped = Pibs::new(125_000, Nanos(8), Nanos::ZERO);
    assert_eq!(three(capped, false), 8);
}

/// Returns whether [USB 2023, eq. 1] admits all of it, without a kernel.
fn eq1_admits(case: &Case) -> bool {
    let mut load = Load::new(Overheads::NONE);
    for Main { server, .. } in &case.system.mains {
        let asked = Reservation { budget: server.budget(), period: server.period() };
        let Ok(more) = load.admit_main(Test::Paper, asked) else { return false };
        load = more;
    }
    case.system.ios.iter().all(|io| {
        let more = load.admit_io(Test::Paper, io.share());
        more.map(|more| load = more).is_ok()
    })
}

/// Returns how many chunks of main VCPUs were used after `e + T`.
pub fn late<I>(run: &Run<SporadicServer, I>) -> usize {
    let reserved = run.slices.iter().filter(|slice| !slice.background);
    let mains = reserved.filter(|slice| matches!(slice.who, Who::Main(_)));
    mains.filter(|slice| slice.to > slice.released + slice.period).count()
}

/// Everybody busy from 0 on, and first of all a long bottom half for the slowest beneficiary.
pub fn critical_instant(case: &Case) -> Vec<Arrival> {
    let all = |main| Arrival::new(Nanos(0), Happening::Work { main, units: case.horizon });
    let mut arrivals: Vec<Arrival> = (0..case.system.mains.len()).map(all).collect();
    for (io, who) in case.beneficiaries.iter().enumerate() {
        let mut who = who.clone();
        who.sort_by_key(|i| Reverse(case.system.mains[*i].server.period()));
        let half = |beneficiary| Happening::BottomHalf { io, units: Nanos(40), beneficiary };
        arrivals.extend(who.into_iter().map(|i| Arrival::new(Nanos(0), half(i))));
    }
    arrivals
}

/// Random sets that [USB 2023, eq. 1] admits: with its server some are late, with ours none.
#[test]
fn two_at_random() {
    let (mut sets, mut broken) = (0, 0);
    for n in 0..20_000 {
        let mut random = Random::new(31 << 32 | n);
        let case = Case::random(&mut random, Ranking::RateMonotonic, false);
        let inverse = |io: &Pibs| (1_000_000 % io.share() == 0).then(|| 1_000_000 / io.share());
        let inverses: Option<Vec<_>> = case.system.ios.iter().map(inverse).collect();
        let shared = case.beneficiaries.iter().any(|who| who.len() > 1);
        let Some(inverses) = inverses.filter(|_| shared && eq1_admits(&case)) else { continue };
        let theirs = System {
            mains: case.system.mains.clone(),
            ios: inverses.iter().map(|inverse| PaperPibs::new(u64::from(*inverse))).collect(),
            fifo: true,
            ..System::rate_monotonic()
        };
        let arrivals = critical_instant(&case);
        sets += 1;
        broken += usize::from(late(&theirs.run(&arrivals, case.horizon)) > 0);
        assert_eq!(late(&case.system.clone().run(&arrivals, case.horizon)), 0, "set {n}");
    }
    assert!(sets > 500 && broken > 0, "{broken} of {sets}");
}

/// Returns how long the server (3, 10), after random crumbs, needs for 3 units beside (1, 10):
/// never more than `T + R(3) = 14`, if its rules are right.
fn longest_for_a_budget<M: MainServer>(make: impl Fn(u64, u64) -> M) -> u64 {
    let mut longest = 0;
    for seed in 0..5_000 {
        let mut random = Random::new(seed);
        let mut system: System<M> = System::rate_monotonic();
        system.mains = vec![Main::new(make(1, 10)), Main::new(make(3, 10))];
        let mut arrivals = vec![];
        let mut at = random.below(10);
        for _ in 0..random.between(2, 12) {
            arrivals.push(work(at, 1, 1));
            at += random.between(1, 5);
        }
        arrivals.push(work(at, 1, 30));
        let mut above = random.below(10);
        while above < 100 {
            arrivals.push(work(above, 0, 1));
            above += random.between(10, 14);
        }
        arrivals.sort_by_key(|arrival| arrival.at);
        let run = system.run(&arrivals, Nanos(at + 60));
        let backlogged = run.jobs.iter().rfind(|job| job.units == Nanos(30)).unwrap();
        let who = backlogged.who;
        let supplied = |end: &u64| run.used(who, Nanos(at), Nanos(at + end)) >= Nanos(3);
        longest = longest.max((3..60).find(supplied).unwrap());
    }
    longest
}

#[test]
fn adding_to_the_last_chunk_pushes_a_unit_twice() {
    let ours = longest_for_a_budget(|c, t| server(c, t, 2));
    let rejected = longest_for_a_budget(AddsToTheLast::new);
    assert!(ours <= 14 && rejected >= 16, "{ours} {rejected}");
}
