//! `cargo xtask gdb`: a booted system, stopped before its first instruction, under the debugger.
//!
//! GDB starts the emulator itself and talks to it through a pipe. So an interrupt from the
//! keyboard stops the system and not the emulator, and the emulator ends with the debugger.

pub mod functions;
pub mod registers;

use diapason::describe::describe;
use diapason::failure::HOLDS;
use diapason::image::Image;
use diapason::linkage::Linkage;
use diapason::metal::{self, Built};
use diapason::qemu::RunFolder;
use diapason::session::Session;
use diapason::tools::{GDB, Missing, QEMU};
use diapason::{Failure, Workspace};
use diapason_abi::layout;
use diapason_abi::record::Record;
use diapason_system::RunOptions;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};

/// Length of a run under the debugger: a day of the system's time.
const HORIZON_NS: u64 = 86_400_000_000_000;
/// Wall seconds in which a check must have reached its breakpoints.
const CHECK_SECONDS: &str = "400";
/// The text that a check prints before a byte of the kernel's code, if it could read it.
const STAYS: &str = "what stays begins with";
const LEFT: &str = "what leaves begins with";
/// Where the console goes, in the run's folder.
const CONSOLE: &str = "console.txt";

/// Boots `system` under GDB; with `batch_check` only sees that it stops where it should.
pub fn start(workspace: &Workspace, system: &Path, batch_check: bool) -> Result<u8, Failure> {
    describe(system)?;
    QEMU.require(Missing::Install)?;
    GDB.require(Missing::Install)?;
    eprintln!("building the kernel and the programs");
    let built = metal::build(workspace)?;
    if batch_check {
        check(workspace, system, &built).map_err(Failure::Ours)?;
        println!("GDB stops at the entries of the kernel and of a program");
        return Ok(HOLDS);
    }
    let debugged = Debugged::prepare(workspace, system, built)?;
    let console = debugged.folder.path().join(CONSOLE);
    println!("the machine is stopped before its first instruction; `continue` lets it go");
    println!("its console, to be read with `diapason decode`: {}", console.display());
    let script = debugged.write_script("")?;
    let error = Command::new(GDB.program)
        .current_dir(workspace.root())
        .args(["-q", "-x"])
        .arg(script)
        .exec();
    Err(Failure::io("start gdb", &error))
}

/// Connects, breaks at the kernel's entry and at the first process's entry, sees there that boot
/// has left memory and the rest of the kernel has not, and quits.
pub fn check(workspace: &Workspace, system: &Path, built: &Built) -> Result<(), String> {
    let text = |failure: Failure| failure.to_string();
    let debugged = Debugged::prepare(workspace, system, built.clone()).map_err(text)?;
    let entries = debugged.entries().map_err(text)?;
    let stop = |address| format!("hbreak *{address:#x}\ncontinue\nprintf \"at %#lx\\n\", $pc\n");
    let mut commands: String = entries.into_iter().map(stop).collect();
    let stays = Image::read(&built.kernel).map_err(text)?;
    let stays = Linkage::read(&stays).symbol("__text_start").unwrap_or_default();
    let [boot, _] = entries;
    // The second one fails, which ends the script.
    for (name, address) in [(STAYS, stays), (LEFT, boot)] {
        commands += &format!("set $byte = *(unsigned char *){address:#x}\n");
        commands += &format!("printf \"{name} %u\\n\", $byte\n");
    }
    let said = debugged.ask(workspace, &commands)?;
    for address in entries {
        if !said.lines().any(|line| line == format!("at {address:#x}")) {
            return Err(format!("gdb did not stop at {address:#x}; it said:\n{said}"));
        }
    }
    let begins = |start: &str| said.lines().any(|line| line.starts_with(start));
    let gone = said.contains(&format!("Cannot access memory at address {boot:#x}"));
    if !begins(STAYS) || begins(LEFT) || !gone {
        return Err(format!("boot's code at {boot:#x} did not leave memory; gdb said:\n{said}"));
    }
    Ok(())
}

/// Breaks hardware while the first process runs, and sees that the kernel says which, and ends the
/// system. A processor that may not say so resets the machine.
pub fn break_hardware(workspace: &Workspace, system: &Path, built: &Built) -> Result<(), String> {
    /// An uncorrected error with an address, which spoils what runs; a check is in progress.
    const STATUS: u64 = 0xb700_0000_0000_0135;
    const IN_PROGRESS: u64 = 5;
    const BANK: u64 = 1;
    const ADDRESS: u64 = 0x1234_5000;
    let text = |failure: Failure| failure.to_string();
    let debugged = Debugged::prepare(workspace, system, built.clone()).map_err(text)?;
    let [_, program] = debugged.entries().map_err(text)?;
    let said = debugged.ask(
        workspace,
        &format!(
            "hbreak *{program:#x}\ncontinue\n\
             monitor mce 0 {BANK} {STATUS:#x} {IN_PROGRESS} {ADDRESS:#x} 0\ncontinue\n"
        ),
    )?;
    let console = std::fs::read_to_string(debugged.folder.path().join(CONSOLE))
        .map_err(|error| format!("cannot read the console: {error}"))?;
    let record = format!("~{:x} {BANK:x} {STATUS:x} {ADDRESS:x}", Record::MachineCheck as u64);
    if console.lines().any(|line| line == record) {
        return Ok(());
    }
    Err(format!("the kernel did not say {record}, but:\n{console}gdb said:\n{said}"))
}

/// A machine about to be debugged.
struct Debugged {
    session: Session,
    folder: RunFolder,
}

impl Debugged {
    fn prepare(workspace: &Workspace, system: &Path, built: Built) -> Result<Debugged, Failure> {
        let options = RunOptions { horizon_ns: HORIZON_NS, record_bytes: 0, watch: false };
        let session = Session::assemble(describe(system)?, built, options)?;
        let folder = RunFolder::create(&workspace.target())?;
        Ok(Debugged { session, folder })
    }

    /// Runs these commands in GDB, kills the emulator if it still runs, and returns what was said.
    fn ask(&self, workspace: &Workspace, commands: &str) -> Result<String, String> {
        let script = self.write_script(commands).map_err(|failure| failure.to_string())?;
        let output = Command::new("timeout")
            .args([CHECK_SECONDS, GDB.program, "-q", "-nx", "-batch", "-x"])
            .arg(script)
            .args(["-ex", "kill"])
            .current_dir(workspace.root())
            .stdin(Stdio::null())
            .output()
            .map_err(|error| format!("cannot start gdb: {error}"))?;
        let said = [output.stdout, output.stderr].concat();
        Ok(String::from_utf8_lossy(&said).into_owned())
    }

    /// Writes GDB's commands to a file: know the kernel and every process, start the emulator,
    /// then `more`.
    fn write_script(&self, more: &str) -> Result<std::path::PathBuf, Failure> {
        let mut script = String::from("set confirm off\nset pagination off\n");
        // A busy host takes longer to start the emulator than the two seconds of GDB's default.
        script += "set remotetimeout 60\n";
        script += &format!("file {}\n", self.session.built.kernel.display());
        for (index, path) in self.program_files()? {
            let base = layout::base(index);
            script += &format!("add-symbol-file {} -o {base:#x}\n", path.display());
        }
        script += &format!("target remote | {}\n{more}", self.emulator()?);
        let file = self.folder.path().join("start.gdb");
        std::fs::write(&file, script)
            .map_err(|error| Failure::io("write the debugger's commands", &error))?;
        Ok(file)
    }

    /// Returns the emulator's command line for a shell, stopped and listening on its standard
    /// input.
    fn emulator(&self) -> Result<String, Failure> {
        let command = self.session.boot().command(&self.folder, &format!("file:{CONSOLE}"))?;
        let words = std::iter::once(command.get_program()).chain(command.get_args());
        let words: Vec<String> = words.map(|word| quoted(&word.to_string_lossy())).collect();
        let folder = quoted(&self.folder.path().to_string_lossy());
        Ok(format!("cd {folder} && exec {} -S -gdb stdio", words.join(" ")))
    }

    /// Returns the file of each process's program.
    fn program_files(&self) -> Result<Vec<(u16, &Path)>, Failure> {
        let processes = (0..).zip(&self.session.system.processes);
        let files = processes.map(|(index, process)| {
            let file = self.session.built.programs.get(&process.program);
            file.map(|path| (index, path.as_path()))
                .ok_or_else(|| Failure::Input(format!("no program {}", process.program)))
        });
        files.collect()
    }

    /// Returns where the kernel and the first process begin.
    fn entries(&self) -> Result<[u64; 2], Failure> {
        let kernel = Image::read(&self.session.built.kernel)?;
        let entry = kernel.pvh_entry().unwrap_or_else(|| kernel.entry());
        let processes = &self.session.system.processes;
        let first = processes.iter().position(|process| process.start_at_boot).unwrap_or(0);
        let files = self.program_files()?;
        let (index, path) = files
            .get(first)
            .ok_or_else(|| Failure::Input("the description has no process".into()))?;
        Ok([entry, layout::base(*index) + Image::read(path)?.entry()])
    }
}

/// Returns a word for the shell.
fn quoted(word: &str) -> String {
    format!("'{}'", word.replace('\'', "'\\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_survive_the_shell() {
        assert_eq!(quoted("a b"), "'a b'");
        assert_eq!(quoted("it's"), "'it'\\''s'");
    }
}
