//! USB controllers as PCs have them, in QEMU and in the simulator. Tests of images have those above
//! 4 GiB.

use super::{Observed, QemuTest};
use crate::tally::Tally;
use diapason::Workspace;
use diapason::describe::describe;
use diapason::hardware::Hardware;
use diapason::metal::Built;
use diapason::session::Session;
use diapason_system::{ControllerVariant, DeviceSpec, RunOptions};

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

/// The controller of the simulator in every way that it can be.
const EVERY: &str = "the simulator's controller serves its device in every variant";
const SIMULATED: &str = "tests/systems/usb-simulated.toml";
const SIMULATED_NS: u64 = 2_500_000_000;

/// Runs the test of this file that boots a system often.
pub fn run(workspace: &Workspace, built: &Built, part: &str, tally: &mut Tally) {
    let name = format!("{}: {EVERY}", super::Machine::Simulator);
    if name.contains(part) {
        tally.step(&name, || variants(workspace, built));
    }
}

/// Simulates the system with all sixteen controllers.
fn variants(workspace: &Workspace, built: &Built) -> Result<(), String> {
    let said = |failure: diapason::Failure| failure.to_string();
    let described = describe(&workspace.root().join(SIMULATED)).map_err(said)?;
    let observe = |variant| {
        let mut system = described.clone();
        let is_controller = |device: &&mut DeviceSpec| device.name == "xhci";
        let controller = system.devices.iter_mut().find(is_controller).ok_or("no controller")?;
        controller.simulated = variant;
        let options = RunOptions { horizon_ns: SIMULATED_NS, record_bytes: 0, watch: false };
        let session = Session::assemble(system, built.clone(), options).map_err(said)?;
        Observed::simulate_working(&session)
    };
    for bits in 0..16 {
        let variant = ControllerVariant {
            large_contexts: bits & 1 != 0,
            scratchpads: bits & 2 != 0,
            firmware: bits & 4 != 0,
            msi: bits & 8 != 0,
        };
        let boot = observe(variant)?;
        boot.holds().map_err(|wrong| format!("{variant:?}: {wrong}"))?;
        let read = boot.measured("display").len();
        let interrupts: u64 = boot.run.outcome.devices.iter().map(|row| row.interrupts).sum();
        println!("{variant:?}: {interrupts} interrupts, {read} reports");
        if boot.run.outcome.lacking != 0 || interrupts < 50 || read == 0 {
            return Err(format!("{variant:?}: the controller is not served"));
        }
    }
    Ok(())
}

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
