//! Judges programs that share a segment and a doorbell between cores, by what the logger says.

use super::judge::{Breach, breach};
use super::text::board::READY;
use diapason_system::System;

/// The program that is woken.
const LOGGER: &str = "cores-logger";
/// The program that rings far more often than the doorbell may ring.
const STORM: &str = "cores-hog";
/// The alarm that names a source which interrupts too soon.
const NAMED: &str = "alarm interrupt-distance";
/// The first word of the logger's lines.
const SAYS: &str = "CORES";

/// Returns whether a system has the program `program`.
fn has(system: &System, program: &str) -> bool {
    system.processes.iter().any(|process| process.program == program)
}

/// Returns whether a program rings the logger's doorbell more often than it may ring.
fn is_stormy<'a>(mut systems: impl Iterator<Item = &'a System>) -> bool {
    systems.any(|system| has(system, STORM))
}

/// Returns whether a run names the doorbell because a program rings it too often: the first ring
/// that comes too soon is heard.
pub fn is_named<'a>(systems: impl Iterator<Item = &'a System>, broken: &Breach) -> bool {
    broken.kind.starts_with(NAMED) && broken.text.contains(READY) && is_stormy(systems)
}

/// Returns what is wrong with what the logger heard, if there is one.
pub fn heard<'a>(
    systems: impl Iterator<Item = &'a System> + Clone,
    said: &[String],
) -> Vec<Breach> {
    if !systems.clone().any(|system| has(system, LOGGER)) {
        return Vec::new();
    }
    let lines = said.iter().filter_map(|line| line.strip_prefix(SAYS));
    let numbers = |line: &str| line.split_whitespace().filter_map(|it| it.parse().ok()).collect();
    let lines: Vec<Vec<u64>> = lines.map(numbers).collect();
    if lines.is_empty() {
        return vec![breach("silent", String::from("the logger was not woken"))];
    }
    // A ring of the storm comes before the message of the controller's next ring.
    let stormy = is_stormy(systems);
    let broken = lines.iter().find(|line| line.get(2).is_none_or(|broken| *broken > 0));
    let broken = broken.filter(|_| !stormy);
    broken.map(|line| breach("message in common", format!("{SAYS} {line:?}"))).into_iter().collect()
}
