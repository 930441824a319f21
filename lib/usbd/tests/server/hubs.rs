//! Hubs: one device at a time is reset and read, whatever the others do.

use crate::ground::{attach, detach, take_lines};
use crate::machine::Machine;
use diapason_abi::Nanos;
use diapason_contract::settings::SERVES;
use diapason_contract::threads::ServiceKind::{Hubs, Keyboards};
use diapason_devices::faulty::{Faulty, PacketFault, Rule};
use diapason_devices::hub::HubModel;
use diapason_devices::keyboard::KeyboardModel;
use diapason_devices::{Answer, Handshake, Stall, UsbDevice};
use diapason_usb::setup::{descriptor_type, request};
use diapason_usb::{Setup, Speed};
use std::cell::{Cell, RefCell};
use std::ops::RangeInclusive;

const SETTINGS: &[(&str, &[u64])] = &[(SERVES, &[Keyboards as u64, Hubs as u64])];
const PORT: u8 = 1;
const OTHER: u8 = 2;

/// A device of a hub: the port of that, and its own.
type Name = (u8, u8);

thread_local! {
    /// The device that was reset and whose configuration nobody has read.
    static TURN: Cell<Option<Name>> = const { Cell::new(None) };
    static RESETS: RefCell<Vec<Name>> = const { RefCell::new(Vec::new()) };
}

/// Returns the resets since the last call.
fn take_resets() -> Vec<Name> {
    RESETS.take()
}

/// A device that sees to it that no other is reset during its turn.
struct Turned(Name, Box<dyn UsbDevice>);

impl UsbDevice for Turned {
    fn speed(&self) -> Speed {
        self.1.speed()
    }

    fn reset(&mut self, now: Nanos) {
        if let Some(other) = TURN.replace(Some(self.0)).filter(|held| *held != self.0) {
            panic!("{:?} is reset during the turn of {other:?}", self.0);
        }
        RESETS.with_borrow_mut(|resets| resets.push(self.0));
        self.1.reset(now);
    }

    fn control(&mut self, now: Nanos, setup: Setup, data: &[u8]) -> Result<Vec<u8>, Stall> {
        let answer = self.1.control(now, setup, data);
        if answer.is_err() {
            // The server may give it up now.
            TURN.take();
        }
        let answer = answer?;
        let kind = u16::from(descriptor_type::CONFIGURATION) << 8;
        let is_whole = (setup.request, setup.value) == (request::GET_DESCRIPTOR, kind);
        if is_whole && answer.get(2..4) == Some(&(answer.len() as u16).to_le_bytes()[..]) {
            TURN.take();
        }
        Ok(answer)
    }

    fn receive(&mut self, now: Nanos, endpoint: u8, packet: &[u8]) -> Handshake {
        self.1.receive(now, endpoint, packet)
    }

    fn send(&mut self, now: Nanos, endpoint: u8, packet: &mut [u8]) -> Answer {
        self.1.send(now, endpoint, packet)
    }

    fn next_change(&self) -> Nanos {
        self.1.next_change()
    }

    fn advance(&mut self, now: Nanos) {
        self.1.advance(now);
    }
}

/// Returns a hub with these devices.
fn hub(port: u8, devices: impl IntoIterator<Item = Box<dyn UsbDevice>>) -> HubModel {
    let mut hub = HubModel::new(false, 4);
    for (number, device) in (1..).zip(devices) {
        let device = Box::new(Turned((port, number), device));
        assert!(hub.plug(Nanos::ZERO, number, device).is_ok(), "it fits");
    }
    hub
}

fn attach_hub(port: u8, devices: impl IntoIterator<Item = Box<dyn UsbDevice>>) {
    attach(port, Box::new(hub(port, devices)));
}

/// Unplugs a hub: none of its devices has its turn any more.
fn detach_hub(port: u8) {
    detach(port);
    TURN.take().filter(|held| held.0 != port).into_iter().for_each(|held| TURN.set(Some(held)));
}

fn keyboard() -> Box<dyn UsbDevice> {
    Box::new(KeyboardModel::new(Vec::new()))
}

/// Returns a device that answers no request.
fn dead() -> Box<dyn UsbDevice> {
    let mute = Rule { endpoint: Some(0), ..Rule::always(PacketFault::Error) };
    Box::new(Faulty::new(KeyboardModel::new(Vec::new()), 1).rule(mute))
}

fn found(lines: &[String], words: &str) -> usize {
    lines.iter().filter(|line| line.contains(words)).count()
}

/// Returns whether the server has read the device.
fn is_read(lines: &[String], (hub, port): Name) -> bool {
    let start = format!("port {hub}, route {port:x}: a ");
    lines.iter().any(|line| line.starts_with(&start))
}

#[test]
fn devices_behind_a_hub_take_turns() {
    let mut machine = Machine::with(SETTINGS);
    attach_hub(PORT, (0..4).map(|_| keyboard()));
    machine.run(Nanos::from_secs(3));
    let lines = take_lines();
    assert_eq!(found(&lines, ": a hub"), 1, "{lines:?}");
    assert_eq!(found(&lines, ": a keyboard"), 1, "{lines:?}");
    assert_eq!(found(&lines, "a device nobody serves"), 3, "{lines:?}");
    assert_eq!(take_resets().len(), 4);
}

/// A device that does not answer has three tries. Those behind it have their turn all the same.
#[test]
fn a_dead_device_does_not_keep_its_turn() {
    let mut machine = Machine::with(SETTINGS);
    attach_hub(PORT, [dead(), keyboard(), dead(), keyboard()]);
    machine.run(Nanos::from_secs(30));
    let lines = take_lines();
    let read = (1..=4).filter(|port| is_read(&lines, (PORT, *port)));
    assert!(read.eq([2, 4]), "{lines:?}");
    let resets = take_resets();
    let of = |port| resets.iter().filter(|reset| reset.1 == port).count();
    assert_eq!([1, 2, 3, 4].map(of), [3, 1, 3, 1], "{lines:?}");
}

/// Asserts that the server reads devices of a hub within two seconds.
fn reads(machine: &mut Machine, port: u8, mut devices: RangeInclusive<u8>, step: u64) {
    machine.run(Nanos::from_secs(2));
    let lines = take_lines();
    assert!(devices.all(|device| is_read(&lines, (port, device))), "after {step} steps: {lines:?}");
}

/// Unplugged in the turn of any of its devices, a hub leaves the next turn to another hub.
#[test]
fn a_hub_that_goes_at_any_step_gives_its_turn_back() {
    let mut turns = Vec::new();
    for step in 0..60 {
        let mut machine = Machine::with(SETTINGS);
        TURN.take();
        attach_hub(PORT, [keyboard(), dead(), keyboard()]);
        attach_hub(OTHER, [keyboard(), keyboard(), keyboard()]);
        machine.run(Nanos::from_millis(300 + step * 10));
        turns.extend(TURN.get());
        let mut lines = take_lines();
        take_resets();
        detach_hub(PORT);
        let is_gone = (0..1_000).any(|_| {
            machine.run(Nanos::from_millis(1));
            lines.extend(take_lines());
            found(&lines, "a hub is gone") > 0
        });
        assert!(is_gone, "after {step} steps: {lines:?}");
        // From 400 ms on the devices of the other hub wait: the next has its turn at once.
        machine.run(Nanos::from_millis(20));
        let is_next = take_resets().iter().any(|reset| reset.0 == OTHER);
        assert!(is_next || step < 10, "after {step} steps");
        machine.run(Nanos::from_secs(2));
        lines.extend(take_lines());
        let others = (1..=3).filter(|port| is_read(&lines, (OTHER, *port)));
        assert_eq!(others.count(), 3, "after {step} steps: {lines:?}");
        attach_hub(PORT, [keyboard()]);
        reads(&mut machine, PORT, 1..=1, step);
    }
    turns.dedup();
    assert_eq!(turns, [(PORT, 1), (PORT, 2), (PORT, 3)], "the steps miss a turn");
}

/// A hub that answers no more in the turn of any of its devices keeps no other hub waiting.
#[test]
fn a_hub_that_fails_at_any_step_gives_its_turn_back() {
    for step in 0..60 {
        let mut machine = Machine::with(SETTINGS);
        TURN.take();
        let from = Nanos::from_millis(300 + step * 10);
        let mute = Rule { endpoint: Some(0), from, ..Rule::always(PacketFault::Error) };
        let failing = hub(PORT, [keyboard(), keyboard(), keyboard()]);
        attach(PORT, Box::new(Faulty::new(failing, 1).rule(mute)));
        machine.run(Nanos::from_millis(900));
        take_lines();
        // Nobody can ask its last device any more, so that one is out of the game.
        TURN.take();
        attach_hub(OTHER, [keyboard(), keyboard()]);
        reads(&mut machine, OTHER, 1..=2, step);
    }
}
