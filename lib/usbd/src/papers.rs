//! The descriptors of a device, as it says them of itself.

use crate::plugged::Place;
use crate::policy;
use alloc::vec;
use alloc::vec::Vec;
use diapason_pipe::measured::{DeviceReport, Fate, Measurement};
use diapason_usb::Speed;
use diapason_usb::descriptor::{Configuration, DeviceDescriptor};
use diapason_usb::xhci::{Controller, DeviceId, Dma, Lanes, Mmio};

/// The identity that a device reports.
pub(crate) struct Found<'a> {
    pub about: DeviceDescriptor,
    /// One of its configurations.
    pub set: Configuration<'a>,
    /// Hubs between it and the controller.
    pub tier: u8,
    pub port: u8,
}

impl Found<'_> {
    /// Returns whether it is another computer that shows itself by its debug capability.
    pub fn is_debug_target(&self) -> bool {
        self.set.interfaces().any(|interface| interface.class[..2] == DEBUG_CLASS)
    }
}

/// Class and subclass of a debug capability.
const DEBUG_CLASS: [u8; 2] = [0xdc, 2];

/// A device's descriptors, as the driver read them.
pub(crate) struct Papers {
    device: [u8; DEVICE_BYTES],
    /// One of its configurations.
    set: Vec<u8>,
    pub speed: Speed,
    pub place: Place,
    /// The connector of the controller that it is behind.
    pub connector: u8,
}

const DEVICE_BYTES: usize = 18;

impl Papers {
    /// Returns the driver's reading of a device.
    pub fn read<M: Mmio, D: Dma, L: Lanes<M, D>>(
        driver: &Controller<M, D, L>,
        device: DeviceId,
        (speed, place): (Speed, Place),
    ) -> Option<Papers> {
        let about = driver.device_descriptor(device).ok()?;
        let mut set = vec![0; policy::CONFIGURATION];
        let length = driver.configuration(device, &mut set).ok()?;
        set.truncate(length);
        let connector = driver.connector(place.port);
        (set.len() == length).then_some(Papers { device: about, set, speed, place, connector })
    }

    /// Returns the report that the device met this fate.
    pub fn report(&self, fate: Fate) -> Measurement {
        let about = DeviceDescriptor::parse(&self.device, self.speed);
        let identity = about.map_or((0, 0), |about| (about.vendor, about.product));
        let (connector, route) = (self.connector, self.place.route);
        Measurement::Device(DeviceReport { connector, route, identity, fate })
    }

    /// Returns what they say, if they make sense.
    pub fn found(&self) -> Option<Found<'_>> {
        let about = DeviceDescriptor::parse(&self.device, self.speed).ok()?;
        let set = Configuration::parse_once(&self.set, self.speed).ok()?;
        Some(Found { about, set, tier: self.place.tier(), port: self.place.port })
    }
}
