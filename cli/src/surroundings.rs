//! What stands around a host: the USB devices that its description plugs in, as models.

use diapason_devices::Device;
use diapason_devices::camera::Camera;
use diapason_devices::can::CanBus;
use diapason_devices::disk::Disk;
use diapason_devices::keyboard::Keyboard;
use diapason_devices::kvaser::{Hydra, Identity};
use diapason_devices::sensor::Sensor;
use diapason_sim::{Controller, Function, Tap, XHCI};
use diapason_system::{System, UsbModel};

/// Blocks of 512 bytes of a disk.
const DISK_BLOCKS: u32 = 128 << 10;

/// A fresh device of this kind; CAN buses that come with it are added to `buses`.
#[must_use]
pub fn device(model: UsbModel, buses: &mut Vec<CanBus>) -> Box<dyn Device> {
    match model {
        UsbModel::UsbCan => {
            let (interface, wired) = Hydra::article(Identity::default());
            buses.extend(wired);
            Box::new(interface)
        }
        UsbModel::Sensor => Box::new(Sensor::article()),
        UsbModel::Camera => Box::new(Camera::default()),
        UsbModel::Keyboard => Box::new(Keyboard::new(Vec::new())),
        UsbModel::Disk => Box::new(Disk::new(DISK_BLOCKS)),
    }
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
    build(system, faults, &mut Sights::default(), |_| None)
}

/// The same with a view of it; of what transfers carry, too, if `transfers`.
#[must_use]
pub fn in_sight(system: &System, faults: Option<u64>, transfers: bool) -> (Functions, Sights) {
    let mut sights = Sights::default();
    let tap = |controller: &mut Controller| Some(controller.tap(transfers));
    let functions = build(system, faults, &mut sights, tap);
    (functions, sights)
}

fn build(
    system: &System,
    faults: Option<u64>,
    sights: &mut Sights,
    tap: impl Fn(&mut Controller) -> Option<Tap>,
) -> Functions {
    let controllers = system.devices.iter().enumerate().filter(|(_, device)| {
        matches!(device.location, diapason_abi::archive::Location::Pci(pci) if pci.class == XHCI)
    });
    let controller = |(index, _)| -> (u32, Box<dyn Function>) {
        let mut controller = Controller::new();
        for plug in system.usb.iter().filter(|plug| plug.device == index) {
            controller.plug(plug.port, device(plug.model, &mut sights.buses));
        }
        if let Some(seed) = faults {
            controller.suffer(seed);
        }
        sights.taps.extend(tap(&mut controller).map(|tap| (index, tap)));
        (XHCI, Box::new(controller))
    };
    controllers.map(controller).collect()
}
