//! A process that writes without end hides nothing.

use super::{Observed, QemuTest};

/// The tests of this file.
pub const TESTS: &[QemuTest] = &[
    QemuTest::new("a flood of text hides no other process's misses and faults", SYSTEM, flooded),
    QemuTest::simulated("a flood of text hides no other process's misses and faults", SYSTEM, kept),
];

const SYSTEM: &str = "tests/systems/flood.toml";

/// Checks the verdict on the other processes.
fn kept(boots: &[Observed]) -> Result<(), String> {
    let [boot] = boots else { return Err("one boot is needed".into()) };
    let Err(found) = boot.holds() else { return Err("nothing was found".into()) };
    let expected =
        ["thread0 of late missed ", "process faulter, which may not fault: ", "job-cost"];
    match expected.into_iter().find(|part| !found.contains(part)) {
        Some(part) => Err(format!("`{part}` is not among {found}")),
        None => Ok(()),
    }
}

/// Finds what [`kept`] finds, and the process that wrote too much.
fn flooded(boots: &[Observed]) -> Result<(), String> {
    kept(boots)?;
    let [boot] = boots else { return Err("one boot is needed".into()) };
    let outcome = &boot.run.outcome;
    let [(1, _)] = outcome.lines_lost[..] else {
        return Err(format!("the flood is process 1, and lines lost {:?}", outcome.lines_lost));
    };
    if !outcome.losses.is_empty() {
        return Err(format!("the kernel lost {:?}", outcome.losses));
    }
    Ok(())
}
