//! The admission of bandwidth, and a proof that a refusal changes nothing.

use crate::support::{Driver, Plan, Shared, bulk};
use diapason_usb::Speed;
use diapason_usb::context::{self, EndpointKind};
use diapason_usb::trb::{Completion, Kind, Trb};
use diapason_xhc::Config;

/// A camera: three bursts of eleven packets.
fn camera(index: u8, interval: u32) -> Plan {
    let kind = EndpointKind::IsochIn;
    Plan { kind, burst: 10, mult: 2, interval, payload: 33 * 1024, ..bulk(index, 1024, 0) }
}

fn free(driver: &mut Driver, speed: u8) -> Vec<u8> {
    let buffer = driver.ram.take(16, 16);
    let block = Trb::new(Kind::GetPortBandwidth, buffer, 0, u32::from(speed) << 16);
    assert_eq!(driver.command(block), Completion::Success);
    driver.ram.bytes(buffer, 9).to_vec()
}

#[test]
fn cameras_share_a_bus_as_long_as_there_is_room() {
    let mut driver = Driver::running(Config::default());
    let first = driver.connect(5, Shared::new(Speed::Super).boxed());
    let second = driver.connect(6, Shared::new(Speed::Super).boxed());
    assert_eq!(free(&mut driver, 4), [0, 0, 0, 0, 0, 90, 90, 90, 90]);
    // 33 x 2146 ns are 57 % with the line code: one in every microframe, or two in turn.
    assert_eq!(driver.configure(first, &[camera(3, 1)]), Completion::Success);
    assert_eq!(free(&mut driver, 4)[5], 33);
    assert_eq!(driver.configure(second, &[camera(3, 1)]), Completion::Success);
    let plans = [bulk(2, 1024, 0), camera(5, 1)];
    assert_eq!(driver.configure(second, &plans), Completion::Bandwidth);
    assert_eq!(driver.endpoint_context(second, 2), context::EndpointContext::default());
    assert_eq!(driver.slot_context(second).entries(), 3);
    assert_eq!(driver.slot_command(Kind::DisableSlot, first, 0, 0), Completion::Success);
    assert_eq!(driver.configure(second, &plans), Completion::Success);
}

#[test]
fn each_speed_has_its_own_bus() {
    let mut driver = Driver::running(Config::default());
    let high = driver.connect(1, Shared::new(Speed::High).boxed());
    let full = driver.connect(2, Shared::new(Speed::Full).boxed());
    let isoch = Plan { kind: EndpointKind::IsochIn, payload: 1024, ..bulk(3, 1024, 0) };
    assert_eq!(free(&mut driver, 3)[1..5], [80; 4]);
    let many: Vec<Plan> = [3, 5, 7, 9, 11].map(|index| Plan { index, ..isoch }).into();
    assert_eq!(driver.configure(high, &many), Completion::Bandwidth);
    assert_eq!(driver.configure(high, &many[..4]), Completion::Success);
    assert_eq!(free(&mut driver, 1)[1..5], [90; 4]);
    let slow = Plan { packet: 1023, payload: 1023, interval: 3, ..isoch };
    assert_eq!(driver.configure(full, &[slow]), Completion::Success);
    assert!(free(&mut driver, 1)[1] < 10);
    let again = Plan { index: 5, ..slow };
    assert_eq!(driver.configure(full, &[again]), Completion::Bandwidth);
}
