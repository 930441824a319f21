//! Networks of the papers with hosts that get power at any time within two seconds: their order of
//! events, and the report of a host that waits in vain.

use diapason_abi::Nanos;
use diapason_random::Random;
use diapason_topology::shapes::hypercube;
use diapason_topology::world::{Scene, Scope, World};
use diapason_topology::{Act, Deed, Edge, Lists, Occurrence, Topology, choose};

const SEEDS: u64 = 1_000;
const PATIENCE: Nanos = Nanos::from_secs(3);

/// A run: the acts in their order, the hosts that were reported, and whether the links are wanted.
struct Ran {
    acts: Vec<Occurrence>,
    late: Vec<(usize, usize)>,
    wanted: bool,
}

/// Powers every host on within two seconds; each takes up to 20 ms for a deed.
fn run(topology: &Topology, lists: &Lists, seed: u64) -> Ran {
    let scene = Scene { topology, lists, scope: Scope::All, patience: PATIENCE };
    let mut random = Random::new(seed);
    let mut world = World::new(&scene);
    let mut due: Vec<Nanos> =
        (0..topology.hosts).map(|_| Nanos(random.below(2_000_000_000))).collect();
    let (mut acts, mut late) = (Vec::new(), Vec::new());
    while let Some(host) = (0..topology.hosts).min_by_key(|host| due[*host]) {
        let now = due[host];
        let is_formed = world.is_wanted(&scene) && world.says_formed(&scene);
        if is_formed || now > Nanos::from_secs(8) {
            break;
        }
        if !world.is_on(host) {
            world.power(&scene, host, now);
        }
        match world.step(&scene, host, now, |_| 0) {
            Some(Deed::Enumerate) => acts.push(Occurrence::enumerate(host)),
            Some(Deed::Enable) => acts.push(Occurrence::enable(host)),
            Some(Deed::Late(other)) => late.push((host, other)),
            None => {}
        }
        due[host] = now + Nanos(1 + random.below(20_000_000));
    }
    Ran { acts, late, wanted: world.is_wanted(&scene) && world.says_formed(&scene) }
}

fn tree() -> Topology {
    let edges = vec![Edge::debug(0, 2), Edge::debug(1, 2), Edge::debug(2, 3)];
    Topology { hosts: 4, edges }
}

fn ring() -> Topology {
    let edges = (0..4).map(|host| Edge::debug(host, (host + 1) % 4)).collect();
    Topology { hosts: 4, edges }
}

fn star() -> Topology {
    Topology { hosts: 3, edges: vec![Edge::debug(1, 0), Edge::debug(2, 0)] }
}

/// [USB 2023, fig. 5]: every happens-before of the text, in every run.
#[test]
fn events_come_in_the_order_of_the_paper() {
    let e = |host: usize| Occurrence { host: host - 1, act: Act::Enumerate };
    let d = |host: usize| Occurrence { host: host - 1, act: Act::Enable };
    let a = vec![(e(2), d(2)), (e(3), d(3)), (d(2), e(1)), (d(3), e(1))];
    let b =
        vec![(e(1), d(1)), (e(2), d(2)), (d(1), e(3)), (d(2), e(3)), (e(3), d(3)), (d(3), e(4))];
    // In the text host 1 enumerates first, too; algorithm 4 lets it do so once, at last.
    let c = vec![
        (d(1), e(2)),
        (e(2), d(2)),
        (d(2), e(3)),
        (e(3), d(3)),
        (d(3), e(4)),
        (e(4), d(4)),
        (d(4), e(1)),
    ];
    for (topology, leader, order) in [(star(), None, a), (tree(), None, b), (ring(), Some(0), c)] {
        let lists = Lists::of(&topology, leader);
        for seed in 0..SEEDS {
            let ran = run(&topology, &lists, seed);
            assert!(ran.wanted && ran.late.is_empty(), "{topology:?} {seed}");
            let when = |it: &Occurrence| ran.acts.iter().position(|act| act == it).unwrap();
            for (first, second) in &order {
                assert!(when(first) < when(second), "{first:?} {second:?} {:?}", ran.acts);
            }
        }
    }
}

#[test]
fn the_hypercube_always_forms() {
    let cube = choose(8, &hypercube(3)).unwrap();
    for seed in 0..SEEDS {
        assert!(run(&cube.topology, &cube.lists, seed).wanted, "{seed}");
    }
}

/// A ring without a leader, and a host that never enables: each host that waits says for whom.
#[test]
fn a_host_that_waits_in_vain_names_the_other() {
    let stuck = Lists::of(&ring(), None);
    let mut dark = Lists::of(&tree(), None);
    dark.enables[1] = false;
    for seed in 0..SEEDS {
        let mut late = run(&ring(), &stuck, seed).late;
        late.sort_unstable();
        assert_eq!(late, [(0, 3), (1, 0), (2, 1), (3, 2)], "{seed}");
        let ran = run(&tree(), &dark, seed);
        assert!(!ran.wanted && ran.late.contains(&(2, 1)) && ran.late.contains(&(3, 2)), "{seed}");
    }
}

/// [USB 2023, fig. 6]: with wrong lists some run ends in another network, and with right ones none.
#[test]
fn wrong_lists_end_in_another_network() {
    let mut missed = Lists::of(&star(), None);
    missed.awaits[0].clear();
    let early = Lists::of(&tree(), Some(2));
    for (topology, lists) in [(star(), missed), (tree(), early)] {
        let wrong = (0..SEEDS).filter(|seed| !run(&topology, &lists, *seed).wanted).count();
        println!("{wrong} of {SEEDS} runs end in another network");
        assert!(wrong > 100);
    }
}
