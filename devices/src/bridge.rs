//! A cable between two hosts: a device at each end, and a buffer for each direction between them.
//!
//! What one host writes the other reads, packet for packet, so that a short packet at one end ends
//! a transfer at the other. A full buffer holds the writer off and an empty one the reader; there
//! is nothing else: no numbers, no checks, no way to see that the other host is gone but silence.

use crate::device::{Answer, Device, Handshake, Stall};
use crate::standard::{Descriptors, EndpointState, Standard};
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
/// Largest packet.
pub const PACKET: usize = 1_024;

/// Vendor requests: switch features (named by the bits of `value`) on, or off.
const TO_VENDOR: u8 = 0x40;
const CLEAR_FEATURES: u8 = 1;
const SET_FEATURES: u8 = 3;
const RESET_OUT: u16 = 1 << 4;
const RESET_IN: u16 = 1 << 3;
/// In the news: the other end is configured.
const PEER_EXISTS: u8 = 1;

/// One direction.
#[derive(Debug, Default)]
struct Fifo {
    packets: VecDeque<Vec<u8>>,
    bytes: usize,
}

/// What both ends share.
#[derive(Debug)]
struct Cable {
    /// To the end with this index.
    fifos: [Fifo; 2],
    present: [bool; 2],
    /// The end with this index has not yet seen what the other did, since then.
    news: [Option<Nanos>; 2],
    capacity: usize,
}

impl Cable {
    fn tell(&mut self, end: usize, now: Nanos) {
        self.news[end].get_or_insert(now);
    }
}

/// One end of the cable.
#[derive(Debug)]
pub struct Bridge {
    cable: Rc<RefCell<Cable>>,
    end: usize,
    standard: Standard,
    /// The other end's presence, as last reported to the host.
    reported: Option<bool>,
}

/// A cable with `capacity` bytes of memory in each direction, at least one packet: its two ends.
#[must_use]
pub fn bridge(capacity: usize) -> (Bridge, Bridge) {
    let cable = Rc::new(RefCell::new(Cable {
        fifos: Default::default(),
        present: [false; 2],
        news: [None; 2],
        capacity: capacity.max(PACKET),
    }));
    let end = |end| Bridge {
        cable: Rc::clone(&cable),
        end,
        standard: Standard::new(descriptors()),
        reported: None,
    };
    (end(0), end(1))
}

impl Bridge {
    fn peer(&self) -> usize {
        1 - self.end
    }

    /// Forget what waits for an end.
    fn clear(&self, end: usize) {
        self.cable.borrow_mut().fifos[end] = Fifo::default();
    }

    fn note_presence(&mut self, now: Nanos) {
        let (configured, peer) = (self.standard.configured(), self.peer());
        let cable = &mut *self.cable.borrow_mut();
        if cable.present[self.end] != configured {
            cable.present[self.end] = configured;
            cable.fifos[self.end] = Fifo::default();
            cable.tell(peer, now);
        }
    }

    fn features(&self, now: Nanos, setup: Setup) -> Result<Vec<u8>, Stall> {
        if setup.kind != TO_VENDOR || ![CLEAR_FEATURES, SET_FEATURES].contains(&setup.request) {
            return Err(Stall);
        }
        if setup.request == SET_FEATURES && setup.value & RESET_OUT != 0 {
            self.clear(self.peer());
        }
        if setup.request == SET_FEATURES && setup.value & RESET_IN != 0 {
            self.clear(self.end);
            self.cable.borrow_mut().tell(self.peer(), now);
        }
        Ok(Vec::new())
    }

    fn write(&self, now: Nanos, packet: &[u8]) -> Handshake {
        let (cable, peer) = (&mut *self.cable.borrow_mut(), self.peer());
        if packet.len() > PACKET {
            return Handshake::Error;
        }
        let fifo = &mut cable.fifos[peer];
        // An empty packet takes memory, too.
        let bytes = packet.len().max(1);
        if !cable.present[peer] || fifo.bytes + bytes > cable.capacity {
            return Handshake::Nak;
        }
        fifo.bytes += bytes;
        fifo.packets.push_back(packet.to_vec());
        cable.tell(peer, now);
        Handshake::Ack
    }

    fn read(&self, now: Nanos, buffer: &mut [u8]) -> Answer {
        let (cable, peer) = (&mut *self.cable.borrow_mut(), self.peer());
        let fifo = &mut cable.fifos[self.end];
        let Some(packet) = fifo.packets.pop_front() else { return Answer::Nak };
        fifo.bytes -= packet.len().max(1);
        cable.tell(peer, now);
        Answer::packet(buffer, &packet)
    }

    fn news(&mut self, buffer: &mut [u8]) -> Answer {
        let present = self.cable.borrow().present[self.peer()];
        if self.reported == Some(present) {
            return Answer::Nak;
        }
        self.reported = Some(present);
        Answer::packet(buffer, &[if present { PEER_EXISTS } else { 0 }])
    }
}

impl Device for Bridge {
    fn speed(&self) -> Speed {
        Speed::Super
    }

    fn reset(&mut self, now: Nanos) {
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
            EndpointState::Ready if endpoint == OUT => self.write(now, packet),
            EndpointState::Halted => Handshake::Stall,
            _ => Handshake::Error,
        }
    }

    fn send(&mut self, now: Nanos, endpoint: u8, packet: &mut [u8]) -> Answer {
        self.advance(now);
        match self.standard.endpoint(endpoint) {
            EndpointState::Ready if endpoint == IN => self.read(now, packet),
            EndpointState::Ready if endpoint == NEWS => self.news(packet),
            EndpointState::Halted => Answer::Stall,
            _ => Answer::Error,
        }
    }

    fn next_change(&self) -> Nanos {
        self.cable.borrow().news[self.end].unwrap_or(Nanos::FOREVER)
    }

    fn advance(&mut self, _: Nanos) {
        self.cable.borrow_mut().news[self.end] = None;
    }
}

fn descriptors() -> Descriptors {
    let device = descriptor::Device {
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

/// What every SuperSpeed device says it can do besides.
pub(crate) fn superspeed_bos() -> Vec<u8> {
    build::bos(&[
        (capability::USB2_EXTENSION, &[2, 0, 0, 0]),
        // All speeds down to full; quick to wake.
        (capability::SUPERSPEED, &[0, 0x0e, 0, 1, 10, 0xff, 0x07]),
    ])
}
