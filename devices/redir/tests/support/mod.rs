//! A device with an endpoint of every kind, and a guest that talks to it byte by byte.

#![allow(dead_code, reason = "each test uses its share of this")]

use diapason_abi::Nanos;
use diapason_devices::descriptors::Descriptors;
use diapason_devices::standard::{EndpointStatus, Standard};
use diapason_devices::{Answer, Handshake, Stall, UsbDevice};
use diapason_redir::Redirected;
use diapason_redir::protocol::{
    AddressedPacket, CAPABILITIES, Data, PacketDecoder, PacketStatus, RedirPacket, encode,
};
use diapason_usb::descriptor::{self, build};
use diapason_usb::{Setup, Speed};
use std::collections::VecDeque;

pub const BULK_IN: u8 = 0x81;
pub const BULK_OUT: u8 = 0x02;
pub const INTERRUPT_IN: u8 = 0x83;
pub const INTERRUPT_OUT: u8 = 0x04;
pub const ISOCHRONOUS_IN: u8 = 0x85;
pub const ISOCHRONOUS_OUT: u8 = 0x06;
/// Interval of the interrupt endpoints, 2^3 microframes.
pub const INTERRUPT_INTERVAL: Nanos = Nanos::from_millis(1);
/// The device reports on its interrupt endpoint so often.
pub const REPORT_EVERY: Nanos = Nanos::from_millis(5);
/// The delay from input to output.
pub const DELAY: Nanos = Nanos::from_micros(300);
/// Transfers to the device that fit.
pub const ROOM: usize = 8;

/// A device that returns on bulk what came in on bulk, later. Reports and isochronous packets carry
/// their time.
pub struct Bench {
    standard: Standard,
    now: Nanos,
    /// Packets on their way through, with the time at which they come out.
    through: VecDeque<(Nanos, Vec<u8>)>,
    /// When the next report is there.
    report: Nanos,
    /// Packets that came on the endpoints other than bulk: time, endpoint, first byte.
    pub heard: Vec<(Nanos, u8, u8)>,
    pub resets: u32,
    /// It has left its port.
    pub is_away: bool,
}

impl Bench {
    pub fn new() -> Bench {
        Bench {
            standard: Standard::new(descriptors()),
            now: Nanos::ZERO,
            through: VecDeque::new(),
            report: REPORT_EVERY,
            heard: Vec::new(),
            resets: 0,
            is_away: false,
        }
    }

    /// An endpoint stalls from now on.
    pub fn halt(&mut self, endpoint: u8) {
        self.standard.halt(endpoint);
    }

    fn ready(&self, endpoint: u8) -> Result<(), EndpointStatus> {
        match self.standard.endpoint(endpoint) {
            EndpointStatus::Ready => Ok(()),
            other => Err(other),
        }
    }
}

fn descriptors() -> Descriptors {
    let device = descriptor::DeviceDescriptor {
        usb: 0x0200,
        class: 0,
        subclass: 0,
        protocol: 0,
        packet: 64,
        vendor: 0x1209,
        product: 0x0001,
        version: 0x0102,
        texts: [0; 3],
        configurations: 1,
    };
    let bulk = build::Interface::new(0).class(0xff, 1, 2);
    let bulk = bulk.endpoint(build::bulk(BULK_IN, 512)).endpoint(build::bulk(BULK_OUT, 512));
    // A keyboard of the boot protocol: firmware polls it.
    let keys = build::Interface::new(1).class(3, 1, 1).hid(0x0111, 0, 8);
    let keys = keys.endpoint(build::interrupt(INTERRUPT_IN, 8, 4)).endpoint(build::interrupt(
        INTERRUPT_OUT,
        8,
        4,
    ));
    let silent = build::Interface::new(2).class(0xff, 3, 4);
    let sound = silent.clone().alternate(1);
    let sound = sound
        .endpoint(build::isochronous(ISOCHRONOUS_IN, 64, 1).bursts(1, 0))
        .endpoint(build::isochronous(ISOCHRONOUS_OUT, 64, 1));
    let configuration = build::Configuration::new(1).with(bulk).with(keys).with(silent).with(sound);
    Descriptors {
        device: device.bytes(Speed::High),
        configuration: configuration.bytes(Speed::High),
        ..Descriptors::default()
    }
}

impl UsbDevice for Bench {
    fn speed(&self) -> Speed {
        Speed::High
    }

    fn is_there(&self) -> bool {
        !self.is_away
    }

    fn reset(&mut self, now: Nanos) {
        self.standard.reset();
        self.through.clear();
        self.now = now;
        self.resets += 1;
    }

    fn control(&mut self, _: Nanos, setup: Setup, _: &[u8]) -> Result<Vec<u8>, Stall> {
        match self.standard.control(setup) {
            Some(answer) => answer,
            // Protocol, idle rate and lamps of a keyboard.
            None if setup.kind == 0x21 => Ok(Vec::new()),
            None => Err(Stall),
        }
    }

    fn receive(&mut self, now: Nanos, endpoint: u8, packet: &[u8]) -> Handshake {
        assert!(now >= self.now, "time goes backwards");
        match self.ready(endpoint) {
            Err(EndpointStatus::Halted) => return Handshake::Stall,
            Err(_) => return Handshake::Error,
            Ok(()) if endpoint != BULK_OUT => {
                self.heard.push((now, endpoint, packet.first().copied().unwrap_or(0)));
            }
            Ok(()) if self.through.len() == ROOM => return Handshake::Nak,
            Ok(()) => self.through.push_back((now + DELAY, packet.to_vec())),
        }
        Handshake::Ack
    }

    fn send(&mut self, now: Nanos, endpoint: u8, packet: &mut [u8]) -> Answer {
        assert!(now >= self.now, "time goes backwards");
        let bytes = match (self.ready(endpoint), endpoint) {
            (Err(EndpointStatus::Halted), _) => return Answer::Stall,
            (Err(_), _) => return Answer::Error,
            (Ok(()), INTERRUPT_IN) if self.report <= now => {
                let time = self.report.0.to_le_bytes();
                self.report += REPORT_EVERY;
                time.to_vec()
            }
            (Ok(()), ISOCHRONOUS_IN) => now.0.to_le_bytes().to_vec(),
            (Ok(()), BULK_IN) => match self.through.front() {
                Some((time, _)) if *time <= now => self.through.pop_front().unwrap().1,
                _ => return Answer::Nak,
            },
            _ => return Answer::Nak,
        };
        let fits = bytes.len().min(packet.len());
        packet[..fits].copy_from_slice(&bytes[..fits]);
        Answer::Data(bytes.len())
    }

    fn next_change(&self) -> Nanos {
        let times = self.through.iter().map(|(time, _)| *time).chain([self.report]);
        times.filter(|time| *time > self.now).min().unwrap_or(Nanos::FOREVER)
    }

    fn advance(&mut self, now: Nanos) {
        assert!(now >= self.now, "time goes backwards");
        self.now = now;
    }
}

/// The guest's side of one connection.
pub struct Guest {
    pub host: Redirected<Bench>,
    decoder: PacketDecoder,
    next: u64,
}

impl Guest {
    /// Says hello; what comes back but the hello.
    pub fn meet() -> (Guest, Vec<RedirPacket>) {
        let host = Redirected::new(Box::new(Bench::new())).unwrap();
        let mut guest = Guest { host, decoder: PacketDecoder::default(), next: 1 };
        guest.send(RedirPacket::Hello(CAPABILITIES));
        let mut packets: Vec<RedirPacket> = guest.hear().into_iter().map(|m| m.packet).collect();
        assert!(matches!(packets.remove(0), RedirPacket::Hello(CAPABILITIES)));
        (guest, packets)
    }

    /// A guest with the device configured.
    pub fn configured() -> Guest {
        let (mut guest, _) = Guest::meet();
        guest.send(RedirPacket::SetConfiguration(1));
        let last = guest.hear().pop().unwrap();
        assert_eq!(last.packet, RedirPacket::ConfigurationStatus(PacketStatus::Success, 1));
        guest
    }

    pub fn send(&mut self, packet: RedirPacket) -> u64 {
        let id = self.next;
        self.next += 1;
        self.send_as(id, packet);
        id
    }

    pub fn send_as(&mut self, id: u64, packet: RedirPacket) {
        let mut bytes = Vec::new();
        encode(&AddressedPacket { id, packet }, &mut bytes);
        self.host.receive(&bytes).unwrap();
    }

    /// Everything that came since.
    pub fn hear(&mut self) -> Vec<AddressedPacket> {
        self.decoder.push(&std::mem::take(self.host.output()));
        std::iter::from_fn(|| self.decoder.decode().unwrap()).collect()
    }
}

/// A transfer that asks for, or brings, data.
pub fn data(endpoint: u8, length: u32, bytes: &[u8]) -> Data {
    Data { endpoint, status: PacketStatus::Success, length, stream: 0, bytes: bytes.to_vec() }
}

/// A bulk transfer to the device.
pub fn out(bytes: &[u8]) -> RedirPacket {
    RedirPacket::Bulk(data(BULK_OUT, bytes.len() as u32, bytes))
}

/// Returns a packet request of this length.
pub fn wanted(length: u32) -> RedirPacket {
    RedirPacket::Bulk(data(BULK_IN, length, &[]))
}
