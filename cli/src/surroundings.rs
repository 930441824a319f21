//! What stands around a host: the USB devices that its description plugs in, as models.

use diapason_devices::Device;
use diapason_devices::camera::Camera;
use diapason_devices::disk::Disk;
use diapason_devices::keyboard::Keyboard;
use diapason_devices::kvaser::{Hydra, Identity};
use diapason_devices::sensor::Sensor;
use diapason_sim::{Controller, Function, XHCI};
use diapason_system::{System, UsbModel};

/// Blocks of 512 bytes of a disk.
const DISK_BLOCKS: u32 = 128 << 10;

/// A fresh device of this kind.
#[must_use]
pub fn device(model: UsbModel) -> Box<dyn Device> {
    match model {
        UsbModel::UsbCan => Box::new(Hydra::article(Identity::default()).0),
        UsbModel::Sensor => Box::new(Sensor::article()),
        UsbModel::Camera => Box::new(Camera::default()),
        UsbModel::Keyboard => Box::new(Keyboard::new(Vec::new())),
        UsbModel::Disk => Box::new(Disk::new(DISK_BLOCKS)),
    }
}

/// The PCI functions of a simulated host: a controller for each that is described and has
/// something plugged into it, or may be without. With the seed in `faults`, things go wrong.
#[must_use]
pub fn functions(system: &System, faults: Option<u64>) -> Vec<(u32, Box<dyn Function>)> {
    let controllers = system.devices.iter().enumerate().filter(|(_, device)| {
        matches!(device.location, diapason_abi::archive::Location::Pci(pci) if pci.class == XHCI)
    });
    let controller = |(index, _)| -> (u32, Box<dyn Function>) {
        let mut controller = Controller::new();
        for plug in system.usb.iter().filter(|plug| plug.device == index) {
            controller.plug(plug.port, device(plug.model));
        }
        if let Some(seed) = faults {
            controller.suffer(seed);
        }
        (XHCI, Box::new(controller))
    };
    controllers.map(controller).collect()
}
