//! A PC measures itself, and its console becomes a profile that `plan` reads.
//!
//! QEMU counts an instruction as a nanosecond here, so the profile's times can be told beforehand.
//! `plan` must refuse it nevertheless: QEMU says that it is no real computer.
//!
//! With several processors QEMU counts nothing: they run in the time of this computer. So the test
//! of a PC whose other cores work waits until everything is measured, and looks at no time.

use super::cores::{AT_FULL_PACE, Stage};
use super::{Machine, Observed};
use crate::tally::Tally;
use diapason::computer::Computer;
use diapason::console::Line;
use diapason::cores::{boot_until, share_kernel};
use diapason::describe::{cores_changed, describe_changed};
use diapason::hardware::{Firmware, Inserted, Medium};
use diapason::metal::Built;
use diapason::plan::{PlanRequest, plan};
use diapason::profile::{MEASURING, MEASURING_CORES, ProfileRequest, profile};
use diapason::qemu::RunFolder;
use diapason::session::Session;
use diapason::tools::{self, Missing};
use diapason::{Failure, Workspace, stick};
use diapason_abi::Nanos;
use diapason_abi::record::Record;
use diapason_abi::results::mark;
use diapason_pipe::measured::{CostReport, MachineReport, Measurement, Reported};
use diapason_system::{MachineProfile, RunOptions, System};
use std::fs;
use std::ops::ControlFlow;
use std::path::Path;

/// Longer than it takes to measure.
const HORIZON_NS: u64 = 60_000_000_000;
/// Arguments that take long, and those of a test: how long gaps are looked for, in ms, and over
/// how many KiB caches become cold and other cores stream.
const LONG: [(u64, u64); 3] = [(60_000, 200), (32_768, 64), (65_536, 4_096)];
/// A task that looks like firmware: it has the processor for 300 us, every 5 ms.
const THIEF: &str = "[[process]]\nname = \"task\"\npriority = 30\narguments = [0, 5000, 300]\n";

/// Runs the tests whose names contain `part`.
pub fn run(workspace: &Workspace, built: &Built, part: &str, tally: &mut Tally) {
    type Step = fn(&Workspace, &Built) -> Result<(), String>;
    let steps: [(&str, Step); 3] = [
        ("a PC measures itself, and its profile is read", measured),
        ("a PC measures itself while its other core works on memory", beside),
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
    let path = workspace.root().join(MEASURING);
    let text = fs::read_to_string(&path).map_err(wrong)? + more;
    let system = quick(describe_changed(&path, &text).map_err(said)?);
    let options = RunOptions { horizon_ns: HORIZON_NS, record_bytes: 0, watch: false };
    Session::assemble(system, built.clone(), options).map_err(said)
}

/// Returns the system with arguments that take less time.
fn quick(mut system: System) -> System {
    let arguments = system.processes.iter_mut().flat_map(|process| &mut process.arguments);
    for argument in arguments {
        let shorter = LONG.iter().find(|(long, _)| long == argument);
        *argument = shorter.map_or(*argument, |(_, short)| *short);
    }
    system
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

/// A real computer is looked at for so long.
const MINUTE: Nanos = Nanos::from_secs(60);
/// An interrupt of the HPET comes no later in QEMU.
const MOST_LATE: Nanos = Nanos::from_micros(20);

/// Checks what is refused: an emulated computer, another kernel, half a console.
fn refusals(
    workspace: &Workspace,
    folder: &RunFolder,
    console: &str,
    found: MachineProfile,
) -> Result<(), String> {
    let planned = |machine: &Path| planned(workspace, "examples/engine.toml", machine);
    let file = folder.path().join("changed.toml");
    let write = |machine: MachineProfile| fs::write(&file, machine.to_toml()).map_err(wrong);
    write(found.clone())?;
    expect(planned(&file), Ok(1), "an emulated computer")?;
    write(MachineProfile { real: true, ..found.clone() })?;
    expect(planned(&file), Err(2), "a real one, looked at for a moment")?;
    write(MachineProfile { real: true, measured: MINUTE, ..found.clone() })?;
    expect(planned(&file), Ok(5), "a real one, for a system that promises nothing")?;
    write(MachineProfile { kernel: found.kernel ^ 1, ..found })?;
    expect(planned(&file), Err(2), "another kernel")?;
    let first = console.lines().find(|line| line.starts_with("~1 ")).unwrap_or_default();
    let other = console.replacen(first, &first.replacen("~1 7 ", "~1 7 1", 1), 1);
    expect(profiled(folder, &other, &file), Err(2), "the console of another kernel")?;
    let half = &console[..console.len() / 2];
    expect(profiled(folder, half, &file), Err(2), "half a console")
}

/// Asks `plan` for the plan of an example on a computer.
fn planned(workspace: &Workspace, example: &str, machine: &Path) -> Result<u8, Failure> {
    let computer = Computer { machine: Some(machine.to_path_buf()), clock_hz: None };
    let (place, cores, json, format) = (false, None, false, None);
    let system = workspace.root().join(example);
    plan(&PlanRequest { system, computer, place, cores, json, format })
}

/// How long two cores are given at most. The run ends when they say [`MEASURED`].
const COUPLE_NS: u64 = 1_200_000_000_000;
/// How the line begins by which a PC says that it is ready.
const MEASURED: &str = "everything is measured";

/// Returns the sessions of the first two cores that measure quickly.
fn couple(workspace: &Workspace, built: &Built) -> Result<Vec<(String, Session)>, String> {
    let path = workspace.root().join(MEASURING_CORES);
    let text = fs::read_to_string(&path).map_err(wrong)?;
    let text = text.replace("cores = 4", "cores = 2").replace("[60000, 3]", "[60000, 1]");
    let third = text.find("[[process]]\nname = \"stress-2\"").ok_or("there is no third core")?;
    let after = third + text[third..].find("[[segment]]").ok_or("nothing follows the cores")?;
    let text = [&text[..third], &text[after..]].concat();
    let systems = cores_changed(&path, &text).map_err(said)?;
    let systems: Vec<System> = systems.into_iter().map(quick).collect();
    let options = RunOptions { horizon_ns: COUPLE_NS, record_bytes: 0, watch: false };
    let mut sessions = Stage { workspace, built }.planned(&systems, options)?;
    share_kernel(workspace, &mut sessions).map_err(said)?;
    Ok(sessions)
}

fn beside(workspace: &Workspace, built: &Built) -> Result<(), String> {
    tools::require_all(&stick::TOOLS, Missing::Install).map_err(said)?;
    let folder = RunFolder::create(&workspace.target()).map_err(said)?;
    let file = folder.path().join("stick.img");
    let mut sessions = couple(workspace, built)?;
    let all: Vec<&Session> = sessions.iter().map(|(_, session)| session).collect();
    stick::make(&all, workspace, &file).map_err(said)?;
    let (firmware, medium) = (Firmware::Bios, Medium::Disc);
    sessions[0].1.inserted = Some(Inserted { file, firmware, medium });
    let mut lines: Vec<(usize, Line)> = Vec::new();
    let mut hear = |core: usize, line: &Line| {
        lines.push((core, undisturbed(line)));
        match line {
            Line::Log { text, .. } if text.starts_with(MEASURED) => ControlFlow::Break(()),
            _ => ControlFlow::Continue(()),
        }
    };
    boot_until(workspace, &mut sessions, AT_FULL_PACE, &mut hear).map_err(said)?;
    let out = folder.path().join("machine.toml");
    expect(profiled(&folder, console(&lines), &out), Ok(0), "the profile")?;
    let found = read(&out)?;
    println!("{}", found.sentence());
    let Some(stress) = found.stress.filter(|stress| stress.cores == 2) else {
        return Err("this is not a profile of two cores".into());
    };
    // A walk that the compiler left out takes less than a ns for each of its 8,192 steps.
    if stress.alone.min(stress.beside) < Nanos(8_192) || stress.ring.is_none() {
        return Err(format!("this was not measured beside another core: {stress:?}"));
    }
    lines.retain(|(core, _)| *core == 0);
    expect(profiled(&folder, console(&lines), &out), Err(2), "a core that says nothing")?;
    planned_beside(workspace, &folder, &found)
}

/// Checks which profiles `plan` takes for a host with two cores.
fn planned_beside(
    workspace: &Workspace,
    folder: &RunFolder,
    found: &MachineProfile,
) -> Result<(), String> {
    let file = folder.path().join("changed.toml");
    let plan = |machine: &MachineProfile, wanted: u8, what: &str| {
        fs::write(&file, machine.to_toml()).map_err(wrong)?;
        expect(planned(workspace, "examples/two-cores.toml", &file), Ok(wanted), what)
    };
    let fast = MachineProfile { clock_hz: 1_000_000_000, ..found.clone() };
    plan(&fast, 1, "an emulated computer")?;
    let real = MachineProfile { real: true, measured: MINUTE, ..fast };
    plan(&real, 0, "a real one")?;
    plan(&MachineProfile { stress: None, ..real }, 1, "one whose other core did not work")
}

/// A delay of a thread that nothing else holds up.
const SOON: Nanos = Nanos::from_micros(1);

/// Returns a line as QEMU would have said it if nothing else had the processors of this computer.
fn undisturbed(line: &Line) -> Line {
    let Some((process, Some(reported))) = line.measured() else { return line.clone() };
    let said = match reported.said {
        Measurement::Cost(report) => Measurement::Cost(CostReport { max: report.median, ..report }),
        Measurement::Machine(MachineReport::Gaps { measured, .. }) => {
            let (longest, apart) = (Nanos::ZERO, Nanos::ZERO);
            Measurement::Machine(MachineReport::Gaps { measured, count: 0, longest, apart })
        }
        Measurement::Machine(MachineReport::Timers { count, .. }) => {
            Measurement::Machine(MachineReport::Timers { count, late: SOON })
        }
        Measurement::Machine(MachineReport::Device { count, read, .. }) => {
            Measurement::Machine(MachineReport::Device { count, late: SOON, read })
        }
        said => said,
    };
    let words = Reported { said, ..reported }.words();
    Line::Record(Record::Measured, [&[process][..], &words].concat())
}

/// Returns the lines of several cores as they came through one serial port.
fn console(lines: &[(usize, Line)]) -> Vec<u8> {
    let (mut bytes, mut speaker) = (Vec::new(), 0);
    for (core, line) in lines {
        if std::mem::replace(&mut speaker, *core) != *core {
            bytes.push(mark(*core as u8));
        }
        bytes.extend_from_slice(text(std::slice::from_ref(line)).as_bytes());
    }
    bytes
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
fn profiled(folder: &RunFolder, console: impl AsRef<[u8]>, out: &Path) -> Result<u8, Failure> {
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
