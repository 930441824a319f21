//! The longest paths of systems whose lists are as long as a description may make them.

use super::{Observed, QemuTest};
use diapason_abi::archive::Archive;
use diapason_costs::targets::{PATH_INSTRUCTIONS_MAX, RECORDED_PATH_MAX};

const fn longest(name: &'static str, system: &'static str) -> QemuTest {
    QemuTest { watch: true, ..QemuTest::new(name, system, as_planned) }
}

/// The longest path of a system that has no list which is passed in one piece.
const fn bounded(name: &'static str, system: &'static str) -> QemuTest {
    QemuTest { watch: true, ..QemuTest::new(name, system, is_short) }
}

/// The tests of this file.
pub const TESTS: &[QemuTest] = &[
    bounded("paths of the largest systems: a large process ends", "tests/systems/path-fat.toml"),
    longest(
        "paths of the largest systems: many waiters are sent away",
        "tests/systems/path-delete.toml",
    ),
    longest("paths of the largest systems: a message passes many", "tests/systems/path-mail.toml"),
    longest("paths of the largest systems: a place is looked for", "tests/systems/path-sems.toml"),
];

/// Checks that the longest path is within what the archive says, and that the lists were long.
fn as_planned(boots: &[Observed]) -> Result<(), String> {
    let [boot] = boots else { return Err("one boot is needed".into()) };
    let archive = Archive::parse(&boot.archive).map_err(|refusal| refusal.text())?;
    // At 1 GHz an instruction takes 1 ns.
    let planned = u64::from(archive.header.longest_path);
    let seen = boot.run.outcome.longest_path.ok_or("no longest path was reported")?.instructions;
    println!("the longest path has {seen} instructions of {planned}");
    if seen > planned {
        return Err(format!("a path has {seen} instructions, {planned} are planned"));
    }
    if seen <= RECORDED_PATH_MAX {
        return Err(format!("no path has more than {seen} instructions: no list was long"));
    }
    Ok(())
}

/// Checks that no path is longer than one without lists, though a large process ended.
fn is_short(boots: &[Observed]) -> Result<(), String> {
    let [boot] = boots else { return Err("one boot is needed".into()) };
    let seen = boot.run.outcome.longest_path.ok_or("no longest path was reported")?.instructions;
    let restarts: u64 = boot.run.outcome.processes.iter().map(|row| row.restarts()).sum();
    println!("the longest path has {seen} instructions, {restarts} restarts");
    if restarts < 2 {
        return Err(format!("{restarts} restarts: no large process ended"));
    }
    if seen > PATH_INSTRUCTIONS_MAX {
        return Err(format!("a path has {seen} instructions, {PATH_INSTRUCTIONS_MAX} are allowed"));
    }
    Ok(())
}
