//! Tests that boot a described system, in QEMU or on the simulated machine, and look at what it
//! did.
//!
//! A test is a description, a length of time, and a predicate on what was observed. To add one:
//! write the description under `tests/systems/` (or use one of `examples/`), add a [`QemuTest`] to
//! the `TESTS` of the file for its topic, and if that file is new, to [`topics`].

mod across;
mod alarms;
mod busy;
mod chains;
mod clock;
mod common_time;
mod concentrator;
mod controllers;
mod cores;
mod devices;
mod engine;
mod ethernet;
mod faults;
mod flood;
mod frames;
mod hosts;
mod image;
mod in_step;
mod inflicted;
mod intruder;
mod joined;
mod missing;
mod modes;
pub mod observed;
mod paths;
mod piped;
mod profiled;
mod results;
mod screen;
mod side_by_side;
mod sources;
pub mod storm;
mod talker;
mod tcp;
mod theft;
mod trials;
mod tuned;
pub mod udp;
mod usb;
mod vcpus;
pub mod victims;

use observed::Observed;

use crate::tally::Tally;
use diapason::describe::describe;
use diapason::hardware::{Hardware, OVMF, SWTPM};
use diapason::metal::Built;
use diapason::session::{RECORD_BYTES, Session};
use diapason::surroundings::Functions;
use diapason::tools::{self, Missing};
use diapason::{Workspace, stick, words};
use diapason_system::{RunOptions, parse_fault};

/// The machine that a test's system runs on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Machine {
    /// The real kernel in QEMU.
    Qemu,
    Simulator,
}

impl std::fmt::Display for Machine {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Machine::Qemu => "QEMU",
            Machine::Simulator => "simulator",
        })
    }
}

/// Makes sure that images can be made and booted by either firmware.
fn require_firmware() -> Result<(), String> {
    // Without a TPM the firmware takes longer, and boots all the same.
    let _ = SWTPM.require(Missing::Install);
    let needed = [&stick::TOOLS[..], &[OVMF]].concat();
    tools::require_all(&needed, Missing::Install).map_err(|failure| failure.to_string())
}

/// One test of a booted system.
pub(crate) struct QemuTest {
    /// The property that holds if it passes, as a sentence.
    pub name: &'static str,
    /// The description, below the workspace's root.
    pub system: &'static str,
    /// The length of the run, in ns of its own time.
    pub horizon_ns: u64,
    /// Keeps the flight record.
    pub record: bool,
    /// Times every kernel path.
    pub watch: bool,
    /// The number of boots.
    pub boots: usize,
    /// Done to the archive before it boots: damage, for example.
    pub alter: Option<fn(&mut Vec<u8>)>,
    /// The faults, in words of the command line; only in the simulator.
    pub faults: &'static [&'static str],
    /// In the simulator: true if the description's works take their longest. Else they take no
    /// time.
    pub works: bool,
    pub machine: Machine,
    /// The PC that QEMU is.
    pub hardware: Hardware,
    /// On the simulator: the devices around it, if not those of the description.
    pub among: Option<fn() -> Functions>,
    /// Checks the observations, one per boot, and returns the broken property.
    pub check: fn(&[Observed]) -> Result<(), String>,
}

impl QemuTest {
    /// A test that boots `system` once for a second; other needs are said with `..`.
    pub const fn new(
        name: &'static str,
        system: &'static str,
        check: fn(&[Observed]) -> Result<(), String>,
    ) -> QemuTest {
        QemuTest {
            name,
            system,
            horizon_ns: 1_000_000_000,
            record: false,
            watch: false,
            boots: 1,
            alter: None,
            faults: &[],
            works: false,
            machine: Machine::Qemu,
            hardware: Hardware::USUAL,
            among: None,
            check,
        }
    }

    /// A test on the simulated machine.
    pub const fn simulated(
        name: &'static str,
        system: &'static str,
        check: fn(&[Observed]) -> Result<(), String>,
    ) -> QemuTest {
        QemuTest { machine: Machine::Simulator, ..QemuTest::new(name, system, check) }
    }

    fn run(&self, workspace: &Workspace, built: &Built) -> Result<(), String> {
        let mut system =
            describe(&workspace.root().join(self.system)).map_err(|f| f.to_string())?;
        for words in self.faults {
            let fault = parse_fault(&system, words).map_err(|wrong| wrong.to_string())?;
            system.faults.push(fault);
        }
        let options = RunOptions {
            horizon_ns: self.horizon_ns,
            record_bytes: if self.record { RECORD_BYTES } else { 0 },
            watch: self.watch,
        };
        let mut session =
            Session::assemble(system, built.clone(), options).map_err(|f| f.to_string())?;
        session.hardware = self.hardware;
        if let Some(alter) = self.alter {
            alter(&mut session.archive);
        }
        let boots = (0..self.boots).map(|_| match self.machine {
            Machine::Qemu => Observed::boot(workspace, &session),
            Machine::Simulator => match self.among {
                Some(among) => Observed::simulate_among(&session, among(), &observed::strict()),
                None if self.works => Observed::simulate_working(&session),
                None => Observed::simulate(&session),
            },
        });
        let observed = boots.collect::<Result<Vec<Observed>, String>>()?;
        (self.check)(&observed).map_err(|wrong| explain(&wrong, &observed))
    }
}

/// Returns the broken property, with the end of the last console.
fn explain(wrong: &str, observed: &[Observed]) -> String {
    const SHOWN: usize = 60;
    let Some(last) = observed.last() else { return wrong.into() };
    let skipped = last.lines.len().saturating_sub(SHOWN);
    let console: Vec<String> =
        last.lines[skipped..].iter().map(|line| words::sentence(line, &last.names)).collect();
    format!(
        "{wrong}\nthe machine ended with {:?}, {:?}; its console ({skipped} lines before):\n{}",
        last.run.ending,
        last.verdict,
        console.join("\n")
    )
}

/// Returns the tests by topic.
fn topics() -> [&'static [QemuTest]; 23] {
    [
        alarms::TESTS,
        chains::TESTS,
        clock::TESTS,
        controllers::TESTS,
        concentrator::TESTS,
        devices::TESTS,
        engine::TESTS,
        faults::TESTS,
        flood::TESTS,
        inflicted::TESTS,
        intruder::TESTS,
        missing::TESTS,
        modes::TESTS,
        paths::TESTS,
        sources::TESTS,
        trials::TESTS,
        tuned::TESTS,
        tcp::TESTS,
        udp::TESTS,
        usb::TESTS,
        vcpus::TESTS,
        victims::TESTS,
        storm::TESTS,
    ]
}

/// Runs every test whose machine and name contain `part`.
pub fn run(workspace: &Workspace, built: &Built, part: &str, tally: &mut Tally) {
    for test in topics().into_iter().flatten() {
        let name = format!("{}: {}", test.machine, test.name);
        if name.contains(part) {
            tally.step(&name, || test.run(workspace, built));
        }
    }
    busy::run(workspace, built, part, tally);
    frames::run(workspace, built, part, tally);
    controllers::run(workspace, built, part, tally);
    hosts::run(workspace, built, part, tally);
    ethernet::run(workspace, built, part, tally);
    piped::run(workspace, built, part, tally);
    common_time::run(workspace, built, part, tally);
    in_step::run(workspace, built, part, tally);
    cores::run(workspace, built, part, tally);
    side_by_side::run(workspace, built, part, tally);
    across::run(workspace, built, part, tally);
    intruder::run(workspace, built, part, tally);
    image::run(workspace, built, part, tally);
    profiled::run(workspace, built, part, tally);
    results::run(workspace, built, part, tally);
    screen::run(workspace, built, part, tally);
    joined::run(workspace, built, part, tally);
    theft::run(workspace, built, part, tally);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_unique_and_every_test_boots() {
        let named = |test: &QemuTest| format!("{}: {}", test.machine, test.name);
        let mut names: Vec<String> = topics().into_iter().flatten().map(named).collect();
        let count = names.len();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), count);
        assert!(topics().into_iter().flatten().all(|test| test.boots > 0));
    }
}
