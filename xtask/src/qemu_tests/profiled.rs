//! A PC measures itself, and its console becomes a profile that `plan` reads.
//!
//! QEMU counts an instruction as a nanosecond here, so the profile's times can be told beforehand.
//! `plan` must refuse it nevertheless: QEMU says that it is no real computer.

use super::{Machine, Observed};
use crate::tally::Tally;
use diapason::computer::Computer;
use diapason::console::Line;
use diapason::hardware::{Firmware, Inserted, Medium};
use diapason::metal::Built;
use diapason::plan::{PlanRequest, plan};
use diapason::profile::{MEASURING, ProfileRequest, profile};
use diapason::qemu::RunFolder;
use diapason::session::Session;
use diapason::tools::{self, Missing};
use diapason::{Failure, Workspace, stick};
use diapason_abi::Nanos;
use diapason_pipe::measured::{MachineReport, Measurement};
use diapason_system::{MachineProfile, RunOptions, parse};
use std::fs;
use std::path::Path;

/// Longer than it takes to measure.
const HORIZON_NS: u64 = 60_000_000_000;
/// How long gaps are looked for, in ms.
const GAPS: &str = "[200]";
/// A task that looks like firmware: it has the processor for 300 us, every 5 ms.
const THIEF: &str = "[[process]]\nname = \"task\"\npriority = 30\narguments = [0, 5000, 300]\n";

/// Runs the tests whose names contain `part`.
pub fn run(workspace: &Workspace, built: &Built, part: &str, tally: &mut Tally) {
    type Step = fn(&Workspace, &Built) -> Result<(), String>;
    let steps: [(&str, Step); 2] = [
        ("a PC measures itself, and its profile is read", measured),
        ("a PC sees who has its processor", stolen),
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

fn wrong(error: std::io::Error) -> String {
    error.to_string()
}

/// Returns the session that measures quickly.
fn session(workspace: &Workspace, built: &Built, more: &str) -> Result<Session, String> {
    let text = fs::read_to_string(workspace.root().join(MEASURING)).map_err(wrong)?;
    let text = text.replace("[60000]", GAPS).replace("[0, 32768]", "[0, 64]") + more;
    let system = parse(MEASURING, &text).map_err(|mistakes| mistakes.plain())?;
    let options = RunOptions { horizon_ns: HORIZON_NS, record_bytes: 0, watch: false };
    Session::assemble(system, built.clone(), options).map_err(said)
}

fn measured(workspace: &Workspace, built: &Built) -> Result<(), String> {
    tools::require_all(&stick::TOOLS, Missing::Install).map_err(said)?;
    let folder = RunFolder::create(&workspace.target()).map_err(said)?;
    let image = folder.path().join("stick.img");
    let mut session = session(workspace, built, "")?.on_own_kernel(workspace).map_err(said)?;
    stick::make(&[&session], workspace, &image).map_err(said)?;
    let (firmware, medium) = (Firmware::Bios, Medium::Disc);
    session.inserted = Some(Inserted { file: image, firmware, medium });
    let boot = Observed::boot(workspace, &session)?;
    boot.holds()?;
    let console = text(&boot.lines);
    let out = folder.path().join("machine.toml");
    expect(profiled(&folder, &console, &out), Ok(0), "the profile")?;
    let found = read(&out)?;
    println!("{}", found.sentence());
    let is_as_counted = (300_000_000..=1_000_000_000).contains(&found.clock_hz);
    let is_in_time = found.late < Nanos::from_micros(5) && found.interrupt < Some(MOST_LATE);
    if found.real || !is_as_counted || !is_in_time || found.interrupt.is_none() {
        return Err("this is not what QEMU counts".into());
    }
    if found.gap.is_some() || found.measured != Nanos::from_millis(200) {
        return Err("nobody else has the processor of this PC".into());
    }
    refusals(workspace, &folder, &console, found)
}

/// An interrupt of the HPET comes no later in QEMU.
const MOST_LATE: Nanos = Nanos::from_micros(20);

/// Checks what is refused: an emulated computer, another kernel, half a console.
fn refusals(
    workspace: &Workspace,
    folder: &RunFolder,
    console: &str,
    found: MachineProfile,
) -> Result<(), String> {
    let engine = workspace.root().join("examples/engine.toml");
    let planned = |machine: &Path| {
        let machine = Some(machine.to_path_buf());
        let computer = Computer { machine, clock_hz: None };
        let (place, cores, json, format) = (false, None, false, None);
        plan(&PlanRequest { system: engine.clone(), computer, place, cores, json, format })
    };
    let file = folder.path().join("changed.toml");
    let write = |machine: MachineProfile| fs::write(&file, machine.to_toml()).map_err(wrong);
    write(found.clone())?;
    expect(planned(&file), Ok(1), "an emulated computer")?;
    write(MachineProfile { real: true, ..found.clone() })?;
    expect(planned(&file), Ok(5), "a real one, for a system that promises nothing")?;
    write(MachineProfile { kernel: found.kernel ^ 1, ..found })?;
    expect(planned(&file), Err(2), "another kernel")?;
    let first = console.lines().find(|line| line.starts_with("~1 ")).unwrap_or_default();
    let other = console.replacen(first, &first.replacen("~1 7 ", "~1 7 1", 1), 1);
    expect(profiled(folder, &other, &file), Err(2), "the console of another kernel")?;
    let half = &console[..console.len() / 2];
    expect(profiled(folder, half, &file), Err(2), "half a console")
}

fn stolen(workspace: &Workspace, built: &Built) -> Result<(), String> {
    let boot = Observed::boot(workspace, &session(workspace, built, THIEF)?)?;
    let gaps = boot.lines.iter().find_map(|line| match line.measured()?.1?.said {
        Measurement::Machine(report @ MachineReport::Gaps { .. }) => Some(report),
        _ => None,
    });
    println!("{gaps:?}");
    let Some(MachineReport::Gaps { count, longest, apart, .. }) = gaps else {
        return Err("it did not look for gaps".into());
    };
    let micros = |time: Nanos| time.0 / 1_000;
    // The task's first and last time may be cut off.
    let is_seen = (39..=41).contains(&count) && (300..=320).contains(&micros(longest));
    if is_seen && (4_900..=5_010).contains(&micros(apart)) {
        Ok(())
    } else {
        Err("this is not the task".into())
    }
}

/// Gives a console to `diapason profile`.
fn profiled(folder: &RunFolder, console: &str, out: &Path) -> Result<u8, Failure> {
    let file = folder.path().join("console");
    fs::write(&file, console).map_err(|error| Failure::io("write the console", &error))?;
    profile(&ProfileRequest { console: file, out: out.into(), missing: Missing::Install })
}

/// Checks an exit code: that of an answer, or that of a failure.
fn expect(answer: Result<u8, Failure>, wanted: Result<u8, u8>, of: &str) -> Result<(), String> {
    if let Err(failure) = &answer {
        println!("{failure}");
    }
    let code = answer.map_err(|failure| failure.exit_code());
    if code == wanted { Ok(()) } else { Err(format!("{of}: {code:?}, and not {wanted:?}")) }
}

fn read(profile: &Path) -> Result<MachineProfile, String> {
    let text = fs::read_to_string(profile).map_err(wrong)?;
    MachineProfile::parse("machine.toml", &text).map_err(|mistakes| mistakes.plain())
}

/// Returns the lines of a console as they came.
pub(super) fn text(lines: &[Line]) -> String {
    let line = |line: &Line| match line {
        Line::Record(record, words) => {
            let words: String = words.iter().map(|word| format!(" {word:x}")).collect();
            format!("~{:x}{words}\n", *record as u8)
        }
        Line::Log { process, text } => format!("={process:x} {text}\n"),
        Line::Raw(text) => format!("{text}\n"),
    };
    lines.iter().map(line).collect()
}
