//! Routes: they reach, they are short, and whether messages can wait for each other for ever.

use diapason_random::Random;
use diapason_topology::shapes::{Pair, hypercube, line, ring, star, tree};
use diapason_topology::{Edge, Leg, Routes, Topology};

fn joined(hosts: usize, pairs: &[Pair]) -> Topology {
    let edges = pairs.iter().map(|[one, other]| Edge::bridge(*one, *other)).collect();
    Topology { hosts, edges }
}

fn longest(routes: &Routes, hosts: usize) -> Option<usize> {
    let pairs = (0..hosts).flat_map(|from| (0..hosts).map(move |to| (from, to)));
    pairs.map(|(from, to)| routes.hops(from, to)).try_fold(0, |most, hops| Some(most.max(hops?)))
}

#[test]
fn e_cube_is_short_and_never_stops() {
    for dimensions in 1..=6u32 {
        let cube = joined(1 << dimensions, &hypercube(dimensions));
        let routes = Routes::e_cube(&cube).unwrap();
        for from in 0..cube.hosts {
            for to in 0..cube.hosts {
                assert_eq!(routes.hops(from, to), Some((from ^ to).count_ones() as usize));
            }
        }
        assert_eq!(longest(&routes, cube.hosts), Some(dimensions as usize));
        assert_eq!(routes.deadlock(), None);
    }
    assert_eq!(Routes::e_cube(&joined(8, &ring(8))), None);
    assert_eq!(Routes::e_cube(&joined(3, &ring(3))), None);
}

#[test]
fn shortest_routes_round_a_ring_can_stop_and_up_and_down_ones_cannot() {
    let five = joined(5, &ring(5));
    let shortest = Routes::shortest(&five, |_| true);
    assert_eq!(longest(&shortest, 5), Some(2));
    let circle = shortest.deadlock().unwrap();
    assert_eq!(circle.len(), 5);
    // Each lane of the circle begins where the one before it ends.
    for (lane, next) in circle.iter().zip(circle.iter().cycle().skip(1)) {
        let [one, other] = five.edges[lane.cable].ends().map(|jack| jack.host);
        assert_eq!(next.from, if lane.from == one { other } else { one });
    }
    let safe = Routes::up_down(&five, |_| true);
    assert_eq!((safe.deadlock(), longest(&safe, 5)), (None, Some(3)));
    for pairs in [line(5), star(4), tree(5, 2)] {
        let routes = Routes::shortest(&joined(5, &pairs), |_| true);
        assert!(routes.deadlock().is_none() && longest(&routes, 5).is_some());
    }
}

#[test]
fn only_forwarders_stand_in_the_middle() {
    let four = joined(4, &ring(4));
    let routes = Routes::shortest(&four, |host| host != 1);
    assert_eq!(routes.path(0, 2), Some(vec![Leg { cable: 3, from: 0 }, Leg { cable: 2, from: 3 }]));
    assert_eq!(routes.hops(0, 1), Some(1));
    let line = Routes::shortest(&joined(3, &line(3)), |host| host != 1);
    assert_eq!((line.hops(0, 2), line.hops(0, 1)), (None, Some(1)));
}

/// On random networks, messages of up-and-down routes never stop, and every one arrives. Shortest
/// routes that a circle threatens do stop in a model with one place for a message on each lane.
#[test]
fn random_networks() {
    let mut random = Random::new(7);
    let (mut stopped, mut threatened) = (0, 0);
    for _ in 0..200 {
        let hosts = 2 + random.below(14) as usize;
        let mut pairs: Vec<Pair> =
            (1..hosts).map(|host| [random.below(host as u64) as usize, host]).collect();
        for _ in 0..random.below(12) {
            let [one, other] = [0, 1].map(|_| random.below(hosts as u64) as usize);
            if one != other {
                pairs.push([one, other]);
            }
        }
        let network = joined(hosts, &pairs);
        let safe = Routes::up_down(&network, |_| true);
        assert!(longest(&safe, hosts).is_some(), "{pairs:?}");
        assert_eq!(safe.deadlock(), None, "{pairs:?}");
        for seed in 0..5 {
            assert!(!stops(&network, &safe, &mut Random::new(seed)), "{pairs:?}");
        }
        let leaves = 1 + random.below(3) as usize;
        let mut more = pairs.clone();
        for leaf in hosts..hosts + leaves {
            for _ in 0..1 + random.below(2) {
                more.push([random.below(hosts as u64) as usize, leaf]);
            }
        }
        let apart = Routes::up_down(&joined(hosts + leaves, &more), |host| host < hosts);
        assert!(longest(&apart, hosts + leaves).is_some(), "{more:?}");
        assert_eq!(apart.deadlock(), None, "{more:?}");
        for (from, to) in
            (0..hosts + leaves).flat_map(|from| (0..hosts + leaves).map(move |to| (from, to)))
        {
            let path = apart.path(from, to).unwrap();
            assert!(path.iter().skip(1).all(|leg| leg.from < hosts), "{more:?}");
        }
        let shortest = Routes::shortest(&network, |_| true);
        let threat = shortest.deadlock().is_some();
        threatened += usize::from(threat);
        for seed in 0..5 {
            let stops = stops(&network, &shortest, &mut Random::new(seed));
            assert!(threat || !stops, "{pairs:?}");
            stopped += usize::from(stops);
        }
    }
    println!("{threatened} of 200 threatened, {stopped} of 1000 runs stopped");
    assert!(threatened > 10 && stopped > 0);
}

/// Fills every lane with random messages and lets them move; returns whether some never arrive.
fn stops(network: &Topology, routes: &Routes, random: &mut Random) -> bool {
    let hosts = network.hosts;
    // Messages on lanes: the host they come to, and their destination.
    let mut lanes: Vec<(Leg, usize, Option<usize>)> = Vec::new();
    for from in 0..hosts {
        for (cable, far) in network.neighbours(from) {
            let uses = |to: &usize| routes.next(from, *to).is_some_and(|it| it.0 == cable);
            let to: Vec<usize> = (0..hosts).filter(uses).collect();
            let message = (!to.is_empty()).then(|| to[random.below(to.len() as u64) as usize]);
            lanes.push((Leg { cable, from }, far, message));
        }
    }
    loop {
        let mut moved = false;
        for place in 0..lanes.len() {
            let (_, at, Some(to)) = lanes[place] else { continue };
            if at == to {
                (lanes[place].2, moved) = (None, true);
                continue;
            }
            let (cable, _) = routes.next(at, to).expect("a route");
            let next = lanes.iter().position(|it| it.0 == Leg { cable, from: at });
            let next = next.expect("a lane");
            if lanes[next].2.is_none() {
                (lanes[next].2, lanes[place].2, moved) = (Some(to), None, true);
            }
        }
        if !moved {
            return lanes.iter().any(|(_, _, message)| message.is_some());
        }
    }
}
