//! Devices that nobody serves yet, and which of them the description means.

use crate::plugged::Place;
use alloc::vec::Vec;
use diapason_contract::settings::{Awaited, Expected, FormingOrder};
use diapason_contract::threads::ServiceKind;
use diapason_pipe::measured::Fate;
use diapason_usb::Speed;
use diapason_usb::descriptor::DeviceDescriptor;
use diapason_usb::xhci::DeviceId;

/// A device that nobody serves so far.
#[derive(Clone, Copy)]
pub(crate) struct Unserved {
    pub device: DeviceId,
    pub speed: Speed,
    pub place: Place,
    /// The configuration that was read last, or is being read.
    pub number: u8,
    /// The key of its serial number, if it was read.
    pub serial: Option<u64>,
    /// The serial number is being read, not a configuration.
    pub asked: bool,
    /// The reason why no service took it, as far as its configurations were read.
    pub fate: Fate,
}

impl Unserved {
    /// Returns a device whose first configuration was read.
    pub fn new(device: DeviceId, speed: Speed, place: Place) -> Unserved {
        let fate = Fate::Unserved;
        Unserved { device, speed, place, number: 0, serial: None, asked: false, fate }
    }
}

/// The reason why no service takes a device.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Unwanted {
    /// No service takes it.
    Not(Fate),
    /// The device's serial number decides, and is the text with this number.
    Serial(u8),
}

/// Whether a device is one that the description names.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Match {
    Yes,
    /// Another place, or another vendor or product.
    No,
    /// Another serial number, or none.
    OtherSerial,
    /// The device's serial number decides, and is the text with this number.
    Ask(u8),
}

/// The devices that the description names, and the debug targets that belong at root ports.
pub(crate) struct Described {
    devices: Vec<Expected>,
    targets: Vec<Awaited>,
    /// The host is one of a network of hosts: no other debug target belongs here.
    is_networked: bool,
}

impl Described {
    /// Returns the devices of the settings.
    pub fn new(expected: &[Expected], order: Option<&FormingOrder>) -> Described {
        let targets = order.into_iter().flat_map(|order| order.awaits).flatten().collect();
        Described {
            devices: expected.to_vec(),
            targets,
            is_networked: order.is_some_and(|order| order.listed),
        }
    }

    /// Returns whether a debug target with this serial number belongs elsewhere than at this root
    /// port.
    pub fn is_stranger(&self, port: u8, serial: u64) -> bool {
        match self.targets.iter().find(|it| it.port == port) {
            Some(it) => it.serial != 0 && it.serial != serial,
            None => self.is_networked,
        }
    }

    /// Judges a debug target at a root port.
    pub fn judge_target(&self, port: u8, about: &DeviceDescriptor, serial: Option<u64>) -> Match {
        let [_, _, text] = about.texts;
        match serial {
            _ if !self.is_stranger(port, 0) => Match::Yes,
            None if text != 0 => Match::Ask(text),
            Some(serial) if !self.is_stranger(port, serial) => Match::Yes,
            _ => Match::OtherSerial,
        }
    }

    /// Returns whether the description has a device with this serial number.
    pub fn has_serial(&self, key: u64) -> bool {
        let target = self.targets.iter().any(|it| it.serial == key);
        target || self.devices.iter().any(|it| it.serial == key)
    }

    /// Judges a device for a service of this kind. CAN interfaces, and cameras of a server with
    /// streams, are judged for the service with this number. A kind of which the description names
    /// devices serves these; any other kind serves whatever comes up.
    pub fn judge(
        &self,
        (kind, interface): (Option<ServiceKind>, u8),
        (connector, route): (u8, u32),
        about: &DeviceDescriptor,
        serial: Option<u64>,
    ) -> Match {
        let of_kind = self.devices.iter().filter(|it| Some(it.service) == kind);
        let mut known = of_kind.filter(|it| it.interface == interface).peekable();
        if known.peek().is_none() {
            return Match::Yes;
        }
        let identity = (about.vendor, about.product);
        let [_, _, text] = about.texts;
        match (known.find(|it| it.is(connector, route, identity)), serial) {
            (None, _) => Match::No,
            (Some(it), _) if it.serial == 0 => Match::Yes,
            (Some(it), Some(serial)) if it.serial == serial => Match::Yes,
            (Some(_), None) if text != 0 => Match::Ask(text),
            _ => Match::OtherSerial,
        }
    }
}
