//! Frames that are wrong on purpose: the time stays within the stated error, and each has its
//! reason in the books.

use crate::support::{Losses, MS, S, World, mac, terms};
use diapason_abi::Nanos;
use diapason_gptp::{
    Announce, GptpBody, GptpFault, GptpFrame, GptpHeader, GptpMessage, Grandmaster, HEAD,
    PRIORITY_FOLLOWER, PortIdentity, TimeProperties, identity_of,
};

/// Returns a master and a follower that know the time.
fn two() -> World {
    let mut world = World::new(terms(1), 4);
    world.host(100, 90_000, 5 * S);
    world.host(PRIORITY_FOLLOWER, -90_000, 900 * S);
    world.link((0, 0), (1, 0), 5_000);
    world.switch_on(0);
    world.switch_on(1);
    world.run(20 * S);
    assert!(world.time(1).is_some());
    world
}

fn port(host: usize) -> PortIdentity {
    PortIdentity { clock: identity_of(mac(host, 9)), port: 1 }
}

fn frame(source: PortIdentity, sequence: u16, correction_ns: i64, body: GptpBody<'_>) -> Vec<u8> {
    let header = GptpHeader { source, sequence, correction_ns, log_interval: -3 };
    GptpFrame::new([2; 6], &GptpMessage { header, body }).bytes().to_vec()
}

/// Returns the last Sync that passed.
fn last_sync(world: &World) -> u16 {
    let sequence = |bytes: &Vec<u8>| {
        let message = GptpMessage::read(&bytes[HEAD..]).ok()?;
        matches!(message.body, GptpBody::Sync).then_some(message.header.sequence)
    };
    world.passed.iter().rev().find_map(sequence).unwrap()
}

/// Injects a frame at the follower while a Sync waits for nothing, and returns how it was counted.
fn count(world: &mut World, bytes: Vec<u8>) -> GptpFault {
    let before = *world.hosts[1].node.books();
    world.inject(1, 0, bytes);
    world.run(10_000);
    let after = world.hosts[1].node.books();
    let one = |fault: &GptpFault| after.refused(*fault) == before.refused(*fault) + 1;
    GptpFault::ALL.into_iter().find(one).expect("one more is refused")
}

#[test]
fn each_lie_has_its_name_and_none_moves_the_clock() {
    let mut world = two();
    world.run(20 * MS);
    let (master, next) = (port(0), last_sync(&world).wrapping_add(1));
    let now = world.time(0).unwrap();
    let follow = |origin: Nanos| GptpBody::FollowUp { origin };
    let damaged = |at: usize, byte: u8| {
        let mut bytes = frame(master, next, 0, follow(now));
        bytes[HEAD + at] = byte;
        bytes
    };
    let answer = GptpBody::PdelayResp { received: now, requester: port(1) };
    for (bytes, fault) in [
        (frame(master, next, 0, follow(now)), GptpFault::Sequence),
        (frame(master, next.wrapping_sub(9), 0, follow(now)), GptpFault::Sequence),
        (frame(port(7), next, 0, follow(now)), GptpFault::Parent),
        (frame(port(1), next, 0, follow(now)), GptpFault::Own),
        (damaged(4, 1), GptpFault::Domain),
        (damaged(0, 8), GptpFault::Profile),
        (damaged(8, 0x20), GptpFault::Correction),
        (damaged(34, 0xff), GptpFault::Timestamp),
        (damaged(40, 0x7f), GptpFault::Timestamp),
        (frame(port(7), 1, 0, GptpBody::Sync), GptpFault::Parent),
        (frame(port(7), 9_999, 0, answer), GptpFault::Sequence),
    ] {
        assert_eq!(count(&mut world, bytes), fault);
        assert!(world.time(1).is_some());
    }
    // A Follow_Up after another Sync.
    world.inject(1, 0, frame(master, 50, 0, GptpBody::Sync));
    let bytes = frame(master, 51, 0, follow(now));
    assert_eq!(count(&mut world, bytes), GptpFault::Sequence);
    world.run(5 * S);
    assert!(world.time(1).is_some());
}

/// A forger sends Syncs in the name of the master: a time that cannot be right is not used.
#[test]
fn forged_times_are_not_used() {
    let mut world = two();
    let mut known = 0;
    for round in 0..600_u64 {
        let lie = Nanos([3_600 * S, 10 * MS, 40_000][round as usize % 3]);
        let now = world.time(0).unwrap();
        let origin = if round % 2 == 0 { now + lie } else { now - lie };
        world.inject(1, 0, frame(port(0), 7, 0, GptpBody::Sync));
        world.inject(1, 0, frame(port(0), 7, 0, GptpBody::FollowUp { origin }));
        let span = world.random.below(40 * MS);
        world.run(span);
        known += u64::from(world.time(1).is_some());
    }
    let refused = world.hosts[1].node.books().refused(GptpFault::Disagrees);
    println!("{refused} of 600 forged times disagree, the furthest is {} ns", world.furthest);
    assert!(refused > 590 && known > 590, "{refused} {known}");
}

/// Bridges of others leave the grandmaster's time as it is and add what they held it.
#[test]
fn corrections_are_added() {
    let mut world = two();
    for (correction, used) in [(10 * MS as i64, true), (-20_000, true), (10_000, false)] {
        let before = world.hosts[1].node.books().used;
        let now = world.time(0).unwrap();
        let told = if used { correction } else { 40_000 };
        let origin = Nanos(now.0.wrapping_add_signed(-told));
        // The link's delay is added, too.
        let origin = origin - Nanos(5_000);
        world.inject(1, 0, frame(port(0), 9, correction, GptpBody::Sync));
        world.inject(1, 0, frame(port(0), 9, 0, GptpBody::FollowUp { origin }));
        world.run(10_000);
        let after = world.hosts[1].node.books();
        assert_eq!(after.used - before, 1 + u64::from(used), "{correction}");
    }
}

/// Frames of the run come again, damaged and late, by the ten thousand.
#[test]
fn repeated_and_damaged_frames_do_not_move_the_clock() {
    for seed in 0..4 {
        let mut world = two();
        world.random = diapason_random::Random::stream(9, seed);
        world.losses = Losses::Within(4);
        let old = world.passed.clone();
        let mut known = 0;
        for _ in 0..10_000 {
            let mut bytes = old[world.random.index(old.len())].clone();
            let kind = bytes[HEAD] & 15;
            // A true Announce of the master and a plausible answer to the last request are what
            // they say: only others are lies.
            let at = [0, 1, 2, 3, 4, 8, 9, 20, 23, 34, 35][world.random.index(11)];
            let byte = 1 + world.random.below(255) as u8;
            if kind != 0xb || at < 20 {
                bytes[HEAD + at] ^= byte;
            }
            world.inject(1, 0, bytes);
            let span = world.random.below(4 * MS);
            world.run(span);
            known += u64::from(world.time(1).is_some());
        }
        println!("known {known} of 10000, furthest {} ns", world.furthest);
        assert!(known > 5_000, "{known}");
    }
}

#[test]
fn a_better_master_that_sends_no_time_leaves_a_node_without_one() {
    let mut world = two();
    let grandmaster = Grandmaster::free(1, port(7).clock);
    let properties = TimeProperties { flags: 0, utc_offset: 37, source: 0xa0 };
    let path = [port(7).clock];
    let announce = Announce { grandmaster, steps: 0, properties, path: &path };
    for sequence in 0..10 {
        world.inject(1, 0, frame(port(7), sequence, 0, GptpBody::Announce(announce)));
        world.run(50_000);
        assert_eq!(world.time(1), None, "it forgets the other one's time at once");
        world.run(S);
        assert_eq!(world.time(1), None);
    }
    world.run(20 * S);
    assert!(world.time(1).is_some());
}

/// Each property of a clock counts more than all those after it, and the way counts last.
#[test]
fn a_better_grandmaster_is_better_in_the_first_property_that_differs() {
    let one = Grandmaster::free(100, [5; 8]);
    let worse = Grandmaster { priority1: 101, class: 6, accuracy: 0, ..one };
    assert!(one < Grandmaster { variance: 0, priority2: 0, identity: [0; 8], ..worse });
    let worse = Grandmaster { class: 249, accuracy: 0, variance: 0, ..one };
    assert!(one < Grandmaster { priority2: 0, identity: [0; 8], ..worse });
    let worse = Grandmaster { accuracy: 0xff, variance: 0, priority2: 0, ..one };
    assert!(one < Grandmaster { identity: [0; 8], ..worse });
    let one = Grandmaster { variance: 7, ..one };
    assert!(one < Grandmaster { variance: 8, priority2: 0, identity: [0; 8], ..one });
    assert!(one < Grandmaster { priority2: 249, identity: [0; 8], ..one });
    assert!(one < Grandmaster { identity: [5, 5, 5, 5, 5, 5, 5, 6], ..one });
}

/// An Announce that came round, from a long way, or that claims to be the node's own.
#[test]
fn announcements_in_a_circle_are_refused() {
    let mut world = two();
    let properties = TimeProperties { flags: 0, utc_offset: 37, source: 0xa0 };
    let far = [[3; 8]; 8];
    let round = [[3; 8], port(1).clock];
    let announce = |grandmaster, steps, path| {
        GptpBody::Announce(Announce { grandmaster, steps, properties, path })
    };
    let better = Grandmaster::free(1, [3; 8]);
    let own = Grandmaster::free(1, port(1).clock);
    for (body, fault) in [
        (announce(better, 2, &round[..]), GptpFault::Own),
        (announce(own, 0, &[]), GptpFault::Own),
        (announce(better, 8, &far[..]), GptpFault::Path),
        (announce(better, 255, &[]), GptpFault::Path),
    ] {
        assert_eq!(count(&mut world, frame(port(7), 1, 0, body)), fault);
        assert!(world.time(1).is_some());
    }
}
