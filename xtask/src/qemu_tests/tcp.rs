//! The slow path of Ethernet: ARP, ICMP and TCP beside sockets in real time.

use super::udp::{balanced, frames};
use super::{Observed, QemuTest};
use diapason_ether::Discard;
use diapason_pipe::measured::FrameEnd;

const SYSTEM: &str = "examples/tcp.toml";

/// The conversation takes more than a second, and reports come once a second.
const HORIZON_NS: u64 = 2_500_000_000;

/// The tests of this file.
pub const TESTS: &[QemuTest] = &[
    QemuTest {
        horizon_ns: HORIZON_NS,
        ..QemuTest::new("TCP is whole beside datagrams in real time", SYSTEM, booted)
    },
    QemuTest {
        horizon_ns: HORIZON_NS,
        works: true,
        ..QemuTest::simulated("TCP is whole on a model's wire", SYSTEM, whole)
    },
    QemuTest {
        horizon_ns: HORIZON_NS,
        works: true,
        faults: &["1s flood nic1 4000 500ms"],
        ..QemuTest::simulated("a flood of what nobody wants ends at the slow path", SYSTEM, flooded)
    },
];

/// The bytes of the conversation.
const BYTES: u64 = 100_000;

/// Alarms that QEMU's adapter causes: it sends an interrupt that it held back, and the next at
/// once.
const OF_QEMU: [&str; 2] = ["interrupt-distance", "wake-ups"];

fn conversed(boots: &[Observed]) -> Result<&Observed, String> {
    let [boot] = boots else { return Err("one boot is needed".into()) };
    boot.logged("asker", &format!("TCP WHOLE {BYTES}"))?;
    boot.logged("answerer", &format!("TCP ECHO {BYTES} 1"))?;
    balanced(frames(boot, "net1", FrameEnd::Adapter)?)?;
    Ok(boot)
}

fn booted(boots: &[Observed]) -> Result<(), String> {
    let boot = conversed(boots)?;
    let findings = boot.verdict.findings();
    let is_of_qemu = |it: &&String| OF_QEMU.iter().any(|alarm| it.contains(alarm));
    match findings.iter().find(|it| !is_of_qemu(it)) {
        Some(other) => Err(other.clone()),
        None => Ok(()),
    }
}

fn whole(boots: &[Observed]) -> Result<(), String> {
    conversed(boots)?.holds()
}

/// The flood is within the adapter's rate, and more than the slow path takes. It fills the quota
/// of that, and no datagram is late.
fn flooded(boots: &[Observed]) -> Result<(), String> {
    let boot = conversed(boots)?;
    let adapter = frames(boot, "net1", FrameEnd::Adapter)?;
    if adapter.of(Discard::Quota) == 0 {
        return Err(format!("the slow path took a whole flood: {adapter:?}"));
    }
    boot.holds()
}
