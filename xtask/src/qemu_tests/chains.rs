//! Chains of threads: from a CAN bus to another, to a thread that samples, and from a pedal to a
//! brake and to a network.

use super::{Observed, QemuTest};
use diapason_pipe::measured::{ChainReport, Measurement};

const GATEWAY: &str = "examples/can-gateway.toml";
const NAME: &str = "chains of threads keep their bounds, from bus to bus and to a state message";
const SECONDS: u64 = 6;

const BRAKING: &str = "examples/brake-by-wire.toml";
const BRAKED: &str = "a chain from an instrument to an actuator keeps its bound";
const BRAKING_SECONDS: u64 = 4;
/// The commands to the brake in a second.
const COMMANDS: u64 = 50;
const PULLED: &str = "a chain whose actuator was pulled out is found out";

const FRAMED: &str = "tests/systems/frames-chain.toml";
const SENT: &str = "a chain from an instrument to a network device keeps its bound";
const SENT_PULLED: &str = "a chain whose network device was pulled out is found out";

/// The tests of this file.
pub const TESTS: &[QemuTest] = &[
    QemuTest { horizon_ns: SECONDS * 1_000_000_000, ..QemuTest::new(NAME, GATEWAY, passed) },
    QemuTest { horizon_ns: SECONDS * 1_000_000_000, ..QemuTest::simulated(NAME, GATEWAY, passed) },
    QemuTest {
        horizon_ns: BRAKING_SECONDS * 1_000_000_000,
        ..QemuTest::new(BRAKED, BRAKING, braked)
    },
    QemuTest {
        horizon_ns: BRAKING_SECONDS * 1_000_000_000,
        works: true,
        ..QemuTest::simulated(BRAKED, BRAKING, braked)
    },
    QemuTest {
        horizon_ns: BRAKING_SECONDS * 1_000_000_000,
        faults: &["2s unplug brake 500ms"],
        ..QemuTest::simulated(PULLED, BRAKING, pulled)
    },
    QemuTest { horizon_ns: BRAKING_SECONDS * 1_000_000_000, ..QemuTest::new(SENT, FRAMED, braked) },
    QemuTest {
        horizon_ns: BRAKING_SECONDS * 1_000_000_000,
        works: true,
        ..QemuTest::simulated(SENT, FRAMED, braked)
    },
    QemuTest {
        horizon_ns: BRAKING_SECONDS * 1_000_000_000,
        faults: &["2s unplug adapter 500ms"],
        ..QemuTest::simulated(SENT_PULLED, FRAMED, pulled)
    },
];

/// Returns the last report of a chain by the process at its end.
fn last(boot: &Observed, process: &str) -> Result<ChainReport, String> {
    let chain = |measured: Measurement| match measured {
        Measurement::Chain(report) => Some(report),
        _ => None,
    };
    let report = boot.measured(process).into_iter().rev().find_map(chain);
    report.ok_or(format!("{process} said nothing of its chain"))
}

/// Every reading of the pedal became a packet or a frame that the device took, in time.
fn braked(boots: &[Observed]) -> Result<(), String> {
    let [boot] = boots else { return Err("one boot is needed".into()) };
    boot.holds()?;
    let report = last(boot, "writer")?;
    println!("{report:?}");
    let enough = report.messages >= (BRAKING_SECONDS - 2) * COMMANDS;
    match report.lost == 0 && report.replaced == 0 && enough {
        true => Ok(()),
        false => Err(format!("the device: {report:?}")),
    }
}

/// The device goes away after two seconds, and comes back. The commands of that time are lost.
fn pulled(boots: &[Observed]) -> Result<(), String> {
    let [boot] = boots else { return Err("one boot is needed".into()) };
    boot.breaks("messages of chain braking were lost")
}

/// No promise broken; of what came from the chassis' bus every message went out on the other, and
/// of the engine's the display had the newest a hundred times a second.
fn passed(boots: &[Observed]) -> Result<(), String> {
    let [boot] = boots else { return Err("one boot is needed".into()) };
    boot.holds()?;
    let (out, shown) = (last(boot, "writer")?, last(boot, "display")?);
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
