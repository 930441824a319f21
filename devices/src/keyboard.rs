//! A keyboard with the boot protocol, whose keys are pressed by a script.

use crate::descriptors::Descriptors;
use crate::device::{Answer, Handshake, Stall, UsbDevice};
use crate::standard::{EndpointStatus, Standard, reply};
use diapason_abi::Nanos;
use diapason_usb::descriptor::{self, build};
use diapason_usb::setup::descriptor_type::HID_REPORT;
use diapason_usb::{Setup, Speed};
use std::collections::VecDeque;

/// Reports come from here.
pub const IN: u8 = 0x81;
/// Bytes of a report: modifiers, a reserved one, and six keys.
pub const REPORT: usize = 8;

const GET_REPORT: u8 = 1;
const GET_IDLE: u8 = 2;
const GET_PROTOCOL: u8 = 3;
const SET_REPORT: u8 = 9;
const SET_IDLE: u8 = 10;
const SET_PROTOCOL: u8 = 11;
const TO_INTERFACE: u8 = 0x21;
const FROM_INTERFACE: u8 = 0xa1;
/// Reports that wait for a host that does not ask; the oldest are forgotten.
const WAITING: usize = 16;

/// Usage of A, and how many letters follow it.
const FIRST_KEY: u8 = 4;
const LETTERS: u64 = 26;

/// The layout of the report, as the HID specification gives it for boot keyboards (appendix B.1).
const LAYOUT: [u8; 63] = [
    0x05, 0x01, 0x09, 0x06, 0xa1, 0x01, 0x05, 0x07, 0x19, 0xe0, 0x29, 0xe7, 0x15, 0x00, 0x25, 0x01,
    0x75, 0x01, 0x95, 0x08, 0x81, 0x02, 0x95, 0x01, 0x75, 0x08, 0x81, 0x01, 0x95, 0x05, 0x75, 0x01,
    0x05, 0x08, 0x19, 0x01, 0x29, 0x05, 0x91, 0x02, 0x95, 0x01, 0x75, 0x03, 0x91, 0x01, 0x95, 0x06,
    0x75, 0x08, 0x15, 0x00, 0x25, 0x65, 0x05, 0x07, 0x19, 0x00, 0x29, 0x65, 0x81, 0x00, 0xc0,
];

/// The keys that are down from an instant on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Keys {
    pub time: Nanos,
    /// Control, shift and so on, one bit each.
    pub modifiers: u8,
    /// Usage codes; 0 is none.
    pub keys: [u8; 6],
}

/// A model of a keyboard.
#[derive(Clone, Debug)]
pub struct KeyboardModel {
    standard: Standard,
    script: VecDeque<Keys>,
    report: [u8; REPORT],
    waiting: VecDeque<[u8; REPORT]>,
    lights: u8,
    idle: u8,
    protocol: u8,
}

impl KeyboardModel {
    /// Returns a keyboard with these keys pressed; times in order.
    #[must_use]
    pub fn new(script: Vec<Keys>) -> KeyboardModel {
        KeyboardModel {
            standard: Standard::new(descriptors()),
            script: script.into(),
            report: [0; REPORT],
            waiting: VecDeque::new(),
            lights: 0,
            idle: 0,
            protocol: 1,
        }
    }

    /// Returns a keyboard on which somebody types the alphabet, over and over: `count` keys, one
    /// each `period`, down for half of it.
    #[must_use]
    pub fn typing(period: Nanos, count: u64) -> KeyboardModel {
        let keys = |time, key| Keys { time, modifiers: 0, keys: [key, 0, 0, 0, 0, 0] };
        let both = |n: u64| {
            let down = Nanos(period.0 * (n + 1));
            [keys(down, FIRST_KEY + (n % LETTERS) as u8), keys(down + Nanos(period.0 / 2), 0)]
        };
        KeyboardModel::new((0..count).flat_map(both).collect())
    }

    /// Returns its lights: num lock, caps lock, scroll lock, one bit each.
    #[must_use]
    pub fn lights(&self) -> u8 {
        self.lights
    }

    fn class(&mut self, setup: Setup, data: &[u8]) -> Result<Vec<u8>, Stall> {
        match (setup.kind, setup.request, data) {
            (FROM_INTERFACE, GET_REPORT, _) => reply(setup, self.report.into()),
            (FROM_INTERFACE, GET_IDLE, _) => reply(setup, vec![self.idle]),
            (FROM_INTERFACE, GET_PROTOCOL, _) => reply(setup, vec![self.protocol]),
            (TO_INTERFACE, SET_REPORT, [lights]) => {
                self.lights = *lights;
                Ok(Vec::new())
            }
            (TO_INTERFACE, SET_IDLE, _) => {
                self.idle = (setup.value >> 8) as u8;
                Ok(Vec::new())
            }
            (TO_INTERFACE, SET_PROTOCOL, _) if setup.value <= 1 => {
                self.protocol = setup.value as u8;
                Ok(Vec::new())
            }
            _ => Err(Stall),
        }
    }
}

impl UsbDevice for KeyboardModel {
    fn speed(&self) -> Speed {
        Speed::Full
    }

    fn reset(&mut self, now: Nanos) {
        self.advance(now);
        self.standard.reset();
        self.waiting.clear();
        (self.lights, self.idle, self.protocol) = (0, 0, 1);
    }

    fn control(&mut self, now: Nanos, setup: Setup, data: &[u8]) -> Result<Vec<u8>, Stall> {
        self.advance(now);
        let standard = self.standard.control(setup);
        standard.unwrap_or_else(|| match setup.index {
            0 => self.class(setup, data),
            _ => Err(Stall),
        })
    }

    fn receive(&mut self, _: Nanos, _: u8, _: &[u8]) -> Handshake {
        Handshake::Error
    }

    fn send(&mut self, now: Nanos, endpoint: u8, packet: &mut [u8]) -> Answer {
        self.advance(now);
        match self.standard.endpoint(endpoint) {
            EndpointStatus::Ready => {
                let report = self.waiting.pop_front();
                report.map_or(Answer::Nak, |report| Answer::packet(packet, &report))
            }
            EndpointStatus::Halted => Answer::Stall,
            EndpointStatus::Absent => Answer::Error,
        }
    }

    fn next_change(&self) -> Nanos {
        self.script.front().map_or(Nanos::FOREVER, |keys| keys.time)
    }

    fn advance(&mut self, now: Nanos) {
        while let Some(keys) = self.script.pop_front_if(|keys| keys.time <= now) {
            let [a, b, c, d, e, f] = keys.keys;
            self.report = [keys.modifiers, 0, a, b, c, d, e, f];
            if self.waiting.len() == WAITING {
                self.waiting.pop_front();
            }
            self.waiting.push_back(self.report);
        }
    }
}

fn descriptors() -> Descriptors {
    let device = descriptor::DeviceDescriptor {
        usb: 0x0110,
        class: 0,
        subclass: 0,
        protocol: 0,
        packet: 8,
        vendor: 0x1209,
        product: 0x0001,
        version: 0x0100,
        texts: [0, 1, 2],
        configurations: 1,
    };
    let keys = build::Interface::new(0)
        .class(3, 1, 1)
        .hid(0x0111, 0, LAYOUT.len() as u16)
        .endpoint(build::interrupt(IN, REPORT as u16, 10));
    Descriptors {
        device: device.bytes(Speed::Full),
        configuration: build::Configuration::new(1).with(keys).bytes(Speed::Full),
        strings: ["Keyboard", "000000000001"].map(String::from).into(),
        more: vec![(HID_REPORT, LAYOUT.into())],
        ..Descriptors::default()
    }
}
