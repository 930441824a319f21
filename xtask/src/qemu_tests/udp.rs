//! UDP between two adapters: `netd`, sockets and programs, in QEMU and on models of the adapters.

use super::{Observed, QemuTest};

const SYSTEM: &str = "tests/systems/udp.toml";

/// The tests of this file.
pub const TESTS: &[QemuTest] = &[
    QemuTest {
        horizon_ns: HORIZON_NS,
        ..QemuTest::new("datagrams come back whole, and strangers' are counted", SYSTEM, whole)
    },
    QemuTest {
        horizon_ns: HORIZON_NS,
        works: true,
        ..QemuTest::simulated("datagrams come back whole from a model's wire", SYSTEM, whole)
    },
];

/// Everything is sent within half a second, and told once a second.
const HORIZON_NS: u64 = 2_500_000_000;
/// The datagrams that the program sends.
const SENT: u64 = 400;

fn whole(boots: &[Observed]) -> Result<(), String> {
    let [boot] = boots else { return Err("one boot is needed".into()) };
    boot.logged("control", "UDP WHOLE")?;
    boot.logged("drive", &format!("ECHO {SENT} 0 {SENT}"))?;
    // One socket asks for a port that nobody has there, and its frames are counted as such.
    let told = boot.log("net1");
    let counts = |word: &str| told.iter().rev().find(|line| line.starts_with(word)).copied();
    let strangers = format!("DISCARDED unregistered {SENT}");
    if counts("DISCARDED unregistered") != Some(strangers.as_str()) {
        return Err(format!("the server of the second adapter said {told:?}"));
    }
    boot.holds()
}
