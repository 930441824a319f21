//! Devices behind hubs: found by their route, slow ones on a bus of the hub's translator.

use crate::support::{Driver, Plan, Shared, bulk};
use diapason_abi::Nanos;
use diapason_devices::{Answer, Handshake, Stall, UsbDevice};
use diapason_usb::context::{EndpointKind, Slot, Words};
use diapason_usb::trb::{Completion, Kind, Trb, bit};
use diapason_usb::{Setup, Speed};
use diapason_xhc::Config;

/// A hub that does nothing but carry two devices.
struct Hub {
    children: [Shared; 2],
}

impl UsbDevice for Hub {
    fn speed(&self) -> Speed {
        Speed::High
    }

    fn reset(&mut self, _: Nanos) {}

    fn control(&mut self, _: Nanos, _: Setup, _: &[u8]) -> Result<Vec<u8>, Stall> {
        Err(Stall)
    }

    fn receive(&mut self, _: Nanos, _: u8, _: &[u8]) -> Handshake {
        Handshake::Stall
    }

    fn send(&mut self, _: Nanos, _: u8, _: &mut [u8]) -> Answer {
        Answer::Stall
    }

    fn next_change(&self) -> Nanos {
        self.children[0].next_change().min(self.children[1].next_change())
    }

    fn advance(&mut self, now: Nanos) {
        self.children.iter_mut().for_each(|child| child.advance(now));
    }

    fn child(&mut self, port: u8) -> Option<&mut dyn UsbDevice> {
        let child = self.children.get_mut(usize::from(port).checked_sub(1)?)?;
        Some(child)
    }
}

/// Enables a slot and addresses the full-speed device at a port of the hub.
fn address(driver: &mut Driver, hub: u8, port: u32) -> u8 {
    let (_, _, slot) = driver.command_with(Trb::new(Kind::EnableSlot, 0, 0, 0));
    let output = driver.ram.take(1024, 64);
    driver.ram.put_words(driver.array + 8 * u64::from(slot), &[output as u32, 0]);
    let (input, ring) = driver.address_input(1);
    let mut words = Slot(Words(driver.ram.words(input + 32)));
    words.set_speed(1);
    words.set_route(port);
    words.set_parent_slot(u32::from(hub));
    words.set_parent_port(port);
    driver.ram.put_words(input + 32, &words.0.0);
    let block = Trb::new(Kind::AddressDevice, input, 0, Trb::place(slot, 0));
    assert_eq!(driver.command(block), Completion::Success);
    driver.rings.insert((slot, 1), ring);
    slot
}

#[test]
fn two_slow_devices_share_their_hubs_translator() {
    let children = [Shared::new(Speed::Full), Shared::new(Speed::Full)];
    let mut driver = Driver::running(Config::default());
    let hub = driver.connect(1, Box::new(Hub { children: children.clone() }));
    let slots = [address(&mut driver, hub, 1), address(&mut driver, hub, 2)];
    let isoch =
        Plan { kind: EndpointKind::IsochIn, interval: 3, payload: 1023, ..bulk(3, 1023, 0) };
    assert_eq!(driver.configure(slots[0], &[isoch]), Completion::Success);
    // 1023 bytes are most of a frame: no room for another behind the same translator.
    assert_eq!(driver.configure(slots[1], &[isoch]), Completion::SecondaryBandwidth);
    assert_eq!(driver.configure(slots[1], &[bulk(2, 64, 0)]), Completion::Success);
    driver.xhc.record(true);
    driver.queue_normal(slots[1], 2, 64, bit::COMPLETION);
    driver.doorbell(slots[1], 2);
    driver.run_for(Nanos::from_millis(2));
    assert_eq!(driver.transfers(), [(2, Completion::Success, 0)]);
    let [packet] = driver.xhc.take_records()[..] else { panic!() };
    // 9107 + 1000 + 83.54 x 600 ns, at full speed.
    assert_eq!((packet.end - packet.start).0, 60_231_000);
    assert_eq!((children[1].0.borrow().received.len(), packet.bus), (1, 3));
}

#[test]
fn a_device_behind_a_hub_that_is_not_there_does_not_answer() {
    let children = [Shared::new(Speed::Full), Shared::new(Speed::Full)];
    let mut driver = Driver::running(Config::default());
    let hub = driver.connect(1, Box::new(Hub { children }));
    let slot = address(&mut driver, hub, 1);
    driver.xhc.detach(1, driver.now, &mut driver.ram);
    driver.run_for(Nanos::from_millis(1));
    let status = Trb::new(Kind::Setup, 0x80, 8, bit::IMMEDIATE | bit::COMPLETION);
    driver.queue(slot, 1, status);
    driver.doorbell(slot, 1);
    driver.run_for(Nanos::from_millis(3));
    assert_eq!(driver.transfers(), [(1, Completion::Transaction, 8)]);
}
