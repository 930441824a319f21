//! A driver that aims its device at what it was not granted, on machines with an IOMMU and without.

use super::{Observed, QemuTest};
use diapason::hardware::Hardware;
use diapason_abi::FaultCause;
use diapason_abi::record::Confinement;

const SYSTEM: &str = "tests/systems/intruder.toml";
const USB: &str = "tests/systems/usb-qemu.toml";
/// The kernel is linked there.
const KERNEL: u64 = 0x20_0000;
/// The device, which reaches all 32 bits of addresses.
const COPIER: &[&str] = &["-device", "edu,dma_mask=0xffffffff"];
const OPEN: Hardware = Hardware { more: COPIER, ..Hardware::USUAL };
const CONFINED: Hardware = Hardware { iommu: true, ..OPEN };

/// The tests of this file.
pub const TESTS: &[QemuTest] = &[
    QemuTest {
        hardware: CONFINED,
        horizon_ns: 3_000_000_000,
        boots: 2,
        record: true,
        ..QemuTest::new("an IOMMU stops a driver that aims its device at others", SYSTEM, stopped)
    },
    QemuTest {
        hardware: OPEN,
        horizon_ns: 3_000_000_000,
        ..QemuTest::new(
            "without an IOMMU a driver is trusted, and the run says so",
            SYSTEM,
            trusted,
        )
    },
    QemuTest {
        hardware: Hardware { iommu: true, ..Hardware::USUAL },
        horizon_ns: 4_000_000_000,
        ..QemuTest::new("a USB server works behind an IOMMU", USB, works)
    },
];

/// The state that the kernel says.
fn state(boot: &Observed) -> Option<Confinement> {
    boot.run.outcome.confined.and_then(Confinement::decode)
}

/// The lines that the driver logs while nothing stops its device.
const COPIED: &str = "copied its own memory";
const INTERRUPTED: &str = "its own interrupt: Ok(1)";

/// Two lives end by what the device was stopped from: a write to memory of another process, and a
/// read of the kernel. The next life forges interrupts, which do not come, while its own does. QEMU
/// keeps no record of those, so nothing ends for them. Two boots are equal.
fn stopped(boots: &[Observed]) -> Result<(), String> {
    let [boot, again] = boots else { return Err("two boots are needed".into()) };
    confined(boot)?;
    boot.logged("owner", "the memory is as it was")?;
    boot.logged("owner", "forged interrupts: 0")?;
    let went_on = |step: u32| format!("step {step}: nothing ended it");
    let first = [COPIED, INTERRUPTED, &went_on(0)];
    let last = [COPIED, &went_on(3), &went_on(4), INTERRUPTED, &went_on(5)];
    let log = boot.log("driver");
    if log != [&first[..], &last[..]].concat() {
        return Err(format!("the driver logged {log:?}"));
    }
    let causes = boot.causes("driver");
    if causes != [Some(FaultCause::StrayDma); 2] {
        return Err(format!("the driver ended with {causes:?}"));
    }
    let outcome = &boot.run.outcome;
    let stopped = outcome.stopped.iter().map(|row| (row.address, row.access.is_read()));
    match stopped.collect::<Vec<(u64, bool)>>()[..] {
        [(secret, false), (KERNEL, true)] if secret > KERNEL => {}
        ref other => return Err(format!("the IOMMU stopped {other:x?}")),
    }
    match boot.verdict.findings()[..] {
        [ref one] if one.contains("device copier wrote memory") && one.contains("first of 2") => {}
        ref other => return Err(format!("the run found {other:?}")),
    }
    if boot.lines != again.lines {
        return Err("two boots differ".into());
    }
    boot.replays_equal()
}

/// Everything goes through, and the run says that nothing confines drivers.
fn trusted(boots: &[Observed]) -> Result<(), String> {
    let [boot] = boots else { return Err("one boot is needed".into()) };
    if state(boot) != Some(Confinement::NoIommu) {
        return Err(format!("the kernel says {:?}", boot.run.outcome.confined));
    }
    boot.logged("owner", "the memory was overwritten")?;
    (0..5).try_for_each(|step| boot.logged("driver", &format!("step {step}: nothing ended it")))
}

/// The interrupts and transfers of a server come through.
fn works(boots: &[Observed]) -> Result<(), String> {
    let [boot] = boots else { return Err("one boot is needed".into()) };
    confined(boot)?;
    let most = boot.run.outcome.devices.iter().map(|row| row.interrupts).max();
    if most < Some(50) {
        return Err(format!("a message came {most:?} times at most"));
    }
    boot.holds()
}

/// The kernel confines memory and interrupts.
fn confined(boot: &Observed) -> Result<(), String> {
    match state(boot) {
        Some(Confinement::Full) => Ok(()),
        other => Err(format!("the kernel says {other:?}")),
    }
}
