//! A bus with frames of both formats: times at two rates, arbitration, errors, classic nodes, and
//! the leap held against every single bit.

use crate::support::{Draw, Random, run, sent};
use diapason_abi::Nanos;
use diapason_can::bus::{BusEvent, EventKind, Health, NodeId, NodeSetup, SendRefusal, WireFault};
use diapason_can::frame::standard;
use diapason_can::{AnyFrame, BitRate, Bus, CanFrame, FdFrame, WireError};

const SLOW: u64 = 2_000;
const FAST: u64 = 500;

fn bus(nodes: usize) -> (Bus, Vec<NodeId>) {
    let (rate, data) = (BitRate::new(500_000).unwrap(), BitRate::of_data(2_000_000).unwrap());
    let mut bus = Bus::with_data_rate(rate, data);
    let fd = NodeSetup { fd: true, ..NodeSetup::default() };
    let ids = (0..nodes).map(|_| bus.add_node(fd.clone())).collect();
    (bus, ids)
}

fn fd(id: u32, data: &[u8]) -> FdFrame {
    FdFrame::new(standard(id).unwrap(), data).unwrap().with_fast(true)
}

fn classic(id: u32, data: &[u8]) -> CanFrame {
    CanFrame::data(standard(id).unwrap(), data).unwrap()
}

/// Returns how long the frame takes.
fn time(frame: &FdFrame) -> u64 {
    let wire = frame.encode();
    let fast = u64::from(wire.fast_bits());
    (u64::from(wire.bits.len()) - fast) * SLOW + fast * FAST
}

#[test]
fn bits_between_the_switch_and_the_delimiter_go_at_the_rate_of_the_data() {
    for leaping in [true, false] {
        let (mut bus, nodes) = bus(3);
        bus.leaping(leaping);
        let long: Vec<u8> = (0..64).collect();
        let (first, slow) = (fd(0x100, &long), fd(0x200, &[1, 2]).with_fast(false));
        bus.send(Nanos(5_000), nodes[0], first).unwrap();
        bus.send(Nanos(5_000), nodes[1], slow).unwrap();
        bus.send(Nanos(5_000), nodes[2], classic(0x300, &[3])).unwrap();
        let events = run(&mut bus, Nanos::from_millis(3));
        let first_ends = 5_000 + time(&first);
        let slow_ends = first_ends + 3 * SLOW + time(&slow);
        let bits = u64::from(diapason_can::wire::length(&classic(0x300, &[3])));
        let classic_ends = slow_ends + (3 + bits) * SLOW;
        let expected = [(first_ends, 0x100), (slow_ends, 0x200), (classic_ends, 0x300)];
        assert_eq!(sent(&events), expected);
        let received = EventKind::Received { frame: first.into() };
        let heard: Vec<_> = events.iter().filter(|event| event.kind == received).collect();
        assert!(heard.len() == 2 && heard.iter().all(|e| e.time.0 == first_ends - SLOW));
    }
}

#[test]
fn odd_rates_do_not_drift() {
    let (rate, data) = (BitRate::new(512_000).unwrap(), BitRate::of_data(3_000_000).unwrap());
    let mut bus = Bus::with_data_rate(rate, data);
    let setup = NodeSetup { fd: true, ..NodeSetup::default() };
    let (a, _) = (bus.add_node(setup.clone()), bus.add_node(setup));
    let frame = fd(0x155, &[0x5a; 32]);
    let wire = frame.encode();
    let fast = u128::from(wire.fast_bits());
    let slow = u128::from(wire.bits.len()) - fast;
    // Frames behind each other: only the last one's end is rounded.
    let count = 60u128;
    assert!((0..count).all(|_| bus.send(Nanos(0), a, frame).is_ok()));
    let events = run(&mut bus, Nanos::from_millis(100));
    let (slow, fast) = (count * slow + (count - 1) * 3, count * fast);
    let exact = (slow * 3_000_000 + fast * 512_000) * 1_000_000_000;
    let expected = exact.div_ceil(3_000_000 * 512_000);
    assert_eq!(u128::from(sent(&events).last().unwrap().0), expected);
}

#[test]
fn of_equal_identifiers_classic_data_comes_first_and_a_request_last() {
    for leaping in [true, false] {
        let (mut bus, nodes) = bus(4);
        bus.leaping(leaping);
        let id = standard(0x123).unwrap();
        bus.send(Nanos(0), nodes[0], CanFrame::remote(id, 4).unwrap()).unwrap();
        bus.send(Nanos(0), nodes[1], fd(0x123, &[1])).unwrap();
        bus.send(Nanos(0), nodes[2], classic(0x123, &[1])).unwrap();
        let events = run(&mut bus, Nanos::from_millis(3));
        assert!(!events.iter().any(|event| matches!(event.kind, EventKind::Error { .. })));
        let order = events.iter().filter_map(|event| match event.kind {
            EventKind::Sent { frame, .. } => Some((frame.is_fd(), frame.is_remote())),
            _ => None,
        });
        assert_eq!(order.collect::<Vec<_>>(), [(false, false), (true, false), (false, true)]);
    }
}

#[test]
fn a_classic_node_destroys_each_frame_until_the_sender_is_off_the_bus() {
    let (mut bus, nodes) = bus(2);
    let old = bus.add_node(NodeSetup::default());
    assert_eq!(bus.send(Nanos(0), old, fd(1, &[])), Err(SendRefusal::Classic));
    bus.send(Nanos(0), nodes[0], classic(0x100, &[1])).unwrap();
    assert_eq!(sent(&run(&mut bus, Nanos::from_millis(1))).len(), 1);
    bus.send(Nanos::from_millis(1), nodes[0], fd(0x555, &[1; 12])).unwrap();
    let events = run(&mut bus, Nanos::from_millis(10));
    let form = EventKind::Error { error: WireError::Form, transmitting: false };
    let first = events.iter().find(|event| event.kind == form).unwrap();
    assert_eq!((first.node, first.time.0), (old, 1_000_000 + 15 * SLOW), "at FDF");
    // In the end the classic node is error-passive and cannot destroy frames any more.
    assert_eq!(sent(&events).len(), 1);
    assert_eq!(bus.health(old).0, Health::ErrorPassive);
    assert!(events.iter().filter(|event| event.kind == form).count() > 10);
}

#[test]
fn a_classic_bus_has_no_such_frames() {
    let mut bus = Bus::new(BitRate::new(500_000).unwrap());
    let node = bus.add_node(NodeSetup { fd: true, ..NodeSetup::default() });
    assert_eq!(bus.send(Nanos(0), node, fd(1, &[])), Err(SendRefusal::Classic));
    assert!(SendRefusal::Classic.to_string().contains("classic frames only"));
}

#[test]
fn an_error_in_the_data_is_flagged_at_the_rate_of_arbitration() {
    let (mut bus, nodes) = bus(3);
    let frame = fd(0x555, &[0xaa; 16]);
    let wire = frame.encode();
    let at = wire.fast.0 + 40;
    bus.arm(Nanos(0), WireFault::Flip { bit: at, seen_by: u64::MAX });
    bus.send(Nanos(0), nodes[0], frame).unwrap();
    let events = run(&mut bus, Nanos::from_millis(5));
    let fast = u64::from(at - wire.fast.0) + 1;
    let slow = u64::from(wire.fast.0);
    // All see it at once: six of flag, eight of delimiter, three of space.
    let begun = slow * SLOW + fast * FAST + (6 + 8 + 3) * SLOW;
    let error = EventKind::Error { error: WireError::Bit, transmitting: true };
    assert!(events.iter().any(|e| e.kind == error && e.time.0 == slow * SLOW + fast * FAST));
    // Receivers find a stuff error or not; whoever does not sees the flag and answers it.
    let last = sent(&events)[0].0;
    assert!(last >= begun + time(&frame), "{last}");
    assert!(last <= begun + 6 * SLOW + time(&frame), "{last}");
}

#[test]
fn a_sender_that_is_error_passive_says_so() {
    let (mut bus, nodes) = bus(2);
    for _ in 0..17 {
        bus.arm(Nanos(0), WireFault::Flip { bit: 60, seen_by: 1 });
    }
    bus.send(Nanos(0), nodes[0], fd(0x123, &[0; 12])).unwrap();
    let events = run(&mut bus, Nanos::from_millis(50));
    let came = events.iter().find_map(|event| match event.kind {
        EventKind::Received { frame: AnyFrame::Fd(frame) } => Some(frame.is_passive()),
        _ => None,
    });
    assert_eq!(came, Some(true));
}

/// Returns what happens in a random life of a bus.
fn life(seed: u64, leaping: bool, faults: bool) -> Vec<BusEvent> {
    let mut random = Random::new(seed);
    let (mut bus, mut nodes) = bus(random.between(2, 5) as usize);
    if faults && random.one_in(4) {
        nodes.push(bus.add_node(NodeSetup::default()));
    }
    bus.leaping(leaping);
    let (mut now, mut events) = (0, Vec::new());
    for _ in 0..random.between(5, 40) {
        now += if random.one_in(2) { 0 } else { random.below(400_000) };
        let node = nodes[random.below(nodes.len() as u64) as usize];
        let own = standard((random.below(200) * 8 + node.0 as u64) as u32).unwrap();
        let frame = match random.one_in(2) {
            true => AnyFrame::from(random.frame()),
            false => AnyFrame::from(random.fd_frame()),
        };
        let frame = if faults { frame } else { frame.with_id(own) };
        let once = faults && random.one_in(8);
        let result = match once {
            true => bus.send_once(Nanos(now), node, frame),
            false => bus.send(Nanos(now), node, frame),
        };
        assert!(result.is_ok() || faults);
        if faults {
            let seen_by = if random.one_in(2) { u64::MAX } else { random.bits() };
            let bit = random.below(500) as u32;
            match random.below(12) {
                0..=3 => bus.arm(Nanos(now), WireFault::Flip { bit, seen_by }),
                4 => bus.arm(Nanos(now), WireFault::DropAck),
                5 => bus.jam(Nanos(now), random.below(60)),
                6 => bus.switch(Nanos(now), node, random.one_in(2)),
                _ => {}
            }
        }
        if random.one_in(3) {
            bus.advance(Nanos(now + random.below(100_000)));
            now = bus.now().0;
        }
        events.extend(std::iter::from_fn(|| bus.poll()));
    }
    events.extend(run(&mut bus, Nanos(now + 200_000_000)));
    events
}

#[test]
fn the_leap_is_what_the_bits_would_have_done() {
    for seed in 0..150 {
        let faults = seed % 2 == 0;
        let (leapt, walked) = (life(seed, true, faults), life(seed, false, faults));
        let same = leapt.iter().zip(&walked).position(|(a, b)| a != b);
        assert_eq!((leapt.len(), same), (walked.len(), None), "seed {seed}");
    }
}

#[test]
fn every_frame_is_sent_once_and_received_by_all_others() {
    for seed in 1_000..1_400 {
        let events = life(seed, true, false);
        let (mut sent, mut received, mut end) = (0, 0, 0);
        for event in &events {
            match event.kind {
                EventKind::Sent { frame, .. } => {
                    let length = match frame {
                        AnyFrame::Fd(frame) => {
                            let fast = u64::from(frame.encode().fast_bits());
                            (u64::from(frame.encode().bits.len()) - fast) * SLOW + fast * FAST
                        }
                        AnyFrame::Classic(frame) => {
                            u64::from(diapason_can::wire::length(&frame)) * SLOW
                        }
                    };
                    assert!(end == 0 || event.time.0 - length >= end + 3 * SLOW, "frames overlap");
                    (sent, end) = (sent + 1, event.time.0);
                }
                EventKind::Received { .. } => received += 1,
                other => panic!("seed {seed}: {other:?} without a fault"),
            }
        }
        assert!(sent >= 5 && received % sent == 0);
    }
}
