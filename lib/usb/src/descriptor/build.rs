//! Descriptors made from what they mean, for device models: lengths, counts and order are computed,
//! so no model counts bytes.
//!
//! ```
//! use diapason_usb::descriptor::{Configuration as Parsed, build::*};
//! use diapason_usb::Speed;
//!
//! let bytes = Configuration::new(1)
//!     .with(Interface::new(0).class(0xff, 0, 0).endpoint(bulk(0x82, 512)).endpoint(bulk(2, 512)))
//!     .bytes(Speed::High);
//! assert_eq!(bytes.len(), 9 + 9 + 7 + 7);
//! let parsed = Parsed::parse_once(&bytes, Speed::High).unwrap();
//! assert_eq!(parsed.interfaces().next().unwrap().endpoints().count(), 2);
//! ```
//!
//! A builder makes what it is told, also what no device should say: hostile models need that.
//! [`super::Configuration::parse`] judges the result.

use super::HUB_PORTS_MAX;
use crate::Speed;
use crate::setup::descriptor_type as kind;
use alloc::vec::Vec;

/// Returns a descriptor of any kind: puts length and kind before `body`. A body of more than 253
/// bytes is cut, as no descriptor holds more.
#[must_use]
pub fn descriptor(kind: u8, body: &[u8]) -> Vec<u8> {
    let body = body.get(..253).unwrap_or(body);
    let mut bytes = Vec::with_capacity(2 + body.len());
    bytes.extend([2 + body.len() as u8, kind]);
    bytes.extend(body);
    bytes
}

/// Text 0: the languages of all the others.
#[must_use]
pub fn languages(languages: &[u16]) -> Vec<u8> {
    let body: Vec<u8> = languages.iter().flat_map(|n| n.to_le_bytes()).collect();
    descriptor(kind::STRING, &body)
}

/// Returns a text, cut after 126 units of UTF-16.
#[must_use]
pub fn text(text: &str) -> Vec<u8> {
    let body: Vec<u8> = text.encode_utf16().take(126).flat_map(u16::to_le_bytes).collect();
    descriptor(kind::STRING, &body)
}

impl super::DeviceDescriptor {
    /// Returns its descriptor, for a device at this speed; the packet size is written as it is.
    #[must_use]
    pub fn bytes(&self, speed: Speed) -> Vec<u8> {
        let packet = match speed {
            Speed::Super => self.packet.max(1).ilog2() as u8,
            _ => self.packet as u8,
        };
        let mut body = Vec::new();
        body.extend(self.usb.to_le_bytes());
        body.extend([self.class, self.subclass, self.protocol, packet]);
        let numbers = [self.vendor, self.product, self.version];
        body.extend(numbers.iter().flat_map(|n| n.to_le_bytes()));
        body.extend(self.texts);
        body.push(self.configurations);
        descriptor(kind::DEVICE, &body)
    }
}

impl super::HubDescriptor {
    /// Returns the descriptor as bytes.
    #[must_use]
    pub fn bytes(&self) -> Vec<u8> {
        let mut body = Vec::from([self.ports]);
        body.extend(self.characteristics.to_le_bytes());
        body.extend([(self.power_good.0 / 2_000_000) as u8, 0]);
        if self.superspeed {
            body.extend([0; 3]);
            body.extend(self.fixed.to_le_bytes());
            return descriptor(kind::SUPERSPEED_HUB, &body);
        }
        let bitmap = usize::from(self.ports.min(HUB_PORTS_MAX)) / 8 + 1;
        body.extend(&self.fixed.to_le_bytes()[..bitmap]);
        // The power control mask of USB 1.0; all ones since.
        body.extend([0xff, 0xff].get(..bitmap).unwrap_or(&[]));
        descriptor(kind::HUB, &body)
    }
}

/// Returns the binary object store that holds these capability types and their data.
#[must_use]
pub fn bos(capabilities: &[(u8, &[u8])]) -> Vec<u8> {
    let rest: Vec<u8> = capabilities
        .iter()
        .flat_map(|(kind, data)| {
            let mut body = Vec::from([*kind]);
            body.extend(*data);
            descriptor(super::capability::DESCRIPTOR, &body)
        })
        .collect();
    let mut body = Vec::from((5 + rest.len() as u16).to_le_bytes());
    body.push(capabilities.len() as u8);
    let mut bytes = descriptor(kind::BOS, &body);
    bytes.extend(rest);
    bytes
}

/// An endpoint; made by [`bulk`], [`interrupt`] and [`isochronous`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct EndpointFields {
    pub address: u8,
    /// Transfer type, and for isochronous endpoints how they synchronise.
    pub attributes: u8,
    /// Bytes of a packet.
    pub packet: u16,
    /// The interval as the descriptor says it.
    pub interval: u8,
    /// Packets of a burst (super speed) or of an interval (high speed), less one.
    pub burst: u8,
    /// Bursts of an interval, less one; super speed only.
    pub mult: u8,
    /// Streams as a power of two; super speed only.
    pub streams: u8,
    /// Most bytes of an interval at super speed; `None`: what the packets hold.
    pub interval_bytes: Option<u16>,
}

const fn endpoint(address: u8, attributes: u8, packet: u16, interval: u8) -> EndpointFields {
    let (burst, mult, streams, interval_bytes) = (0, 0, 0, None);
    EndpointFields { address, attributes, packet, interval, burst, mult, streams, interval_bytes }
}

/// Returns a bulk endpoint.
#[must_use]
pub const fn bulk(address: u8, packet: u16) -> EndpointFields {
    endpoint(address, 2, packet, 0)
}

/// Returns an interrupt endpoint.
#[must_use]
pub const fn interrupt(address: u8, packet: u16, interval: u8) -> EndpointFields {
    endpoint(address, 3, packet, interval)
}

/// Returns an isochronous endpoint, asynchronous to the bus.
#[must_use]
pub const fn isochronous(address: u8, packet: u16, interval: u8) -> EndpointFields {
    endpoint(address, 5, packet, interval)
}

impl EndpointFields {
    /// Sets bursts of `burst` + 1 packets, and `mult` + 1 bursts in an interval.
    #[must_use]
    pub const fn bursts(self, burst: u8, mult: u8) -> EndpointFields {
        EndpointFields { burst, mult, ..self }
    }

    fn put(&self, bytes: &mut Vec<u8>, speed: Speed) {
        let further = if speed == Speed::High { u16::from(self.burst) << 11 } else { 0 };
        let [low, high] = (self.packet | further).to_le_bytes();
        let body = [self.address, self.attributes, low, high, self.interval];
        bytes.extend(descriptor(kind::ENDPOINT, &body));
        if speed == Speed::Super {
            let attributes = if self.attributes & 3 == 2 { self.streams } else { self.mult };
            let packets = (u16::from(self.burst) + 1) * (u16::from(self.mult) + 1);
            let all =
                if self.attributes & 1 == 0 { 0 } else { self.packet.saturating_mul(packets) };
            let [low, high] = self.interval_bytes.unwrap_or(all).to_le_bytes();
            let body = [self.burst, attributes, low, high];
            bytes.extend(descriptor(kind::SUPERSPEED_COMPANION, &body));
        }
    }
}

/// A part of an interface, in order.
#[derive(Clone, Debug)]
enum Part {
    Extra(Vec<u8>),
    Endpoint(EndpointFields),
}

/// One setting of an interface.
#[derive(Clone, Debug)]
pub struct Interface {
    number: u8,
    alternate: u8,
    class: [u8; 3],
    text: u8,
    parts: Vec<Part>,
}

impl Interface {
    /// Setting 0 of interface `number`.
    #[must_use]
    pub const fn new(number: u8) -> Interface {
        Interface { number, alternate: 0, class: [0; 3], text: 0, parts: Vec::new() }
    }

    /// Sets the number of the alternate setting.
    #[must_use]
    pub fn alternate(self, alternate: u8) -> Interface {
        Interface { alternate, ..self }
    }

    /// Sets its class, subclass and protocol.
    #[must_use]
    pub fn class(self, class: u8, subclass: u8, protocol: u8) -> Interface {
        Interface { class: [class, subclass, protocol], ..self }
    }

    /// Sets the index of its text.
    #[must_use]
    pub fn text(self, text: u8) -> Interface {
        Interface { text, ..self }
    }

    /// Adds this endpoint to the interface.
    #[must_use]
    pub fn endpoint(mut self, endpoint: EndpointFields) -> Interface {
        self.parts.push(Part::Endpoint(endpoint));
        self
    }

    /// Adds a descriptor of its class.
    #[must_use]
    pub fn extra(mut self, kind: u8, body: &[u8]) -> Interface {
        self.parts.push(Part::Extra(descriptor(kind, body)));
        self
    }

    /// Adds what a human interface device says: version, country, and the length of its report.
    #[must_use]
    pub fn hid(self, version: u16, country: u8, report: u16) -> Interface {
        let ([v0, v1], [r0, r1]) = (version.to_le_bytes(), report.to_le_bytes());
        self.extra(kind::HID, &[v0, v1, country, 1, kind::HID_REPORT, r0, r1])
    }

    fn put(&self, bytes: &mut Vec<u8>, speed: Speed) {
        let count =
            self.parts.iter().filter(|part| matches!(part, Part::Endpoint(_))).count() as u8;
        let [class, subclass, protocol] = self.class;
        let body = [self.number, self.alternate, count, class, subclass, protocol, self.text];
        bytes.extend(descriptor(kind::INTERFACE, &body));
        for part in &self.parts {
            match part {
                Part::Extra(extra) => bytes.extend(extra),
                Part::Endpoint(endpoint) => endpoint.put(bytes, speed),
            }
        }
    }
}

/// A configuration descriptor under construction.
#[derive(Clone, Debug)]
pub struct Configuration {
    value: u8,
    text: u8,
    attributes: u8,
    power: u8,
    /// An association goes before the setting with this place.
    associations: Vec<(usize, [u8; 6])>,
    settings: Vec<Interface>,
}

impl Configuration {
    /// Configuration `value`, powered by the bus with 100 mA.
    #[must_use]
    pub fn new(value: u8) -> Configuration {
        let (associations, settings) = (Vec::new(), Vec::new());
        Configuration { value, text: 0, attributes: 0x80, power: 50, associations, settings }
    }

    /// Gives it a power supply of its own.
    #[must_use]
    pub fn self_powered(self) -> Configuration {
        Configuration { attributes: self.attributes | 0x40, power: 0, ..self }
    }

    /// Sets the index of its text.
    #[must_use]
    pub fn text(self, text: u8) -> Configuration {
        Configuration { text, ..self }
    }

    /// Adds this setting of an interface.
    #[must_use]
    pub fn with(mut self, interface: Interface) -> Configuration {
        self.settings.push(interface);
        self
    }

    /// The next `count` interfaces, of which the first has number `first`, belong together.
    #[must_use]
    pub fn association(mut self, first: u8, count: u8, class: [u8; 3]) -> Configuration {
        let [class, subclass, protocol] = class;
        let body = [first, count, class, subclass, protocol, 0];
        self.associations.push((self.settings.len(), body));
        self
    }

    /// Returns the whole set, for a device at this speed.
    #[must_use]
    pub fn bytes(&self, speed: Speed) -> Vec<u8> {
        let mut rest = Vec::new();
        for (place, setting) in self.settings.iter().enumerate() {
            for (_, body) in self.associations.iter().filter(|(before, _)| *before == place) {
                rest.extend(descriptor(kind::INTERFACE_ASSOCIATION, body));
            }
            setting.put(&mut rest, speed);
        }
        let mut numbers: Vec<u8> = self.settings.iter().map(|setting| setting.number).collect();
        numbers.sort_unstable();
        numbers.dedup();
        let [low, high] = (9 + rest.len() as u16).to_le_bytes();
        let count = numbers.len() as u8;
        let body = [low, high, count, self.value, self.text, self.attributes, self.power];
        let mut bytes = descriptor(kind::CONFIGURATION, &body);
        bytes.extend(rest);
        bytes
    }
}
