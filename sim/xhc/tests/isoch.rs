//! Isochronous endpoints: which microframe, and what is said when one passes unserved.

use crate::support::{Driver, Plan, Shared, bulk};
use diapason_abi::Nanos;
use diapason_devices::Answer;
use diapason_usb::Speed;
use diapason_usb::context::{EndpointKind, EndpointState};
use diapason_usb::trb::{Completion, Kind, Trb, bit};
use diapason_xhc::Config;

const OUT: u8 = 2;
const IN: u8 = 3;

fn plan(index: u8, interval: u32, payload: u32) -> Plan {
    let kind = if index == IN { EndpointKind::IsochIn } else { EndpointKind::IsochOut };
    Plan { kind, interval, payload, burst: 1, ..bulk(index, 1024, 0) }
}

fn device(interval: u32) -> (Driver, Shared, u8) {
    let mut driver = Driver::running(Config::default());
    let gadget = Shared::new(Speed::Super);
    let slot = driver.connect(5, gadget.boxed());
    let plans = [plan(OUT, interval, 2048), plan(IN, interval, 2048)];
    assert_eq!(driver.configure(slot, &plans), Completion::Success);
    driver.run_to(Nanos::from_millis(200));
    driver.take(0);
    (driver, gadget, slot)
}

fn queue(driver: &mut Driver, slot: u8, index: u8, length: u32, flags: u32) -> u64 {
    let buffer = driver.ram.buffer(length);
    let block = Trb::new(Kind::Isoch, buffer, length, flags | bit::COMPLETION);
    driver.queue(slot, index, block);
    buffer
}

fn microframes(gadget: &Shared) -> Vec<u64> {
    gadget.0.borrow().received.iter().map(|(time, ..)| time.0 / 125_000).collect()
}

#[test]
fn as_soon_as_possible_is_behind_the_threshold() {
    let (mut driver, gadget, slot) = device(0);
    for _ in 0..3 {
        queue(&mut driver, slot, OUT, 100, bit::ASAP);
    }
    driver.doorbell(slot, OUT);
    driver.run_for(Nanos::from_millis(2));
    // 200 ms is microframe 1600; the threshold is four.
    assert_eq!(microframes(&gadget), [1605, 1606, 1607]);
    let success = (OUT, Completion::Success, 0);
    let dry = (OUT, Completion::RingUnderrun, 0);
    assert_eq!(driver.transfers(), [success, success, success, dry]);
    assert_eq!(driver.endpoint_context(slot, OUT).state(), Some(EndpointState::Running));
    queue(&mut driver, slot, OUT, 100, bit::ASAP);
    driver.doorbell(slot, OUT);
    driver.run_for(Nanos::from_millis(2));
    assert_eq!(driver.transfers(), [success, dry]);
}

#[test]
fn frames_have_numbers() {
    let (mut driver, gadget, slot) = device(1);
    // Frame 200 is now. Four transfers fit into a frame; 203 has two, 205 has one.
    for frame in [203, 203, 205, 190, 206, 1099] {
        queue(&mut driver, slot, OUT, 100, frame << 20);
    }
    driver.doorbell(slot, OUT);
    driver.run_for(Nanos::from_millis(10));
    let phase = microframes(&gadget)[0] % 2;
    let expected = [203 * 8, 203 * 8 + 2, 205 * 8, 206 * 8].map(|slot| slot + phase);
    assert_eq!(microframes(&gadget), expected);
    let codes: Vec<Completion> = driver.transfers().iter().map(|event| event.1).collect();
    let success = Completion::Success;
    let expected = [success, success, success, Completion::MissedService, success];
    assert_eq!(codes, expected);
}

#[test]
fn a_frame_that_is_too_near_is_missed() {
    let (mut driver, gadget, slot) = device(0);
    queue(&mut driver, slot, OUT, 100, 200 << 20);
    queue(&mut driver, slot, OUT, 100, 202 << 20);
    driver.doorbell(slot, OUT);
    driver.run_for(Nanos::from_micros(100));
    driver.run_for(Nanos::from_millis(3));
    let codes: Vec<Completion> = driver.transfers().iter().map(|event| event.1).collect();
    let expected = [Completion::Success, Completion::RingUnderrun];
    assert_eq!(codes[codes.len() - 2..], expected);
    assert_eq!(*microframes(&gadget).last().unwrap(), 202 * 8);
}

#[test]
fn frame_numbers_wrap() {
    let (mut driver, gadget, slot) = device(3);
    driver.run_to(Nanos::from_millis(2045));
    driver.take(0);
    for frame in [2047, 0, 1] {
        queue(&mut driver, slot, OUT, 100, frame << 20);
    }
    driver.doorbell(slot, OUT);
    driver.run_for(Nanos::from_millis(10));
    let frames: Vec<u64> = microframes(&gadget).iter().map(|microframe| microframe / 8).collect();
    assert_eq!(frames, [2047, 2048, 2049]);
}

#[test]
fn what_comes_in_is_short_too_long_or_not_there() {
    let (mut driver, gadget, slot) = device(0);
    gadget.give(0x81, &[1; 1024]);
    gadget.give(0x81, &[1; 24]);
    let first = queue(&mut driver, slot, IN, 2048, bit::ASAP);
    gadget.give(0x81, &[2; 200]);
    queue(&mut driver, slot, IN, 100, bit::ASAP);
    gadget.give(0x81, &[3; 100]);
    queue(&mut driver, slot, IN, 100, bit::ASAP);
    queue(&mut driver, slot, IN, 100, bit::ASAP);
    driver.doorbell(slot, IN);
    driver.run_for(Nanos::from_millis(2));
    assert_eq!(
        driver.transfers(),
        [
            (IN, Completion::ShortPacket, 1000),
            (IN, Completion::IsochBufferOverrun, 100),
            (IN, Completion::Success, 0),
            (IN, Completion::ShortPacket, 100),
            (IN, Completion::RingOverrun, 0),
        ]
    );
    assert_eq!(driver.ram.bytes(first, 1048), [1; 1048]);
    assert_eq!(driver.endpoint_context(slot, IN).state(), Some(EndpointState::Running));
}

#[test]
fn errors_are_not_repeated() {
    let (mut driver, gadget, slot) = device(0);
    gadget.0.borrow_mut().answers.insert(0x81, [Answer::Error].into());
    for _ in 0..2 {
        queue(&mut driver, slot, IN, 100, bit::ASAP);
    }
    gadget.give(0x81, &[3; 100]);
    driver.doorbell(slot, IN);
    driver.run_for(Nanos::from_millis(1));
    let expected = [(IN, Completion::Transaction, 100), (IN, Completion::Success, 0)];
    assert_eq!(driver.transfers()[..2], expected);
    assert_eq!(gadget.0.borrow().asked.len(), 2);
}

#[test]
fn more_than_was_reserved_is_refused() {
    let (mut driver, gadget, slot) = device(0);
    queue(&mut driver, slot, OUT, 2049, bit::ASAP);
    queue(&mut driver, slot, OUT, 2048, bit::ASAP);
    driver.doorbell(slot, OUT);
    driver.run_for(Nanos::from_millis(1));
    let codes: Vec<Completion> = driver.transfers().iter().map(|event| event.1).collect();
    assert_eq!(codes[..2], [Completion::BandwidthOverrun, Completion::Success]);
    assert_eq!(gadget.0.borrow().received.len(), 2);
}

#[test]
fn a_full_event_ring_makes_services_pass() {
    let mut driver = Driver::cold(Config::default());
    driver.start(&[16]);
    let gadget = Shared::new(Speed::Super);
    let slot = driver.connect(5, gadget.boxed());
    driver.configure(slot, &[plan(OUT, 0, 2048)]);
    driver.take(0);
    for _ in 0..40 {
        queue(&mut driver, slot, OUT, 100, bit::ASAP);
    }
    driver.doorbell(slot, OUT);
    driver.run_for(Nanos::from_millis(20));
    let mut events = driver.transfers();
    for _ in 0..10 {
        driver.run_for(Nanos::from_micros(500));
        events.extend(driver.transfers());
    }
    let count = |code| events.iter().filter(|event| event.1 == code).count();
    assert_eq!(count(Completion::MissedService), 1);
    assert_eq!(count(Completion::Success), 39);
    assert_eq!(count(Completion::RingUnderrun), 1);
}
