//! The story that a capture tells of transfers, and a proof that telling it changes nothing.

use crate::support::{Driver, Shared, bulk};
use diapason_abi::Nanos;
use diapason_devices::{Handshake, Stall};
use diapason_random::Random;
use diapason_usb::context::EndpointKind;
use diapason_usb::trb::{Completion, Kind, Trb, bit};
use diapason_usb::{Setup, Speed};
use diapason_xhc::{Config, TransferRecord};

const OUT: u8 = 2;
const IN: u8 = 3;
const DONE: u32 = bit::COMPLETION;
const WELL: Option<Completion> = Some(Completion::Success);

/// A super-speed device with a bulk endpoint in each direction, perhaps recorded from now on.
fn pair(recorded: bool) -> (Driver, Shared, u8) {
    let mut driver = Driver::running(Config::default());
    let gadget = Shared::new(Speed::Super);
    let slot = driver.connect(5, gadget.boxed());
    let plans = [bulk(OUT, 1024, 3), bulk(IN, 1024, 3)];
    assert_eq!(driver.configure(slot, &plans), Completion::Success);
    driver.take(0);
    driver.xhc.record_transfers(recorded);
    (driver, gadget, slot)
}

fn told(driver: &mut Driver) -> Vec<TransferRecord> {
    driver.xhc.take_transfers().0
}

fn ring(driver: &mut Driver, slot: u8, index: u8) {
    driver.doorbell(slot, index);
    driver.run_for(Nanos::from_micros(500));
}

fn request(driver: &mut Driver, slot: u8, setup: Setup, buffer: u64) {
    let bytes = u64::from_le_bytes(setup.encode());
    driver.queue(slot, 1, Trb::new(Kind::Setup, bytes, 8, bit::IMMEDIATE));
    if setup.length > 0 {
        let flags = if setup.is_in() { bit::IN } else { 0 };
        let length = Trb::transfer_status(u32::from(setup.length), 0, 0);
        driver.queue(slot, 1, Trb::new(Kind::Data, buffer, length, flags));
    }
    let flags = DONE | if setup.is_in() { 0 } else { bit::IN };
    driver.queue(slot, 1, Trb::new(Kind::Status, 0, 0, flags));
    ring(driver, slot, 1);
}

/// Address, length, data and end of each event; ids must pair up and times rise within a pair.
fn summary(events: &[TransferRecord]) -> Vec<(u8, u32, usize, Option<Completion>)> {
    for end in events.iter().filter(|event| event.end.is_some()) {
        let begun =
            events.iter().rfind(|e| e.id == end.id && e.end.is_none() && e.time <= end.time);
        assert!(begun.is_some_and(|begun| begun.setup == end.setup), "{end:?}");
    }
    events.iter().map(|e| (e.endpoint, e.length, e.data.len(), e.end)).collect()
}

#[test]
fn a_request_is_one_transfer() {
    let (mut driver, gadget, slot) = pair(true);
    let buffer = driver.ram.buffer(64);
    gadget.0.borrow_mut().reply = Ok((0..18).collect());
    request(&mut driver, slot, Setup::get_descriptor(1, 0, 0, 64), buffer);
    let events = told(&mut driver);
    assert_eq!(summary(&events), [(0x80, 64, 0, None), (0x80, 18, 18, WELL)]);
    assert_eq!(events[1].data, (0..18).collect::<Vec<u8>>());
    assert_eq!(events[0].kind, EndpointKind::Control);

    driver.ram.put(buffer, &[7; 20]);
    let setup = Setup { kind: 0x21, request: 0x20, length: 20, ..Setup::default() };
    request(&mut driver, slot, setup, buffer);
    let events = told(&mut driver);
    assert_eq!(summary(&events), [(0, 20, 20, None), (0, 20, 0, WELL)]);
    assert_eq!((events[0].data.clone(), events[0].setup), (vec![7; 20], Some(setup)));

    request(&mut driver, slot, Setup::set_configuration(1), 0);
    assert_eq!(summary(&told(&mut driver)), [(0, 0, 0, None), (0, 0, 0, WELL)]);
    gadget.0.borrow_mut().reply = Err(Stall);
    request(&mut driver, slot, Setup::set_configuration(2), 0);
    let stalled = (0, 0, 0, Some(Completion::Stall));
    assert_eq!(summary(&told(&mut driver)), [(0, 0, 0, None), stalled]);
}

#[test]
fn bulk_data_are_told_where_they_are_known() {
    let (mut driver, gadget, slot) = pair(true);
    let buffer = driver.queue_normal(slot, OUT, 1500, DONE);
    driver.ram.put(buffer, &[9; 1500]);
    ring(&mut driver, slot, OUT);
    let events = told(&mut driver);
    assert_eq!(summary(&events), [(0x01, 1500, 1500, None), (0x01, 1500, 0, WELL)]);
    assert!(events[0].time < events[1].time && events[0].data == [9; 1500]);

    gadget.give(0x81, &[1; 1024]);
    gadget.give(0x81, &[2; 100]);
    driver.queue_normal(slot, IN, 4096, DONE);
    driver.queue_normal(slot, IN, 4096, DONE);
    ring(&mut driver, slot, IN);
    let events = told(&mut driver);
    let first = [(0x81, 4096, 0, None), (0x81, 1124, 1124, WELL)];
    assert_eq!(summary(&events), [&first[..], &[(0x81, 4096, 0, None)]].concat());
    assert_eq!(driver.slot_command(Kind::StopEndpoint, slot, IN, 0), Completion::Success);
    let events = told(&mut driver);
    assert_eq!((events.len(), events[0].end), (1, Some(Completion::Stopped)));
}

#[test]
fn what_is_told_late_holds_the_time_back() {
    let (mut driver, gadget, slot) = pair(true);
    gadget.0.borrow_mut().says.insert(0x01, Handshake::Nak);
    driver.queue_normal(slot, OUT, 10, DONE);
    let begun = driver.now;
    ring(&mut driver, slot, OUT);
    assert_eq!(driver.xhc.take_transfers(), (vec![], begun));
    assert_eq!(driver.slot_command(Kind::StopEndpoint, slot, OUT, 0), Completion::Success);
    let (events, settled) = driver.xhc.take_transfers();
    assert_eq!((events[0].time, events[1].end), (begun, Some(Completion::Stopped)));
    assert_eq!(settled, driver.now);
}

/// Events for the driver, packets that the device got, and what was told.
type Life = (Vec<Trb>, Vec<(Nanos, u8, Vec<u8>)>, Vec<TransferRecord>);

/// A random life: transfers both ways, refusals, stops, resets.
fn life(seed: u64, recorded: bool) -> Life {
    let mut random = Random::new(seed);
    let (mut driver, gadget, slot) = pair(recorded);
    let mut events = Vec::new();
    for _ in 0..60 {
        match random.below(6) {
            0 => gadget.give(0x81, &vec![1; random.index(1025)]),
            1 => {
                let says = random.pick(&[Handshake::Ack, Handshake::Nak, Handshake::Error]);
                gadget.0.borrow_mut().says.insert(0x01, says);
            }
            2 => {
                driver.slot_command(Kind::StopEndpoint, slot, random.pick(&[IN, OUT]), 0);
            }
            3 => {
                driver.slot_command(Kind::ResetEndpoint, slot, random.pick(&[IN, OUT]), 0);
            }
            _ => {
                let (index, length) = (random.pick(&[IN, OUT]), random.within(0, 3000));
                driver.queue_normal(slot, index, length, DONE);
                driver.doorbell(slot, index);
            }
        }
        driver.run_for(Nanos::from_micros(random.below(20)));
        events.extend(driver.take(0));
    }
    let received = gadget.0.borrow().received.clone();
    (events, received, told(&mut driver))
}

#[test]
fn recording_changes_nothing_and_every_end_has_a_beginning() {
    let mut ends = 0;
    for seed in 0..200 {
        let (events, received, transfers) = life(seed, true);
        assert_eq!(life(seed, false), (events, received, vec![]), "seed {seed}");
        summary(&transfers);
        ends += transfers.iter().filter(|transfer| transfer.end.is_some()).count();
    }
    assert!(ends > 1_000, "{ends}");
}
