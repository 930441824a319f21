//! A cable between two hosts: a device at each end, and a buffer for each direction between them.
//!
//! A bridge between two hosts: each reads what the other writes, packet for packet, so that a short
//! packet at one end ends a transfer at the other. A full buffer holds the writer off and an empty
//! one the reader; there is nothing else: no numbers, no checks, no way to see that the other host
//! is gone but silence.
//!
//! The ends share nothing but messages under way, each with the time at which it arrives. So one
//! host may be simulated ahead of the other by the cable's delay, and both see the same.

use crate::descriptors::Descriptors;
use crate::device::{Answer, Handshake, Stall, UsbDevice};
use crate::standard::{EndpointStatus, Standard};
use diapason_abi::Nanos;
use diapason_usb::descriptor::{self, build, capability};
use diapason_usb::{Setup, Speed};
use std::cell::RefCell;
use std::collections::VecDeque;
use std::rc::Rc;

/// News about the other end come from here.
pub const NEWS: u8 = 0x81;
/// The host writes here.
pub const OUT: u8 = 0x02;
/// The host reads here.
pub const IN: u8 = 0x83;
pub const PACKET: usize = 1_024;

/// Vendor requests: switch features (named by the bits of `value`) on, or off.
const TO_VENDOR: u8 = 0x40;
const CLEAR_FEATURES: u8 = 1;
const SET_FEATURES: u8 = 3;
const RESET_OUT: u16 = 1 << 4;
const RESET_IN: u16 = 1 << 3;
/// In the news: the other end is configured.
const PEER_EXISTS: u8 = 1;

/// A message from one end to the other.
#[derive(Debug)]
enum Message {
    /// A packet, for which there was room.
    Packet(Vec<u8>),
    /// Bytes that have left the buffer.
    Room(usize),
    /// The end is configured, or is not any more.
    Present(bool),
    /// Forget the packets that nobody read.
    Discard,
}

/// Messages under way to an end, with the time at which they are there.
type Wire = VecDeque<(Nanos, Message)>;

/// One end of the cable.
#[derive(Debug)]
pub struct Bridge {
    /// To the end with this index.
    wires: Rc<RefCell<[Wire; 2]>>,
    end: usize,
    delay: Nanos,
    standard: Standard,
    present: bool,
    /// Packets for the host, in this end's buffer.
    received: VecDeque<Vec<u8>>,
    /// Bytes that fit into the other end's buffer, as far as this one knows.
    room: usize,
    /// True if the other end is configured, as far as this one knows, and as it told its host.
    peer: bool,
    reported: Option<bool>,
}

/// Returns a cable that takes no time: see [`slow_bridge`].
#[must_use]
pub fn bridge(capacity: usize) -> (Bridge, Bridge) {
    slow_bridge(capacity, Nanos::ZERO)
}

/// A cable with `capacity` bytes of memory in each direction, at least one packet: its two ends.
/// Returns a bridge on which each end notices the other's actions after `delay`.
#[must_use]
pub fn slow_bridge(capacity: usize, delay: Nanos) -> (Bridge, Bridge) {
    let wires = Rc::new(RefCell::new([Wire::new(), Wire::new()]));
    let end = |end| Bridge {
        wires: Rc::clone(&wires),
        end,
        delay,
        standard: Standard::new(descriptors()),
        present: false,
        received: VecDeque::new(),
        room: capacity.max(PACKET),
        peer: false,
        reported: None,
    };
    (end(0), end(1))
}

/// Bytes of memory that a packet takes; an empty one takes some, too.
fn bytes(packet: &[u8]) -> usize {
    packet.len().max(1)
}

impl Bridge {
    fn tell(&self, now: Nanos, message: Message) {
        self.wires.borrow_mut()[1 - self.end].push_back((now + self.delay, message));
    }

    fn next_message(&self, now: Nanos) -> Option<Message> {
        let wire = &mut self.wires.borrow_mut()[self.end];
        wire.pop_front_if(|(at, _)| *at <= now).map(|(_, message)| message)
    }

    fn heed(&mut self, now: Nanos, message: Message) {
        match message {
            Message::Packet(packet) if self.present => self.received.push_back(packet),
            Message::Packet(packet) => self.tell(now, Message::Room(bytes(&packet))),
            Message::Room(bytes) => self.room += bytes,
            Message::Present(present) => self.peer = present,
            Message::Discard => self.discard(now),
        }
    }

    /// Forgets what waits for the host.
    fn discard(&mut self, now: Nanos) {
        let room = self.received.drain(..).map(|packet| bytes(&packet)).sum();
        if room > 0 {
            self.tell(now, Message::Room(room));
        }
    }

    fn note_presence(&mut self, now: Nanos) {
        if self.present != self.standard.configured() {
            self.present = !self.present;
            self.discard(now);
            self.tell(now, Message::Present(self.present));
        }
    }

    fn features(&mut self, now: Nanos, setup: Setup) -> Result<Vec<u8>, Stall> {
        if setup.kind != TO_VENDOR || ![CLEAR_FEATURES, SET_FEATURES].contains(&setup.request) {
            return Err(Stall);
        }
        if setup.request == SET_FEATURES && setup.value & RESET_OUT != 0 {
            self.tell(now, Message::Discard);
        }
        if setup.request == SET_FEATURES && setup.value & RESET_IN != 0 {
            self.discard(now);
        }
        Ok(Vec::new())
    }

    fn write(&mut self, now: Nanos, packet: &[u8]) -> Handshake {
        if packet.len() > PACKET {
            return Handshake::Error;
        }
        if !self.peer || self.room < bytes(packet) {
            return Handshake::Nak;
        }
        self.room -= bytes(packet);
        self.tell(now, Message::Packet(packet.to_vec()));
        Handshake::Ack
    }

    fn read(&mut self, now: Nanos, buffer: &mut [u8]) -> Answer {
        let Some(packet) = self.received.pop_front() else { return Answer::Nak };
        self.tell(now, Message::Room(bytes(&packet)));
        Answer::packet(buffer, &packet)
    }

    fn news(&mut self, buffer: &mut [u8]) -> Answer {
        if self.reported == Some(self.peer) {
            return Answer::Nak;
        }
        self.reported = Some(self.peer);
        Answer::packet(buffer, &[if self.peer { PEER_EXISTS } else { 0 }])
    }
}

impl UsbDevice for Bridge {
    fn speed(&self) -> Speed {
        Speed::Super
    }

    fn reset(&mut self, now: Nanos) {
        self.advance(now);
        self.standard.reset();
        self.reported = None;
        self.note_presence(now);
    }

    fn control(&mut self, now: Nanos, setup: Setup, _: &[u8]) -> Result<Vec<u8>, Stall> {
        self.advance(now);
        let answer = self.standard.control(setup).unwrap_or_else(|| self.features(now, setup));
        self.note_presence(now);
        answer
    }

    fn receive(&mut self, now: Nanos, endpoint: u8, packet: &[u8]) -> Handshake {
        self.advance(now);
        match self.standard.endpoint(endpoint) {
            EndpointStatus::Ready if endpoint == OUT => self.write(now, packet),
            EndpointStatus::Halted => Handshake::Stall,
            _ => Handshake::Error,
        }
    }

    fn send(&mut self, now: Nanos, endpoint: u8, packet: &mut [u8]) -> Answer {
        self.advance(now);
        match self.standard.endpoint(endpoint) {
            EndpointStatus::Ready if endpoint == IN => self.read(now, packet),
            EndpointStatus::Ready if endpoint == NEWS => self.news(packet),
            EndpointStatus::Halted => Answer::Stall,
            _ => Answer::Error,
        }
    }

    fn next_change(&self) -> Nanos {
        self.wires.borrow()[self.end].front().map_or(Nanos::FOREVER, |(at, _)| *at)
    }

    fn advance(&mut self, now: Nanos) {
        while let Some(message) = self.next_message(now) {
            self.heed(now, message);
        }
    }
}

fn descriptors() -> Descriptors {
    let device = descriptor::DeviceDescriptor {
        usb: 0x0300,
        class: 0xff,
        subclass: 0,
        protocol: 0,
        packet: 512,
        vendor: 0x067b,
        product: 0x27a1,
        version: 0x0100,
        texts: [1, 2, 0],
        configurations: 1,
    };
    let pipes = build::Interface::new(0)
        .class(0xff, 0, 0)
        .endpoint(build::interrupt(NEWS, 2, 9))
        .endpoint(build::bulk(OUT, PACKET as u16).bursts(7, 0))
        .endpoint(build::bulk(IN, PACKET as u16).bursts(7, 0));
    Descriptors {
        device: device.bytes(Speed::Super),
        configuration: build::Configuration::new(1).with(pipes).bytes(Speed::Super),
        strings: ["Prolific Technology Inc.", "SuperSpeed bridge"].map(String::from).into(),
        bos: superspeed_bos(),
        ..Descriptors::default()
    }
}

/// Returns the capabilities that every SuperSpeed device has.
pub(crate) fn superspeed_bos() -> Vec<u8> {
    build::bos(&[
        (capability::USB2_EXTENSION, &[2, 0, 0, 0]),
        // All speeds down to full; quick to wake.
        (capability::SUPERSPEED, &[0, 0x0e, 0, 1, 10, 0xff, 0x07]),
    ])
}
