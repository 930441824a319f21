//! The bus: arbitration, counters, recovery; and the leap held against every single bit.

use crate::support::{Draw, Random, run, sent};
use diapason_abi::Nanos;
use diapason_can::bus::{
    BusEvent, EventKind, Health, NodeId, NodeSetup, SendRefusal, Ticket, WireFault,
};
use diapason_can::frame::standard;
use diapason_can::wire::{encode, length};
use diapason_can::{BitRate, Bus, CanFrame, Filter, WireError};
use std::collections::BTreeMap;

const RATE: u32 = 500_000;
const BIT: u64 = 2_000;

fn bus(nodes: usize) -> (Bus, Vec<NodeId>) {
    let mut bus = Bus::new(BitRate::new(RATE).unwrap());
    let ids = (0..nodes).map(|_| bus.add_node(NodeSetup::default())).collect();
    (bus, ids)
}

fn frame(id: u32, data: &[u8]) -> CanFrame {
    CanFrame::data(standard(id).unwrap(), data).unwrap()
}

#[test]
fn the_smallest_identifier_first_and_every_bit_counted() {
    let (mut bus, nodes) = bus(3);
    let frames = [frame(0x300, &[1, 2]), frame(0x100, &[0; 8]), frame(0x200, &[])];
    for (node, frame) in nodes.iter().zip(frames) {
        bus.send(Nanos(5_000), *node, frame).unwrap();
    }
    let events = run(&mut bus, Nanos::from_millis(2));
    let mut end = 5_000;
    let mut expected = Vec::new();
    for index in [1, 2, 0] {
        end += u64::from(length(&frames[index])) * BIT;
        expected.push((end, frames[index].raw_id()));
        end += 3 * BIT;
    }
    assert_eq!(sent(&events), expected);
    let received = |event: &&BusEvent| matches!(event.kind, EventKind::Received { .. });
    let received: Vec<&BusEvent> = events.iter().filter(received).collect();
    assert_eq!(received.len(), 6);
    assert_eq!(received[0].time.0, expected[0].0 - BIT, "receivers accept one bit earlier");
    assert_eq!(bus.counts(nodes[0]).lost, 2);
}

#[test]
fn alone_a_node_becomes_passive_but_never_bus_off() {
    let (mut bus, nodes) = bus(1);
    bus.send(Nanos(1), nodes[0], frame(1, &[])).unwrap();
    let events = run(&mut bus, Nanos::from_millis(100));
    assert_eq!(bus.health(nodes[0]), (Health::ErrorPassive, 128, 0));
    let unacknowledged = EventKind::Error { error: WireError::Acknowledge, transmitting: true };
    assert!(events.iter().filter(|event| event.kind == unacknowledged).count() > 100);
    // A passive flag (6), delimiter (8), space (3), and the pause of a passive transmitter (8).
    let errors: Vec<u64> =
        events.iter().filter(|e| e.kind == unacknowledged).map(|e| e.time.0).collect();
    let [.., before, last] = errors[..] else { panic!() };
    let again = 6 + 8 + 3 + 8 + u64::from(encode(&frame(1, &[])).ack_slot() + 1);
    assert_eq!(last - before, again * BIT);
    // Somebody comes: the frame gets through, once.
    let other = bus.add_node(NodeSetup::default());
    let events = run(&mut bus, Nanos::from_millis(110));
    assert_eq!(sent(&events).len(), 1);
    assert_eq!(bus.counts(other).received, 1);
    assert_eq!(bus.health(nodes[0]).1, 127);
}

#[test]
fn sixteen_destroyed_frames_make_passive_and_32_bus_off() {
    let (mut bus, nodes) = bus(2);
    // Bit 20 is data; the transmitter alone sees it wrong, so it alone is charged 8 each time.
    for _ in 0..40 {
        bus.arm(Nanos(0), WireFault::Flip { bit: 20, seen_by: 1 });
    }
    bus.send(Nanos(1), nodes[0], frame(0x2aa, &[0x55; 8])).unwrap();
    let events = run(&mut bus, Nanos::from_millis(100));
    let health: Vec<_> = events
        .iter()
        .filter_map(|event| match event.kind {
            EventKind::Health { health, transmit_errors, .. } if event.node == nodes[0] => {
                Some((health, transmit_errors))
            }
            _ => None,
        })
        .collect();
    let expected = [
        (Health::Warning, 96),
        (Health::ErrorPassive, 128),
        (Health::BusOff, 256),
        (Health::ErrorActive, 0),
    ];
    assert_eq!(health, expected);
    let off = events
        .iter()
        .find(|event| matches!(event.kind, EventKind::Health { health: Health::BusOff, .. }));
    let back = events
        .iter()
        .rfind(|event| matches!(event.kind, EventKind::Health { health: Health::ErrorActive, .. }));
    let (off, back) = (off.unwrap().time.0, back.unwrap().time.0);
    // 128 runs of 11 recessive bits; a flag of the other node may come first.
    assert!((128 * 11..128 * 11 + 60).contains(&((back - off) / BIT)), "{}", (back - off) / BIT);
    // Nine faults are left over: they hit the first attempts after recovery, then it is through.
    assert_eq!(sent(&events).len(), 1);
}

#[test]
fn an_error_frame_has_its_length() {
    // Seen wrong by all at once, flags fall together: 6, 8 of delimiter, 3 of space.
    let (mut bus, nodes) = bus(3);
    let one = frame(0x123, &[1, 2, 3]);
    bus.arm(Nanos(0), WireFault::Flip { bit: 25, seen_by: u64::MAX });
    bus.send(Nanos(0), nodes[0], one).unwrap();
    let events = run(&mut bus, Nanos::from_millis(5));
    let bits = 26 + 6 + 8 + 3 + u64::from(length(&one));
    assert_eq!(sent(&events), [(bits * BIT, 0x123)]);
    assert_eq!(bus.health(nodes[0]).1, 7);
    assert_eq!(bus.health(nodes[1]).2, 0, "one up for the error, one down for the frame");
}

#[test]
fn a_dropped_acknowledgement_is_an_error_of_the_transmitter() {
    let (mut bus, nodes) = bus(2);
    let one = frame(0x123, &[1, 2, 3]);
    bus.arm(Nanos(0), WireFault::DropAck);
    bus.send(Nanos(0), nodes[0], one).unwrap();
    let events = run(&mut bus, Nanos::from_millis(5));
    assert!(matches!(
        events[0].kind,
        EventKind::Error { error: WireError::Acknowledge, transmitting: true }
    ));
    assert_eq!(events[0].time.0, u64::from(encode(&one).ack_slot() + 1) * BIT);
    assert_eq!(sent(&events).len(), 1);
    assert_eq!(bus.counts(nodes[1]).received, 1);
}

#[test]
fn the_last_bit_of_a_frame_can_be_received_twice() {
    // The known hole of CAN: receivers accept before the transmitter is satisfied.
    let (mut bus, nodes) = bus(2);
    let one = frame(0x123, &[1]);
    bus.arm(Nanos(0), WireFault::Flip { bit: length(&one) - 1, seen_by: 1 });
    bus.send(Nanos(0), nodes[0], one).unwrap();
    let events = run(&mut bus, Nanos::from_millis(5));
    assert_eq!(sent(&events).len(), 1);
    assert_eq!(bus.counts(nodes[1]).received, 2);
}

#[test]
fn equal_identifiers_with_different_data_destroy_each_other() {
    let (mut bus, nodes) = bus(3);
    bus.send(Nanos(0), nodes[0], frame(0x10, &[0x00])).unwrap();
    bus.send(Nanos(0), nodes[1], frame(0x10, &[0xff])).unwrap();
    let events = run(&mut bus, Nanos::from_millis(50));
    let clash = EventKind::Error { error: WireError::Bit, transmitting: true };
    assert_eq!(events[0].kind, clash);
    // The one that sends dominant sees no bit error itself and goes through when the other may no
    // longer destroy it.
    assert_eq!(sent(&events).len(), 2);
    assert!(events.iter().filter(|event| event.kind == clash).count() >= 16);
}

#[test]
fn a_babbling_idiot_starves_all_but_more_urgent_ones() {
    let (mut bus, nodes) = bus(3);
    bus.babble(Nanos(0), nodes[0], Some(frame(0x100, &[])));
    bus.send(Nanos(100), nodes[1], frame(0x200, &[])).unwrap();
    bus.send(Nanos(100), nodes[2], frame(0x050, &[])).unwrap();
    let events = run(&mut bus, Nanos::from_millis(20));
    let ids: Vec<u32> = sent(&events).into_iter().map(|(_, id)| id).collect();
    assert!(ids.contains(&0x50) && !ids.contains(&0x200));
    bus.babble(Nanos::from_millis(20), nodes[0], None);
    let events = run(&mut bus, Nanos::from_millis(21));
    assert_eq!(sent(&events).last().unwrap().1, 0x200);
    assert_eq!(bus.waiting(nodes[1]), 0);
}

#[test]
fn a_jammed_bus_costs_eight_per_eight_bits_and_ends_in_bus_off() {
    let (mut bus, nodes) = bus(2);
    bus.jam(Nanos(0), 1_000);
    bus.send(Nanos(0), nodes[0], frame(1, &[])).unwrap();
    run(&mut bus, Nanos(400 * BIT));
    // The transmitter is charged as one; the other takes it for a frame of somebody else's.
    assert_eq!(bus.health(nodes[0]).0, Health::BusOff);
    assert_eq!(bus.health(nodes[1]).0, Health::ErrorPassive);
    let events = run(&mut bus, Nanos(4_000 * BIT));
    let expected = 1_000 + 128 * 11 + u64::from(length(&frame(1, &[])));
    assert_eq!(sent(&events), [(expected * BIT, 1)], "128 runs of 11 bits after the jam");
}

#[test]
fn filters_listening_one_shot_and_refusals() {
    let mut bus = Bus::new(BitRate::new(RATE).unwrap());
    let a = bus.add_node(NodeSetup { queue: 2, ..NodeSetup::default() });
    let filters =
        vec![Filter::only(false, 0x7), Filter { extended: false, code: 0x20, mask: 0x7f0 }];
    let b = bus.add_node(NodeSetup { filters, ..NodeSetup::default() });
    let c = bus.add_node(NodeSetup { listen_only: true, ..NodeSetup::default() });
    assert_eq!(bus.send(Nanos(0), c, frame(1, &[])), Err(SendRefusal::Silent));
    let missing = bus.send(Nanos(0), NodeId(9), frame(1, &[]));
    assert_eq!(missing, Err(SendRefusal::NoSuchNode { nodes: 3 }));
    let mut seen = Vec::new();
    for (at, id) in [0x7, 0x8, 0x25, 0x35].into_iter().enumerate() {
        let now = Nanos::from_millis(at as u64);
        bus.send(now, a, frame(id, &[])).unwrap();
        let events = run(&mut bus, now + Nanos(900_000));
        seen.extend(events.into_iter().filter_map(|event| match event.kind {
            EventKind::Received { frame } if event.node == b => Some(frame.raw_id()),
            _ => None,
        }));
    }
    assert_eq!(seen, [0x7, 0x25]);
    assert_eq!(bus.counts(c).received, 4);
    let now = Nanos::from_millis(10);
    let once = bus.send_once(now, a, frame(0x300, &[])).unwrap();
    bus.send(now, b, frame(0x100, &[])).unwrap();
    let events = run(&mut bus, Nanos::from_millis(11));
    let lost = EventKind::Dropped { ticket: once, error: None };
    assert!(events.iter().any(|event| event.kind == lost));
    let now = Nanos::from_millis(20);
    let first = bus.send(now, a, frame(1, &[])).unwrap();
    bus.send(now, a, frame(2, &[])).unwrap();
    let full = bus.send(now, a, frame(3, &[]));
    assert_eq!(full, Err(SendRefusal::QueueFull { capacity: 2 }));
    assert!(!bus.cancel(now + Nanos(1), a, first), "it is on the wire");
    assert_eq!(bus.flush(now + Nanos(1), a), 1);
}

#[test]
fn a_node_switched_off_in_a_frame_breaks_it() {
    let (mut bus, nodes) = bus(3);
    bus.send(Nanos(0), nodes[0], frame(0x700, &[0; 8])).unwrap();
    bus.advance(Nanos(50 * BIT));
    bus.switch(Nanos(50 * BIT), nodes[0], false);
    let events = run(&mut bus, Nanos::from_millis(3));
    let broken = EventKind::Error { error: WireError::Stuff, transmitting: false };
    assert_eq!(events.iter().filter(|event| event.kind == broken).count(), 2);
    assert_eq!(bus.send(Nanos::from_millis(4), nodes[0], frame(1, &[])), Err(SendRefusal::Silent));
    bus.switch(Nanos::from_millis(5), nodes[0], true);
    bus.send(Nanos::from_millis(5), nodes[0], frame(1, &[])).unwrap();
    let events = run(&mut bus, Nanos::from_millis(6));
    let start = events[0].time.0 - u64::from(length(&frame(1, &[])) - 1) * BIT;
    assert_eq!(start, 5_000_000 + 11 * BIT, "eleven recessive bits first");
}

/// Returns a random life of a bus; what was seen, and what was asked for.
fn life(seed: u64, leaping: bool, faults: bool) -> (Vec<BusEvent>, Vec<(u64, CanFrame)>) {
    let mut random = Random::new(seed);
    let (mut bus, nodes) = bus(random.between(2, 5) as usize);
    bus.leaping(leaping);
    let (mut now, mut asked, mut events) = (0, Vec::new(), Vec::new());
    for _ in 0..random.between(5, 40) {
        // Often the same instant, so that arbitration has something to do.
        now += if random.one_in(2) { 0 } else { random.below(400_000) };
        let node = nodes[random.below(nodes.len() as u64) as usize];
        let mut one = random.frame();
        if !faults {
            // Conservation needs distinct identifiers: one node, one residue.
            one = one.with_id(standard((random.below(200) * 8 + node.0 as u64) as u32).unwrap());
        }
        let once = faults && random.one_in(8);
        let time = Nanos(now);
        let ticket = if once { bus.send_once(time, node, one) } else { bus.send(time, node, one) };
        if let Ok(ticket) = ticket {
            asked.push((ticket.0, one));
        }
        if faults {
            disturb(&mut random, &mut bus, time, node, asked.len() as u64);
            now = bus.now().0;
        }
        if random.one_in(3) {
            bus.advance(Nanos(now + random.below(100_000)));
            now = bus.now().0;
        }
        events.extend(std::iter::from_fn(|| bus.poll()));
    }
    events.extend(run(&mut bus, Nanos(now + 200_000_000)));
    (events, asked)
}

/// Disturbs the run as hosts do to waiting requests, and as buses are disturbed.
fn disturb(random: &mut Random, bus: &mut Bus, time: Nanos, node: NodeId, last: u64) {
    let time = time + Nanos(if random.one_in(2) { random.below(200_000) } else { 0 });
    let ticket = Ticket(random.below(last + 1));
    match random.below(20) {
        0..=3 => {
            let seen_by = if random.one_in(2) { u64::MAX } else { random.bits() };
            bus.arm(time, WireFault::Flip { bit: random.below(150) as u32, seen_by });
        }
        4 => bus.arm(time, WireFault::DropAck),
        5 => bus.jam(time, random.below(60)),
        6 => bus.switch(time, node, random.one_in(2)),
        8 => {
            let _ = bus.cancel(time, node, ticket);
        }
        9 => {
            let _ = bus.flush(time, node);
        }
        10 | 11 => {
            let _ = bus.rename(time, node, ticket, random.id());
        }
        7 => bus.babble(time, node, random.one_in(2).then(|| random.frame())),
        _ => {}
    }
}

#[test]
fn the_leap_is_what_the_bits_would_have_done() {
    for seed in 0..400 {
        let faults = seed % 2 == 0;
        let (leapt, walked) = (life(seed, true, faults), life(seed, false, faults));
        let same = leapt.0.iter().zip(&walked.0).position(|(a, b)| a != b);
        assert_eq!(leapt.0.len(), walked.0.len(), "seed {seed}, first difference at {same:?}");
        assert_eq!(leapt, walked, "seed {seed}");
    }
}

#[test]
fn every_frame_is_sent_once_and_received_by_all_others() {
    for seed in 1_000..3_000 {
        let (events, asked) = life(seed, true, false);
        let mut sent = BTreeMap::new();
        let mut received = 0;
        let (mut end, mut senders) = (0, 0);
        for event in &events {
            match event.kind {
                EventKind::Sent { ticket, frame } => {
                    let frame = frame.classic().unwrap();
                    assert!(sent.insert(ticket.unwrap().0, frame).is_none(), "sent twice");
                    let begun = event.time.0 - u64::from(length(&frame)) * BIT;
                    assert!(end == 0 || begun >= end + 3 * BIT, "frames overlap");
                    end = event.time.0;
                    senders += 1;
                }
                EventKind::Received { .. } => received += 1,
                other => panic!("seed {seed}: {other:?} without a fault"),
            }
        }
        assert_eq!(sent, asked.into_iter().collect::<BTreeMap<_, _>>());
        assert_eq!(received % senders, 0);
    }
}
