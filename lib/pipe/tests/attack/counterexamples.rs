//! Where equation 9 is exceeded although equation 1 holds, by hand; and the bills that hold.

use crate::case::Case;
use crate::pipe::{Driver, Endpoint, Mood, Reader, Setup};
use diapason_abi::Nanos;
use diapason_analysis::server::{IoSupply, IoVcpu, MainVcpu, SharedCore, Supply, Utilization};
use diapason_pipe::bill::*;
use diapason_pipe::size::Bucket;
use diapason_random::Random;
use diapason_vcpu::sim::{self, Arrival, Happening, Main};
use diapason_vcpu::{Pibs, SporadicServer};

/// Returns an endpoint with one channel where everything costs 1, in order.
fn simple(bus: u64, share: u32, receiver: (u64, u64), reader: (u64, u64)) -> Setup {
    let driver = |transfer, message| Driver {
        work: StageTimes::new(Nanos(transfer), Nanos(message)),
        telling: Telling::Each,
    };
    Setup {
        bus: Transfers {
            worst: Nanos(bus),
            least: Nanos(bus),
            run: 1,
            queued: 1,
            messages: 64,
            empties: false,
            paced: None,
        },
        moderation: 0,
        gap: 0,
        top_half: 0,
        section: 0,
        bottom_half: driver(1, 0),
        io: (share, receiver.1),
        receiver: Some((driver(1, 1), receiver)),
        readers: vec![Reader { message: 1, wake: 0, taking: Taking::Each, vcpu: reader }],
        others: vec![],
        chunks: 8,
        by_deadline: false,
        known: false,
    }
}

/// Returns the latencies of messages at `times`, equation 9, and the bound for `contract`.
fn run(setup: Setup, times: &[u64], contract: Bucket) -> (Vec<u64>, u64, u64) {
    let case = Case { setup, contracts: vec![vec![contract]], beside: vec![] };
    let supplies = case.supplies().expect("the exact test admits it");
    let stages = case.stages(&supplies, 0);
    let bill = input(&stages, &Traffic::alone(&[&[contract]])).expect("it has a bill");
    let arrivals: Vec<_> = times.iter().map(|at| (*at, 0)).collect();
    let outcome = Endpoint::new(&case.setup, Mood::WORST, Random::new(1)).run(&arrivals, 1_000);
    let latencies = outcome.messages.iter().map(|message| message.done.unwrap() - message.arrived);
    let paper = equation_nine(&stages, case.setup.bus.worst);
    (latencies.collect(), paper.0, bill.total.0)
}

#[test]
fn a_message_that_misses_the_only_request() {
    let setup = simple(7, 4, (2, 4), (1, 4));
    let contract = Bucket { burst: 1, messages: 1, per: Nanos(40), jitter: Nanos(39) };
    let (latencies, paper, bound) = run(setup, &[0, 1], contract);
    assert_eq!((latencies, paper), (vec![11, 20], 19));
    assert!(bound >= 20, "{bound}");
}

#[test]
fn messages_that_come_at_once() {
    let setup = simple(1, 8, (4, 8), (2, 16));
    let contract = Bucket::periodic(Nanos(1_000)).with_burst(5);
    let (latencies, paper, bound) = run(setup, &[0; 5], contract);
    assert_eq!((latencies, paper), (vec![13, 14, 29, 30, 45], 33));
    assert!(bound >= 45, "{bound}");
}

/// A pipe of a description, and messages for one that was opened while the system runs: a bill
/// that does not count them is exceeded, one that counts all that may be asked for is not.
#[test]
fn what_is_opened_later_belongs_in_the_bill() {
    let mut setup = simple(1, 8, (4, 8), (2, 16));
    setup.readers.push(Reader { message: 1, wake: 0, taking: Taking::Each, vcpu: (1, 16) });
    let (own, opened) =
        (Bucket::periodic(Nanos(1_000)), Bucket::periodic(Nanos(1_000)).with_burst(24));
    let case = Case { setup, contracts: vec![vec![own], vec![opened]], beside: vec![] };
    let supplies = case.supplies().expect("the exact test admits it");
    let stages = case.stages(&supplies, 0);
    let alone = input(&stages, &Traffic::alone(&[&[own]])).expect("it has a bill").total.0;
    let channels: [&[Bucket]; 2] = [&[own], &[opened]];
    let both = Traffic::among(&channels, 0);
    let counted = input(&stages, &both).expect("it has a bill").total.0;
    let mut arrivals = vec![(0, 1); 24];
    arrivals.push((0, 0));
    let outcome = Endpoint::new(&case.setup, Mood::WORST, Random::new(1)).run(&arrivals, 2_000);
    let own = outcome.messages.iter().find(|message| message.channel == 0).unwrap();
    let latency = own.done.unwrap() - own.arrived;
    println!("{latency}: {alone} alone, {counted} with all that may come");
    assert!(latency > alone && latency <= counted, "{alone} {latency} {counted}");
}

#[test]
fn moderation_is_not_a_grid() {
    let mut setup = simple(8, 2, (4, 8), (4, 8));
    setup.moderation = 8;
    setup.gap = 8;
    let contract = Bucket::periodic(Nanos(1_000));
    let case = Case { setup, contracts: vec![vec![contract]], beside: vec![] };
    let outcome = Endpoint::new(&case.setup, Mood::WORST, Random::new(1)).run(&[(0, 0)], 100);
    // Three ticks of work by bottom half and receiver come after the interrupt.
    let interrupt = outcome.messages[0].in_ring.unwrap() - 3;
    // [USB 2023] rounds 8 up to a multiple of 8.
    assert_eq!(interrupt, 16);
}

/// One I/O VCPU for bottom halves of different periods: what it owes for the long one delays the
/// short one. The analysis makes no supply of it.
#[test]
fn an_io_vcpu_with_several_periods() {
    let mains = [(2, 8), (1, 8), (1, 100)];
    let shared = IoVcpu::new(Utilization::from_ppm(125_000).unwrap(), vec![0, 2]);
    let analysed = mains.map(|(c, t)| MainVcpu::new(Nanos(c), Nanos(t))).to_vec();
    assert_eq!(IoSupply::of(&SharedCore::new(analysed, vec![shared]), 0), None);

    let mut system: sim::System = sim::System::rate_monotonic();
    for (budget, period) in mains {
        let server = SporadicServer::new(Nanos(budget), Nanos(period), 8, Nanos::ZERO);
        system.mains.push(Main::new(server));
    }
    system.ios.push(Pibs::new(125_000, Nanos::FOREVER, Nanos::ZERO));
    let half = |at, units, beneficiary| {
        let what = Happening::BottomHalf { io: 0, units: Nanos(units), beneficiary };
        Arrival::new(Nanos(at), what)
    };
    // A transfer that ended at 13, of a message that came at 12.
    let run = system.run(&[half(0, 12, 2), half(13, 1, 0)], Nanos(300));
    let done = run.jobs[1].done.unwrap();
    // Equation 9: 1 + 8 + 8 + 8 for all stages together.
    assert!(done - Nanos(12) > Nanos(25), "{done:?}");
}

/// At most two wake-ups in a period and a list of three, and yet it is full: a thread that waits
/// for budget keeps the parts of it apart, period after period.
#[test]
fn wake_ups_do_not_bound_the_list() {
    let contract = [Bucket::periodic(Nanos(27))];
    let main = MainVcpu { chunks: 3, ..MainVcpu::new(Nanos(4), Nanos(32)) };
    let supply = Supply::of(&SharedCore::new(vec![main], vec![]), 0).unwrap();
    let link = ChainStage { message: Nanos(3), service: &supply };
    let bound = chain(&[link], &contract, Nanos::ZERO).unwrap().sum;

    let mut system: sim::System = sim::System::rate_monotonic();
    system.mains.push(Main::new(SporadicServer::new(Nanos(4), Nanos(32), 3, Nanos::ZERO)));
    let work = Happening::Work { main: 0, units: Nanos(3) };
    let arrivals: Vec<_> = (0..20).map(|k| Arrival::new(Nanos(2 + 27 * k), work)).collect();
    let run = system.run(&arrivals, Nanos(1_000));
    assert!(run.system.mains[0].server.counters().merges > 0);
    let latency = run.jobs.iter().map(|job| job.done.unwrap() - job.arrived).max().unwrap();
    assert_eq!(latency, Nanos(16));
    assert!(latency <= bound, "{bound:?}");
}
