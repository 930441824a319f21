//! The choice of debug cables against every other choice, and the networks of the papers.

use diapason_random::Random;
use diapason_topology::shapes::{Pair, hypercube, line, ring, star, tree};
use diapason_topology::{Cabling, Edge, Fewest, Lists, Topology, choose, flaws, orient};

/// Returns the fewest bridges of any choice of cables and leader with which the network forms.
fn fewest(hosts: usize, pairs: &[Pair]) -> usize {
    let leaders = || std::iter::once(None).chain((0..hosts).map(Some));
    let each = (0..3usize.pow(pairs.len() as u32)).filter_map(|mut code| {
        let edges: Vec<Edge> = pairs
            .iter()
            .map(|[one, other]| {
                let kind = code % 3;
                code /= 3;
                match kind {
                    0 => Edge::bridge(*one, *other),
                    1 => Edge::debug(*one, *other),
                    _ => Edge::debug(*other, *one),
                }
            })
            .collect();
        let topology = Topology { hosts, edges };
        let forms = |leader| flaws(&topology, &Lists::of(&topology, leader)).is_empty();
        leaders().any(forms).then(|| pairs.len() - topology.debug_cables().count())
    });
    each.min().expect("bridges alone always form")
}

fn sound(cabling: &Cabling) {
    let Cabling { topology, lists, .. } = cabling;
    assert_eq!(flaws(topology, lists), [], "{cabling:?}");
}

#[test]
fn no_choice_has_fewer_bridges() {
    let (mut seen, mut without_leader) = (0, 0);
    for hosts in 1..=4usize {
        let all: Vec<Pair> =
            (0..hosts).flat_map(|one| (one + 1..hosts).map(move |other| [one, other])).collect();
        for code in 0..1usize << all.len() {
            let pairs: Vec<Pair> =
                (0..all.len()).filter(|bit| code >> bit & 1 == 1).map(|bit| all[bit]).collect();
            let Ok(cabling) = choose(hosts, &pairs) else { continue };
            sound(&cabling);
            assert_eq!(cabling.bridges, fewest(hosts, &pairs), "{pairs:?}");
            seen += 1;
        }
    }
    // A triangle with a host at each corner: nobody can lead it.
    let corners = [[0, 1], [1, 2], [2, 0], [3, 0], [4, 1], [5, 2]];
    let cabling = choose(6, &corners).unwrap();
    sound(&cabling);
    assert_eq!((cabling.bridges, cabling.fewest), (1, Fewest::NoLeader));
    assert_eq!(fewest(6, &corners), 1);
    without_leader += 1;
    assert!(seen > 40 && without_leader > 0);
}

#[test]
fn random_networks_form_with_the_chosen_cables() {
    let mut random = Random::new(19);
    for _ in 0..300 {
        let hosts = 2 + random.below(20) as usize;
        let mut pairs: Vec<Pair> =
            (1..hosts).map(|host| [random.below(host as u64) as usize, host]).collect();
        for _ in 0..random.below(20) {
            let [one, other] = [0, 1].map(|_| random.below(hosts as u64) as usize);
            if one != other && !pairs.iter().any(|it| it.contains(&one) && it.contains(&other)) {
                pairs.push([one, other]);
            }
        }
        let cabling = choose(hosts, &pairs).unwrap();
        sound(&cabling);
        let most = pairs.len().min(hosts);
        let debug = pairs.len() - cabling.bridges;
        match cabling.fewest {
            Fewest::NoBridge => assert_eq!(cabling.bridges, 0),
            Fewest::Capabilities => assert_eq!(debug, hosts),
            Fewest::NoLeader => assert_eq!(debug, most - 1),
        }
        // A device for each cable, whatever the order: never more than the bound of the crowd.
        for each in 1..=3 {
            let found = orient(hosts, &pairs, each);
            let bridges = found.devices.iter().filter(|device| device.is_none()).count();
            let crowd = found.crowded.saturating_sub(each * found.crowd.len());
            assert_eq!(bridges, crowd, "{pairs:?} {found:?}");
            for host in 0..hosts {
                let own = found.devices.iter().filter(|device| **device == Some(host)).count();
                assert!(own <= each);
            }
        }
    }
    assert_eq!(choose(3, &[[0, 1]]), Err(2));
}

/// [USB 2023, fig. 4], and the argument of [Bridging, 4.6] for four dimensions.
#[test]
fn hypercubes_need_the_bridges_of_the_papers() {
    let three = choose(8, &hypercube(3)).unwrap();
    sound(&three);
    assert_eq!((three.topology.debug_cables().count(), three.bridges), (8, 4));
    let targets: Vec<usize> = three.topology.debug_cables().map(|it| it.1.host).collect();
    assert!((0..8).all(|host| targets.iter().filter(|target| **target == host).count() <= 1));
    let bridges = |dimensions: u32, each: usize| {
        let pairs = hypercube(dimensions);
        let devices = orient(1 << dimensions, &pairs, each).devices;
        (pairs.len(), devices.iter().filter(|device| device.is_none()).count())
    };
    assert_eq!(bridges(3, 1), (12, 4));
    assert_eq!(bridges(4, 2), (32, 0));
    assert_eq!(bridges(4, 1), (32, 16));
    assert_eq!(bridges(5, 2), (80, 16));
}

#[test]
fn lines_rings_stars_and_trees_need_no_bridge() {
    for (hosts, pairs) in
        [(4, line(4)), (4, ring(4)), (16, ring(16)), (9, star(8)), (13, tree(13, 3))]
    {
        let cabling = choose(hosts, &pairs).unwrap();
        sound(&cabling);
        assert_eq!((cabling.bridges, cabling.fewest), (0, Fewest::NoBridge));
        let forms_a_circle = pairs.len() == hosts;
        assert_eq!(cabling.lists.leader.is_some(), forms_a_circle);
    }
    let ring = choose(4, &ring(4)).unwrap();
    assert_eq!(ring.lists.awaits, [vec![3], vec![0], vec![1], vec![2]]);
}
