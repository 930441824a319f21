//! Bounds against runs of the transmitter: no frame is later, and some are as late.

use crate::support::{Arriving, arrivals, flows, gates, run, strict};
use diapason_random::Random;
use diapason_tsn::{
    CLASSES, CreditSpan, Egress, GateEntry, GateList, GateRefusal, LinkRate, PortModel, Shaping,
    TrafficFlow,
};

/// Returns the longest delay of each class in a run.
fn seen(egress: &mut Egress<usize>, arriving: &[Arriving]) -> [u64; CLASSES] {
    let mut longest = [0; CLASSES];
    for (number, _, end) in run(egress, arriving) {
        let (came, class, _) = arriving[number];
        longest[class] = longest[class].max(end - came);
    }
    longest
}

/// Attacks random ports, and returns how many delays were compared and how many reached a bound.
fn attack(
    seeds: std::ops::Range<u64>,
    runs: u64,
    make: impl Fn(&mut Random) -> (GateList, [Shaping; CLASSES], Vec<TrafficFlow>),
) -> (u64, u64) {
    let (mut compared, mut reached) = (0, 0);
    for seed in seeds {
        let random = &mut Random::stream(23, seed);
        let (gates, shaping, flows) = make(random);
        let rate = LinkRate::GIGABIT;
        let model =
            PortModel { gates: &gates, rate, shaping: &shaping, flows: &flows, guard_ns: 0 };
        let Ok(delays) = model.delays() else { continue };
        let mut longest = [0; CLASSES];
        for _ in 0..runs {
            let arriving = arrivals(random, &flows, 900);
            let mut egress = Egress::new(gates.clone(), rate, shaping).unwrap();
            let seen = seen(&mut egress, &arriving);
            for class in flows.iter().map(|flow| flow.class) {
                let span = model.credit(class).unwrap().unwrap_or_default();
                let seen = egress.credits()[class];
                assert!(span.contains(&seen), "seed {seed}, class {class}: {seen:?} {span:?}");
            }
            for class in 0..CLASSES {
                longest[class] = longest[class].max(seen[class]);
            }
        }
        for class in 0..CLASSES {
            let Some(delay) = delays[class] else { continue };
            assert!(
                longest[class] <= delay.most_ns,
                "seed {seed}, class {class}: {} above {}\n{gates:?}\n{shaping:?}\n{flows:?}",
                longest[class],
                delay.most_ns
            );
            compared += 1;
            reached += u64::from(longest[class] == delay.most_ns);
        }
    }
    (compared, reached)
}

fn gated(random: &mut Random) -> (GateList, [Shaping; CLASSES], Vec<TrafficFlow>) {
    let gates = gates(random, 3);
    let flows = flows(random, &gates, 3);
    (gates, [Shaping::Strict; CLASSES], flows)
}

fn prioritised(random: &mut Random) -> (GateList, [Shaping; CLASSES], Vec<TrafficFlow>) {
    let gates = GateList::open(10);
    let flows = flows(random, &gates, 4);
    (gates, [Shaping::Strict; CLASSES], flows)
}

/// Two classes with credit above two without.
fn credited(random: &mut Random) -> (GateList, [Shaping; CLASSES], Vec<TrafficFlow>) {
    let gates = GateList::open(10);
    let flows = flows(random, &gates, 4);
    let mut shaping = [Shaping::Strict; CLASSES];
    for class in [3, 2] {
        let idle_bits_per_second = random.between(5, 37) * 10_000_000;
        shaping[class] = Shaping::Credit { idle_bits_per_second };
    }
    (gates, shaping, flows)
}

/// Any classes with credit. The gates of these and of all above are always open, others may close.
fn mixed(random: &mut Random) -> (GateList, [Shaping; CLASSES], Vec<TrafficFlow>) {
    let lowest = random.index(4);
    let mut shaping = [Shaping::Strict; CLASSES];
    for (class, shaping) in shaping.iter_mut().enumerate().take(4).skip(lowest) {
        if class == lowest || random.one_in(2) {
            let idle_bits_per_second = random.between(5, 60) * 10_000_000;
            *shaping = Shaping::Credit { idle_bits_per_second };
        }
    }
    let open = 0xff_u8 << lowest;
    let closing = gates(random, 4);
    let entry = |it: &GateEntry| GateEntry { mask: it.mask | open, ..*it };
    let entries: Vec<GateEntry> = closing.entries().iter().map(entry).collect();
    let gates = GateList::new(closing.base_ns(), None, &entries).unwrap();
    let flows = flows(random, &gates, 4);
    (gates, shaping, flows)
}

#[test]
fn no_frame_is_later_than_its_bound_behind_gates() {
    let (compared, reached) = attack(0..4_000, 20, gated);
    assert!(compared > 1_500 && reached * 10 > compared, "{reached} of {compared}");
}

#[test]
fn no_frame_is_later_than_its_bound_by_priority() {
    let (compared, reached) = attack(0..2_000, 40, prioritised);
    assert!(compared > 2_000 && reached * 10 > compared, "{reached} of {compared}");
}

#[test]
fn no_frame_is_later_than_its_bound_with_credit() {
    let (compared, reached) = attack(0..4_000, 40, credited);
    assert!(compared > 2_000 && reached > 0, "{reached} of {compared}");
}

#[test]
fn no_frame_is_later_than_its_bound_beside_any_credit() {
    let (compared, reached) = attack(0..6_000, 40, mixed);
    assert!(compared > 2_000 && reached > 50, "{reached} of {compared}");
}

/// A class below one with credit waits for what that credit pays for, and not for all that came.
#[test]
fn credit_holds_back_what_classes_below_wait_for() {
    let flow = |class, burst| TrafficFlow {
        class,
        wire_ns: 10_000,
        period_ns: 10_000_000,
        jitter_ns: 0,
        burst,
        phase: None,
    };
    let flows = [flow(5, 20), flow(1, 1)];
    let delays = |idle: Option<u64>| {
        let mut shaping = [Shaping::Strict; CLASSES];
        if let Some(idle_bits_per_second) = idle {
            shaping[5] = Shaping::Credit { idle_bits_per_second };
        }
        let gates = GateList::open(1_000_000);
        let rate = LinkRate::GIGABIT;
        let delays =
            PortModel { gates: &gates, rate, shaping: &shaping, flows: &flows, guard_ns: 0 }
                .delays();
        [5, 1].map(|class| delays.unwrap()[class].unwrap().most_ns)
    };
    // Behind a lower frame and 19 of its own; below it, behind all 20.
    assert_eq!(delays(None), [210_000, 210_000]);
    // A frame is waited for in 100 us. The first waits for the lower one, which is 10 us and 1 ns
    // of credit. The last begins 19 times 100 us after that.
    let [above, below] = delays(Some(100_000_000));
    assert_eq!(above, 10_001 + 1_900_000 + 10_000);
    // One frame with the credit that waiting for the lower frame gave, and one that begins later.
    assert!((20_000..40_000).contains(&below), "{below}");
}

/// A class with credit gains some before a frame below it comes, and that pays for frames, too.
#[test]
fn credit_from_before_counts_for_classes_below() {
    let flow = |class, wire_ns, period_ns, burst| TrafficFlow {
        class,
        wire_ns,
        period_ns,
        jitter_ns: 0,
        burst,
        phase: None,
    };
    let flows = [flow(5, 10_000, 10_000_000, 20), flow(1, 100_000, 125_000, 1)];
    let mut shaping = [Shaping::Strict; CLASSES];
    shaping[5] = Shaping::Credit { idle_bits_per_second: 500_000_000 };
    let (gates, rate) = (GateList::open(1_000_000), LinkRate::GIGABIT);
    let model = PortModel { gates: &gates, rate, shaping: &shaping, flows: &flows, guard_ns: 0 };
    let most = model.delays().unwrap()[1].unwrap().most_ns;
    let mut arriving = vec![(0, 1, 100_000), (125_000, 1, 100_000), (250_000, 1, 100_000)];
    arriving.extend((0..20).map(|_| (1, 5, 10_000)));
    arriving.sort_unstable();
    let mut egress = Egress::new(gates.clone(), rate, shaping).unwrap();
    let longest = seen(&mut egress, &arriving)[1];
    assert!((180_000..=most).contains(&longest), "{longest} of {most}");
    // 100 us and a nanosecond at 500 Mbit/s, and a frame at the 500 Mbit/s that are left.
    let span = CreditSpan { most: 6_251, least: -625 };
    assert_eq!(model.credit(5), Ok(Some(span)));
    assert_eq!(model.credit(1), Ok(None));
    assert_eq!(egress.credits()[5].most, 6_250);
}

#[test]
fn credit_that_cannot_be_kept_is_refused_by_name() {
    let gates = GateList::open(1_000_000);
    let flow = TrafficFlow {
        class: 3,
        wire_ns: 10_000,
        period_ns: 100_000,
        jitter_ns: 0,
        burst: 1,
        phase: None,
    };
    let delays = |gates: &GateList, idle: u64, flows: &[TrafficFlow]| {
        let mut shaping = [Shaping::Strict; CLASSES];
        shaping[3] = Shaping::Credit { idle_bits_per_second: idle };
        let rate = LinkRate::GIGABIT;
        PortModel { gates, rate, shaping: &shaping, flows, guard_ns: 0 }.delays().err()
    };
    assert_eq!(delays(&gates, 100_000_000, &[flow]), None);
    let slope =
        |needed_kbit, slope_kbit| Some(GateRefusal::Slope { class: 3, needed_kbit, slope_kbit });
    assert_eq!(delays(&gates, 99_999_000, &[flow]), slope(100_000, 99_999));
    // The burst of what came late never ends if the slope is what comes on average.
    let late = TrafficFlow { jitter_ns: 50_000, ..flow };
    assert_eq!(delays(&gates, 100_000_000, &[late]), slope(101_001, 100_000));
    let strict = TrafficFlow { class: 4, wire_ns: 50_000, ..flow };
    assert_eq!(delays(&gates, 500_000_000, &[flow, strict]), None);
    let above = Some(GateRefusal::AboveCredit { class: 3, ppm: 1_001_000 });
    assert_eq!(delays(&gates, 501_000_000, &[flow, strict]), above);
    let entry = |mask, interval_ns| GateEntry { mask, interval_ns };
    let closes = GateList::new(0, None, &[entry(0xef, 10), entry(0xff, 90_000)]).unwrap();
    let gated = Some(GateRefusal::GatedAbove { class: 3 });
    assert_eq!(delays(&closes, 100_000_000, &[flow, strict]), gated);
    assert_eq!(delays(&closes, 100_000_000, &[flow]), None);
}

#[test]
#[ignore = "minutes: a hundred times as many ports"]
fn no_frame_of_many_ports_is_later_than_its_bound() {
    for make in [gated, prioritised, credited, mixed] {
        let (compared, reached) = attack(10_000..400_000, 20, make);
        println!("{reached} of {compared} reached");
    }
}

/// A class that has its windows for itself: the bound is what the worst phase reaches.
#[test]
fn the_bound_of_a_class_alone_is_reached_at_some_phase() {
    let (mut compared, mut reached) = (0, 0);
    for seed in 0..400 {
        let random = &mut Random::stream(24, seed);
        let gates = gates(random, 1);
        let (wire_ns, burst) = (random.between(1, 6), random.between(1, 4));
        let period_ns = gates.cycle_ns() * 40;
        let flow = TrafficFlow { class: 0, wire_ns, period_ns, jitter_ns: 0, burst, phase: None };
        let flows = [flow];
        let shaping = [Shaping::Strict; CLASSES];
        let rate = LinkRate::GIGABIT;
        let model =
            PortModel { gates: &gates, rate, shaping: &shaping, flows: &flows, guard_ns: 0 };
        let Ok(delays) = model.delays() else { continue };
        let most = delays[0].unwrap().most_ns;
        let at = |phase| {
            let burst = vec![(phase, 0, wire_ns); burst as usize];
            seen(&mut strict(&gates), &burst)[0]
        };
        let longest = (100..100 + gates.cycle_ns()).map(at).max().unwrap();
        assert!(longest <= most, "seed {seed}: {longest} above {most}");
        compared += 1;
        reached += u64::from(longest == most);
    }
    assert_eq!(reached, compared, "with equal frames and nothing else the bound is exact");
    assert!(compared > 100);
}

/// Aligned frames: the bound of their phase is reached, and never left.
#[test]
fn the_bound_of_an_aligned_class_is_exact() {
    let mut shorter = 0;
    for seed in 0..600 {
        let random = &mut Random::stream(25, seed);
        let gates = gates(random, 1);
        let cycle = gates.cycle_ns();
        let wire_ns = random.between(1, 6);
        let from = random.below(cycle);
        let to = from + random.below(cycle);
        let flow = TrafficFlow {
            class: 0,
            wire_ns,
            period_ns: cycle * 8,
            jitter_ns: to - from,
            burst: 1,
            phase: Some((from, to)),
        };
        let bound = |flows: &[TrafficFlow]| {
            let shaping = [Shaping::Strict; CLASSES];
            let rate = LinkRate::GIGABIT;
            let model = PortModel { gates: &gates, rate, shaping: &shaping, flows, guard_ns: 0 };
            model.delays().map(|delays| delays[0].unwrap().most_ns)
        };
        let Ok(most) = bound(&[flow]) else { continue };
        let any = bound(&[TrafficFlow { phase: None, ..flow }]).unwrap();
        let at = |at| seen(&mut strict(&gates), &[(at, 0, wire_ns)])[0];
        let longest = (from..=to).map(|it| at(it + 10 * cycle)).max().unwrap();
        assert_eq!(longest, most, "seed {seed}");
        assert!(most <= any);
        shorter += u32::from(most < any);
    }
    assert!(shorter > 50, "alignment helped {shorter} times");
}

#[test]
fn what_cannot_be_promised_is_refused_by_name() {
    let entry = |mask, interval_ns| GateEntry { mask, interval_ns };
    let gates = GateList::new(0, None, &[entry(2, 8_000), entry(1, 117_000)]).unwrap();
    let flow = TrafficFlow {
        class: 1,
        wire_ns: 4_560,
        period_ns: 125_000,
        jitter_ns: 0,
        burst: 1,
        phase: None,
    };
    let shaping = [Shaping::Strict; CLASSES];
    let delays = |gates: &GateList, flows: &[TrafficFlow]| {
        PortModel { gates, rate: LinkRate::GIGABIT, shaping: &shaping, flows, guard_ns: 0 }.delays()
    };
    let alone = delays(&gates, &[flow]).unwrap()[1].unwrap();
    assert_eq!(alone.most_ns, 117_000 + 4_559 + 4_560, "it comes a nanosecond too late");
    let twice = delays(&gates, &[flow, flow]).unwrap_err();
    assert!(matches!(twice, GateRefusal::Rate { class: 1, .. }), "{twice}");
    let shared = GateList::new(0, None, &[entry(3, 8_000), entry(1, 117_000)]).unwrap();
    let low = TrafficFlow { class: 0, wire_ns: 12_336, period_ns: 125_000, ..flow };
    let blocked = delays(&shared, &[flow, low]).unwrap_err();
    let short = GateRefusal::ShortWindow { class: 1, longest_ns: 8_000, needed_ns: 16_896 };
    assert_eq!(blocked, short);
    let odd = TrafficFlow { period_ns: 200_000, phase: Some((0, 10)), ..flow };
    let odd = delays(&gates, &[odd]).unwrap_err();
    assert_eq!(odd, GateRefusal::Phase { period_ns: 200_000, cycle_ns: 125_000 });
    let never = TrafficFlow { period_ns: 0, ..flow };
    assert_eq!(delays(&gates, &[never]), Err(GateRefusal::Period { class: 1 }));
}
