//! Chains of threads: from a CAN bus to another, and to a thread that samples.

use super::{Observed, QemuTest};
use diapason_pipe::measured::Measurement;

const GATEWAY: &str = "examples/can-gateway.toml";
const NAME: &str = "chains of threads keep their bounds, from bus to bus and to a state message";
const SECONDS: u64 = 6;

/// The tests of this file.
pub const TESTS: &[QemuTest] = &[
    QemuTest { horizon_ns: SECONDS * 1_000_000_000, ..QemuTest::new(NAME, GATEWAY, passed) },
    QemuTest { horizon_ns: SECONDS * 1_000_000_000, ..QemuTest::simulated(NAME, GATEWAY, passed) },
];

/// No promise broken; of what came from the chassis' bus every message went out on the other, and
/// of the engine's the display had the newest a hundred times a second.
fn passed(boots: &[Observed]) -> Result<(), String> {
    let [boot] = boots else { return Err("one boot is needed".into()) };
    boot.holds()?;
    let last = |process: &str| {
        let chain = |measured: Measurement| match measured {
            Measurement::Chain(report) => Some(report),
            _ => None,
        };
        let report = boot.measured(process).into_iter().rev().find_map(chain);
        report.ok_or(format!("{process} said nothing of its chain"))
    };
    let (out, shown) = (last("writer")?, last("display")?);
    println!("{out:?}\n{shown:?}");
    // 1,389 frames a second from when the channels are open, of which the last second may miss.
    if out.lost > 0 || out.replaced > 0 || out.messages < (SECONDS - 2) * 1_380 {
        return Err(format!("the gateway: {out:?}"));
    }
    let enough = shown.messages >= (SECONDS - 2) * 95 && shown.replaced > shown.messages;
    if shown.lost > 0 || !enough {
        return Err(format!("the display: {shown:?}"));
    }
    Ok(())
}
