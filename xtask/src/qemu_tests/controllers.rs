//! USB controllers as PCs have them, without MSI-X. Those above 4 GiB are in the tests of images.

use super::{Observed, QemuTest};
use diapason::hardware::Hardware;

const DEVICES: &str = "examples/usb-devices.toml";
const SECONDS: u64 = 2;

/// As Intel's controllers: MSI without masks, and no MSI-X.
const BARE: Hardware = Hardware { controller: "nec-usb-xhci,msix=off", ..Hardware::USUAL };
/// The tests of this file.
pub const TESTS: &[QemuTest] = &[QemuTest {
    hardware: BARE,
    horizon_ns: SECONDS * 1_000_000_000,
    ..QemuTest::new("a controller without MSI-X serves all its devices by MSI", DEVICES, served)
}];

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
