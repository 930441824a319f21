//! An instrument: a device of a vendor's own class that sends packets by itself, from an interrupt
//! endpoint and from a bulk endpoint, as soon as it is configured.

use crate::descriptors::Descriptors;
use crate::device::{Answer, Handshake, Stall, UsbDevice};
use crate::sensor;
use crate::standard::{EndpointStatus, Standard};
use diapason_abi::Nanos;
use diapason_usb::descriptor::{self, build};
use diapason_usb::{Setup, Speed};
use std::collections::VecDeque;

/// The interrupt endpoint, and the bytes of its packets. The host asks it once a millisecond.
pub const INTERRUPT: (u8, usize) = (0x81, 64);
/// The bulk endpoint, and the bytes of its packets.
pub const BULK: (u8, usize) = (0x82, sensor::PACKET);
/// From one packet to the next.
pub const PERIOD: Nanos = Nanos::from_millis(2);
/// Packets that each endpoint keeps until they are fetched.
pub const KEPT: usize = 8;

/// The interval of the interrupt endpoint: 2³ microframes.
const INTERVAL: u8 = 4;

/// A model of an instrument. Each endpoint sends every packet, as far as it has room for: the
/// beginning of a packet of the [`sensor`].
#[derive(Clone, Debug)]
pub struct Instrument {
    standard: Standard,
    period: Nanos,
    next: Nanos,
    number: u64,
    /// Number and time of packets that wait, at the interrupt and at the bulk endpoint.
    waiting: [VecDeque<(u64, Nanos)>; 2],
}

impl Default for Instrument {
    /// Returns an instrument with a packet every [`PERIOD`].
    fn default() -> Instrument {
        Instrument::new(PERIOD)
    }
}

impl Instrument {
    /// Returns an instrument with a packet each `period`.
    #[must_use]
    pub fn new(period: Nanos) -> Instrument {
        Instrument::of(descriptors((0x0002, "Instrument"), &[[INTERRUPT, BULK]]), period)
    }

    /// Returns it as a part of the device with these descriptors.
    pub(crate) fn of(descriptors: Descriptors, period: Nanos) -> Instrument {
        Instrument {
            standard: Standard::new(descriptors),
            period: period.max(Nanos(1)),
            next: Nanos::FOREVER,
            number: 0,
            waiting: [VecDeque::new(), VecDeque::new()],
        }
    }

    /// Begins with the configuration, and ends with it.
    fn set(&mut self, now: Nanos) {
        let runs = self.next < Nanos::FOREVER;
        if self.standard.configured() != runs {
            self.waiting.iter_mut().for_each(VecDeque::clear);
            self.next = if runs { Nanos::FOREVER } else { now + self.period };
        }
    }

    fn make(&mut self, time: Nanos) {
        for waiting in &mut self.waiting {
            if waiting.len() < KEPT {
                waiting.push_back((self.number, time));
            }
        }
        self.number += 1;
    }
}

impl UsbDevice for Instrument {
    fn speed(&self) -> Speed {
        Speed::High
    }

    fn reset(&mut self, now: Nanos) {
        self.standard.reset();
        self.set(now);
    }

    fn control(&mut self, now: Nanos, setup: Setup, _: &[u8]) -> Result<Vec<u8>, Stall> {
        self.advance(now);
        let answer = self.standard.control(setup).unwrap_or(Err(Stall));
        self.set(now);
        answer
    }

    fn receive(&mut self, _: Nanos, _: u8, _: &[u8]) -> Handshake {
        Handshake::Error
    }

    fn send(&mut self, now: Nanos, endpoint: u8, buffer: &mut [u8]) -> Answer {
        self.advance(now);
        let ends = [INTERRUPT, BULK];
        let own = ends.iter().position(|(address, _)| *address == endpoint);
        match (self.standard.endpoint(endpoint), own) {
            (EndpointStatus::Ready, Some(own)) => match self.waiting[own].pop_front() {
                Some((number, time)) => {
                    Answer::packet(buffer, &sensor::packet(number, time)[..ends[own].1])
                }
                None => Answer::Nak,
            },
            (EndpointStatus::Halted, _) => Answer::Stall,
            _ => Answer::Error,
        }
    }

    fn next_change(&self) -> Nanos {
        self.next
    }

    fn advance(&mut self, now: Nanos) {
        while self.next <= now && self.next < Nanos::FOREVER {
            self.make(self.next);
            self.next += self.period;
        }
    }
}

/// Returns the descriptors of a device of a vendor's own class. In each of its directions it has an
/// interrupt endpoint, which the host serves once a millisecond, and a bulk endpoint.
pub(crate) fn descriptors(
    (product, name): (u16, &str),
    directions: &[[(u8, usize); 2]],
) -> Descriptors {
    let device = descriptor::DeviceDescriptor {
        usb: 0x0200,
        class: 0,
        subclass: 0,
        protocol: 0,
        packet: 64,
        vendor: 0x1209,
        product,
        version: 0x0100,
        texts: [0, 1, 2],
        configurations: 1,
    };
    let interface = build::Interface::new(0).class(0xff, 0, 0);
    let interface = directions.iter().fold(interface, |interface, [interrupt, bulk]| {
        interface
            .endpoint(build::interrupt(interrupt.0, interrupt.1 as u16, INTERVAL))
            .endpoint(build::bulk(bulk.0, bulk.1 as u16))
    });
    Descriptors {
        device: device.bytes(Speed::High),
        configuration: build::Configuration::new(1).with(interface).bytes(Speed::High),
        high_speed: true,
        strings: [name, "000000000001"].map(String::from).into(),
        ..Descriptors::default()
    }
}
