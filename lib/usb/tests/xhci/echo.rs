//! A device that gives back what it gets: bulk, interrupt and isochronous, at every speed.

use diapason_abi::Nanos;
use diapason_devices::{Answer, Handshake, Stall, UsbDevice};
use diapason_usb::descriptor::Configuration;
use diapason_usb::setup::request;
use diapason_usb::xhci::EndpointPlan;
use diapason_usb::{Setup, Speed};
use std::collections::VecDeque;

pub const BULK_IN: u8 = 0x81;
pub const BULK_OUT: u8 = 0x02;
pub const NEWS: u8 = 0x83;
pub const STREAM: u8 = 0x84;

pub struct Echo {
    speed: Speed,
    packets: VecDeque<Vec<u8>>,
    halted: bool,
    /// Packets of the isochronous endpoint so far.
    count: u8,
}

impl Echo {
    pub fn boxed(speed: Speed) -> Box<dyn UsbDevice> {
        Box::new(Echo { speed, packets: VecDeque::new(), halted: false, count: 0 })
    }
}

/// Returns its configuration: (address, attributes, packet) for each endpoint.
pub fn configuration(speed: Speed) -> Vec<u8> {
    let (bulk, stream) = match speed {
        Speed::Super => (1024, 1024),
        Speed::High => (512, 1024),
        Speed::Full | Speed::Low => (64, 512),
    };
    let all = [(BULK_IN, 2, bulk), (BULK_OUT, 2, bulk), (NEWS, 3, 64), (STREAM, 1, stream)];
    let mut bytes = vec![9, 2, 0, 0, 1, 1, 0, 0x80, 50, 9, 4, 0, 0, 4, 255, 0, 0, 0];
    for (address, attributes, packet) in all {
        let [low, high] = u16::to_le_bytes(packet);
        bytes.extend([7, 5, address, attributes, low, high, 4]);
        if speed == Speed::Super {
            let interval = if attributes == 2 { [0, 0] } else { [low, high] };
            bytes.extend([6, 0x30, 0, 0, interval[0], interval[1]]);
        }
    }
    bytes[2] = bytes.len() as u8;
    bytes
}

/// Plans for all its endpoints.
pub fn plans(speed: Speed) -> Vec<EndpointPlan> {
    let bytes = configuration(speed);
    let configuration = Configuration::parse_once(&bytes, speed).unwrap();
    let interface = configuration.interface(0, 0).unwrap();
    interface.endpoints().map(EndpointPlan::new).collect()
}

impl UsbDevice for Echo {
    fn speed(&self) -> Speed {
        self.speed
    }

    fn reset(&mut self, _: Nanos) {
        *self = Echo { speed: self.speed, packets: VecDeque::new(), halted: false, count: 0 };
    }

    fn control(&mut self, _: Nanos, setup: Setup, _: &[u8]) -> Result<Vec<u8>, Stall> {
        let (version, packet) = match self.speed {
            Speed::Super => (3, 9),
            Speed::High => (2, 64),
            // Not what a driver assumes first.
            Speed::Full => (1, 32),
            Speed::Low => (1, 8),
        };
        let mut bytes = match (setup.request, setup.value >> 8) {
            (request::GET_DESCRIPTOR, 1) => {
                vec![18, 1, 0, version, 0, 0, 0, packet, 9, 18, 1, 0, 0, 1, 0, 0, 0, 1]
            }
            (request::GET_DESCRIPTOR, 2) => configuration(self.speed),
            (request::SET_CONFIGURATION, _) => vec![],
            (request::CLEAR_FEATURE, _) => {
                self.halted = false;
                vec![]
            }
            _ => return Err(Stall),
        };
        bytes.truncate(setup.length.into());
        Ok(bytes)
    }

    fn receive(&mut self, _: Nanos, _: u8, packet: &[u8]) -> Handshake {
        match (packet, self.halted) {
            (_, true) => return Handshake::Stall,
            ([b'!'], _) => self.halted = true,
            _ => self.packets.push_back(packet.to_vec()),
        }
        if self.halted { Handshake::Stall } else { Handshake::Ack }
    }

    fn send(&mut self, _: Nanos, endpoint: u8, packet: &mut [u8]) -> Answer {
        if endpoint == STREAM {
            self.count = self.count.wrapping_add(1);
            packet[0] = self.count;
            return Answer::Data(1);
        }
        match self.packets.pop_front().filter(|_| endpoint == BULK_IN) {
            Some(bytes) => {
                let length = bytes.len().min(packet.len());
                packet[..length].copy_from_slice(&bytes[..length]);
                Answer::Data(bytes.len())
            }
            None => Answer::Nak,
        }
    }

    fn next_change(&self) -> Nanos {
        Nanos::FOREVER
    }

    fn advance(&mut self, _: Nanos) {}
}
