//! A hub, of USB 2 or of SuperSpeed, into which devices are plugged at any time.

mod port;

use crate::bridge::superspeed_bos;
use crate::descriptors::Descriptors;
use crate::device::{Answer, Handshake, Stall, UsbDevice};
use crate::standard::{EndpointStatus, Standard, reply};
use diapason_abi::Nanos;
use diapason_usb::descriptor::{self, build};
use diapason_usb::setup::{descriptor_type, request};
use diapason_usb::{Setup, Speed};
use port::Port;

/// News come from here: bit n is set if port n has some.
pub const NEWS: u8 = 0x81;
pub const PORTS: u8 = 15;

const FROM_HUB: u8 = 0xa0;
const FROM_PORT: u8 = 0xa3;
const TO_HUB: u8 = 0x20;
const TO_PORT: u8 = 0x23;
const SET_HUB_DEPTH: u8 = 12;
/// Clears and resets of the transaction translator: nothing is kept there.
const TRANSLATOR: std::ops::RangeInclusive<u8> = 8..=11;

/// Why a device cannot be plugged in; it is given back.
pub enum NotPlugged {
    /// The hub has no such port.
    NoSuchPort(Box<dyn UsbDevice>),
    /// Something is in it.
    Occupied(Box<dyn UsbDevice>),
    /// Devices of its speed belong on the other kind of hub.
    Speed(Box<dyn UsbDevice>),
}

/// A device is pulled out of a port at a time, and comes back at a later one.
struct Pull {
    at: Nanos,
    port: u8,
    back: Nanos,
    /// The device, while it is out.
    device: Option<Box<dyn UsbDevice>>,
}

/// A model of a hub.
pub struct HubModel {
    superspeed: bool,
    standard: Standard,
    ports: Vec<Port>,
    pulls: Vec<Pull>,
}

impl HubModel {
    /// Returns a hub with `ports` ports, at most 15, without devices.
    #[must_use]
    pub fn new(superspeed: bool, ports: u8) -> HubModel {
        let ports = ports.clamp(1, PORTS);
        HubModel {
            superspeed,
            standard: Standard::new(descriptors(superspeed, ports)),
            ports: (0..ports).map(|_| Port::new(superspeed)).collect(),
            pulls: Vec::new(),
        }
    }

    /// A fault: what is in a port at this time is pulled out, and comes back so much later.
    pub fn pull(&mut self, at: Nanos, port: u8, away: Nanos) {
        self.pulls.push(Pull { at, port, back: at + away, device: None });
    }

    /// Pulls out what is due, and puts back what is.
    fn shake(&mut self, now: Nanos) {
        let HubModel { ports, pulls, .. } = self;
        pulls.retain_mut(|pull| {
            let place = usize::from(pull.port).checked_sub(1);
            let Some(port) = place.and_then(|place| ports.get_mut(place)) else { return false };
            if pull.at <= now {
                pull.at = Nanos::FOREVER;
                pull.device = port.unplug();
            }
            if pull.back > now {
                return true;
            }
            if let Some(device) = pull.device.take() {
                port.plug(now, device);
            }
            false
        });
    }

    fn port(&mut self, number: u8) -> Option<&mut Port> {
        self.ports.get_mut(usize::from(number.checked_sub(1)?))
    }

    /// Puts a device into a port, numbered from 1.
    ///
    /// # Errors
    /// It does not fit; the device is given back.
    pub fn plug(
        &mut self,
        now: Nanos,
        port: u8,
        device: Box<dyn UsbDevice>,
    ) -> Result<(), NotPlugged> {
        self.advance(now);
        let superspeed = self.superspeed;
        match self.port(port) {
            None => Err(NotPlugged::NoSuchPort(device)),
            Some(port) if port.occupied() => Err(NotPlugged::Occupied(device)),
            Some(_) if (device.speed() == Speed::Super) != superspeed => {
                Err(NotPlugged::Speed(device))
            }
            Some(port) => {
                port.plug(now, device);
                Ok(())
            }
        }
    }

    /// Pulls out what is in a port.
    pub fn unplug(&mut self, now: Nanos, port: u8) -> Option<Box<dyn UsbDevice>> {
        self.advance(now);
        self.port(port)?.unplug()
    }

    /// A fault: the port says that nothing is in it, but the device in it still answers.
    pub fn feign_unplug(&mut self, now: Nanos, port: u8) {
        self.advance(now);
        if let Some(port) = self.port(port) {
            port.feign_unplug();
        }
    }

    /// A fault: more current than the port gives; the port switches itself off.
    pub fn over_current(&mut self, now: Nanos, port: u8) {
        self.advance(now);
        if let Some(port) = self.port(port) {
            port.over_current();
        }
    }

    fn class(&mut self, now: Nanos, setup: Setup) -> Result<Vec<u8>, Stall> {
        let own =
            if self.superspeed { descriptor_type::SUPERSPEED_HUB } else { descriptor_type::HUB };
        let [number, selector] = setup.index.to_le_bytes();
        match (setup.kind, setup.request) {
            (FROM_HUB, request::GET_DESCRIPTOR) if setup.value >> 8 == own.into() => {
                reply(setup, about(self.superspeed, self.ports.len() as u8).bytes())
            }
            (FROM_HUB, request::GET_STATUS) => reply(setup, vec![0; 4]),
            (TO_HUB, request::CLEAR_FEATURE | request::SET_FEATURE) if setup.value <= 1 => {
                Ok(Vec::new())
            }
            (TO_HUB, SET_HUB_DEPTH) if self.superspeed && setup.value < 5 => Ok(Vec::new()),
            (TO_PORT, request) if TRANSLATOR.contains(&request) && !self.superspeed => {
                Ok(Vec::new())
            }
            (FROM_PORT, request::GET_STATUS) => {
                let port = self.port(number).ok_or(Stall)?;
                reply(setup, port.status().into())
            }
            (TO_PORT, request::SET_FEATURE) => {
                let port = self.port(number).ok_or(Stall)?;
                port.set(now, setup.value, selector).map(|()| Vec::new())
            }
            (TO_PORT, request::CLEAR_FEATURE) => {
                let port = self.port(number).ok_or(Stall)?;
                port.clear(setup.value).map(|()| Vec::new())
            }
            _ => Err(Stall),
        }
    }

    fn news(&self) -> Option<Vec<u8>> {
        let mut bits = 0u32;
        for (number, port) in (1..).zip(&self.ports) {
            bits |= u32::from(port.has_news()) << number;
        }
        let length = if self.superspeed { 2 } else { self.ports.len() / 8 + 1 };
        (bits != 0).then(|| bits.to_le_bytes()[..length].to_vec())
    }

    fn switch_off(&mut self) {
        for port in &mut self.ports {
            port.power_off();
        }
    }
}

impl UsbDevice for HubModel {
    fn speed(&self) -> Speed {
        if self.superspeed { Speed::Super } else { Speed::High }
    }

    fn reset(&mut self, now: Nanos) {
        self.advance(now);
        self.standard.reset();
        self.switch_off();
    }

    fn control(&mut self, now: Nanos, setup: Setup, _: &[u8]) -> Result<Vec<u8>, Stall> {
        self.advance(now);
        if let Some(answer) = self.standard.control(setup) {
            if !self.standard.configured() {
                self.switch_off();
            }
            return answer;
        }
        match self.standard.configured() || setup.request == request::GET_DESCRIPTOR {
            true => self.class(now, setup),
            false => Err(Stall),
        }
    }

    fn receive(&mut self, _: Nanos, _: u8, _: &[u8]) -> Handshake {
        Handshake::Error
    }

    fn send(&mut self, now: Nanos, endpoint: u8, packet: &mut [u8]) -> Answer {
        self.advance(now);
        match self.standard.endpoint(endpoint) {
            EndpointStatus::Ready => {
                self.news().map_or(Answer::Nak, |news| Answer::packet(packet, &news))
            }
            EndpointStatus::Halted => Answer::Stall,
            EndpointStatus::Absent => Answer::Error,
        }
    }

    fn next_change(&self) -> Nanos {
        let pulls = self.pulls.iter().map(|pull| pull.at.min(pull.back));
        self.ports.iter().map(Port::next_change).chain(pulls).min().unwrap_or(Nanos::FOREVER)
    }

    fn advance(&mut self, now: Nanos) {
        self.shake(now);
        for port in &mut self.ports {
            port.advance(now);
        }
    }

    fn child(&mut self, port: u8) -> Option<&mut dyn UsbDevice> {
        self.port(port)?.child()
    }
}

fn about(superspeed: bool, ports: u8) -> descriptor::HubDescriptor {
    descriptor::HubDescriptor {
        superspeed,
        ports,
        // Power and current of each port by itself.
        characteristics: 0x0009,
        power_good: port::POWER_GOOD,
        fixed: 0,
    }
}

fn descriptors(superspeed: bool, ports: u8) -> Descriptors {
    let (speed, usb, packet, protocol) =
        if superspeed { (Speed::Super, 0x0300, 512, 3) } else { (Speed::High, 0x0200, 64, 1) };
    let device = descriptor::DeviceDescriptor {
        usb,
        class: 9,
        subclass: 0,
        protocol,
        packet,
        vendor: 0x1209,
        product: 0x0002,
        version: 0x0100,
        texts: [0, 1, 0],
        configurations: 1,
    };
    let length = if superspeed { 2 } else { u16::from(ports) / 8 + 1 };
    let news = build::interrupt(NEWS, length, if superspeed { 8 } else { 12 });
    let interface = build::Interface::new(0).class(9, 0, 0).endpoint(news);
    let configuration = build::Configuration::new(1).self_powered().with(interface);
    Descriptors {
        device: device.bytes(speed),
        configuration: configuration.bytes(speed),
        high_speed: !superspeed,
        strings: vec![if superspeed { "USB 3 hub" } else { "USB 2 hub" }.into()],
        bos: if superspeed { superspeed_bos() } else { Vec::new() },
        ..Descriptors::default()
    }
}
