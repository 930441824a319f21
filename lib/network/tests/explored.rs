//! Every order of events on every network of up to four hosts, against the judgement of lists.

use diapason_abi::Nanos;
use diapason_topology::world::{Explored, Scene, Scope, explore};
use diapason_topology::{Edge, Flaw, Lists, Topology, flaws};

fn explored(topology: &Topology, lists: &Lists, ports: Scope, failures: usize) -> Explored {
    explore(&Scene { topology, lists, scope: ports, patience: Nanos::FOREVER }, failures)
}

/// Returns every network of `hosts` hosts in which a pair is joined by nothing, or by a debug
/// cable one way or the other, and each host is the target of one cable at most.
fn topologies(hosts: usize) -> Vec<Topology> {
    let pairs: Vec<(usize, usize)> =
        (0..hosts).flat_map(|one| (one + 1..hosts).map(move |other| (one, other))).collect();
    let count = 3usize.pow(pairs.len() as u32);
    let each = (0..count).map(|mut code| {
        let mut edges = Vec::new();
        for (one, other) in &pairs {
            match code % 3 {
                1 => edges.push(Edge::debug(*one, *other)),
                2 => edges.push(Edge::debug(*other, *one)),
                _ => {}
            }
            code /= 3;
        }
        Topology { hosts, edges }
    });
    let fits = |topology: &Topology| {
        let targets: Vec<usize> = topology.debug_cables().map(|it| it.1.host).collect();
        (0..hosts).all(|host| targets.iter().filter(|target| **target == host).count() <= 1)
    };
    each.filter(fits).collect()
}

fn leaders(hosts: usize) -> impl Iterator<Item = Option<usize>> {
    std::iter::once(None).chain((0..hosts).map(Some))
}

/// Derived lists, with every leader and none: there is a flaw exactly where some order of events
/// ends in another network.
#[test]
fn flaws_of_derived_lists_are_exact() {
    let (mut forms, mut fails) = (0, 0);
    for topology in (1..=4).flat_map(topologies) {
        for leader in leaders(topology.hosts) {
            let lists = Lists::of(&topology, leader);
            let found = flaws(&topology, &lists);
            let explored = explored(&topology, &lists, Scope::All, 0);
            let forms_always = explored.other.is_empty();
            assert_eq!(found.is_empty(), forms_always, "{topology:?} {lists:?} {found:?}");
            *(if forms_always { &mut forms } else { &mut fails }) += 1;
        }
    }
    println!("{forms} networks form in every order of events, {fails} do not");
    assert!(forms > 500 && fails > 200);
}

/// Lists, flags and leaders as somebody may write them by hand, right and wrong ones.
#[test]
fn flaws_of_lists_written_by_hand_are_exact() {
    let (mut right, mut wrong) = (0, 0);
    for topology in topologies(3) {
        let hosts = topology.hosts;
        for code in 0..1usize << (hosts * hosts) {
            let bit = |place: usize| code >> place & 1 == 1;
            let awaits = |host: usize| {
                let others = (0..hosts).filter(|other| *other != host);
                others.filter(|other| bit(host * hosts + other)).collect()
            };
            // The diagonal of the matrix says who enables.
            let enables = (0..hosts).map(|host| bit(host * hosts + host)).collect();
            let lists = Lists { awaits: (0..hosts).map(awaits).collect(), enables, leader: None };
            for leader in leaders(hosts) {
                let lists = Lists { leader, ..lists.clone() };
                let found = flaws(&topology, &lists);
                let explored = explored(&topology, &lists, Scope::All, 0);
                let forms = explored.other.is_empty();
                assert_eq!(found.is_empty(), forms, "{topology:?} {lists:?} {found:?}");
                *(if forms { &mut right } else { &mut wrong }) += 1;
            }
        }
    }
    println!("{right} lists form their network in every order of events, {wrong} do not");
    assert!(right > 100 && wrong > 10_000);
}

/// Hosts that enumerate at their own ports come back to the wanted network after every restart and
/// loss, in every order, and never take another one for it.
#[test]
fn no_failure_leaves_a_deadlock_or_a_wrong_network() {
    let (mut states, mut networks) = (0, 0);
    for topology in (1..=4).flat_map(topologies) {
        let failures = if topology.hosts < 4 { 3 } else { 2 };
        for leader in leaders(topology.hosts) {
            let lists = Lists::of(&topology, leader);
            if flaws(&topology, &lists).iter().any(|it| matches!(it, Flaw::Circle { .. })) {
                continue;
            }
            let explored = explored(&topology, &lists, Scope::Own, failures);
            assert_eq!(explored.other, [], "{topology:?} {lists:?}");
            assert_eq!(explored.mistaken, [], "{topology:?} {lists:?}");
            states += explored.states;
            networks += 1;
        }
    }
    println!("{networks} networks, {states} states");
    assert!(networks > 500);
}

/// Algorithm 4 to the letter forgets: a restart may end in another network.
#[test]
fn hosts_that_look_at_all_ports_need_no_failure_to_be_right_and_one_to_be_wrong() {
    let tree =
        Topology { hosts: 4, edges: vec![Edge::debug(0, 2), Edge::debug(1, 2), Edge::debug(2, 3)] };
    let lists = Lists::of(&tree, None);
    assert_eq!(explored(&tree, &lists, Scope::All, 0).other, []);
    assert!(!explored(&tree, &lists, Scope::All, 2).other.is_empty());
    assert_eq!(explored(&tree, &lists, Scope::Own, 2).other, []);
}
