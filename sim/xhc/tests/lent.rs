//! Memory that a driver has given to the controller: a driver that takes it back too soon is found,
//! and so is a controller that writes when it no longer may.

use crate::support::{Driver, Shared, bulk};
use diapason_abi::Nanos;
use diapason_usb::Speed;
use diapason_usb::trb::{Completion, Kind, Trb, bit};
use diapason_xhc::{Config, Misuse};

const OUT: u8 = 2;
const IN: u8 = 3;
const OTHER: u8 = 5;
const DONE: u32 = bit::COMPLETION | bit::SHORT;

fn device() -> (Driver, Shared, u8) {
    let mut driver = Driver::running(Config::default());
    let gadget = Shared::new(Speed::Super);
    let slot = driver.connect(5, gadget.boxed());
    let plans = [bulk(OUT, 1024, 0), bulk(IN, 1024, 0), bulk(OTHER, 1024, 0)];
    assert_eq!(driver.configure(slot, &plans), Completion::Success);
    driver.take(0);
    assert_eq!(driver.xhc.take_misuses(), []);
    (driver, gadget, slot)
}

/// A transfer of 512 bytes over this memory.
fn queue(driver: &mut Driver, slot: u8, index: u8, buffer: u64) {
    let status = Trb::transfer_status(512, 0, 0);
    driver.queue(slot, index, Trb::new(Kind::Normal, buffer, status, DONE));
    driver.doorbell(slot, index);
}

#[test]
fn memory_of_two_transfers_at_once_is_lent_twice_if_one_writes_to_it() {
    let (mut driver, _, slot) = device();
    let buffer = driver.ram.take(4096, 64);
    queue(&mut driver, slot, IN, buffer);
    queue(&mut driver, slot, IN, buffer + 512);
    queue(&mut driver, slot, OTHER, buffer + 1024);
    assert_eq!(driver.xhc.take_misuses(), []);
    // Still queued behind the first, on the same ring and on another.
    queue(&mut driver, slot, IN, buffer + 600);
    queue(&mut driver, slot, OTHER, buffer + 1);
    let twice = |at| (Misuse::LentTwice, buffer + at);
    assert_eq!(driver.xhc.take_misuses(), [twice(600), twice(1)]);
    // To be sent while something may come.
    queue(&mut driver, slot, OUT, buffer + 1100);
    assert_eq!(driver.xhc.take_misuses(), [twice(1100)]);
}

#[test]
fn the_same_bytes_may_be_sent_twice() {
    let (mut driver, _, slot) = device();
    let buffer = driver.ram.take(4096, 64);
    for _ in 0..3 {
        let status = Trb::transfer_status(512, 0, 0);
        driver.queue(slot, OUT, Trb::new(Kind::Normal, buffer, status, DONE));
    }
    driver.doorbell(slot, OUT);
    driver.run_for(Nanos::from_millis(1));
    assert_eq!(driver.transfers().len(), 3);
    assert_eq!(driver.xhc.take_misuses(), []);
}

#[test]
fn memory_is_the_drivers_again_when_its_transfer_is_over_or_its_endpoint_stops() {
    let (mut driver, gadget, slot) = device();
    let buffer = driver.ram.take(4096, 64);
    for round in 0..100 {
        // Short, full, and none at all: round the ring and over its link.
        let length = [512, 100, 0][round % 3];
        queue(&mut driver, slot, IN, buffer);
        gadget.give(0x81, &vec![7; length]);
        gadget.0.borrow_mut().next = driver.now;
        driver.run_for(Nanos::from_micros(200));
        let code = if length == 512 { Completion::Success } else { Completion::ShortPacket };
        assert_eq!(driver.transfers(), [(IN, code, 512 - length as u32)]);
        assert_eq!(driver.xhc.take_misuses(), []);
    }
    queue(&mut driver, slot, IN, buffer);
    assert_eq!(driver.slot_command(Kind::StopEndpoint, slot, IN, 0), Completion::Success);
    queue(&mut driver, slot, OTHER, buffer);
    assert_eq!(driver.xhc.take_misuses(), []);
    // It goes on where it stopped, in memory that the other has now.
    driver.doorbell(slot, IN);
    assert_eq!(driver.xhc.take_misuses(), [(Misuse::LentTwice, buffer)]);
}

/// The planted fault: a controller that writes once more when the driver has the memory back.
#[test]
fn a_late_write_is_found_unless_the_memory_was_lent_again() {
    let (mut driver, gadget, slot) = device();
    let buffer = driver.ram.take(4096, 64);
    driver.xhc.write_late(&mut driver.ram);
    assert_eq!(driver.xhc.take_misuses(), [], "nothing was ever lent");
    gadget.give(0x81, &[7; 512]);
    queue(&mut driver, slot, IN, buffer);
    driver.run_for(Nanos::from_millis(1));
    assert_eq!(driver.transfers(), [(IN, Completion::Success, 0)]);
    driver.xhc.write_late(&mut driver.ram);
    assert_eq!(driver.xhc.take_misuses(), [(Misuse::GivenBack, buffer)]);
    assert_eq!(driver.ram.words::<1>(buffer), [u32::MAX], "hardware would have done it");
    driver.xhc.write_late(&mut driver.ram);
    assert_eq!(driver.xhc.take_misuses(), [], "it is told once");
}
