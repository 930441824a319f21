//! The time packets take, measured on the buses, against `diapason_bus`.

use crate::support::{Driver, Plan, Shared, bulk};
use diapason_abi::Nanos;
use diapason_bus::{
    Async, BusInstance, Coding, Direction, EndpointId, Guarantee, Pattern, Picos, Rotation, Speed,
    Transfer,
};
use diapason_random::Random;
use diapason_usb::context::EndpointKind;
use diapason_usb::trb::{Completion, Kind, Trb, bit};
use diapason_xhc::{BusPacket, Config, PacketOutcome};

fn uncoded() -> Config {
    Config { coding: Coding::Ignored, ..Config::default() }
}

fn device(config: Config, plans: &[Plan]) -> (Driver, Shared, u8) {
    let mut driver = Driver::running(config);
    let gadget = Shared::new(Speed::Super);
    for plan in plans.iter().filter(|plan| plan.index & 1 == 1) {
        gadget.0.borrow_mut().endless.push(0x80 | (plan.index / 2));
    }
    let slot = driver.connect(5, gadget.boxed());
    assert_eq!(driver.configure(slot, plans), Completion::Success);
    driver.take(0);
    driver.xhc.record(true);
    (driver, gadget, slot)
}

fn isoch(index: u8, burst: u32, mult: u32, interval: u32) -> Plan {
    let kind = if index & 1 == 1 { EndpointKind::IsochIn } else { EndpointKind::IsochOut };
    let payload = (1024 * (burst + 1) * (mult + 1)).min(0xffff);
    Plan { kind, burst, mult, interval, payload, ..bulk(index, 1024, 0) }
}

/// Queues isochronous transfers of `bytes` each, as soon as possible, and rings.
fn stream(driver: &mut Driver, slot: u8, index: u8, bytes: u32, count: usize) {
    let buffer = 0x7f_0000;
    for _ in 0..count {
        let flags = bit::ASAP | bit::COMPLETION;
        driver.queue(slot, index, Trb::new(Kind::Isoch, buffer, bytes, flags));
    }
    driver.doorbell(slot, index);
}

/// Time of packets in the microframe that has most.
fn busiest(records: &[BusPacket]) -> (u64, usize) {
    let mut slots = std::collections::BTreeMap::new();
    for record in records {
        let slot = slots.entry(record.start.0 / 125_000_000).or_insert((0, 0));
        *slot = (slot.0 + (record.end - record.start).0, slot.1 + 1);
    }
    slots.into_values().max().unwrap_or_default()
}

#[test]
fn packets_take_their_time_without_the_line_code() {
    let (mut driver, _, slot) = device(uncoded(), &[bulk(2, 1024, 15), isoch(4, 0, 0, 0)]);
    driver.queue_normal(slot, 2, 1024, bit::COMPLETION);
    driver.doorbell(slot, 2);
    stream(&mut driver, slot, 4, 1024, 1);
    driver.run_for(Nanos::from_millis(2));
    let lengths: Vec<(u8, u64)> = driver
        .xhc
        .take_records()
        .iter()
        .map(|record| (record.endpoint, (record.end - record.start).0))
        .collect();
    assert_eq!(lengths, [(2, 1_778_400), (4, 1_720_800)]);
}

/// 70 packets of 1778.4 ns fit into a microframe without the line code (573 MB/s), 56 of
/// 2221.75 ns with the line code (459 MB/s).
#[test]
fn a_saturated_bulk_endpoint_fills_microframes_with_whole_packets() {
    for (config, packets) in [(uncoded(), 70), (Config::default(), 56)] {
        let (mut driver, _, slot) = device(config, &[bulk(2, 1024, 15)]);
        let buffer = driver.ram.take(0x1_0000, 0x1_0000);
        for _ in 0..60 {
            driver.queue(slot, 2, Trb::new(Kind::Normal, buffer, 0x1_0000, 0));
        }
        driver.doorbell(slot, 2);
        driver.run_to(Nanos((driver.now.0 / 125_000 + 1) * 125_000));
        driver.xhc.take_records();
        driver.run_for(Nanos::from_micros(125 * 40));
        let records = driver.xhc.take_records();
        let one = records[0].end - records[0].start;
        assert_eq!(Speed::Super.slot().0 / one.0, packets, "one takes {one}");
        let ended = |r: &&BusPacket| r.end.0 <= driver.now.0 * 1000;
        assert_eq!(records.iter().filter(ended).count() as u64, 40 * packets);
        let crossing = |r: &&BusPacket| r.start.0 / 125_000_000 != (r.end.0 - 1) / 125_000_000;
        assert_eq!(records.iter().filter(crossing).count(), 0);
    }
}

/// A camera: 33 packets of 1720.8 ns are 56,786.4 ns, 45.4 % of a microframe.
#[test]
fn a_camera_takes_its_share_and_bulk_the_rest() {
    let (mut driver, _, slot) = device(uncoded(), &[isoch(3, 10, 2, 0), bulk(2, 1024, 0)]);
    let buffer = driver.ram.take(0x1_0000, 0x1_0000);
    for _ in 0..12 {
        driver.queue(slot, 2, Trb::new(Kind::Normal, buffer, 0x1_0000, 0));
    }
    driver.doorbell(slot, 2);
    stream(&mut driver, slot, 3, 33 * 1024, 20);
    driver.run_for(Nanos::from_millis(4));
    let records = driver.xhc.take_records();
    let camera: Vec<BusPacket> = records.iter().copied().filter(|r| r.endpoint == 3).collect();
    assert_eq!(camera.len(), 20 * 33);
    assert_eq!(busiest(&camera), (56_786_400, 33));
    let full = camera[0].start.0 / 125_000_000;
    let in_it = |r: &&BusPacket| r.start.0 / 125_000_000 == full && r.endpoint == 2;
    // (125,000 - 56,786.4) / 1778.4 = 38.4
    assert_eq!(records.iter().filter(in_it).count(), 38);
    assert_eq!(camera[0].start.0 % 125_000_000, 0, "periodic comes first");
}

#[test]
fn bursts_take_turns() {
    let plans = [bulk(2, 1024, 3), bulk(4, 1024, 1)];
    let (mut driver, _, slot) = device(uncoded(), &plans);
    for index in [2, 4] {
        driver.queue_normal(slot, index, 12 * 1024, bit::COMPLETION);
    }
    for index in [2, 4] {
        driver.doorbell(slot, index);
    }
    driver.run_for(Nanos::from_micros(100));
    let order: Vec<u8> = driver.xhc.take_records().iter().map(|record| record.endpoint).collect();
    let expected = [vec![2; 4], vec![4; 2]].concat().repeat(3);
    assert_eq!(order, [expected, vec![4; 6]].concat());
    let events = driver.transfers();
    assert_eq!(events.len(), 2);
}

/// A transfer's event carries the time of its last packet's end.
#[test]
fn an_interrupt_comes_when_the_packet_ends() {
    let (mut driver, _, slot) = device(uncoded(), &[bulk(2, 1024, 0)]);
    driver.run_to(Nanos::from_millis(200));
    driver.interrupts.clear();
    driver.queue_normal(slot, 2, 3 * 1024, bit::COMPLETION);
    driver.doorbell(slot, 2);
    driver.run_for(Nanos::from_micros(20));
    assert_eq!(driver.interrupts[0].at, Nanos(200_000_000 + 5_336), "3 x 1778.4, rounded up");
}

#[test]
fn every_packet_is_recorded_with_its_end() {
    let (mut driver, gadget, slot) = device(uncoded(), &[bulk(3, 1024, 0)]);
    gadget.0.borrow_mut().endless.clear();
    driver.queue_normal(slot, 3, 1024, bit::COMPLETION);
    driver.doorbell(slot, 3);
    driver.run_for(Nanos::from_micros(20));
    let [nak] = driver.xhc.take_records()[..] else { panic!() };
    assert_eq!((nak.outcome, nak.bytes, nak.bus), (PacketOutcome::Nak, 0, 2));
    assert_eq!((nak.end - nak.start).0, 5_000 + 200 * (84 * 8 + 3));
}

/// Drives a device that is asked at random instants and goes on at others. Time passes in steps of
/// `step`. Returns the packets, and when the device was asked.
fn asked_in_steps(seed: u64, step: u64) -> (Vec<BusPacket>, Vec<(Nanos, u8)>) {
    let mut random = Random::stream(12, seed);
    let interrupt = Plan { kind: EndpointKind::InterruptIn, payload: 64, ..bulk(5, 64, 0) };
    let plans = [bulk(3, 1024, 0), interrupt, bulk(7, 1024, 1)];
    let (mut driver, gadget, slot) = device(uncoded(), &plans);
    gadget.0.borrow_mut().endless.clear();
    driver.run_to(Nanos::from_millis(300));
    for _ in 0..200 {
        let index = [3, 5, 7][random.below(3) as usize];
        if random.one_in(2) {
            driver.queue_normal(slot, index, 64, bit::COMPLETION);
            driver.doorbell(slot, index);
        }
        if random.one_in(2) {
            gadget.give(0x80 | (index / 2), &[1; 64]);
        }
        gadget.0.borrow_mut().next = driver.now + Nanos(random.below(9_000));
        let until = driver.now + Nanos(random.below(12_000));
        while driver.now < until {
            driver.run_to(until.min(driver.now + Nanos(step)));
        }
        driver.take(0);
    }
    let asked = std::mem::take(&mut gadget.0.borrow_mut().asked);
    (driver.xhc.take_records(), asked)
}

/// A packet that ends unseen is no step of the controller. One that looks at every instant finds
/// the same packets as one that looks rarely.
#[test]
fn packets_that_end_unseen_are_made_up_for() {
    let mut put_off = 0;
    for seed in 0..40 {
        let often = asked_in_steps(seed, 20);
        assert_eq!(often, asked_in_steps(seed, 1_000_000), "seed {seed}");
        put_off += often.0.iter().filter(|packet| packet.outcome == PacketOutcome::Nak).count();
    }
    assert!(put_off > 1_000, "{put_off} packets were put off");
}

fn async_set(random: &mut Random) -> (Vec<Async>, Option<(u32, u32)>) {
    let count = 1 + random.below(4) as u32;
    let one = |i: u32, random: &mut Random| Async {
        id: EndpointId(i),
        transfer: Transfer::Bulk,
        direction: Direction::Out,
        packet: 1024,
        burst: random.below(4) as u32,
        guarantee: None,
    };
    let set = (0..count).map(|i| one(i, random)).collect();
    let camera = random.one_in(2).then(|| (random.below(10) as u32, random.below(3) as u32));
    (set, camera)
}

/// Random sets with saturated neighbours and a request at random instants: never later than the
/// exact worst time of `diapason_bus`, and close to it.
#[test]
fn no_transfer_takes_longer_than_the_worst_time() {
    let mut closest = 0;
    for case in 0..12 {
        let mut random = Random::stream(11, case);
        let (set, camera) = async_set(&mut random);
        let bytes = 1024 * (1 + random.below(20) as u32);
        let bus = BusInstance::uncoded();
        let packet = Picos(1_720_800);
        let load = camera.map_or(Picos::ZERO, |(n, m)| packet.times(u64::from((n + 1) * (m + 1))));
        let pattern = Pattern { load: &[load], slot: Speed::Super.slot() };
        let rotation = Rotation::all(&bus, &set, 0, Guarantee { bytes, period: 1000 });
        let bound = pattern.worst_time(&rotation[0], Picos(u64::MAX / 4)).unwrap().nanos();
        let worst = measure(&mut random, &set, camera, bytes);
        assert!(worst <= bound, "case {case}: {worst:?} > {bound:?}");
        closest = closest.max(worst.0 * 1000 / bound.0);
    }
    println!("closest to the bound: {closest} per mille");
    assert!(closest > 900, "the bound was never nearly reached: {closest} per mille");
}

/// The longest of 40 transfers of the first endpoint of a set, the others always having work.
fn measure(random: &mut Random, set: &[Async], camera: Option<(u32, u32)>, bytes: u32) -> Nanos {
    let mut plans: Vec<Plan> =
        (1..).zip(set).map(|(i, endpoint)| bulk(2 * i, 1024, endpoint.burst)).collect();
    if let Some((burst, mult)) = camera {
        plans.push(isoch(31, burst, mult, 0));
    }
    let (mut driver, _, slot) = device(uncoded(), &plans);
    driver.xhc.record(false);
    let buffer = driver.ram.take(0x1_0000, 0x1_0000);
    let mut worst = Nanos::ZERO;
    for _ in 0..40 {
        if let Some((burst, mult)) = camera {
            stream(&mut driver, slot, 31, 1024 * (burst + 1) * (mult + 1), 12);
        }
        for plan in plans.iter().skip(1).filter(|plan| plan.index < 31) {
            for _ in 0..2 {
                driver.queue(slot, plan.index, Trb::new(Kind::Normal, buffer, 0x1_0000, 0));
            }
            driver.doorbell(slot, plan.index);
        }
        driver.run_for(Nanos(760_000 + random.below(125_000)));
        driver.take(0);
        let start = driver.now;
        driver.interrupts.clear();
        let status = Trb::transfer_status(bytes, 0, 1);
        driver.queue(slot, 2, Trb::new(Kind::Normal, buffer, status, bit::COMPLETION));
        driver.doorbell(slot, 2);
        driver.run_for(Nanos::from_millis(4));
        let end = driver.interrupts.iter().find(|interrupt| interrupt.vector == 1).unwrap().at;
        driver.take(1);
        driver.take(0);
        worst = worst.max(end - start);
        driver.run_for(Nanos::from_millis(8));
        driver.take(0);
    }
    worst
}
