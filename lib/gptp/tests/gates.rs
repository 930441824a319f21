//! Gates of two hosts on the time that both know: no frame leaves its window, by the clock of the
//! other host, by more than the stated error.

use crate::support::oscillator::Wander;
use crate::support::{Losses, S, Stamps, World, base};
use diapason_gptp::{PRIORITY_FOLLOWER, SyncBase, SyncTerms};
use diapason_tsn::{CLASSES, Egress, EgressStep, GateEntry, GateList, LinkRate, Shaping};

const CYCLE_NS: u64 = 125_000;
const WINDOW_NS: u64 = 32_000;
/// The time of a frame on the wire, by its class.
const WIRE_NS: [u64; 2] = [12_336, 4_560];

fn gates() -> GateList {
    let entry = |mask, interval_ns| GateEntry { mask, interval_ns };
    let entries = [entry(2, WINDOW_NS), entry(1, CYCLE_NS - WINDOW_NS)];
    GateList::new(0, Some(CYCLE_NS), &entries).unwrap()
}

fn port() -> Egress<()> {
    Egress::new(gates(), LinkRate::GIGABIT, [Shaping::Strict; CLASSES]).unwrap()
}

/// Sends with full queues on the time of the follower. Returns how many frames were sent, and by
/// how much the worst is outside its window by the master's time.
fn send(world: &mut World, cycles: u64) -> (u64, u64) {
    let (mut egress, windows) = (port(), gates());
    let (mut sent, mut worst) = (0, 0);
    let end = world.now + cycles * CYCLE_NS;
    while world.now < end {
        let time = world.time(1).expect("the follower knows the time");
        for (class, wire) in WIRE_NS.into_iter().enumerate() {
            if egress.waiting(class) == 0 {
                egress.push(time.0, class, wire, ()).unwrap();
            }
        }
        let until = match egress.step(time.0) {
            EgressStep::Sends { class, end_ns, .. } => {
                let master = world.time(0).expect("the master knows the time");
                worst = worst.max(windows.outside(class, master.0, WIRE_NS[class]));
                sent += 1;
                end_ns
            }
            EgressStep::Waits { until_ns } => until_ns,
            EgressStep::Idle => panic!("the queues are full"),
        };
        world.run((until - time.0).max(1));
    }
    (sent, worst)
}

fn two(terms: SyncTerms, seed: u64) -> World {
    let mut world = World::new(terms, seed);
    world.host(100, [100_000, -100_000][seed as usize % 2], 5 * S);
    world.host(PRIORITY_FOLLOWER, [-100_000, 100_000][seed as usize % 2], 7 * S);
    world.link((0, 0), (1, 0), 5_000);
    world.hosts.iter_mut().for_each(|host| host.clock.wander = Wander::Sweeps);
    world.losses = Losses::Within(4);
    world.switch_on(0);
    world.switch_on(1);
    world
}

fn campaign(cycles: u64, seeds: std::ops::Range<u64>) {
    let terms = SyncTerms::new(SyncBase { wander_ppb: 20, ..base(1) }).unwrap();
    let mut all = 0;
    for seed in seeds {
        let mut world = two(terms, seed);
        world.stamps = [Stamps::Swings, Stamps::Random][seed as usize / 2 % 2];
        world.run(2 * terms.announced().0 + terms.settle().0 + 15 * S);
        let (sent, worst) = send(&mut world, cycles);
        // A frame lasts its time by the clock of the adapter, which drifts, too.
        let most = terms.error().0 + 3;
        println!("{sent} frames, the worst {worst} ns outside, {most} ns are stated");
        assert!(sent > cycles * 8 && worst <= most, "{sent} frames, {worst} ns of {most}");
        all = worst.max(all);
    }
    assert!(all * 2 > terms.error().0, "the attack reaches only {all} ns");
}

#[test]
fn gates_on_a_common_time_keep_their_windows() {
    campaign(40_000, 0..4);
}

#[test]
#[ignore = "minutes: a million cycles of each of four pairs"]
fn gates_on_a_common_time_keep_a_million_windows() {
    campaign(1_000_000, 0..4);
}

/// With clocks of their own the same frames are soon anywhere: the campaign can fail.
#[test]
fn gates_on_clocks_of_their_own_leave_their_windows() {
    let mut world = two(SyncTerms::new(base(1)).unwrap(), 0);
    let windows = gates();
    let apart = |world: &mut World| world.local(1).0.abs_diff(world.local(0).0);
    let before = apart(&mut world);
    world.run(S);
    let drifted = before.abs_diff(apart(&mut world));
    assert!(windows.outside(1, drifted, WIRE_NS[1]) > 10_000, "{drifted}");
}
