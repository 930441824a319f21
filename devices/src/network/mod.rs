//! A network device of two configurations: the first in a vendor's own way (as RNDIS, without what
//! is behind it), the second with whole Ethernet frames (CDC-ECM). On its network is one computer,
//! which answers, and which may send numbered frames or datagrams by itself.

mod datagrams;
mod peer;

pub use datagrams::{DATAGRAM_BYTES, DATAGRAM_NUMBER_AT, DATAGRAM_TIME_AT, DatagramEnd};
pub use peer::{PEER, PEER_ADDRESS};

use crate::descriptors::Descriptors;
use crate::device::{Answer, Handshake, Stall, UsbDevice};
use crate::standard::{EndpointStatus, Standard};
use datagrams::Datagrams;
use diapason_abi::Nanos;
use diapason_usb::descriptor::{self, build};
use diapason_usb::setup::descriptor_type::CLASS_INTERFACE;
use diapason_usb::{Setup, Speed};
use peer::Peer;
use std::collections::VecDeque;

/// Frames come from here.
pub const IN: u8 = 0x82;
/// The host's frames go here.
pub const OUT: u8 = 0x02;
/// News about the network come from here.
pub const NEWS: u8 = 0x81;
/// Bytes of a packet.
pub const PACKET: usize = 512;
/// Most bytes of a frame.
pub const FRAME_MAX: usize = 1514;
/// The device's own address.
pub const ADDRESS: [u8; 6] = [0x40, 0x54, 0, 0x12, 0x34, 0x56];
/// Bytes of a numbered frame.
pub const NUMBERED: usize = 256;
/// The places of the number and of the time in a numbered frame.
pub const NUMBER_AT: usize = 16;
pub const TIME_AT: usize = 24;
/// Values of the two configurations.
pub const VENDORS: u8 = 2;
/// Value of the configuration with whole frames.
pub const FRAMES: u8 = 1;

/// The data interface, and its setting with endpoints.
const DATA: u8 = 1;
const OPEN: u8 = 1;
/// From a frame of the host's to an answer that is there, and frames that may wait.
const DELAY: Nanos = Nanos::from_micros(60);
const CAPACITY: usize = 16;
const TO_INTERFACE: u8 = 0x21;
const SET_PACKET_FILTER: u8 = 0x43;
/// Bits of the filter.
const ALL: u16 = 1 << 0;
const GROUPS: u16 = 1 << 1;
const OWN: u16 = 1 << 2;
const EVERYBODY: u16 = 1 << 3;
/// How fast it says it is, in bits per second.
const SPEED: u32 = 100_000_000;

/// The type of numbered frames: that for experiments.
const EXPERIMENT: [u8; 2] = [0x88, 0xb5];

/// Returns the numbered frame `number`, made at `time`. The bytes behind both count up from the
/// number.
#[must_use]
pub fn numbered(number: u64, time: Nanos) -> Vec<u8> {
    let mut frame: Vec<u8> = (0..NUMBERED as u64).map(|at| at.wrapping_add(number) as u8).collect();
    let head = [&ADDRESS[..], &PEER_ADDRESS, &EXPERIMENT, &[0; 2]].concat();
    frame[..NUMBER_AT].copy_from_slice(&head);
    frame[NUMBER_AT..TIME_AT].copy_from_slice(&number.to_le_bytes());
    frame[TIME_AT..TIME_AT + 8].copy_from_slice(&time.0.to_le_bytes());
    frame
}

/// A model of a network device.
pub struct Adapter {
    standard: Standard,
    filter: u16,
    peer: Peer,
    /// The sockets of the host to which the computer sends, if it sends datagrams.
    datagrams: Datagrams,
    /// The computer sends a numbered frame, or a datagram, each `period`, the next one at `next`.
    period: Nanos,
    next: Nanos,
    number: u64,
    /// The device says "not now" for so long before it takes a frame, and up to `room_at` of the
    /// one that was offered.
    takes: Nanos,
    room_at: Option<Nanos>,
    /// The part of the host's frame so far; longer than any frame if it is none.
    begun: Vec<u8>,
    /// Frames for the host, and when they are there; of the first, bytes that went already.
    waiting: VecDeque<(Nanos, Vec<u8>)>,
    gone: usize,
    news: VecDeque<Vec<u8>>,
    dropped: u64,
    /// The time up to which the device was let go on.
    advanced: Nanos,
}

impl Default for Adapter {
    fn default() -> Adapter {
        Adapter {
            standard: Standard::new(descriptors()),
            filter: 0,
            peer: Peer::new(),
            datagrams: Datagrams::default(),
            period: Nanos::FOREVER,
            next: Nanos::FOREVER,
            number: 0,
            takes: Nanos::ZERO,
            room_at: None,
            begun: Vec::new(),
            waiting: VecDeque::new(),
            gone: 0,
            news: VecDeque::new(),
            dropped: 0,
            advanced: Nanos::ZERO,
        }
    }
}

impl Adapter {
    /// Returns it with a computer that sends a numbered frame each `period`.
    #[must_use]
    pub fn with_frames(self, period: Nanos) -> Adapter {
        Adapter { period: period.max(Nanos(1)), ..self }
    }

    /// Returns it with a computer that sends datagrams to these sockets in turn, and no other
    /// frames by itself.
    #[must_use]
    pub fn with_datagrams(mut self, ends: Vec<DatagramEnd>) -> Adapter {
        self.datagrams.ends = ends;
        self
    }

    /// Returns how many answers to datagrams came.
    #[must_use]
    pub fn answers(&self) -> u64 {
        self.datagrams.answers
    }

    /// Returns it with room for a frame so long after that was offered.
    #[must_use]
    pub fn taking(self, takes: Nanos) -> Adapter {
        Adapter { takes, ..self }
    }

    /// Frames that were too long or found no room.
    #[must_use]
    pub fn dropped(&self) -> u64 {
        self.dropped
    }

    /// Frames flow in one setting of the second configuration alone.
    fn is_open(&self) -> bool {
        self.standard.alternate(DATA) == OPEN
    }

    /// Applies the settings: which frames wait, and which notices the device sends.
    fn settle(&mut self, now: Nanos, open_before: bool) {
        let open = self.is_open();
        if open == open_before {
            return;
        }
        self.room_at = None;
        let sends = open && self.period < Nanos::FOREVER;
        self.next = if sends { now + self.period } else { Nanos::FOREVER };
        self.begun.clear();
        self.waiting.clear();
        self.news.clear();
        self.gone = 0;
        if open {
            let speed = SPEED.to_le_bytes();
            self.news.push_back([&[0xa1, 0, 1, 0, 0, 0, 0, 0][..]].concat());
            self.news.push_back([&[0xa1, 0x2a, 0, 0, 0, 0, 8, 0], &speed[..], &speed].concat());
        }
    }

    fn passes(&self, frame: &[u8]) -> bool {
        let bit = match frame {
            [0xff, 0xff, 0xff, 0xff, 0xff, 0xff, ..] => EVERYBODY,
            [first, ..] if first & 1 != 0 => GROUPS,
            _ if frame.starts_with(&ADDRESS) => OWN,
            _ => ALL,
        };
        self.filter & (bit | ALL) != 0
    }

    /// A packet of the host's; a short one ends a frame.
    fn take(&mut self, now: Nanos, packet: &[u8]) {
        let room = (FRAME_MAX + 1).saturating_sub(self.begun.len());
        self.begun.extend(packet.iter().take(room));
        if packet.len() == PACKET {
            return;
        }
        let frame = std::mem::take(&mut self.begun);
        if frame.len() > FRAME_MAX {
            self.dropped += 1;
            return;
        }
        if self.datagrams.takes(&frame) {
            return;
        }
        for answer in self.peer.hear(now, frame) {
            self.keep(now + DELAY, answer);
        }
    }

    /// Keeps a frame for the host, if there is room and the filter lets it pass.
    fn keep(&mut self, from: Nanos, frame: Vec<u8>) {
        if self.waiting.len() == CAPACITY {
            self.dropped += 1;
        } else if self.passes(&frame) {
            self.waiting.push_back((from, frame));
        }
    }

    /// Returns whether the device has room for the packet that is offered.
    fn has_room(&mut self, now: Nanos) -> bool {
        if !self.begun.is_empty() {
            return true;
        }
        let at = *self.room_at.get_or_insert(now + self.takes);
        let has = now >= at;
        if has {
            self.room_at = None;
        }
        has
    }

    /// The next packet of the first frame; one behind a frame of full packets is empty.
    fn give(&mut self, now: Nanos) -> Option<Vec<u8>> {
        let (_, frame) = self.waiting.front().filter(|(at, _)| *at <= now)?;
        let rest = &frame[self.gone..];
        let packet = rest[..rest.len().min(PACKET)].to_vec();
        self.gone += packet.len();
        if packet.len() < PACKET {
            self.waiting.pop_front();
            self.gone = 0;
        }
        Some(packet)
    }
}

impl UsbDevice for Adapter {
    fn speed(&self) -> Speed {
        Speed::High
    }

    fn reset(&mut self, now: Nanos) {
        let open = self.is_open();
        self.standard.reset();
        self.filter = 0;
        self.settle(now, open);
    }

    fn control(&mut self, now: Nanos, setup: Setup, _: &[u8]) -> Result<Vec<u8>, Stall> {
        self.advance(now);
        let open = self.is_open();
        if let Some(answer) = self.standard.control(setup) {
            self.settle(now, open);
            return answer;
        }
        match (setup.kind, setup.request, setup.index) {
            (TO_INTERFACE, SET_PACKET_FILTER, 0) if open => {
                self.filter = setup.value;
                Ok(Vec::new())
            }
            _ => Err(Stall),
        }
    }

    fn receive(&mut self, now: Nanos, endpoint: u8, packet: &[u8]) -> Handshake {
        match self.standard.endpoint(endpoint) {
            EndpointStatus::Ready if endpoint == OUT && packet.len() <= PACKET => {
                // In the vendor's way nothing is understood.
                if !self.is_open() {
                    return Handshake::Ack;
                }
                if !self.has_room(now) {
                    return Handshake::Nak;
                }
                self.take(now, packet);
                Handshake::Ack
            }
            EndpointStatus::Halted => Handshake::Stall,
            _ => Handshake::Error,
        }
    }

    fn send(&mut self, now: Nanos, endpoint: u8, buffer: &mut [u8]) -> Answer {
        self.advance(now);
        let packet = match self.standard.endpoint(endpoint) {
            EndpointStatus::Ready if endpoint == IN => self.give(now),
            EndpointStatus::Ready if endpoint == NEWS => self.news.pop_front(),
            EndpointStatus::Halted => return Answer::Stall,
            _ => return Answer::Error,
        };
        packet.map_or(Answer::Nak, |packet| Answer::packet(buffer, &packet))
    }

    /// A frame that is ready and that nobody fetches, such as after an unplugging, is no change.
    fn next_change(&self) -> Nanos {
        let coming = self.waiting.iter().map(|(at, _)| *at).chain(self.room_at);
        let coming = coming.filter(|at| *at > self.advanced).min();
        self.next.min(coming.unwrap_or(Nanos::FOREVER))
    }

    fn advance(&mut self, now: Nanos) {
        while self.next <= now && self.next < Nanos::FOREVER {
            let datagram = self.datagrams.frame(self.number, self.next);
            self.keep(self.next, datagram.unwrap_or_else(|| numbered(self.number, self.next)));
            self.number += 1;
            self.next += self.period;
        }
        self.advanced = self.advanced.max(now);
    }
}

fn descriptors() -> Descriptors {
    let device = descriptor::DeviceDescriptor {
        usb: 0x0200,
        class: 2,
        subclass: 0,
        protocol: 0,
        packet: 64,
        vendor: 0x0525,
        product: 0xa4a2,
        version: 0,
        texts: [1, 2, 4],
        configurations: 2,
    };
    let address: String = ADDRESS.iter().map(|byte| format!("{byte:02X}")).collect();
    let bulk = |interface: build::Interface| {
        let interface = interface.class(10, 0, 0);
        let packet = PACKET as u16;
        interface.endpoint(build::bulk(IN, packet)).endpoint(build::bulk(OUT, packet))
    };
    let vendors = build::Interface::new(0)
        .class(2, 2, 0xff)
        .extra(CLASS_INTERFACE, &[0, 0x10, 0x01])
        .extra(CLASS_INTERFACE, &[6, 0, DATA])
        .endpoint(build::interrupt(NEWS, 16, 9));
    let [low, high] = (FRAME_MAX as u16).to_le_bytes();
    let frames = build::Interface::new(0)
        .class(2, 6, 0)
        .extra(CLASS_INTERFACE, &[0, 0x10, 0x01])
        .extra(CLASS_INTERFACE, &[6, 0, DATA])
        .extra(CLASS_INTERFACE, &[15, 3, 0, 0, 0, 0, low, high, 0, 0, 0])
        .endpoint(build::interrupt(NEWS, 16, 9));
    let first = build::Configuration::new(VENDORS).self_powered();
    let second = build::Configuration::new(FRAMES).self_powered();
    let closed = build::Interface::new(DATA).class(10, 0, 0);
    let open = bulk(build::Interface::new(DATA).alternate(OPEN));
    Descriptors {
        device: device.bytes(Speed::High),
        configuration: first
            .with(vendors)
            .with(bulk(build::Interface::new(DATA)))
            .bytes(Speed::High),
        others: vec![second.with(frames).with(closed).with(open).bytes(Speed::High)],
        high_speed: true,
        strings: ["Diapason", "Network", &address, "1"].map(String::from).into(),
        ..Descriptors::default()
    }
}
