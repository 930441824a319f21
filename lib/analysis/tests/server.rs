//! Numbers that can be checked by hand; counter-examples to [USB 2023] and [EMERALDS 1998].

use diapason_abi::Nanos;
use diapason_analysis::server::{
    BudgetServer, Found, InterruptSource, IoSupply, IoVcpu, MainVcpu, Nonsense, Queue, SharedCore,
    SharedIo, Shortfall, Stream, Supply, Unfit, Utilization, admit, breakdown, equation_one,
    first_failure, largest_budget, smallest_period, wide,
};

fn main(budget: u64, period: u64) -> MainVcpu {
    MainVcpu::new(Nanos(budget), Nanos(period))
}

fn system(mains: &[(u64, u64)]) -> SharedCore {
    SharedCore::new(mains.iter().map(|(budget, period)| main(*budget, *period)).collect(), vec![])
}

/// U = 1/whole, for some Main VCPUs.
fn io(whole: u32, serves: &[usize]) -> IoVcpu {
    IoVcpu::new(Utilization::from_ppm(1_000_000 / whole).unwrap(), serves.to_vec())
}

fn dp(number: u8, mains: &[(u64, u64)]) -> Vec<MainVcpu> {
    mains.iter().map(|(c, t)| main(*c, *t).in_queue(Queue::Dp(number))).collect()
}

fn responses(system: &SharedCore) -> Vec<u64> {
    admit(system).unwrap().responses.iter().map(|found| found.response.0).collect()
}

#[test]
fn counter_example_1_a_budget_can_come_later_than_a_period() {
    let system = system(&[(4, 7), (2, 10)]);
    assert_eq!(equation_one(&system).ppm().0, 771_429);
    assert_eq!(equation_one(&system).ppm().1, 828_427);
    assert_eq!(responses(&system), [4, 6]);
    let second = Supply::of(&system, 1).unwrap();
    assert_eq!(second.any(Nanos(2)), Nanos(14));
    assert_eq!(second.sync(Nanos(2)), Nanos(6));
    assert_eq!(second.merge(Nanos(2)), Nanos(16));
    assert_eq!(second.any(Nanos(3)), Nanos(10 - 2 + 10 + 5));
}

#[test]
fn counter_example_2_passes_eq_1_and_the_exact_test_because_pibs_is_corrected() {
    // In tenths: HI gets no whole tick of U·8.
    let mut system = system(&[(10, 80), (20, 100), (10, 1000)]);
    system.ios.push(io(10, &[0, 2]));
    assert_eq!(equation_one(&system).ppm().0 / 10, 52_500);
    assert!(equation_one(&system).holds() && wide(&system).holds());
    assert!(admit(&system).is_ok());
}

#[test]
fn counter_example_3_needs_a_cap() {
    let mut system = system(&[(2, 8), (1, 8), (1, 100)]);
    system.ios.push(io(8, &[0, 1, 2]));
    assert_eq!(equation_one(&system).ppm().0 / 10, 61_937);
    assert!(admit(&system).is_ok());
    assert_eq!(IoSupply::of(&system, 0), None, "several periods");
    assert_eq!(SharedIo::of(&system, 0, 0), None, "no cap");
    system.ios[0].cap = Nanos(8);
    let shared = SharedIo::of(&system, 0, 0).unwrap();
    // Q = 1, P = 8, nothing above: 7 units late, and one to do.
    assert_eq!(shared.delay(Nanos(1), 0), Nanos(8));
}

#[test]
fn a_pibs_server_takes_at_most_the_papers_share_of_a_period() {
    // (2 − U)·U·T = (2 − 1/4)·1/4·16 = 7 for the VCPU that is served.
    let mut system = system(&[(1, 16)]);
    system.ios.push(io(4, &[0]));
    assert_eq!(system.interference(0).demand(Nanos(16)), Nanos(7));
    let supply = IoSupply::of(&system, 0).unwrap();
    assert_eq!((supply.budget(), supply.period()), (Nanos(4), Nanos(16)));
    assert_eq!(supply.response(Nanos(4)), Nanos(4));
    assert_eq!(supply.any(Nanos(4)), Nanos(16));
}

#[test]
fn the_papers_concentrator() {
    // Three (1, 7) ms, RX (2, 14), five users (2, 46), U = 1 %, sections of at most 60 µs.
    let ms = |budget: u64, period: u64| (budget * 1_000_000, period * 1_000_000);
    let mut all = vec![ms(1, 7); 3];
    all.push(ms(2, 14));
    all.extend(vec![ms(2, 46); 5]);
    let mut system = system(&all);
    system.ios.push(io(100, &[3]));
    system.kernel_section = Nanos(60_000);
    let found = responses(&system);
    let about = |vcpu: usize| found[vcpu] / 10_000;
    // 5.2 and 26.5 ms; the first user's bill of 20.6 ms is 10.3 with 1 + 1 + 3.1 + 5.2 before it.
    assert_eq!((about(3), about(4), about(8)), (525, 1_030, 2_646));
}

#[test]
fn kernel_sections_top_halves_and_switches_count() {
    let mut system = system(&[(2, 10), (3, 20)]);
    assert_eq!(responses(&system), [2, 5]);
    system.kernel_section = Nanos(1);
    assert_eq!(responses(&system), [3, 6]);
    system.sources.push(InterruptSource::free(Nanos(5), Nanos(1)));
    assert_eq!(responses(&system), [4, 8]);
    system.mains[0].chunks = 1;
    system.mains[1].chunks = 1;
    system.switch = Nanos(1);
    // (2 + 2), (3 + 2), B, and interrupts every 5.
    assert_eq!(responses(&system), [4 + 1 + 2, 4 + 4 + 5 + 1 + 4]);
}

#[test]
fn a_refusal_says_what_would_have_fit() {
    let system = system(&[(4, 7), (4, 10), (1, 100)]);
    let Err(Unfit::Refused(refusal)) = admit(&system) else { panic!("it does not fit") };
    assert_eq!((refusal.vcpu, refusal.failure), (1, Shortfall::Late(Some(Nanos(12)))));
    assert_eq!(refusal.largest_budget, Some(Nanos(3)));
    assert_eq!(refusal.smallest_period, Some(Nanos(12)));
    assert_eq!(
        refusal.to_string(),
        "VCPU 1 has its budget after 12 ns, 2 ns too late; in 10 ns a budget of 3 ns fits, and its \
         budget fits in a period of 12 ns; with 750 per mille of all budgets everything fits"
    );
}

#[test]
fn margins_are_the_edge_of_the_test() {
    let mut edge = system(&[(2, 10), (3, 20)]);
    let Some(factor) = breakdown(&edge) else { panic!("it holds") };
    for (budget, main) in [2u64, 3].into_iter().zip(&mut edge.mains) {
        main.budget = Nanos((budget * factor).div_ceil(1000));
    }
    assert_eq!(first_failure(&edge), Ok(None));
    assert_eq!(largest_budget(&system(&[(2, 10), (3, 20)]), 0), Some(Nanos(8)));
    assert_eq!(smallest_period(&system(&[(2, 10), (3, 20)]), 1), Some(Nanos(20)));
    assert_eq!(breakdown(&system(&[(1, 2), (1, 2)])), Some(1000));
}

#[test]
fn edf_may_use_the_whole_processor_and_rate_monotonic_may_not() {
    let full = SharedCore::new(dp(0, &[(3, 6), (4, 8)]), vec![]);
    assert!(admit(&full).is_ok());
    assert!(admit(&system(&[(3, 7), (4, 7)])).is_ok());
    assert!(admit(&system(&[(3, 6), (4, 8)])).is_err());
    let over = SharedCore::new(dp(0, &[(3, 6), (4, 8), (1, 1_000_000_000)]), vec![]);
    assert_eq!(first_failure(&over).unwrap().map(|found| found.1), Some(Shortfall::Overload));
    // A section blocks once, and each VCPU may end one in budget that is due later.
    let mut blocked = SharedCore::new(dp(0, &[(2, 6), (3, 8)]), vec![]);
    blocked.kernel_section = Nanos(1);
    assert!(admit(&blocked).is_ok());
    blocked.kernel_section = Nanos(2);
    let Err(Unfit::Refused(refusal)) = admit(&blocked) else { panic!("13 > 12") };
    assert_eq!(
        refusal.failure,
        Shortfall::Overfull { window: Nanos(12), demand: Nanos(13) },
        "{refusal}"
    );
}

#[test]
fn an_unsafe_csd_3_set_is_refused() {
    // Errata item 1: DP1 (7, 15), (4, 18); DP2 (4, 20), (1, 30) misses at 40.
    let mut mains = dp(0, &[(7, 15), (4, 18)]);
    mains.extend(dp(1, &[(4, 20), (1, 30)]));
    let system = SharedCore::new(mains, vec![]);
    assert!(matches!(admit(&system), Err(Unfit::Refused(refusal)) if refusal.vcpu >= 2));
    let alone = SharedCore::new(dp(0, &[(7, 15), (4, 18), (4, 20), (1, 30)]), vec![]);
    assert!(admit(&alone).is_ok(), "EDF schedules it");
}

#[test]
fn what_makes_no_sense_is_told_apart_from_what_does_not_fit() {
    let nonsense = |system: &SharedCore| match admit(system) {
        Err(Unfit::Nonsense(nonsense)) => nonsense,
        other => panic!("{other:?}"),
    };
    assert_eq!(nonsense(&system(&[(0, 5)])), Nonsense::NothingReserved(0));
    assert_eq!(nonsense(&system(&[(1, 5), (6, 5)])), Nonsense::BudgetOverPeriod(1, Nanos(5)));
    let mut shared = system(&[(1, 5)]);
    shared.ios.push(io(10, &[0]));
    assert_eq!(nonsense(&shared), Nonsense::EmptyQuantum(0, Nanos(10)));
    shared.ios[0].serves = vec![3];
    assert_eq!(nonsense(&shared), Nonsense::ServesUnknown(0, 3));
    assert!(Nonsense::EmptyQuantum(0, Nanos(10)).to_string().contains("at least 10 ns"));
}

#[test]
fn streams_that_conform_are_served_within_one_period() {
    let system = system(&[(4, 7), (2, 10)]);
    let server = Supply::of(&system, 1).unwrap();
    let stream = |work: u64, period: u64, jitter: u64| Stream {
        work: Nanos(work),
        period: Nanos(period),
        jitter: Nanos(jitter),
    };
    assert!(server.conforms(&stream(2, 10, 0)));
    assert_eq!(server.delay(&stream(2, 10, 0)), Some(Nanos(6)));
    // One tick of jitter puts two arrivals into one period: one waits for budget, and who does so
    // may keep the parts of it apart until the list is full.
    assert!(!server.conforms(&stream(2, 10, 1)));
    assert_eq!(server.delay(&stream(2, 10, 1)), Some(Nanos(16 - 9 + 10)));
    assert_eq!(server.delay(&stream(1, 6, 0)), Some(Nanos(5)));
    assert_eq!(server.delay(&stream(3, 10, 0)), None, "more than the server gives");
    // Two wake-ups in a period, and a list of two: the list is full until the third one comes.
    let short = Supply::of(
        &SharedCore {
            mains: vec![main(4, 7), MainVcpu { chunks: 2, ..main(2, 10) }],
            ..SharedCore::default()
        },
        1,
    )
    .unwrap();
    assert_eq!(short.found(&stream(1, 6, 0)), Found::Late(Nanos::ZERO));
    assert_eq!(short.delay(&stream(1, 6, 0)), Some(Nanos(5)));
    // Wake-ups come faster than places. Those at 0 and 4 take both, and that at 4 or later waits
    // until 10 at most.
    let wide = MainVcpu { chunks: 2, ..main(7, 10) };
    let wide = SharedCore { mains: vec![wide], ..SharedCore::default() };
    let wide = Supply::of(&wide, 0).unwrap();
    assert_eq!(wide.found(&stream(1, 4, 0)), Found::Late(Nanos(6)));
    assert_eq!(wide.delay(&stream(1, 4, 0)), Some(Nanos(7)));
    // Three within 8, and they come no faster: the third one waits for the place of the first.
    assert_eq!(wide.found(&stream(1, 6, 4)), Found::Late(Nanos(2)));
}

#[test]
fn a_thousand_vcpus_are_one_admission() {
    // Periods from 10 ms to 1 s, 0.07 % each: 70 %.
    let mains = (0..1000u64).map(|n| {
        let period = 10_000_000 + n * 990_000;
        main(period * 7 / 10_000, period)
    });
    let system = SharedCore::new(mains.collect(), vec![]);
    assert_eq!(admit(&system).unwrap().responses.len(), 1000);
    assert!(breakdown(&system).unwrap() > 1100);
}
