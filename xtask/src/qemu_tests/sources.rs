//! Pipes from devices that are no CAN interfaces: nothing of a sensor is lost beside a disk at full
//! speed, no packet is late, and a device that goes away is named.

use super::{Observed, QemuTest};

const SYSTEM: &str = "examples/endpoints.toml";
const NAME: &str = "a pipe from a sensor keeps its bound beside a CAN channel and a disk";
const DRIFTS: &str = "a sensor whose clock runs away is found out";
const SECONDS: u64 = 6;
/// The packets of the sensor in a second.
const RATE: u64 = 400;

/// The tests of this file.
pub const TESTS: &[QemuTest] = &[
    QemuTest { horizon_ns: SECONDS * 1_000_000_000, ..QemuTest::new(NAME, SYSTEM, kept) },
    QemuTest {
        horizon_ns: SECONDS * 1_000_000_000,
        works: true,
        ..QemuTest::simulated(NAME, SYSTEM, kept)
    },
    QemuTest {
        horizon_ns: SECONDS * 1_000_000_000,
        faults: &["1s fast-clock sensor 5000"],
        ..QemuTest::simulated(DRIFTS, SYSTEM, drifts)
    },
];

fn kept(boots: &[Observed]) -> Result<(), String> {
    let [boot] = boots else { return Err("one boot is needed".into()) };
    boot.holds()?;
    let reports = boot.pipe_reports("sampler");
    let report = reports.last().ok_or("the sampler said nothing of its pipe")?;
    println!("{report:?}");
    if report.lost > 0 || report.outside > 0 || report.messages < (SECONDS - 2) * RATE {
        return Err(format!("the sensor: {report:?}"));
    }
    Ok(())
}

/// The packets come at the right rate by the clock of the sensor, and that is not the host's.
fn drifts(boots: &[Observed]) -> Result<(), String> {
    let [boot] = boots else { return Err("one boot is needed".into()) };
    if boot.holds().is_ok() {
        return Err("a clock that runs 5,000 millionths too fast holds".into());
    }
    let findings = boot.verdict.findings().join("; ");
    println!("{findings}");
    match findings.contains("the clock of the device that samples is measured by") {
        true => Ok(()),
        false => Err(findings),
    }
}
