//! The parts of a device in the form that the guest's side expects.

use super::Trouble;
use crate::protocol::{Connect, EndpointInfo, Interfaces, SLOTS, TransferType, slot};
use diapason_abi::Nanos;
use diapason_bus::Transfer;
use diapason_devices::UsbDevice;
use diapason_usb::descriptor::{self, Configuration};
use diapason_usb::setup::descriptor_type::{CONFIGURATION, DEVICE};
use diapason_usb::{Setup, Speed};

/// Most bytes of a configuration: what its length field can say.
const CONFIGURATION_BYTES: u16 = u16::MAX;

/// One endpoint of the active settings.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Endpoint {
    /// The interface it belongs to.
    pub interface: u8,
    pub is: descriptor::EndpointDescriptor,
}

impl Endpoint {
    /// Kind, as usbredir says it.
    pub fn kind(&self) -> TransferType {
        match self.is.transfer {
            Transfer::Control => TransferType::Control,
            Transfer::Bulk => TransferType::Bulk,
            Transfer::Interrupt => TransferType::Interrupt,
            Transfer::Isochronous => TransferType::Isochronous,
        }
    }

    /// Bytes it may transfer at once: a packet, or all packets of a service interval.
    pub fn bytes(&self) -> u32 {
        self.is.interval_bytes.max(u32::from(self.is.packet))
    }

    /// Returns its service interval; `None` if it has none.
    pub fn interval(&self) -> Option<Nanos> {
        let slots = self.is.speed.period(self.is.transfer, self.is.interval)?;
        Some(self.is.speed.slot().times(u64::from(slots)).nanos())
    }

    fn info(&self) -> EndpointInfo {
        EndpointInfo {
            kind: self.kind(),
            interval: self.is.interval,
            interface: self.interface,
            bytes: u16::try_from(self.bytes()).unwrap_or(u16::MAX),
        }
    }
}

/// A device's configurations and what is active of them.
#[derive(Clone, Debug)]
pub(crate) struct Layout {
    speed: Speed,
    device: descriptor::DeviceDescriptor,
    configurations: Vec<Vec<u8>>,
    active: u8,
    /// Alternate settings other than 0: interface, setting.
    alternates: Vec<(u8, u8)>,
}

impl Layout {
    /// Reads the layout from the device.
    pub fn of(device: &mut (impl UsbDevice + ?Sized), now: Nanos) -> Result<Layout, Trouble> {
        let speed = device.speed();
        let mut ask = |kind, index, length| {
            let answer = device.control(now, Setup::get_descriptor(kind, index, 0, length), &[]);
            answer.map_err(|_| Trouble::NoDescriptor(kind))
        };
        let length = descriptor::DeviceDescriptor::BYTES as u16;
        let about = descriptor::DeviceDescriptor::parse(&ask(DEVICE, 0, length)?, speed)?;
        let mut configurations = Vec::new();
        for index in 0..about.configurations {
            let bytes = ask(CONFIGURATION, index, CONFIGURATION_BYTES)?;
            Configuration::parse_once(&bytes, speed)?;
            configurations.push(bytes);
        }
        Ok(Layout { speed, device: about, configurations, active: 0, alternates: Vec::new() })
    }

    /// Returns the identity of the device.
    pub fn connect(&self) -> Connect {
        let d = &self.device;
        Connect {
            speed: match self.speed {
                Speed::Low => 0,
                Speed::Full => 1,
                Speed::High => 2,
                Speed::Super => 3,
            },
            class: [d.class, d.subclass, d.protocol],
            vendor: d.vendor,
            product: d.product,
            version: d.version,
        }
    }

    /// Another configuration; 0 is none.
    pub fn configure(&mut self, value: u8) {
        self.active = value;
        self.alternates.clear();
    }

    /// Selects another alternate setting.
    pub fn choose(&mut self, interface: u8, setting: u8) {
        self.alternates.retain(|known| known.0 != interface);
        self.alternates.push((interface, setting));
    }

    /// The interfaces of the active configuration, or of the first one: a guest's filter wants to
    /// see classes before there is a configuration.
    pub fn interfaces(&self) -> Interfaces {
        let all = self.parsed().find(|c| c.header().value == self.active);
        let Some(shown) = all.or_else(|| self.parsed().next()) else {
            return Interfaces::default();
        };
        let chosen = shown.interfaces().filter(|i| i.alternate == self.setting(i.number));
        Interfaces(chosen.map(|i| [i.number, i.class[0], i.class[1], i.class[2]]).collect())
    }

    /// Returns the active endpoints but 0.
    pub fn endpoints(&self) -> Vec<Endpoint> {
        let Some(active) = self.parsed().find(|c| c.header().value == self.active) else {
            return Vec::new();
        };
        let chosen = active.interfaces().filter(|i| i.alternate == self.setting(i.number));
        chosen
            .flat_map(|i| i.endpoints().map(move |is| Endpoint { interface: i.number, is }))
            .collect()
    }

    /// Returns the active endpoint with this address.
    pub fn endpoint(&self, address: u8) -> Option<Endpoint> {
        self.endpoints().into_iter().find(|endpoint| endpoint.is.address == address)
    }

    /// Returns the active endpoints, as the guest is told.
    pub fn info(&self) -> Box<[EndpointInfo; SLOTS]> {
        let mut info = Box::new([EndpointInfo::default(); SLOTS]);
        let bytes = self.device.packet;
        for address in [0, diapason_usb::setup::IN] {
            info[slot(address)] =
                EndpointInfo { kind: TransferType::Control, bytes, ..EndpointInfo::default() };
        }
        for endpoint in self.endpoints() {
            info[slot(endpoint.is.address)] = endpoint.info();
        }
        info
    }

    fn setting(&self, interface: u8) -> u8 {
        self.alternates.iter().find(|known| known.0 == interface).map_or(0, |known| known.1)
    }

    fn parsed(&self) -> impl Iterator<Item = Configuration<'_>> {
        let parse = |bytes| Configuration::parse_once(bytes, self.speed).ok();
        self.configurations.iter().map(Vec::as_slice).filter_map(parse)
    }
}
