//! A driver that aims its device at what it was not granted, on machines with an IOMMU and without,
//! and on either of two cores.

use super::cores::Stage;
use super::{Observed, QemuTest};
use crate::tally::Tally;
use diapason::Workspace;
use diapason::console::Line;
use diapason::cores::{Processors, boot};
use diapason::hardware::Hardware;
use diapason::metal::Built;
use diapason::qemu::MachineEnding;
use diapason_abi::FaultCause;
use diapason_abi::record::Confinement;
use diapason_system::{RunOptions, parse_cores};
use std::fs;

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
    left_alone(boot)?;
    caught(boot)?;
    if boot.lines != again.lines {
        return Err("two boots differ".into());
    }
    boot.replays_equal()
}

/// The owner has its memory, and no interrupt but its own.
fn left_alone(boot: &Observed) -> Result<(), String> {
    confined(boot)?;
    boot.logged("owner", "the memory is as it was")?;
    boot.logged("owner", "forged interrupts: 0")
}

/// The driver ended twice, and the run says what its device asked for.
fn caught(boot: &Observed) -> Result<(), String> {
    confined(boot)?;
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
        [ref one] if one.contains("device copier wrote memory") && one.contains("first of 2") => {
            Ok(())
        }
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

type Test = fn(&Stage<'_>) -> Result<(), String>;

const ON_CORES: [(&str, Test); 2] = [
    ("booted cores: an IOMMU stops a driver on the first core", |stage| beside(stage, 0)),
    ("booted cores: an IOMMU stops a driver on the second core", |stage| beside(stage, 1)),
];

/// Runs every test of several cores whose name contains `part`.
pub fn run(workspace: &Workspace, built: &Built, part: &str, tally: &mut Tally) {
    let stage = Stage { workspace, built };
    for (name, test) in ON_CORES.into_iter().filter(|(name, _)| name.contains(part)) {
        tally.step(name, || test(&stage));
    }
}

/// The core of the owner rings, and the core of the driver answers.
const RINGS: &str = r#"
[[process]]
name = "controller"
program = "cores-control"
core = OWNER
priority = 10
uses = ["board", "ready"]
[[process]]
name = "logger"
program = "cores-logger"
core = DRIVER
priority = 15
events = 1
uses = ["board"]
[[segment]]
name = "board"
size = "4K"
[[doorbell]]
name = "ready"
wakes = "logger"
"#;
/// Interrupts of a core have so many entries in the table of interrupts.
const ENTRIES: u16 = 14;
/// The clock of the run goes 2^n times slower than the device's: a copy of 100 ms takes 50.
const PARALLEL: Processors = Processors::Parallel { slower: 1 };

/// The driver is on one core, and the owner on the other. Their memory in common is reached by the
/// device, which has no other memory of the owner's core. Doorbells ring meanwhile.
fn beside(stage: &Stage<'_>, driver: u16) -> Result<(), String> {
    const HORIZON_NS: u64 = 3_000_000_000;
    let owner = 1 - driver;
    let path = stage.workspace.root().join(SYSTEM);
    let text = fs::read_to_string(path).map_err(|error| error.to_string())?;
    let on = |core: u16, line: &str| format!("core = {core}\n{line}");
    let text = text
        .replacen("name = \"intruder\"", "name = \"intruder\"\ncores = 2", 1)
        .replacen("priority = 63", &on(driver, "priority = 63"), 1)
        .replacen("priority = 30", &on(owner, "priority = 30"), 1)
        .replacen("priority = 20", &on(driver, "priority = 20"), 1)
        .replacen("size = \"4K\"\ndma = true", "size = \"4K\"", 1);
    let entries = [driver, owner].map(|core| (core * ENTRIES).to_string()).join(", ");
    let text = text.replacen("[0, 0, 1]", &format!("[0, {entries}]"), 1)
        + &RINGS.replace("OWNER", &owner.to_string()).replace("DRIVER", &driver.to_string());
    let mut systems = parse_cores(SYSTEM, &text).map_err(|bad| bad.plain())?;
    // Only a pipe makes memory for devices in common in a description.
    for system in &mut systems {
        let own = system.segments.iter_mut().filter(|segment| segment.name == "own");
        own.for_each(|segment| segment.dma = true);
    }
    let options = RunOptions { horizon_ns: HORIZON_NS, record_bytes: 0, watch: false };
    let mut sessions = stage.planned(&systems, options)?;
    sessions[0].1.hardware = CONFINED;
    let mut lines: Vec<Vec<Line>> = sessions.iter().map(|_| Vec::new()).collect();
    let mut hear = |core: usize, line: &Line| lines[core].push(line.clone());
    let runs = boot(stage.workspace, &mut sessions, PARALLEL, &mut hear);
    let runs = runs.map_err(|failure| failure.to_string())?.into_iter().zip(&sessions).zip(lines);
    let booted = runs.map(|((run, (_, session)), lines)| Observed::of(session, run, lines));
    let booted = booted.collect::<Result<Vec<_>, String>>()?;
    if let Some(boot) = booted.iter().find(|boot| boot.run.ending != MachineEnding::Finished) {
        return Err(format!("a core ended with {:?}", boot.run.ending));
    }
    let (driver, owner) = (&booted[usize::from(driver)], &booted[usize::from(owner)]);
    let stopped = caught(driver).and_then(|()| left_alone(owner)).and_then(|()| owner.holds());
    stopped.map_err(|wrong| super::explain(&wrong, &booted))?;
    let rings: u64 = driver.run.outcome.devices.iter().map(|row| row.interrupts).sum();
    println!("{rings} interrupts on the driver's core");
    if rings < 100 { Err(format!("only {rings} interrupts came")) } else { Ok(()) }
}
