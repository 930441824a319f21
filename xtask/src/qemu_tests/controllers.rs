//! USB controllers as PCs have them, without MSI-X. Those above 4 GiB are in the tests of images.

use super::{Observed, QemuTest};
use diapason::hardware::Hardware;

const DEVICES: &str = "examples/usb-devices.toml";
const SECONDS: u64 = 2;

/// As Intel's controllers: MSI without masks, and no MSI-X.
const BARE: Hardware = Hardware { controller: "nec-usb-xhci,msix=off", ..Hardware::USUAL };

/// An old PC, which has no configuration memory for PCI: its functions are behind two ports.
const PORTS: Hardware = Hardware { machine: "pc", ..Hardware::USUAL };

/// A PC with two roots. The controller is behind a port of the second, on a bus with a number far
/// above the others.
const SECOND_ROOT: Hardware = Hardware {
    controller: "qemu-xhci,bus=far",
    before: &[
        "-device",
        "pxb-pcie,id=root,bus_nr=128,bus=pcie.0",
        "-device",
        "pcie-root-port,id=far,bus=root,chassis=1",
    ],
    ..Hardware::USUAL
};

/// A PC with what others have beside: controllers of USB 1 and 2, and an adapter.
const BESIDE: Hardware = Hardware {
    controller: "qemu-xhci,bus=far",
    before: &[
        "-device",
        "ich9-usb-ehci1,multifunction=on,addr=0x1d.7",
        "-device",
        "ich9-usb-uhci1,multifunction=on,addr=0x1d.0",
        "-device",
        "e1000",
        "-device",
        "pcie-root-port,id=far,bus=pcie.0,chassis=1",
    ],
    ..Hardware::USUAL
};

const fn controller(name: &'static str, hardware: Hardware) -> QemuTest {
    let horizon_ns = SECONDS * 1_000_000_000;
    QemuTest { hardware, horizon_ns, ..QemuTest::new(name, DEVICES, served) }
}

/// The tests of this file.
pub const TESTS: &[QemuTest] = &[
    controller("a controller without MSI-X serves all its devices by MSI", BARE),
    controller("a controller of a PC without configuration memory serves all its devices", PORTS),
    controller("a controller behind a second root serves all its devices", SECOND_ROOT),
    controller("a controller behind a port, beside others, serves all its devices", BESIDE),
];

/// Everything promised is kept, and each of the controller's messages came.
fn served(boots: &[Observed]) -> Result<(), String> {
    let [boot] = boots else { return Err("one boot is needed".into()) };
    boot.holds()?;
    let plugs = &boot.run.outcome.plugs;
    let interrupts: Vec<u64> = boot.run.outcome.devices.iter().map(|row| row.interrupts).collect();
    println!("{} USB devices; interrupts {interrupts:?}", plugs.len());
    if boot.run.outcome.lacking != 0 || plugs.is_empty() || interrupts.len() < 5 {
        return Err("the controller is not served, or some of its messages never came".into());
    }
    Ok(())
}
