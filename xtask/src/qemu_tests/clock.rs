//! Clocks that a PC may lack: another one serves, or nothing starts and the reason is said.

use super::{Observed, QemuTest};
use diapason::console::Line;
use diapason::hardware::Hardware;
use diapason::qemu::MachineEnding;
use diapason_abi::archive::Refusal;
use diapason_abi::record::Record;

const ENGINE: &str = "examples/engine.toml";
const HORIZON_NS: u64 = 200_000_000;

/// A test on this PC.
const fn on(
    name: &'static str,
    hardware: Hardware,
    check: fn(&[Observed]) -> Result<(), String>,
) -> QemuTest {
    QemuTest { hardware, horizon_ns: HORIZON_NS, ..QemuTest::new(name, ENGINE, check) }
}

/// Returns a PC that is this machine.
const fn machine(machine: &'static str) -> Hardware {
    Hardware { machine, ..Hardware::USUAL }
}

/// The tests of this file.
pub const TESTS: &[QemuTest] = &[
    on("without an HPET, ACPI's timer measures the clock", machine("q35,hpet=off"), exact),
    on(
        "without HPET and PIT, ACPI's timer measures the clock",
        machine("q35,hpet=off,pit=off"),
        exact,
    ),
    on("without ACPI's timer and HPET, the PIT measures the clock", machine("microvm"), roughly),
    on("without any clock nothing starts", machine("microvm,pit=off"), nothing_ticks),
    on("a counter that may change its speed is refused", VARIES, varies),
];

const VARIES: Hardware = Hardware { cpu: "max,-hypervisor", ..Hardware::USUAL };

/// Returns the speed of the counter that the kernel found, in kHz.
fn speed(boots: &[Observed]) -> Result<u64, String> {
    let [boot] = boots else { return Err("one boot is needed".into()) };
    let clock = boot.lines.iter().find_map(|line| match line {
        Line::Record(Record::Clock, words) => Some(words),
        _ => None,
    });
    let [counter, timer, _] = clock.ok_or("it measured no clock")?[..] else {
        return Err("the record has other words".into());
    };
    println!("counter {counter} kHz, timer {timer} kHz");
    Ok(counter)
}

/// The system holds, on a clock that is right to 20 parts in a million.
fn exact(boots: &[Observed]) -> Result<(), String> {
    let khz = speed(boots)?;
    boots.iter().try_for_each(Observed::holds)?;
    let right = khz.abs_diff(1_000_000) <= 20;
    if right { Ok(()) } else { Err(format!("the counter has {khz} kHz")) }
}

/// The clock is right to a tenth of a per mille: a tick of the PIT is 838 ns.
fn roughly(boots: &[Observed]) -> Result<(), String> {
    let khz = speed(boots)?;
    let right = khz.abs_diff(1_000_000) <= 100;
    if right { Ok(()) } else { Err(format!("the counter has {khz} kHz")) }
}

fn nothing_ticks(boots: &[Observed]) -> Result<(), String> {
    refused(boots, Refusal::NoReference)
}

fn varies(boots: &[Observed]) -> Result<(), String> {
    refused(boots, Refusal::CounterVaries)
}

fn refused(boots: &[Observed], reason: Refusal) -> Result<(), String> {
    let [boot] = boots else { return Err("one boot is needed".into()) };
    let said = boot.run.outcome.panic.as_deref().unwrap_or_default();
    let right = boot.run.ending == MachineEnding::NoArchive && said.contains(reason.text());
    if right { Ok(()) } else { Err(format!("{:?}: it said `{said}`", boot.run.ending)) }
}
