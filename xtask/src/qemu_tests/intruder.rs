//! A driver that aims its device at what it was not granted, on machines with an IOMMU and without.

use super::{Observed, QemuTest};
use diapason::hardware::Hardware;
use diapason_abi::FaultCause;
use diapason_abi::record::Confinement;

const SYSTEM: &str = "tests/systems/intruder.toml";
const USB: &str = "tests/systems/usb-qemu.toml";
/// The device, which reaches all 32 bits of addresses.
const COPIER: &[&str] = &["-device", "edu,dma_mask=0xffffffff"];
const OPEN: Hardware = Hardware { more: COPIER, ..Hardware::USUAL };
const CONFINED: Hardware = Hardware { iommu: true, ..OPEN };

/// The tests of this file.
pub const TESTS: &[QemuTest] = &[
    QemuTest {
        hardware: CONFINED,
        horizon_ns: 3_000_000_000,
        record: true,
        ..QemuTest::new("an IOMMU stops a driver that aims its device at others", SYSTEM, stopped)
    },
    QemuTest {
        hardware: OPEN,
        horizon_ns: 3_000_000_000,
        ..QemuTest::new("without an IOMMU a driver is trusted, and the run says so", SYSTEM, trusted)
    },
    QemuTest {
        hardware: Hardware { iommu: true, ..Hardware::USUAL },
        horizon_ns: 4_000_000_000,
        boots: 2,
        ..QemuTest::new("a USB server works behind an IOMMU", USB, works)
    },
];

/// The state that the kernel says.
fn state(boot: &Observed) -> Option<Confinement> {
    boot.run.outcome.confined.and_then(Confinement::decode)
}

/// Two lives end by what the device was stopped from: a write to memory of another process, and a
/// read of the kernel. Nothing of it happens, and the driver goes on in its next life.
fn stopped(boots: &[Observed]) -> Result<(), String> {
    let [boot] = boots else { return Err("one boot is needed".into()) };
    if state(boot) != Some(Confinement::Full) {
        return Err(format!("the kernel says {:?}", boot.run.outcome.confined));
    }
    boot.logged("owner", "the memory is as it was")?;
    let copied = ["copied its own memory"; 2];
    let log = boot.log("driver");
    // QEMU stops the interrupt, too, but keeps no record of it: that step goes on.
    if log != [&copied[..], &["step 3: nothing stopped it"]].concat() {
        return Err(format!("the driver logged {log:?}"));
    }
    let causes = boot.causes("driver");
    if causes != [Some(FaultCause::StrayDma); 2] {
        return Err(format!("the driver ended with {causes:?}"));
    }
    let kinds: Vec<(u64, bool)> = boot.run.outcome.stopped.iter().map(|s| (s.address, s.access.is_read())).collect();
    match kinds[..] {
        [(secret, false), (0x20_0000, true)] if secret % 4096 == 0 && secret > 0x20_0000 => {}
        ref other => return Err(format!("the IOMMU stopped {other:x?}")),
    }
    if !boot.run.outcome.devices.is_empty() {
        return Err("an interrupt of another device was raised".into());
    }
    match boot.verdict.findings()[..] {
        [ref one] if one.contains("device copier wrote memory") && one.contains("first of 2") => Ok(()),
        ref other => Err(format!("the run found {other:?}")),
    }
}

/// Everything goes through, and the run says that nothing confines drivers.
fn trusted(boots: &[Observed]) -> Result<(), String> {
    let [boot] = boots else { return Err("one boot is needed".into()) };
    if state(boot) != Some(Confinement::NoIommu) {
        return Err(format!("the kernel says {:?}", boot.run.outcome.confined));
    }
    boot.logged("owner", "the memory was overwritten")?;
    for step in 1..4 {
        boot.logged("driver", &format!("step {step}: nothing stopped it"))?;
    }
    // The interrupt of the other device, which that did not send.
    if boot.run.outcome.devices.len() != 1 {
        return Err("the forged interrupt did not come".into());
    }
    Ok(())
}

/// The same driver holds as without, twice alike.
fn works(boots: &[Observed]) -> Result<(), String> {
    for boot in boots {
        if state(boot) != Some(Confinement::Full) {
            return Err(format!("the kernel says {:?}", boot.run.outcome.confined));
        }
        boot.holds()?;
    }
    let [one, other] = boots else { return Err("two boots are needed".into()) };
    if one.lines == other.lines { Ok(()) } else { Err("two boots differ".into()) }
}
