//! An image that keeps the console of a run on the stick that it booted from: what the stick has
//! afterwards is what came on the serial port, and a PC without a serial port keeps it, too. With
//! several cores, so it is for each.

use super::cores::{AT_FULL_PACE, Stage};
use super::{Machine, profiled};
use crate::tally::Tally;
use diapason::console::{Line, SerialPort};
use diapason::cores::boot;
use diapason::describe::{describe, describe_any};
use diapason::failure::UNPROVED;
use diapason::hardware::{Firmware, Inserted, Medium};
use diapason::metal::Built;
use diapason::outcome::{Outcome, RunVerdict};
use diapason::qemu::{MachineEnding, RunFolder};
use diapason::results::{Kept, KeptEnd, read, require};
use diapason::session::{FinishedRun, Session};
use diapason::{Failure, Workspace, stick};
use diapason_abi::record::Record;
use diapason_contract::settings::PROGRAM;
use diapason_system::{Description, RunOptions};
use std::fs::File;
use std::path::Path;

const SYSTEM: &str = "tests/systems/results.toml";
/// The device of the description that is the stick.
const STICK: &str = "stick";
const HORIZON_NS: u64 = 3_000_000_000;
/// A run that is over before a server can have found a stick: a port is left alone for longer.
const SHORT_NS: u64 = 50_000_000;

/// A run in which a stick is pulled out and comes back, or in which a server is given up.
const LONG_NS: u64 = 8_000_000_000;
/// The last words of the server when it has found the stick.
const FOUND: &str = " blocks of 512 bytes";
/// A program that never answers anybody, and what the writer says then.
const DEAF: &str = "cores-hog";
const UNANSWERED: &str = "no results: the USB server does not answer";
/// A system with two cores.
const CORES: &str = "tests/systems/results-cores.toml";

/// A core with its number.
type Named = (String, Session);

/// Runs the tests whose names contain `part`.
pub fn run(workspace: &Workspace, built: &Built, part: &str, tally: &mut Tally) {
    type Step = fn(&Workspace, &Built) -> Result<(), String>;
    let steps: [(&str, Step); 5] = [
        ("an image keeps the console of a run on its stick", keep),
        ("an image keeps the consoles of two cores on its stick", keep_cores),
        ("a stick that is found when a short run is over keeps its consoles", found_late),
        ("a stick that is pulled out of a PC that keeps its consoles", pulled),
        ("a stick whose server never answers keeps no console, and says so", unanswered),
    ];
    for (name, step) in steps {
        let name = format!("{}: {name}", Machine::Qemu);
        if name.contains(part) {
            tally.step(&name, || step(workspace, built));
        }
    }
}

fn said(failure: Failure) -> String {
    failure.to_string()
}

fn keep(workspace: &Workspace, built: &Built) -> Result<(), String> {
    super::require_firmware()?;
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

/// Returns the lines of so many cores on a stick.
fn said_on(kept: &Kept, cores: usize) -> Result<Vec<Vec<Line>>, String> {
    let (mut port, mut said) = (SerialPort::default(), vec![Vec::new(); cores]);
    let mut strange = 0;
    let mut note = |core: usize, line| match said.get_mut(core) {
        Some(lines) => lines.push(line),
        None => strange += 1,
    };
    port.push(&kept.console, &mut note);
    port.finish(&mut note);
    if strange > 0 { Err(format!("{strange} lines are of no core")) } else { Ok(said) }
}

fn outcome_of(lines: &[Line]) -> Outcome {
    let mut outcome = Outcome::default();
    lines.iter().for_each(|line| outcome.note(line));
    outcome
}

/// Returns what the records on a stick of one core tell.
fn outcome(kept: &Kept) -> Outcome {
    said_on(kept, 1).map_or_else(|_| Outcome::default(), |said| outcome_of(&said[0]))
}

/// Makes a stick for two cores that run so long. If nobody serves, another program has the place of
/// the USB server.
fn two_cores(
    workspace: &Workspace,
    built: &Built,
    (file, horizon_ns, serves): (&Path, u64, bool),
) -> Result<Vec<Named>, String> {
    super::require_firmware()?;
    let path = workspace.root().join(CORES);
    let Description::Cores(mut systems) = describe_any(&path).map_err(said)? else {
        return Err("the system has one core".into());
    };
    require(&path, &systems).map_err(said)?;
    let servers = systems[0].processes.iter_mut().filter(|it| it.program == PROGRAM && !serves);
    for server in servers {
        (server.program, server.settings) = (DEAF.into(), Vec::new());
    }
    let options = RunOptions { horizon_ns, record_bytes: 0, watch: false };
    let mut sessions = Stage { workspace, built }.planned(&systems, options)?;
    sessions[0].1.results_bytes = Some(1 << 20);
    let all: Vec<&Session> = sessions.iter().map(|(_, session)| session).collect();
    stick::make(&all, workspace, file).map_err(said)?;
    Ok(sessions)
}

/// A run of two cores: how it went on each, what came of each on the serial port behind the words
/// of the firmware, and what the stick has of each.
struct Both {
    runs: Vec<FinishedRun>,
    heard: Vec<Vec<Line>>,
    kept: Kept,
    told: Vec<Vec<Line>>,
}

impl Both {
    fn boot(
        workspace: &Workspace,
        sessions: &mut [Named],
        inserted: Inserted,
    ) -> Result<Both, String> {
        let (file, medium) = (inserted.file.clone(), inserted.medium);
        sessions[0].1.inserted = Some(inserted);
        let mut heard = vec![Vec::new(); sessions.len()];
        let mut hear = |core: usize, line: &Line| heard[core].push(line.clone());
        let runs = boot(workspace, sessions, AT_FULL_PACE, &mut hear).map_err(said)?;
        let kept = kept(&file)?;
        println!("{medium:?}: start {}, {} bytes, {:?}", kept.run, kept.console.len(), kept.end);
        if runs.iter().any(|run| run.ending != MachineEnding::Finished) {
            return Err(format!("the machine ended by {:?}", runs[0].ending));
        }
        let is_boot = |line: &Line| matches!(line, Line::Record(Record::Boot, _));
        let begin = heard[0].iter().position(is_boot).unwrap_or(0);
        heard[0].drain(..begin);
        let told = said_on(&kept, sessions.len())?;
        Ok(Both { runs, heard, kept, told })
    }

    /// Returns how often the server said that it has found the stick.
    fn times_found(&self) -> usize {
        let is_found =
            |line: &&Line| matches!(line, Line::Log { text, .. } if text.ends_with(FOUND));
        self.heard[0].iter().filter(is_found).count()
    }

    /// Checks that the stick has all of each core, and that it tells of a run that holds.
    fn is_whole(&self, sessions: &[Named], number: u32) -> Result<(), String> {
        let Kept { run, end, lost, .. } = self.kept;
        if (run, end, lost) != (number, KeptEnd::Whole, 0) {
            return Err(format!("the stick has start {run}, {end:?}, {lost} lines lost"));
        }
        for (core, (_, session)) in sessions.iter().enumerate() {
            let (told, heard) = (&self.told[core], &self.heard[core]);
            println!("core {core}: {} lines", told.len());
            let run = FinishedRun { outcome: outcome_of(told), ..self.runs[core].clone() };
            let verdict = session.judge(&run);
            let has_end = told.iter().any(|line| matches!(line, Line::Record(Record::End, _)));
            // QEMU's processors have no times of their own.
            let open = session.unmeasured(&run).iter().any(|what| !what.starts_with("times: "));
            if verdict != RunVerdict::Holds || !has_end || open {
                return Err(format!("core {core}: the stick says {:?}", verdict.findings()));
            }
            if session.hardware.serial && heard != told {
                return Err(format!("core {core}: the stick and the serial port differ"));
            }
        }
        Ok(())
    }
}

/// Boots two cores from a stick, and compares what it has of each with what came from it.
fn keep_cores(workspace: &Workspace, built: &Built) -> Result<(), String> {
    let folder = RunFolder::create(&workspace.target()).map_err(said)?;
    let file = folder.path().join("stick.img");
    let mut sessions = two_cores(workspace, built, (&file, HORIZON_NS, true))?;
    for (number, firmware) in [(1, Firmware::Bios), (2, Firmware::Uefi)] {
        let serial = number == 1;
        sessions.iter_mut().for_each(|(_, session)| session.hardware.serial = serial);
        let inserted = Inserted { file: file.clone(), firmware, medium: Medium::Stick };
        let both = Both::boot(workspace, &mut sessions, inserted)?;
        both.is_whole(&sessions, number)?;
        if !serial && both.heard.iter().any(|lines| !lines.is_empty()) {
            return Err("a PC without a serial port said something on it".into());
        }
    }
    Ok(())
}

/// Boots two cores whose run is over before their server finds the stick.
fn found_late(workspace: &Workspace, built: &Built) -> Result<(), String> {
    let folder = RunFolder::create(&workspace.target()).map_err(said)?;
    let file = folder.path().join("stick.img");
    let mut sessions = two_cores(workspace, built, (&file, SHORT_NS, true))?;
    let inserted = Inserted { file, firmware: Firmware::Bios, medium: Medium::Stick };
    let both = Both::boot(workspace, &mut sessions, inserted)?;
    match both.times_found() {
        0 => both.is_whole(&sessions, 1),
        _ => Err("the run was not over when the server found the stick".into()),
    }
}

/// Pulls the stick out of a PC that runs. If it comes back, it has everything. If not, the PC ends
/// its run all the same, and the stick says that it has no end.
fn pulled(workspace: &Workspace, built: &Built) -> Result<(), String> {
    let folder = RunFolder::create(&workspace.target()).map_err(said)?;
    let file = folder.path().join("stick.img");
    for back in [true, false] {
        let mut sessions = two_cores(workspace, built, (&file, LONG_NS, true))?;
        let (firmware, medium) = (Firmware::Bios, Medium::Loose { back });
        let inserted = Inserted { file: file.clone(), firmware, medium };
        let both = Both::boot(workspace, &mut sessions, inserted)?;
        let found = both.times_found();
        println!("the server found the stick {found} times");
        if found != 1 + usize::from(back) {
            return Err(format!("the server found the stick {found} times"));
        }
        if back {
            both.is_whole(&sessions, 1)?;
        } else if both.kept.end != KeptEnd::Open || both.kept.code() != UNPROVED {
            return Err(format!("a stick that was gone at the end says {:?}", both.kept.end));
        }
        for (core, (told, heard)) in both.told.iter().zip(&both.heard).enumerate() {
            // The last line may be cut.
            let whole = &told[..told.len().saturating_sub(1)];
            if !heard.starts_with(whole) {
                return Err(format!("core {core}: the stick and the serial port differ"));
            }
        }
    }
    Ok(())
}

/// A server that never answers is told of, and the PC ends its run.
fn unanswered(workspace: &Workspace, built: &Built) -> Result<(), String> {
    let folder = RunFolder::create(&workspace.target()).map_err(said)?;
    let file = folder.path().join("stick.img");
    let mut sessions = two_cores(workspace, built, (&file, LONG_NS, false))?;
    let (firmware, medium) = (Firmware::Bios, Medium::Stick);
    sessions[0].1.inserted = Some(Inserted { file: file.clone(), firmware, medium });
    let mut told = 0;
    let mut hear = |_: usize, line: &Line| {
        told += usize::from(matches!(line, Line::Log { text, .. } if text == UNANSWERED));
    };
    let runs = boot(workspace, &mut sessions, AT_FULL_PACE, &mut hear).map_err(said)?;
    println!("{:?}, told {told} times", runs[0].ending);
    match kept(&file) {
        Err(said) if said.contains("has not run") => {}
        other => return Err(format!("the stick says: {other:?}")),
    }
    let has_ended = runs.iter().all(|run| run.ending == MachineEnding::Finished);
    if has_ended && told == 1 { Ok(()) } else { Err(format!("told {told} times")) }
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
