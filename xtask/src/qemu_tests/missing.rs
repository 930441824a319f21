//! A PC from which parts are taken away one by one: the system runs without the part, or nothing
//! starts and the reason is said. No boot hangs.

use super::{Observed, QemuTest};
use diapason::hardware::Hardware;
use diapason::qemu::MachineEnding;
use diapason_abi::archive::Refusal;

const ENGINE: &str = "examples/engine.toml";
const HORIZON_NS: u64 = 100_000_000;

/// A test on a PC that lacks something.
const fn lacks(
    name: &'static str,
    hardware: Hardware,
    check: fn(&[Observed]) -> Result<(), String>,
) -> QemuTest {
    QemuTest { hardware, horizon_ns: HORIZON_NS, ..QemuTest::new(name, ENGINE, check) }
}

const fn machine(machine: &'static str) -> Hardware {
    Hardware { machine, ..Hardware::USUAL }
}

const fn cpu(cpu: &'static str) -> Hardware {
    Hardware { cpu, ..Hardware::USUAL }
}

/// The tests of this file. Clocks are in `clock`, and USB controllers in `controllers`.
pub const TESTS: &[QemuTest] = &[
    lacks("a PC lacks tables of ACPI", machine("q35,acpi=off"), holds),
    lacks("a PC lacks a controller of keyboards", machine("q35,i8042=off"), holds),
    lacks("a PC lacks discs and a system bus", machine("q35,sata=off,smbus=off"), holds),
    lacks("a PC lacks system management", machine("q35,smm=off"), holds),
    lacks("a PC lacks global pages, and numbers of spaces", cpu("max,-pge,-pcid"), holds),
    lacks("a PC lacks guards of user pages", cpu("max,-smep,-smap,-umip"), holds),
    lacks("a PC lacks a local APIC", cpu("max,-apic"), |boots| refused(boots, Refusal::Apic)),
    lacks("a PC lacks no-execute", cpu("max,-nx"), |boots| refused(boots, Refusal::NoExecute)),
];

/// The system ran to its end, and every promise was kept.
fn holds(boots: &[Observed]) -> Result<(), String> {
    let [boot] = boots else { return Err("one boot is needed".into()) };
    let jobs: u64 = boot.run.outcome.threads.iter().map(|thread| thread.jobs).sum();
    println!("{jobs} jobs");
    boot.holds()?;
    if jobs == 0 { Err("it did nothing".into()) } else { Ok(()) }
}

/// Nothing started, and this reason was said.
fn refused(boots: &[Observed], reason: Refusal) -> Result<(), String> {
    let [boot] = boots else { return Err("one boot is needed".into()) };
    let said = boot.run.outcome.panic.as_deref().unwrap_or_default();
    let right = boot.run.ending == MachineEnding::NoArchive && said == reason.text();
    if right { Ok(()) } else { Err(format!("{:?}: it said `{said}`", boot.run.ending)) }
}
