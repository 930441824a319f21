//! Several hops: runs through switches against the bounds, aligned and not.

use diapason_random::Random;
use diapason_tsn::{
    CLASSES, EndToEnd, FlowRoute, GateEntry, GateList, GateRefusal, LinkRate, RoutedPort, Shaping,
    StoreForward, TrafficFlow, end_to_end,
};
use std::collections::BTreeMap;

const HOPS: usize = 3;

/// Returns a line of ports with gates. Each is behind a cable and a switch that take 3 ns together.
fn gated(random: &mut Random) -> Vec<RoutedPort> {
    let cycle = random.between(16, 40);
    let port = |random: &mut Random| {
        let first = random.between(4, cycle - 4);
        let [one, other] = [0b01, 0b10].map(|mask: u8| mask | random.within(0, 3) as u8);
        let entry = |mask, interval_ns| GateEntry { mask, interval_ns };
        let entries = [entry(one, first), entry(other, cycle - first)];
        let gates = GateList::new(random.below(cycle), None, &entries).unwrap();
        let shaping = [Shaping::Strict; CLASSES];
        RoutedPort { gates, rate: LinkRate::GIGABIT, shaping, onward_ns: (3, 3) }
    };
    (0..HOPS).map(|_| port(random)).collect()
}

/// Returns a line of open ports in which some classes have credit.
fn credited(random: &mut Random) -> Vec<RoutedPort> {
    let port = |random: &mut Random| {
        let mut shaping = [Shaping::Strict; CLASSES];
        for shaping in shaping.iter_mut().take(3) {
            if random.one_in(2) {
                let idle_bits_per_second = random.between(8, 33) * 10_000_000;
                *shaping = Shaping::Credit { idle_bits_per_second };
            }
        }
        let gates = GateList::open(random.between(16, 40));
        RoutedPort { gates, rate: LinkRate::GIGABIT, shaping, onward_ns: (3, 3) }
    };
    (0..HOPS).map(|_| port(random)).collect()
}

/// Returns routes of the first `classes` classes, with up to so many frames at once.
fn routes(
    random: &mut Random,
    ports: &[RoutedPort],
    aligned: bool,
    (classes, burst): (usize, u64),
) -> Vec<FlowRoute> {
    let cycle = ports[0].gates.cycle_ns();
    let mut routes = Vec::new();
    for _ in 0..random.between(1, 3) {
        let from = random.below(cycle);
        let jitter_ns = random.below(8);
        let flow = TrafficFlow {
            class: random.index(classes),
            wire_ns: random.between(1, 4),
            period_ns: cycle * random.between(2, 5),
            jitter_ns,
            burst: random.between(1, burst),
            phase: aligned.then_some((from, from + jitter_ns)),
        };
        let first = random.index(HOPS);
        routes.push(FlowRoute { flow, ports: (first..HOPS).collect() });
    }
    routes
}

/// Runs frames of the routes through the line and returns the longest time of each route.
fn seen(random: &mut Random, ports: &[RoutedPort], routes: &[FlowRoute]) -> Vec<u64> {
    let port = |port: &RoutedPort| (port.gates.clone(), port.rate, port.shaping);
    let mut switches: Vec<StoreForward<(usize, u64)>> =
        ports.iter().map(|it| StoreForward::new(3, vec![port(it)]).unwrap()).collect();
    let mut coming: BTreeMap<(u64, usize, u64), usize> = BTreeMap::new();
    for (number, route) in routes.iter().enumerate() {
        let flow = route.flow;
        let phase = flow.phase.map_or_else(|| random.below(flow.period_ns), |(from, _)| from);
        let clump = random.one_in(2);
        for burst in 0..30 {
            let late = if clump {
                if burst == 0 { flow.jitter_ns } else { 0 }
            } else {
                random.below(flow.jitter_ns + 1)
            };
            let at = 500 + phase + burst * flow.period_ns + late;
            // Times of aligned flows count from a beginning of the cycle.
            let cycle = ports[0].gates.cycle_ns();
            let at = if flow.phase.is_some() { at - 500 + cycle * 20 } else { at };
            for frame in 0..flow.burst {
                coming.insert((at, number, burst * flow.burst + frame), route.ports[0]);
            }
        }
    }
    let mut longest = vec![0; routes.len()];
    loop {
        let comes = coming.first_key_value().map(|((at, ..), _)| *at);
        let acts = switches.iter().filter_map(StoreForward::next).min();
        let Some(now) = comes.into_iter().chain(acts).min() else { return longest };
        while let Some(entry) = coming.first_entry().filter(|it| it.key().0 <= now) {
            let ((at, number, _), port) = entry.remove_entry();
            let flow = routes[number].flow;
            // The fabric is on the way to the queue: it counts to the hop before.
            switches[port].receive(at - 3, 0, flow.class, flow.wire_ns, (number, at)).unwrap();
        }
        let acts = switches.iter().filter_map(StoreForward::next).min();
        let now = acts.map_or(now, |at| at.min(now));
        for hop in 0..switches.len() {
            for left in switches[hop].advance(now).unwrap() {
                let (number, born) = left.item;
                if hop + 1 < HOPS {
                    let flow = routes[number].flow;
                    switches[hop + 1]
                        .receive(left.end_ns, 0, flow.class, flow.wire_ns, left.item)
                        .unwrap();
                } else {
                    longest[number] = longest[number].max(left.end_ns + 3 - born);
                }
            }
        }
    }
}

fn attack(
    seeds: std::ops::Range<u64>,
    aligned: bool,
    ports: impl Fn(&mut Random) -> Vec<RoutedPort>,
    most: (usize, u64),
) -> (u32, u32) {
    let (mut compared, mut reached) = (0, 0);
    for seed in seeds {
        let random = &mut Random::stream(28, seed);
        let ports = ports(random);
        let routes = routes(random, &ports, aligned, most);
        let Ok(bounds) = end_to_end(&ports, &routes, 0) else { continue };
        for _ in 0..12 {
            for (route, longest) in seen(random, &ports, &routes).into_iter().enumerate() {
                let EndToEnd { most_ns, least_ns, .. } = bounds[route];
                assert!(
                    least_ns <= longest && longest <= most_ns,
                    "seed {seed}: {longest} of {least_ns} to {most_ns}\n{ports:?}\n{routes:?}"
                );
                compared += 1;
                reached += u32::from(longest == most_ns);
            }
        }
    }
    (compared, reached)
}

#[test]
fn no_frame_is_later_than_its_bound_over_three_hops() {
    let (compared, _) = attack(0..3_000, false, gated, (2, 1));
    assert!(compared > 5_000, "{compared}");
}

#[test]
fn no_aligned_frame_is_later_than_its_bound_over_three_hops() {
    let (compared, reached) = attack(0..3_000, true, gated, (2, 1));
    assert!(compared > 5_000 && reached > 500, "{reached} of {compared}");
}

#[test]
fn no_frame_is_later_than_its_bound_over_three_hops_with_credit() {
    let (compared, reached) = attack(0..4_000, false, credited, (3, 3));
    assert!(compared > 20_000 && reached > 50, "{reached} of {compared}");
}

/// Gates that open when a frame comes: the wait is gone at every hop.
#[test]
fn alignment_takes_the_wait_away() {
    let entry = |mask, interval_ns| GateEntry { mask, interval_ns };
    let port = |base| RoutedPort {
        gates: GateList::new(base, None, &[entry(2, 8_000), entry(1, 117_000)]).unwrap(),
        rate: LinkRate::GIGABIT,
        shaping: [Shaping::Strict; CLASSES],
        onward_ns: (5_000, 5_000),
    };
    let ports = [port(0), port(9_560), port(19_120)];
    let flow = TrafficFlow {
        class: 1,
        wire_ns: 4_560,
        period_ns: 1_000_000,
        jitter_ns: 0,
        burst: 1,
        phase: Some((0, 0)),
    };
    let of = |flow| {
        let routes = [FlowRoute { flow, ports: vec![0, 1, 2] }];
        end_to_end(&ports, &routes, 0).unwrap().remove(0)
    };
    assert_eq!(of(flow).most_ns, 3 * (4_560 + 5_000));
    let any = of(TrafficFlow { phase: None, ..flow });
    assert_eq!(any.most_ns, 3 * (117_000 + 4_559 + 4_560 + 5_000));
    let routes = [FlowRoute { flow, ports: vec![0, 3] }];
    assert_eq!(end_to_end(&ports, &routes, 0), Err(GateRefusal::Port { port: 3 }));
}
