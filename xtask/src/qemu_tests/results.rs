//! An image that keeps the console of a run on the stick that it booted from: what the stick has
//! afterwards is what came on the serial port, and a PC without a serial port keeps it, too.

use super::{Machine, profiled};
use crate::tally::Tally;
use diapason::console::{Line, Splitter};
use diapason::describe::describe;
use diapason::hardware::{Firmware, Inserted, Medium, OVMF};
use diapason::metal::Built;
use diapason::outcome::{Outcome, RunVerdict};
use diapason::qemu::{MachineEnding, RunFolder};
use diapason::results::{Kept, KeptEnd, read, require};
use diapason::session::{FinishedRun, Session};
use diapason::tools::{self, Missing};
use diapason::{Failure, Workspace, stick};
use diapason_system::RunOptions;
use std::fs::File;
use std::path::Path;

const SYSTEM: &str = "tests/systems/results.toml";
/// The device of the description that is the stick.
const STICK: &str = "stick";
const HORIZON_NS: u64 = 3_000_000_000;

/// Runs the tests whose names contain `part`.
pub fn run(workspace: &Workspace, built: &Built, part: &str, tally: &mut Tally) {
    let name = format!("{}: an image keeps the console of a run on its stick", Machine::Qemu);
    if name.contains(part) {
        tally.step(&name, || keep(workspace, built));
    }
}

fn said(failure: Failure) -> String {
    failure.to_string()
}

fn keep(workspace: &Workspace, built: &Built) -> Result<(), String> {
    tools::require_all(&[&stick::TOOLS[..], &[OVMF]].concat(), Missing::Install).map_err(said)?;
    let path = workspace.root().join(SYSTEM);
    let system = describe(&path).map_err(said)?;
    require(&path, std::slice::from_ref(&system)).map_err(said)?;
    let options = RunOptions { horizon_ns: HORIZON_NS, record_bytes: 0, watch: false };
    let mut session = Session::assemble(system, built.clone(), options).map_err(said)?;
    session.results_bytes = Some(1 << 20);
    let folder = RunFolder::create(&workspace.target()).map_err(said)?;
    let file = folder.path().join("stick.img");
    stick::make(&[&session], workspace, &file).map_err(said)?;
    match kept(&file) {
        Err(said) if said.contains("has not run") => {}
        other => return Err(format!("a stick that has not run says: {other:?}")),
    }
    // The stick itself is there instead.
    session.system.usb.retain(|plug| plug.name != STICK);
    for (number, firmware) in [(1, Firmware::Bios), (2, Firmware::Uefi)] {
        session.hardware.serial = number == 1;
        let medium = Medium::Stick;
        session.inserted = Some(Inserted { file: file.clone(), firmware, medium });
        let mut lines = Vec::new();
        let run = session.run(workspace, &mut |line| lines.push(line.clone())).map_err(said)?;
        let kept = kept(&file)?;
        println!("{firmware:?}: start {}, {} bytes, {:?}", kept.run, kept.console.len(), kept.end);
        if run.ending != MachineEnding::Finished {
            return Err(format!("the machine ended by {:?}", run.ending));
        }
        if (kept.run, kept.end, kept.lost) != (number, KeptEnd::Whole, 0) {
            return Err(format!("the stick has {:?}, {} lines lost", kept.end, kept.lost));
        }
        judged(&session, &FinishedRun { outcome: outcome(&kept), ..run.clone() })?;
        if session.hardware.serial {
            compare(&lines, &run.outcome, &kept)?;
        } else if !lines.is_empty() {
            return Err("a PC without a serial port said something on it".into());
        }
    }
    Ok(())
}

fn kept(file: &Path) -> Result<Kept, String> {
    read(&mut File::open(file).map_err(|error| error.to_string())?)
}

/// Returns what the records on a stick tell.
fn outcome(kept: &Kept) -> Outcome {
    let (mut splitter, mut outcome) = (Splitter::default(), Outcome::default());
    splitter.push(&kept.console, |line| outcome.note(&line));
    splitter.finish(|line| outcome.note(&line));
    outcome
}

/// Checks that a run of which only the stick tells holds, and that everything was measured.
fn judged(session: &Session, run: &FinishedRun) -> Result<(), String> {
    match session.judge(run) {
        RunVerdict::Holds => {}
        other => return Err(format!("the stick says {:?}", other.findings())),
    }
    let unmeasured = session.unmeasured(run);
    if unmeasured.is_empty() {
        Ok(())
    } else {
        Err(format!("the stick does not tell {unmeasured:?}"))
    }
}

/// Checks that the stick has what came on the serial port, byte for byte, and tells the same.
fn compare(lines: &[Line], heard: &Outcome, kept: &Kept) -> Result<(), String> {
    let serial = profiled::text(lines);
    // The firmware's words come before the first record.
    let begin = serial.find("~1 ").ok_or("the serial port said nothing")?;
    if serial.as_bytes()[begin..] != kept.console {
        let at = serial.as_bytes()[begin..].iter().zip(&kept.console);
        let same = at.take_while(|(one, other)| one == other).count();
        return Err(format!("the stick and the serial port differ behind {same} bytes"));
    }
    if outcome(kept) != *heard {
        return Err("the stick tells another outcome than the serial port".into());
    }
    Ok(())
}
