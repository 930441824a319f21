//! A sensor: a microcontroller that sends 512 bytes every 2.5 ms over a serial
//! port as USB has them (CDC-ACM), once somebody opens the port.

use crate::descriptors::Descriptors;
use crate::device::{Answer, Handshake, Stall, UsbDevice};
use crate::standard::{EndpointStatus, Standard, reply};
use diapason_abi::Nanos;
use diapason_usb::descriptor::{self, build};
use diapason_usb::setup::descriptor_type::CLASS_INTERFACE;
use diapason_usb::{Setup, Speed};
use std::collections::VecDeque;

/// Packets come from here.
pub const IN: u8 = 0x83;
/// The endpoint that the host writes to.
pub const OUT: u8 = 0x03;
/// News about the line come from here.
pub const NEWS: u8 = 0x82;
/// Bytes of a packet.
pub const PACKET: usize = 512;
/// From one packet to the next.
pub const PERIOD: Nanos = Nanos::from_micros(2_500);
/// Packets that it keeps until they are fetched.
pub const KEPT: usize = 8;
/// Begins each packet; its number (u64) and the time it was made (u64 ns) follow.
pub const SIGNATURE: [u8; 8] = *b"DIAPASON";

const SET_LINE_CODING: u8 = 0x20;
const GET_LINE_CODING: u8 = 0x21;
const SET_CONTROL_LINE_STATE: u8 = 0x22;
const SEND_BREAK: u8 = 0x23;
const TO_INTERFACE: u8 = 0x21;
const FROM_INTERFACE: u8 = 0xa1;
const DATA_TERMINAL_READY: u16 = 1;
/// Carrier and ready, as a line that works says it; and data lost.
const LINE_UP: u8 = 0b11;
const LINE_OVERRUN: u8 = 1 << 6;

/// The packet `number`, made at `time`; the rest counts up from the number.
#[must_use]
pub fn packet(number: u64, time: Nanos) -> [u8; PACKET] {
    let mut packet = std::array::from_fn(|at| (at as u64).wrapping_add(number) as u8);
    packet[..8].copy_from_slice(&SIGNATURE);
    packet[8..16].copy_from_slice(&number.to_le_bytes());
    packet[16..24].copy_from_slice(&time.0.to_le_bytes());
    packet
}

/// A model of a sensor.
#[derive(Clone, Debug)]
pub struct Sensor {
    standard: Standard,
    period: Nanos,
    capacity: usize,
    line_coding: [u8; 7],
    open: bool,
    next: Nanos,
    number: u64,
    /// Number and time of packets that wait; their bytes are made when they are fetched.
    waiting: VecDeque<(u64, Nanos)>,
    dropped: u64,
    written: u64,
    news: Option<u8>,
}

impl Default for Sensor {
    /// A packet every 2.5 ms, and memory for eight.
    fn default() -> Sensor {
        Sensor::new(PERIOD, KEPT)
    }
}

impl Sensor {
    /// Returns a sensor with memory for `capacity` packets and a packet each `period`.
    #[must_use]
    pub fn new(period: Nanos, capacity: usize) -> Sensor {
        Sensor {
            standard: Standard::new(descriptors()),
            period: period.max(Nanos(1)),
            capacity,
            // 9,600 bit/s, one stop bit, no parity, eight data bits.
            line_coding: [0x80, 0x25, 0, 0, 0, 0, 8],
            open: false,
            next: Nanos::FOREVER,
            number: 0,
            waiting: VecDeque::new(),
            dropped: 0,
            written: 0,
            news: None,
        }
    }

    /// Packets that found the memory full. Their numbers are missing.
    #[must_use]
    pub fn dropped(&self) -> u64 {
        self.dropped
    }

    /// Bytes the host wrote.
    #[must_use]
    pub fn written(&self) -> u64 {
        self.written
    }

    fn set_line(&mut self, now: Nanos, ready: bool) {
        if ready == self.open {
            return;
        }
        self.open = ready;
        self.waiting.clear();
        self.next = if ready { now + self.period } else { Nanos::FOREVER };
        self.news = Some(if ready { LINE_UP } else { 0 });
    }

    fn set_line_coding(&mut self, data: &[u8]) -> Result<Vec<u8>, Stall> {
        match *data {
            [a, b, c, d, stop @ 0..=2, parity @ 0..=4, bits @ (5..=8 | 16)] => {
                self.line_coding = [a, b, c, d, stop, parity, bits];
                Ok(Vec::new())
            }
            _ => Err(Stall),
        }
    }

    fn make(&mut self, time: Nanos) {
        if self.waiting.len() < self.capacity {
            self.waiting.push_back((self.number, time));
        } else {
            self.dropped += 1;
            self.news = Some(LINE_UP | LINE_OVERRUN);
        }
        self.number += 1;
    }

    /// A notification of the line's state.
    fn take_news(&mut self) -> Option<Vec<u8>> {
        let line = self.news.take()?;
        Some(vec![FROM_INTERFACE, 0x20, 0, 0, 0, 0, 2, 0, line, 0])
    }
}

impl UsbDevice for Sensor {
    fn speed(&self) -> Speed {
        Speed::High
    }

    fn reset(&mut self, now: Nanos) {
        self.set_line(now, false);
        self.standard.reset();
        self.news = None;
    }

    fn control(&mut self, now: Nanos, setup: Setup, data: &[u8]) -> Result<Vec<u8>, Stall> {
        self.advance(now);
        if let Some(answer) = self.standard.control(setup) {
            if !self.standard.configured() {
                self.set_line(now, false);
            }
            return answer;
        }
        match (setup.kind, setup.request, setup.index) {
            (TO_INTERFACE, SET_LINE_CODING, 0) => self.set_line_coding(data),
            (FROM_INTERFACE, GET_LINE_CODING, 0) => reply(setup, self.line_coding.into()),
            (TO_INTERFACE, SET_CONTROL_LINE_STATE, 0) if self.standard.configured() => {
                self.set_line(now, setup.value & DATA_TERMINAL_READY != 0);
                Ok(Vec::new())
            }
            (TO_INTERFACE, SEND_BREAK, 0) => Ok(Vec::new()),
            _ => Err(Stall),
        }
    }

    fn receive(&mut self, now: Nanos, endpoint: u8, packet: &[u8]) -> Handshake {
        self.advance(now);
        match self.standard.endpoint(endpoint) {
            EndpointStatus::Ready if endpoint == OUT => {
                self.written += packet.len() as u64;
                Handshake::Ack
            }
            EndpointStatus::Halted => Handshake::Stall,
            _ => Handshake::Error,
        }
    }

    fn send(&mut self, now: Nanos, endpoint: u8, buffer: &mut [u8]) -> Answer {
        self.advance(now);
        let bytes = match self.standard.endpoint(endpoint) {
            EndpointStatus::Ready if endpoint == IN => {
                self.waiting.pop_front().map(|(number, time)| packet(number, time).to_vec())
            }
            EndpointStatus::Ready if endpoint == NEWS => self.take_news(),
            EndpointStatus::Halted => return Answer::Stall,
            _ => return Answer::Error,
        };
        bytes.map_or(Answer::Nak, |bytes| Answer::packet(buffer, &bytes))
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

fn descriptors() -> Descriptors {
    let device = descriptor::DeviceDescriptor {
        usb: 0x0200,
        class: 0xef,
        subclass: 2,
        protocol: 1,
        packet: 64,
        vendor: 0x16c0,
        product: 0x0483,
        version: 0x0280,
        texts: [1, 2, 3],
        configurations: 1,
    };
    let control = build::Interface::new(0)
        .class(2, 2, 1)
        .extra(CLASS_INTERFACE, &[0, 0x10, 0x01])
        .extra(CLASS_INTERFACE, &[1, 0, 1])
        .extra(CLASS_INTERFACE, &[2, 0b110])
        .extra(CLASS_INTERFACE, &[6, 0, 1])
        .endpoint(build::interrupt(NEWS, 16, 5));
    let data = build::Interface::new(1)
        .class(10, 0, 0)
        .endpoint(build::bulk(OUT, 512))
        .endpoint(build::bulk(IN, 512));
    let configuration =
        build::Configuration::new(1).association(0, 2, [2, 2, 1]).with(control).with(data);
    Descriptors {
        device: device.bytes(Speed::High),
        configuration: configuration.bytes(Speed::High),
        high_speed: true,
        strings: ["Teensyduino", "USB Serial", "1"].map(String::from).into(),
        ..Descriptors::default()
    }
}
