//! The screen of a PC, read back from a picture that QEMU takes, and compared with what
//! the host says about the same run from the serial port.
//!
//! These machines have no device by which a kernel stops the emulator. They stand still at the end,
//! as a PC does, and the last picture is the one that stays.

use crate::tally::Tally;
use diapason::console::Splitter;
use diapason::describe::cores_changed;
use diapason::hardware::{Firmware, Inserted, Medium};
use diapason::image::Image;
use diapason::linkage::Linkage;
use diapason::metal::Built;
use diapason::outcome::{Outcome, RunVerdict};
use diapason::qemu::{MachineEnding, RunFolder};
use diapason::session::{FinishedRun, Session};
use diapason::tools::{GDB, QEMU};
use diapason::{Failure, Workspace, stick};
use diapason_abi::record::Record;
use diapason_redir::{CONTROLLER, Emulator};
use diapason_screen::font::{COLUMNS, FIRST, LAST, ROWS, shape};
use diapason_screen::frame::{CELL_HEIGHT, CELL_WIDTH};
use diapason_system::RunOptions;
use std::fs;
use std::io::Write;
use std::path::Path;
use std::process::{ChildStdin, Command, Stdio};
use std::time::Duration;

/// A PC with a screen, what it boots, and sentences that must be on the screen at the end. The
/// first is the verdict.
struct Case {
    name: &'static str,
    system: &'static str,
    firmware: Firmware,
    medium: Medium,
    memory: &'static str,
    cpu: &'static str,
    cores: usize,
    /// An instruction takes 1 ns, shifted left by so much. Firmware waits by the clock, so it is
    /// sooner done on a slow processor.
    shift: u8,
    /// Done to the archive before the image is made.
    damage: fn(&mut [u8]),
    /// Done to the image, which holds this kernel.
    cut: fn(&mut [u8], &[u8]),
    /// The second core stops without a word when it calls these functions of the kernel, one after
    /// the other. None: it goes on.
    stops_in: &'static [&'static str],
    /// It stops in its turn at the controller of lines.
    has_lines: bool,
    /// The loader says it, in text.
    by_loader: bool,
    says: &'static [&'static str],
}

const BIOS: Case = Case {
    name: "holds, by BIOS",
    system: "examples/engine.toml",
    firmware: Firmware::Bios,
    medium: Medium::Disc,
    memory: "256M",
    cpu: "max",
    cores: 1,
    shift: 0,
    damage: |_| {},
    cut: |_, _| {},
    stops_in: &[],
    has_lines: false,
    by_loader: false,
    says: &["HOLDS: every promise was kept.", "DIAPASON  engine", "controller.0: ", " 0 skipped"],
};

/// Commands for the debugger: the core has its turn at the controller of lines.
const TAKE_LINES: &str = "set language rust\n\
    set $hall = &diapason_kernel::seat::SEAT.hall\n\
    set $lines = &(*(0 as *mut diapason_kernel::seat::Hall)).lines\n\
    set language c\n\
    set var *(unsigned char *)(*(unsigned long *)$hall + (unsigned long)$lines) = 1\n";

/// A PC that need not be fast, as nothing holds on it.
const SLOW: Case = Case { shift: 3, ..BIOS };

/// A PC with a core that stops while it runs.
const STOPS: Case = Case {
    name: "has a core that stops while it runs",
    system: "examples/two-cores.toml",
    cores: 2,
    stops_in: &["on_trap"],
    says: &["STOPPED: ", "Stopped: core 1"],
    ..SLOW
};

const CASES: [Case; 15] = [
    BIOS,
    Case {
        name: "holds, from a stick by UEFI",
        firmware: Firmware::Uefi,
        medium: Medium::Stick,
        ..BIOS
    },
    Case {
        name: "is broken by a miss and a fault",
        system: "tests/systems/flood.toml",
        says: &[
            "BROKEN: ",
            "Deadlines missed by late.0: ",
            "Faults of faulter, which may not fault: 1",
            "Lines lost of process flooder: ",
        ],
        ..SLOW
    },
    Case {
        name: "ends with its supervisor",
        system: "tests/systems/orphans.toml",
        says: &["BROKEN: 2 findings", "The process that supervises the others faulted."],
        ..SLOW
    },
    Case {
        name: "ends with a supervisor of another core",
        system: "tests/systems/orphans-cores.toml",
        cores: 2,
        says: &["BROKEN: ", "The process that supervises the others faulted."],
        ..SLOW
    },
    STOPS,
    Case {
        name: "has a core that stops while it has the serial port",
        stops_in: &["on_trap", "Console4take"],
        ..STOPS
    },
    Case {
        name: "has a core that stops while it has the controller of lines",
        system: "tests/systems/lines-cores.toml",
        has_lines: true,
        ..STOPS
    },
    Case {
        name: "lacks its USB controller",
        system: "tests/systems/usb-qemu.toml",
        says: &["NOT JUDGED HERE.", "Device is absent: xhci", "no such PCI function"],
        ..SLOW
    },
    Case {
        name: "lacks memory",
        system: "tests/systems/large.toml",
        memory: "64M",
        says: &["NOTHING STARTS.", "too little memory", "Memory: 160 MiB needed, 6"],
        ..SLOW
    },
    Case {
        name: "lacks a processor",
        system: "examples/two-cores.toml",
        says: &[
            "NOTHING STARTS.",
            "the machine has too few processors for the cores",
            "Processors: 2 needed, 1 found",
        ],
        ..SLOW
    },
    Case {
        name: "has a damaged archive",
        damage: |archive| archive[100] ^= 1,
        says: &["NOTHING STARTS.", "the archive's tables are damaged (checksum)", "  engine"],
        ..SLOW
    },
    Case {
        name: "has no local APIC",
        cpu: "max,-apic",
        says: &["NOTHING STARTS.", "the processor has no local APIC"],
        ..SLOW
    },
    Case {
        name: "is too large for the processor",
        cpu: "pentium3",
        by_loader: true,
        says: &["Nothing starts: engine needs a processor with 64 bits, and this PC has none."],
        ..SLOW
    },
    Case {
        name: "is cut off",
        medium: Medium::Stick,
        cut: |image, kernel| {
            let part = &kernel[KERNEL_CUT..KERNEL_CUT + 64];
            let at = image.windows(part.len()).position(|window| window == part);
            image.iter_mut().skip(at.unwrap_or(usize::MAX)).for_each(|byte| *byte = 0);
        },
        by_loader: true,
        says: &["Nothing starts: this medium is not whole. Write the image to it again."],
        ..SLOW
    },
];

/// A place in the code of any kernel.
const KERNEL_CUT: usize = 32 << 10;
/// The run's length, if it has one.
const HORIZON_NS: u64 = 500_000_000;
/// Most looks for the verdict, and the time before and after taking a picture.
const LOOKS_MAX: u32 = 480;
const LOOK: Duration = Duration::from_millis(500);
/// Words that a verdict begins with.
const VERDICTS: [&str; 7] =
    ["HOLDS", "ENDED", "BROKEN", "NOT JUDGED HERE", "NOTHING STARTS", "STOPPED", "Nothing starts"];
/// The line of the verdict.
const STATE: usize = 2;
const SERIAL: &str = "serial";
/// Where the emulator waits for a debugger, and how long it may take until it does.
const DEBUGGER: &str = "debugger";
const LISTENS_WITHIN: u32 = 120;

/// Runs the tests whose names contain `part`.
pub fn run(workspace: &Workspace, built: &Built, part: &str, tally: &mut Tally) {
    for case in &CASES {
        let name = format!("QEMU: the screen of an image tells its end: {}", case.name);
        if name.contains(part) {
            tally.step(&name, || case.check(workspace, built));
        }
    }
}

fn said(failure: Failure) -> String {
    failure.to_string()
}

fn broken(error: std::io::Error) -> String {
    error.to_string()
}

impl Case {
    fn check(&self, workspace: &Workspace, built: &Built) -> Result<(), String> {
        super::require_firmware()?;
        let path = workspace.root().join(self.system);
        let text = fs::read_to_string(&path).map_err(broken)?;
        let systems = cores_changed(&path, &text).map_err(said)?;
        let options = RunOptions { horizon_ns: HORIZON_NS, record_bytes: 0, watch: false };
        let session = |system| Session::assemble(system, built.clone(), options).map_err(said);
        let sessions = systems.into_iter().map(session).collect::<Result<Vec<Session>, _>>();
        let mut sessions = sessions?;
        (self.damage)(&mut sessions[0].archive);
        let folder = RunFolder::create(&workspace.target()).map_err(said)?;
        let file = folder.path().join("stick.img");
        let all: Vec<&Session> = sessions.iter().collect();
        stick::make(&all, workspace, &file).map_err(said)?;
        let mut image = fs::read(&file).map_err(broken)?;
        (self.cut)(&mut image, &fs::read(&built.kernel).map_err(broken)?);
        fs::write(&file, image).map_err(broken)?;
        let lines = self.watch(&folder, file, &built.kernel)?;
        lines.iter().filter(|line| !line.is_empty()).for_each(|line| println!("| {line}"));
        let verdict = self.verdict(&lines);
        for sentence in self.says {
            if !lines.iter().any(|line| line.contains(sentence)) {
                return Err(format!("the screen does not say {sentence:?}"));
            }
        }
        if !verdict.starts_with(self.says[0]) {
            return Err(format!("the verdict is {verdict:?}"));
        }
        if !self.stops_in.is_empty() {
            told_of_core(&folder)?;
        }
        // The screen says no verdict on a host with several cores that end well.
        let agrees = || agree(&sessions[0], &folder, &verdict);
        if self.by_loader || self.cores > 1 { Ok(()) } else { agrees() }
    }

    /// Lets the machine go until its second core has called the functions of the kernel that are
    /// named, and has it end there: interrupts off, for good.
    fn stop_core(&self, folder: &Path, kernel: &Path) -> Result<(), String> {
        /// The instructions `cli`, `hlt`, and a jump back to them, of which the kernel has some.
        const END: &str = "0xfa, 0xf4, 0xeb, 0xfc";
        let listens = || folder.join(DEBUGGER).exists();
        for _ in (0..LISTENS_WITHIN).take_while(|_| !listens()) {
            std::thread::sleep(LOOK);
        }
        let linkage = Linkage::read(&Image::read(kernel).map_err(said)?);
        let text = |name| linkage.symbol(name).ok_or(format!("the kernel has no {name}"));
        let [start, end] = [text("__text_start")?, text("__text_end")?];
        let mut script = format!("target remote {DEBUGGER}\n");
        for name in self.stops_in {
            let mut functions = linkage.functions.iter();
            let function = functions.find(|function| function.name.contains(name));
            let function = function.ok_or(format!("the kernel has no {name}"))?;
            let address = function.at.start;
            script += &format!("delete\nhbreak *{address:#x} thread 2\ncontinue\n");
        }
        if self.has_lines {
            script += TAKE_LINES;
        }
        script += &format!("find /b {start:#x}, {end:#x}, {END}\nset $pc = $_\n");
        script += "printf \"stopped at %#lx\\n\", $pc\ndelete\ndetach\n";
        let file = folder.join("stop.gdb");
        fs::write(&file, script).map_err(broken)?;
        let mut debugger = Command::new("timeout");
        debugger.args(["400", GDB.program, "-q", "-nx", "-batch", "-ex", "set confirm off"]);
        debugger.arg(kernel).arg("-x").arg(file).current_dir(folder).stdin(Stdio::null());
        let output = debugger.output().map_err(broken)?;
        let words = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned();
        let stopped = words.lines().any(|line| line.starts_with("stopped at "));
        if stopped { Ok(()) } else { Err(format!("the debugger did not stop the core: {words}")) }
    }

    /// Returns the line of the verdict. That of the loader is anywhere.
    fn verdict(&self, lines: &[String]) -> String {
        let nothing = |line: &&String| line.starts_with("Nothing starts");
        let line = match self.by_loader {
            true => lines.iter().find(nothing),
            false => lines.get(STATE),
        };
        line.cloned().unwrap_or_default()
    }

    /// Returns the lines of the screen when there is a verdict.
    fn watch(
        &self,
        folder: &RunFolder,
        file: std::path::PathBuf,
        kernel: &Path,
    ) -> Result<Vec<String>, String> {
        let image = Inserted { file, medium: self.medium, firmware: self.firmware };
        let mut command = Command::new(QEMU.program);
        command.current_dir(folder.path());
        command.args(["-M", "q35", "-cpu", self.cpu, "-m", self.memory, "-nodefaults"]);
        command.args(["-vga", "std", "-display", "none", "-monitor", "stdio", "-no-reboot"]);
        command.args(["-serial", &format!("file:{SERIAL}"), "-smp", &self.cores.to_string()]);
        if self.cores == 1 {
            command.args(["-icount", &format!("shift={},sleep=off", self.shift)]);
        }
        if self.medium == Medium::Stick {
            command.args(["-device", &format!("qemu-xhci,id={CONTROLLER}")]);
        }
        command.args(image.options(folder.path(), 1).map_err(said)?);
        if !self.stops_in.is_empty() {
            command.args(["-S", "-gdb", &format!("unix:{DEBUGGER},server=on,wait=off")]);
        }
        command.stdin(Stdio::piped()).stdout(Stdio::null());
        let mut machine = Running::start(&mut command)?;
        if !self.stops_in.is_empty() {
            self.stop_core(folder.path(), kernel)?;
        }
        let mut before = Vec::new();
        for number in 0..LOOKS_MAX {
            std::thread::sleep(LOOK);
            let lines = match self.by_loader {
                true => machine.read(folder.path(), number)?,
                false => machine.look(folder.path(), number)?,
            };
            let verdict = self.verdict(&lines);
            let is_over = VERDICTS.iter().any(|word| verdict.starts_with(word));
            // The verdict comes before the lines below it: two equal pictures are the last one.
            if is_over && lines == before {
                return Ok(lines);
            }
            before = lines;
        }
        Err(format!("no verdict; the screen says:\n{}", before.join("\n")))
    }
}

/// Checks that the serial port says which core stopped, too.
fn told_of_core(folder: &RunFolder) -> Result<(), String> {
    let serial = fs::read(folder.path().join(SERIAL)).map_err(broken)?;
    let serial = String::from_utf8_lossy(&serial).into_owned();
    let record = format!("~{:x} 1", Record::CoreStopped as u64);
    let is_told = serial.lines().any(|line| line.ends_with(&record));
    if is_told { Ok(()) } else { Err(format!("the serial port does not say {record}:\n{serial}")) }
}

/// A machine whose screen is looked at.
struct Running {
    emulator: Emulator,
    monitor: ChildStdin,
}

impl Running {
    fn start(command: &mut Command) -> Result<Running, String> {
        let mut emulator = Emulator::start(command).map_err(broken)?;
        let monitor = emulator.input().ok_or("QEMU has no monitor")?;
        Ok(Running { emulator, monitor })
    }

    /// Takes a picture and reads it; no lines if the machine has none yet.
    fn look(&mut self, folder: &Path, number: u32) -> Result<Vec<String>, String> {
        let picture = self.ask(folder, &format!("{number}.ppm"), "screendump")?;
        Ok(lines_of(&picture).unwrap_or_default())
    }

    /// Reads what a PC shows in text.
    fn read(&mut self, folder: &Path, number: u32) -> Result<Vec<String>, String> {
        const COLUMNS: usize = 80;
        let cells = self.ask(folder, &format!("{number}.text"), "pmemsave 0xb8000 4000")?;
        let lines = cells.chunks(2 * COLUMNS).map(|line| {
            let characters = line.iter().step_by(2).map(|byte| char::from(*byte));
            characters.collect::<String>().trim_end_matches(['\0', ' ']).to_owned()
        });
        Ok(lines.collect())
    }

    /// Has the emulator write a file; empty if it has not yet.
    fn ask(&mut self, folder: &Path, name: &str, command: &str) -> Result<Vec<u8>, String> {
        if let Some(status) = self.emulator.wait(Duration::ZERO).map_err(broken)? {
            return Err(format!("QEMU ended: {status}"));
        }
        writeln!(self.monitor, "{command} {name}").map_err(broken)?;
        std::thread::sleep(LOOK);
        let file = folder.join(name);
        let bytes = fs::read(&file).unwrap_or_default();
        // The next file has another name, so one that comes late is in nobody's way.
        let _ = fs::remove_file(file);
        Ok(bytes)
    }
}

/// Returns the lines of text in a picture (PPM, binary); `None` if it is not whole.
fn lines_of(picture: &[u8]) -> Option<Vec<String>> {
    let mut parts = picture.splitn(4, |byte| *byte == b'\n');
    let (kind, sizes) = (parts.next()?, std::str::from_utf8(parts.next()?).ok()?);
    let (_, pixels) = (parts.next()?, parts.next()?);
    let (width, height) = sizes.split_once(' ')?;
    let (width, height): (usize, usize) = (width.parse().ok()?, height.parse().ok()?);
    if kind != b"P6" || pixels.len() < 3 * width * height {
        return None;
    }
    let scale = (width / 640).max(1);
    let (cell_width, cell_height) = (CELL_WIDTH as usize * scale, CELL_HEIGHT as usize * scale);
    let is_lit = |x: usize, y: usize| pixels[3 * (y * width + x)] > 127;
    let line = |line: usize| {
        let cells = (0..width / cell_width).map(|column| {
            // The middle of a dot, below the blank row of a cell.
            let at = |x: usize, y: usize| {
                is_lit(
                    column * cell_width + x * scale + scale / 2,
                    line * cell_height + (y + 1) * scale + scale / 2,
                )
            };
            character(at)
        });
        cells.collect::<String>().trim_end().to_owned()
    };
    Some((0..height / cell_height).map(line).collect())
}

/// Returns the character whose dots these are; one that no text has if they are nobody's.
fn character(at: impl Fn(usize, usize) -> bool) -> char {
    let has = |byte: u8| {
        let rows = shape(byte).iter().enumerate().take(ROWS as usize);
        rows.into_iter().all(|(y, row)| {
            (0..COLUMNS as usize).all(|x| at(x, y) == (row >> (COLUMNS as usize - 1 - x) & 1 == 1))
        })
    };
    (FIRST..=LAST).find(|byte| has(*byte)).map_or('\u{fffd}', char::from)
}

/// Checks that the screen says no better verdict than the host, which reads the serial port.
fn agree(session: &Session, folder: &RunFolder, verdict: &str) -> Result<(), String> {
    let serial = fs::read(folder.path().join(SERIAL)).map_err(broken)?;
    let (mut outcome, mut splitter) = (Outcome::default(), Splitter::default());
    splitter.push(&serial, |line| outcome.note(&line));
    let ending = if verdict.starts_with("NOTHING") {
        MachineEnding::NoArchive
    } else if outcome.end.is_some() {
        MachineEnding::Finished
    } else {
        MachineEnding::Hung
    };
    let run = FinishedRun { ending, outcome, flight: None, served: None };
    let host = session.judge(&run);
    println!("the host says {host:?}");
    let fits = match host {
        RunVerdict::Holds if session.unmeasured(&run).is_empty() => !verdict.starts_with("BROKEN"),
        RunVerdict::Holds => !verdict.starts_with("HOLDS"),
        RunVerdict::Broken(_) => {
            verdict.starts_with("BROKEN") || verdict.starts_with("NOT JUDGED HERE")
        }
        RunVerdict::Bug(_) => {
            verdict.starts_with("NOTHING STARTS") || verdict.starts_with("STOPPED")
        }
    };
    if fits { Ok(()) } else { Err(format!("the screen says {verdict:?}")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_picture_is_read_back_and_half_a_picture_is_not() {
        let (width, height, scale) = (1_280, 40, 2);
        let mut pixels = vec![0u8; 3 * width * height];
        for (column, byte) in b"HOLDS: yes".iter().enumerate() {
            for (y, row) in shape(*byte).iter().enumerate() {
                for x in 0..COLUMNS as usize * scale {
                    let lit = row >> (COLUMNS as usize - 1 - x / scale) & 1 == 1;
                    for dy in 0..scale {
                        let at = ((y + 1) * scale + dy) * width
                            + column * CELL_WIDTH as usize * scale
                            + x;
                        pixels[3 * at] = if lit { 255 } else { 0 };
                    }
                }
            }
        }
        let picture = [&b"P6\n1280 40\n255\n"[..], &pixels].concat();
        assert_eq!(lines_of(&picture), Some(vec!["HOLDS: yes".into(), String::new()]));
        assert_eq!(lines_of(&picture[..picture.len() - 1]), None);
        assert_eq!(lines_of(b""), None);
    }
}
