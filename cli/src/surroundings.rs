//! What stands around a host: the USB devices that its description plugs in, as models.

use crate::{Failure, logs};
use diapason_abi::Nanos;
use diapason_devices::Device;
use diapason_devices::camera::Camera;
use diapason_devices::can::CanBus;
use diapason_devices::disk::Disk;
use diapason_devices::hub::{Hub, NotPlugged};
use diapason_devices::keyboard::Keyboard;
use diapason_devices::kvaser::{CHANNELS, Hydra, Identity};
use diapason_devices::sensor::Sensor;
use diapason_sim::{Controller, Function, Tap, XHCI};
use diapason_system::{CanTraffic, System, UsbModel};

/// Blocks of 512 bytes of a disk.
const DISK_BLOCKS: u32 = 128 << 10;

/// Something more to plug in: into which controller, by the number of its device, and which port.
pub type Plug = (usize, u8, Box<dyn Device>);

/// From one key to the next, and how many: an hour.
const KEY_PERIOD: Nanos = Nanos::from_millis(100);
const KEYS: u64 = 36_000;

/// An interface whose buses are the article's, but for these.
fn interface(described: &[diapason_system::CanBus], wired: &mut Vec<CanBus>) -> Hydra {
    let bus = |channel: usize| {
        let described = described.iter().find(|bus| bus.channel == channel);
        match described.map(|bus| &bus.traffic) {
            None => CanBus::article(channel),
            Some(CanTraffic::Receiver) => CanBus::receiving(channel),
            Some(CanTraffic::Replay { log, .. }) => {
                CanBus::replaying(channel, logs::frames(channel, log).ok()?)
            }
        }
    };
    let buses: Vec<Option<CanBus>> = (0..CHANNELS).map(bus).collect();
    wired.extend(buses.iter().flatten().cloned());
    Hydra::new(Identity::default(), &buses)
}

/// A fresh device of this kind, with these CAN buses, which are added to `wired`; what only QEMU
/// has there is no model of.
#[must_use]
pub fn device(
    model: UsbModel,
    buses: &[diapason_system::CanBus],
    wired: &mut Vec<CanBus>,
) -> Option<Box<dyn Device>> {
    Some(match model {
        UsbModel::UsbCan => Box::new(interface(buses, wired)),
        UsbModel::Sensor => Box::new(Sensor::article()),
        UsbModel::Camera => Box::new(Camera::default()),
        UsbModel::Keyboard => Box::new(Keyboard::typing(KEY_PERIOD, KEYS)),
        UsbModel::Disk => Box::new(Disk::new(DISK_BLOCKS)),
        UsbModel::Hub => Box::new(Hub::new(false, UsbModel::HUB_PORTS)),
        UsbModel::QemuStorage | UsbModel::QemuKeyboard => return None,
    })
}

/// What is plugged in here: a device, with what is behind it if it is a hub.
fn plugged(system: &System, index: usize, wired: &mut Vec<CanBus>) -> Option<Box<dyn Device>> {
    let plug = system.usb.get(index)?;
    if plug.model != UsbModel::Hub {
        return device(plug.model, &plug.buses, wired);
    }
    let mut hub = Hub::new(false, UsbModel::HUB_PORTS);
    let behind = |other: &usize| system.usb[*other].behind == Some(index);
    for child in (0..system.usb.len()).filter(behind) {
        let port = system.usb[child].port;
        let fits = plugged(system, child, wired).map(|device| hub.plug(Nanos::ZERO, port, device));
        // A description in which something does not fit was refused.
        debug_assert!(!matches!(fits, Some(Err(NotPlugged::Speed(_)))));
    }
    Some(Box::new(hub))
}

/// Has the simulator all that is plugged in?
///
/// # Errors
/// What only QEMU has.
pub fn simulable(system: &System) -> Result<(), Failure> {
    let Some(plug) = system.usb.iter().find(|plug| plug.model.only_in_qemu()) else {
        return Ok(());
    };
    let (name, model) = (&plug.name, plug.model.name());
    Err(Failure::Input(format!(
        "the USB device `{name}` is QEMU's own (`{model}`): the simulator has none\n\
         help: start it with `diapason run`, or plug in a model"
    )))
}

/// The PCI functions of a host, each with its class.
pub type Functions = Vec<(u32, Box<dyn Function>)>;

/// Where one can look at what passes around a host.
#[derive(Clone, Default)]
pub struct Sights {
    /// Its controllers: the place of each in the description.
    pub taps: Vec<(usize, Tap)>,
    /// CAN buses, in the order of the interfaces and their channels.
    pub buses: Vec<CanBus>,
}

/// The PCI functions of a simulated host: a controller for each that is described and has
/// something plugged into it, or may be without. With the seed in `faults`, things go wrong.
#[must_use]
pub fn functions(system: &System, faults: Option<u64>) -> Functions {
    functions_with(system, faults, Vec::new())
}

/// The same, with more plugged in.
#[must_use]
pub fn functions_with(system: &System, faults: Option<u64>, more: Vec<Plug>) -> Functions {
    build(system, faults, more, &mut Sights::default(), |_| None)
}

/// The same with a view of it; of what transfers carry, too, if `transfers`.
#[must_use]
pub fn in_sight(system: &System, faults: Option<u64>, transfers: bool) -> (Functions, Sights) {
    let mut sights = Sights::default();
    let tap = |controller: &mut Controller| Some(controller.tap(transfers));
    let functions = build(system, faults, Vec::new(), &mut sights, tap);
    (functions, sights)
}

fn build(
    system: &System,
    faults: Option<u64>,
    mut more: Vec<Plug>,
    sights: &mut Sights,
    tap: impl Fn(&mut Controller) -> Option<Tap>,
) -> Functions {
    let controllers = system.devices.iter().enumerate().filter(|(_, device)| {
        matches!(device.location, diapason_abi::archive::Location::Pci(pci) if pci.class == XHCI)
    });
    let controller = |(index, _)| -> (u32, Box<dyn Function>) {
        let mut controller = Controller::new();
        for (number, plug) in system.usb.iter().enumerate() {
            if plug.device == index
                && plug.behind.is_none()
                && let Some(device) = plugged(system, number, &mut sights.buses)
            {
                controller.plug(plug.port, device);
            }
        }
        for (_, port, device) in more.extract_if(.., |(on, ..)| *on == index) {
            controller.plug(port, device);
        }
        if let Some(seed) = faults {
            controller.suffer(seed);
        }
        sights.taps.extend(tap(&mut controller).map(|tap| (index, tap)));
        (XHCI, Box::new(controller))
    };
    controllers.map(controller).collect()
}
