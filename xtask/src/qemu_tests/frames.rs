//! The memory of the machine beside forbidden deeds: QEMU keeps it in a file, and the file says
//! what was done to it, whatever the kernel believes.
//!
//! Two boots of one archive do the same, instruction by instruction, up to the time at which the
//! first one ends. So a boot that ends before the first deed shows the memory that the deeds found,
//! and others show it between deeds and behind the last one. Page tables are found and followed in
//! the file. Pages that no deed may change are equal in all of them: the kernel's code, constants
//! and tables, and the tables, code and constants of the other processes. At each end, no page is
//! in reach of two processes unless both were granted it, and none is the kernel's.

mod tables;

use super::victims::{SYSTEM, VICTIM};
use crate::tally::Tally;
use diapason::Workspace;
use diapason::console::{Line, Splitter};
use diapason::describe::describe;
use diapason::metal::Built;
use diapason::qemu::RunFolder;
use diapason::session::Session;
use diapason_abi::layout;
use diapason_abi::record::Record;
use diapason_redir::Emulator;
use diapason_system::{RunOptions, System};
use std::io::Read;
use std::ops::Range;
use std::process::Stdio;
use std::time::Duration;
use tables::{Memory, Space};

const NAME: &str = "QEMU: no forbidden thing changes memory that is nobody's to change";
/// The file with the machine's memory, in the folder of its run.
const FILE: &str = "memory";
/// The last boot ends after all deeds.
const HORIZON_NS: u64 = 500_000_000;
/// Boots that end between deeds.
const BETWEEN: u64 = 2;
/// The first boot ends so long before the first fault.
const BEFORE_NS: u64 = 1_000;
/// The least number of pages that must be equal: the kernel alone has some twenty.
const CONSTANT_MIN: usize = 40;

/// Runs the step if its name contains `part`.
pub fn run(workspace: &Workspace, built: &Built, part: &str, tally: &mut Tally) {
    if NAME.contains(part) {
        tally.step(NAME, || check(workspace, built));
    }
}

fn check(workspace: &Workspace, built: &Built) -> Result<(), String> {
    let system = describe(&workspace.root().join(SYSTEM)).map_err(|bad| bad.to_string())?;
    let last = boot(workspace, built, &system, HORIZON_NS)?;
    let faults: Vec<u64> = last.lines.iter().filter_map(fault).collect();
    let (Some(first), Some(end)) = (faults.first(), faults.last()) else {
        return Err("no deed was done".into());
    };
    let before = boot(workspace, built, &system, first - BEFORE_NS)?;
    if before.lines.iter().any(|line| fault(line).is_some()) {
        return Err("the boot that is to end before all deeds ends behind one".into());
    }
    let file = std::fs::read(&built.kernel).map_err(|error| format!("the kernel: {error}"))?;
    let data = tables::data_of(&file).ok_or("the kernel has no data")?;
    let kernel = (&system, &data);
    let found = apart(kernel, &before.memory)?;
    let constant = constant(&before.memory, &found);
    let count = constant.len();
    if count < CONSTANT_MIN {
        return Err(format!("only {count} pages are constant"));
    }
    let between = (1..=BETWEEN).map(|part| first + (end - first) * part / (BETWEEN + 1));
    let between = between.map(|horizon| boot(workspace, built, &system, horizon));
    let mut ends = 0;
    for at in between.chain([Ok(last)]) {
        let at = at?;
        let deeds = at.lines.iter().filter_map(fault).count();
        apart(kernel, &at.memory).map_err(|wrong| format!("after {deeds} faults: {wrong}"))?;
        for (frame, what) in &constant {
            let counts = |place| what.counting(place);
            let changed = before.memory.changed(&at.memory, *frame, counts);
            if let Some((place, was, is)) = changed {
                return Err(format!(
                    "after {deeds} faults, {what} at {frame:#x} has changed: word {place} was \
                     {was:#x} and is {is:#x}"
                ));
            }
        }
        ends += 1;
    }
    println!("{count} pages are as they were before {} faults, at {ends} ends", faults.len());
    Ok(())
}

/// Returns the time of a fault of the process that does the deeds.
fn fault(line: &Line) -> Option<u64> {
    match line {
        Line::Record(Record::Fault, words) if words.get(1) == Some(&VICTIM.into()) => {
            words.first().copied()
        }
        _ => None,
    }
}

/// A machine that has ended.
struct Ended {
    lines: Vec<Line>,
    memory: Memory,
}

/// Boots the system and returns its lines and its memory at the end.
fn boot(
    workspace: &Workspace,
    built: &Built,
    system: &System,
    horizon_ns: u64,
) -> Result<Ended, String> {
    let options = RunOptions { horizon_ns, record_bytes: 0, watch: false };
    let session = Session::assemble(system.clone(), built.clone(), options);
    let session = session.map_err(|failure| failure.to_string())?;
    let boot = session.boot();
    let folder = RunFolder::create(&workspace.target()).map_err(|failure| failure.to_string())?;
    let mut command = boot.command(&folder, "stdio").map_err(|failure| failure.to_string())?;
    let size = boot.memory_mib;
    let file = format!("memory-backend-file,id=memory,size={size}M,mem-path={FILE},share=on");
    command.args(["-object", &file, "-machine", "memory-backend=memory"]);
    command.stdin(Stdio::null()).stdout(Stdio::piped());
    let emulator = Emulator::start(&mut command);
    let mut emulator = emulator.map_err(|error| format!("cannot start QEMU: {error}"))?;
    let (mut bytes, mut lines) = (Vec::new(), Vec::new());
    let mut output = emulator.output().ok_or("QEMU has no output")?;
    output.read_to_end(&mut bytes).map_err(|error| format!("QEMU: {error}"))?;
    let _ = emulator.wait(Duration::from_secs(10));
    let mut splitter = Splitter::default();
    splitter.push(&bytes, |line| lines.push(line));
    splitter.finish(|line| lines.push(line));
    let memory = std::fs::read(folder.path().join(FILE));
    Ok(Ended { lines, memory: Memory(memory.map_err(|error| format!("{FILE}: {error}"))?) })
}

/// A kind of pages that no deed may change.
enum Constant {
    Kernel,
    Table(u16),
    KernelTable,
    Page(u16),
    Information,
}

impl Constant {
    /// Returns which bits of a word must not change. The processor notes in tables what was used,
    /// and each boot ends at another time.
    const fn counting(&self, place: usize) -> u64 {
        match self {
            Constant::Table(_) | Constant::KernelTable => !tables::USED,
            Constant::Information if place == layout::info::HORIZON => 0,
            _ => u64::MAX,
        }
    }
}

impl std::fmt::Display for Constant {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Constant::Kernel => f.write_str("a page of the kernel's code or constants"),
            Constant::KernelTable => f.write_str("a page table of the kernel"),
            Constant::Table(process) => write!(f, "a page table of process {process}"),
            Constant::Information => f.write_str("the page that tells about the run"),
            Constant::Page(process) => write!(f, "code or a constant of process {process}"),
        }
    }
}

/// Returns the pages that no deed may change.
fn constant(memory: &Memory, spaces: &[Space]) -> Vec<(u64, Constant)> {
    let mut all = Vec::new();
    for space in spaces {
        let process = space.process;
        if process == VICTIM {
            let kernel = space.kernel.iter().filter(|page| !page.writes);
            all.extend(kernel.map(|page| (page.frame, Constant::Kernel)));
            all.extend(space.kernel_tables.iter().map(|frame| (*frame, Constant::KernelTable)));
            continue;
        }
        all.extend(space.tables.iter().map(|frame| (*frame, Constant::Table(process))));
        let pages = space.pages.iter().filter(|page| !page.writes);
        let what = |page: &tables::Page| match page.is_information() {
            true => Constant::Information,
            false => Constant::Page(process),
        };
        all.extend(pages.map(|page| (page.frame, what(page))));
    }
    all.retain(|(frame, _)| memory.has(*frame));
    all
}

/// Checks that no page is in reach of two processes unless both were granted it, and none is the
/// kernel's. Returns the spaces.
fn apart((system, data): (&System, &Range<u64>), memory: &Memory) -> Result<Vec<Space>, String> {
    let spaces = tables::spaces(memory);
    if spaces.len() != system.processes.len() {
        return Err(format!("{} spaces of {} processes", spaces.len(), system.processes.len()));
    }
    for space in &spaces {
        let process = space.process;
        let wrong = |what: &str, page: &tables::Page| {
            Err(format!("process {process} has {what} at {:#x}: {page:x?}", page.address))
        };
        for page in &space.pages {
            let own = |other: &&Space| other.is_part(page.frame);
            if page.writes && page.executes {
                return wrong("a page that it may write and execute", page);
            }
            if page.slot().is_some_and(|slot| !is_granted(system, process, slot)) {
                return wrong("a page that it was not granted", page);
            }
            if data.contains(&page.frame) || spaces.iter().any(|other| own(&other)) {
                return wrong("a page of the kernel", page);
            }
            let others = spaces.iter().filter(|other| other.process != process);
            let shared = others
                .flat_map(|other| &other.pages)
                .find(|theirs| theirs.frame == page.frame && (theirs.writes || page.writes));
            if shared.is_some_and(|theirs| page.slot().is_none() || theirs.slot() != page.slot()) {
                return wrong("a page that another one has, too", page);
            }
        }
    }
    Ok(spaces)
}

/// Returns whether the description grants a process what a slot of its window is for.
fn is_granted(system: &System, process: u16, slot: tables::Slot) -> bool {
    let name = match slot {
        tables::Slot::Segment(number) => system.segments.get(number).map(|it| &it.name),
        tables::Slot::Device(number) => system.devices.get(number).map(|it| &it.name),
    };
    let process = system.processes.get(usize::from(process));
    name.zip(process).is_some_and(|(name, process)| process.uses.contains(name))
}
