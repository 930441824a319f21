//! PCI devices: found by what they are, or absent for a reason.

use super::{Observed, QemuTest};
use diapason::console::Line;
use diapason_abi::FaultCause;
use diapason_abi::archive::Absence;
use diapason_abi::record::Record;

const DEVICES: &str = "tests/systems/devices.toml";
const ORPHAN: &str = "tests/systems/orphan.toml";

/// The tests of this file.
pub const TESTS: &[QemuTest] = &[
    QemuTest::new("PCI devices are found, or absent for a reason", DEVICES, found),
    QemuTest {
        horizon_ns: 12_000_000_000,
        ..QemuTest::new("a PCI device writes nothing without its driver", ORPHAN, silent)
    },
];

/// The place of each device of the description, or the reason why it must be absent. QEMU gives
/// places in the order of its options; those of the chip set are fixed.
const EXPECTED: [Result<u64, Absence>; 9] = [
    Ok(place(1, 0)),
    Ok(place(2, 0)),
    Ok(place(3, 0)),
    Err(Absence::NotFound),
    Err(Absence::Taken),
    Err(Absence::Small),
    Err(Absence::Messages),
    Ok(place(31, 2)),
    Err(Absence::NoRegisters),
];

/// Returns a function of a device on the first bus.
const fn place(device: u64, function: u64) -> u64 {
    device << 3 | function
}

fn found(boots: &[Observed]) -> Result<(), String> {
    let [boot] = boots else { return Err("one boot is needed".into()) };
    let said = boot.lines.iter().filter_map(|line| match line {
        Line::Record(Record::Device, words) => Some((words[0], Ok(words[1]))),
        Line::Record(Record::Absent, words) => Some((words[0], Err(words[1]))),
        _ => None,
    });
    let said: Vec<(u64, Result<u64, u64>)> = said.collect();
    let expected = EXPECTED.map(|what| what.map_err(|absence| absence as u64));
    if said != (0..).zip(expected).collect::<Vec<_>>() {
        return Err(format!("the kernel said {said:?}"));
    }
    boot.holds()
}

/// The controller says something every 2 s, twice while its driver lives and three times after.
fn silent(boots: &[Observed]) -> Result<(), String> {
    let [boot] = boots else { return Err("one boot is needed".into()) };
    let causes = boot.causes("driver");
    if causes != [Some(FaultCause::Panic)] {
        return Err(format!("the driver did not give up: {causes:?}"));
    }
    match boot.log("witness")[..] {
        ["2 events", "2 events"] => Ok(()),
        ref other => Err(format!("the witness saw {other:?}")),
    }
}
