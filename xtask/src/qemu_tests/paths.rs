//! The longest paths of systems whose lists are as long as a description may make them.

use super::{Observed, QemuTest};
use diapason_costs::targets::PATH_INSTRUCTIONS_MAX;

type Check = fn(&[Observed]) -> Result<(), String>;

/// Returns the test of a system whose lists are long, but passed in stages or in few steps.
const fn bounded(name: &'static str, system: &'static str, check: Check) -> QemuTest {
    QemuTest { watch: true, ..QemuTest::new(name, system, check) }
}

/// The tests of this file.
pub const TESTS: &[QemuTest] = &[
    bounded(
        "paths of the largest systems: a large process ends",
        "tests/systems/path-fat.toml",
        restarts_in_short_paths,
    ),
    bounded(
        "paths of the largest systems: many waiters are sent away",
        "tests/systems/path-delete.toml",
        is_short,
    ),
    bounded(
        "paths of the largest systems: a message passes few of many",
        "tests/systems/path-mail.toml",
        is_short,
    ),
    bounded(
        "paths of the largest systems: a place is found",
        "tests/systems/path-sems.toml",
        is_short,
    ),
];

/// Checks that a large process ended more than once, in short paths.
fn restarts_in_short_paths(boots: &[Observed]) -> Result<(), String> {
    is_short(boots)?;
    let rows = boots.iter().flat_map(|boot| &boot.run.outcome.processes);
    let restarts: u64 = rows.map(|row| row.restarts()).sum();
    if restarts < 2 {
        return Err(format!("{restarts} restarts: no large process ended"));
    }
    Ok(())
}

/// Checks that no path is longer than one without lists.
fn is_short(boots: &[Observed]) -> Result<(), String> {
    let [boot] = boots else { return Err("one boot is needed".into()) };
    let seen = boot.run.outcome.longest_path.ok_or("no longest path was reported")?.instructions;
    println!("the longest path has {seen} instructions");
    if seen > PATH_INSTRUCTIONS_MAX {
        return Err(format!("a path has {seen} instructions, {PATH_INSTRUCTIONS_MAX} are allowed"));
    }
    Ok(())
}
