//! A Linux guest beside the device models: Debian's real-time kernel as it is, and an initial file
//! system made on the spot.
//!
//! That holds one static C program and the modules it loads: less than a shell and its tools would
//! be, and the C compiler is there for the clock plugin anyway. `linux/guest.h` and `linux/can.h`
//! have what such a program does first.

mod archive;
mod package;

use crate::plugin::QEMU;
use crate::{DeviceServer, Emulator, RunError, RunPlan, Wires, firmware};
use archive::{Archive, Kind};
use diapason_devices::UsbDevice;
pub use package::Drivers;
use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// The headers that a program may include, by their names.
const HEADERS: [(&str, &str); 2] = [
    ("guest.h", include_str!("../../linux/guest.h")),
    ("can.h", include_str!("../../linux/can.h")),
];
/// A PC without anything that runs in host time or is random: no host clock behind the real-time
/// clock, no random instructions, no seed for the kernel (machines from 7.2 on pass one), one
/// instruction in a nanosecond.
const MACHINE: [&str; 16] = [
    "-M",
    "pc-q35-7.1",
    "-cpu",
    "max,-rdrand,-rdseed",
    "-m",
    "256M",
    "-seed",
    "1",
    "-icount",
    "shift=0,sleep=off",
    "-rtc",
    "base=2026-01-01T00:00:00,clock=vm",
    "-nodefaults",
    "-no-reboot",
    "-display",
    "none",
];

/// The adapter of a guest, and its end of the wire: see `DeviceServer::arguments_at`.
const ADAPTER: &str = "e1000e,romfile=,netdev=wire0,mac=52:54:00:00:00:02";
const WIRE: &str = "dgram,id=wire0,local.type=unix,local.path=wire0,remote.type=unix,\
                    remote.path=nowhere";

/// The only process of a guest.
#[derive(Clone, Copy, Debug)]
pub struct GuestProgram {
    /// Names its files in the cache.
    pub name: &'static str,
    /// In C; it may include `guest.h` and `can.h`.
    pub source: &'static str,
    /// The drivers that it has besides those of the controller.
    pub drivers: Drivers,
    /// Programs of Debian's that it may run, if any.
    pub tools: Option<GuestTools>,
}

/// Programs of a Debian package, as they are, with a file that they read. All are in the root
/// folder.
#[derive(Clone, Copy, Debug)]
pub struct GuestTools {
    pub package: &'static str,
    /// The paths of the programs in the package.
    pub programs: &'static [&'static str],
    /// Name and text of the file, if there is one.
    pub settings: Option<(&'static str, &'static str)>,
}

/// The parts that boot.
#[derive(Clone, Debug)]
pub struct Guest {
    /// The kernel's own release name.
    pub release: String,
    pub version: String,
    kernel: PathBuf,
    initramfs: PathBuf,
    firmware: [OsString; 2],
    settings: String,
}

/// Why there is no guest.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum NoGuest {
    /// This computer lacks something, which the sentence names.
    Missing(String),
    /// The guest's program does not compile, although others do.
    Wrong(String),
}

impl From<String> for NoGuest {
    fn from(missing: String) -> NoGuest {
        NoGuest::Missing(missing)
    }
}

impl Guest {
    /// Gets and builds everything for a guest, into a folder that the next run finds again.
    ///
    /// # Errors
    /// Returns an error that names the missing part, or what the compiler says of the program.
    pub fn prepare(cache: &Path, program: GuestProgram) -> Result<Guest, NoGuest> {
        fs::create_dir_all(cache)
            .map_err(|error| format!("cannot make {}: {error}", cache.display()))?;
        let package = package::find(cache)?;
        let unexpected = || format!("{} has an unexpected name", package.display());
        let release = package::release(&package).ok_or_else(unexpected)?;
        let version = package::version(&package).ok_or_else(unexpected)?;
        let folder = cache.join(&release);
        let settings = folder.join(format!("boot/config-{release}"));
        let modules = folder.join(format!("lib/modules/{release}/kernel"));
        let has = |module: &&str| modules.join(module).exists();
        if !settings.exists() || !program.drivers.modules().iter().all(has) {
            package::unpack(&package, &release, &folder)?;
        }
        let settings = read(&settings)?;
        let init = compile(cache, program)?;
        let initramfs = cache.join(format!("{}.cpio", program.name));
        let mut archive = file_system(&init, &modules, program.drivers)?;
        if let Some(tools) = program.tools {
            add_tools(&mut archive, cache, tools)?;
        }
        write(&initramfs, &archive.finish())?;
        let firmware = firmware::without_patience(cache)
            .map_err(|error| format!("cannot write into {}: {error}", cache.display()))?;
        Ok(Guest {
            kernel: folder.join(format!("boot/vmlinuz-{release}")),
            settings: String::from_utf8_lossy(&settings).into_owned(),
            release,
            version,
            initramfs,
            firmware,
        })
    }

    /// Does the same for a test: says past its harness what this computer lacks for a guest.
    ///
    /// # Panics
    /// If the program does not compile: then the test is wrong, and fails.
    #[must_use]
    pub fn prepare_or_say(cache: &Path, program: GuestProgram) -> Option<Guest> {
        match Guest::prepare(cache, program) {
            Ok(guest) => Some(guest),
            Err(NoGuest::Missing(why)) => {
                // Nobody is left to tell if that fails.
                let _ = writeln!(std::io::stderr(), "SKIPPED, NOTHING WAS TESTED: {why}");
                None
            }
            Err(NoGuest::Wrong(why)) => panic!("{why}"),
        }
    }

    /// Boots it with one adapter for Ethernet, which these wires join, in a new folder. Returns
    /// what it printed, and how many frames found no room in the adapter.
    ///
    /// # Errors
    /// Returns what went wrong, as a sentence.
    pub fn run_on(
        &self,
        words: &str,
        folder: &Path,
        plan: RunPlan,
        wires: &mut impl Wires,
    ) -> Result<(String, u64), String> {
        // One that is not there needs not be removed.
        let _ = fs::remove_dir_all(folder);
        fs::create_dir_all(folder).map_err(|error| format!("cannot make a folder: {error}"))?;
        let none: Vec<Vec<Box<dyn UsbDevice>>> = vec![Vec::new()];
        let said = |error: RunError| error.to_string();
        let server = DeviceServer::start_together(folder, none, plan).map_err(said)?;
        let console = folder.join("console.txt");
        let mut command = self.command(words, &console);
        command.current_dir(folder);
        command.args(["-netdev", WIRE, "-device", ADAPTER]).args(server.arguments_at(0, &[], 1));
        let started = Emulator::start(&mut command);
        let _emulator = started.map_err(|error| format!("cannot start {QEMU}: {error}"))?;
        let mut refused = 0;
        server.run_on(wires, |stop, _| refused = stop.refused).map_err(said)?;
        Ok((String::from_utf8_lossy(&read(&console)?).into_owned(), refused))
    }

    /// Returns a setting that the kernel was built with, such as `CONFIG_HZ`.
    #[must_use]
    pub fn setting(&self, name: &str) -> Option<&str> {
        setting(&self.settings, name)
    }

    /// Returns the command that boots it, to be completed with what the server wants: `words` are
    /// its kernel's, and its program's environment; what it prints goes to the file `console`.
    #[must_use]
    pub fn command(&self, words: &str, console: &Path) -> Command {
        let mut command = Command::new(QEMU);
        command.args(MACHINE).args(&self.firmware);
        command.arg("-serial").arg(format!("file:{}", console.display()));
        command.arg("-kernel").arg(&self.kernel).arg("-initrd").arg(&self.initramfs);
        let words = format!("console=ttyS0 loglevel=1 norandmaps nokaslr {words}");
        command.arg("-append").arg(words).stdin(Stdio::null());
        command
    }
}

fn setting<'a>(settings: &'a str, name: &str) -> Option<&'a str> {
    settings.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix('='))
}

/// A program that compiles wherever one for a guest can be made.
const NOTHING: &str = "#include <pthread.h>\nint main(void) { return 0; }\n";

/// Compiles the program. If that fails, one that does nothing tells whether this computer lacks
/// something.
fn compile(cache: &Path, program: GuestProgram) -> Result<PathBuf, NoGuest> {
    for (name, text) in HEADERS {
        write(&cache.join(name), text.as_bytes())?;
    }
    let compiled = compile_text(cache, program.name, program.source);
    compiled.map_err(|why| match compile_text(cache, "nothing", NOTHING) {
        Ok(_) => NoGuest::Wrong(why),
        Err(why) => NoGuest::Missing(why),
    })
}

fn compile_text(cache: &Path, name: &str, text: &str) -> Result<PathBuf, String> {
    let (source, program) = (cache.join(format!("{name}.c")), cache.join(name));
    write(&source, text.as_bytes())?;
    let flags = ["-O2", "-Wall", "-Wextra", "-Werror", "-static", "-pthread", "-o"];
    package::run(Command::new("cc").args(flags).arg(&program).arg(&source))?;
    Ok(program)
}

fn file_system(init: &Path, modules: &Path, drivers: Drivers) -> Result<Archive, String> {
    let mut archive = Archive::default();
    archive.add("dev", Kind::Folder, &[]);
    archive.add("dev/console", Kind::Console, &[]);
    archive.add("init", Kind::Program, &read(init)?);
    for module in drivers.modules() {
        let name = module.rsplit('/').next().unwrap_or(module);
        archive.add(name, Kind::Plain, &read(&modules.join(module))?);
    }
    Ok(archive)
}

/// Adds tools, their libraries, and the folders that they use.
fn add_tools(archive: &mut Archive, cache: &Path, tools: GuestTools) -> Result<(), String> {
    let package = package::contents(cache, tools.package)?;
    let mut folders = BTreeSet::from(["var/run", "var", "tmp", "proc"].map(PathBuf::from));
    let (mut programs, mut libraries) = (Vec::new(), BTreeSet::new());
    for path in tools.programs {
        let program = package.join(path);
        libraries.extend(package::libraries(&program)?);
        programs.push((path.rsplit('/').next().unwrap_or(path), program));
    }
    for library in &libraries {
        let own = library.ancestors().skip(1).filter_map(|it| it.strip_prefix("/").ok());
        folders.extend(own.filter(|it| !it.as_os_str().is_empty()).map(PathBuf::from));
    }
    // A folder comes before what is in it.
    folders.iter().for_each(|it| archive.add(&it.to_string_lossy(), Kind::Folder, &[]));
    for library in &libraries {
        let name = library.to_string_lossy();
        archive.add(name.trim_start_matches('/'), Kind::Program, &read(library)?);
    }
    for (name, program) in programs {
        archive.add(name, Kind::Program, &read(&program)?);
    }
    if let Some((name, text)) = tools.settings {
        archive.add(name, Kind::Plain, text.as_bytes());
    }
    Ok(())
}

fn read(path: &Path) -> Result<Vec<u8>, String> {
    fs::read(path).map_err(|error| format!("cannot read {}: {error}", path.display()))
}

fn write(path: &Path, bytes: &[u8]) -> Result<(), String> {
    fs::write(path, bytes).map_err(|error| format!("cannot write {}: {error}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_are_found_by_their_whole_name() {
        let text = "# CONFIG_HZ_100 is not set\nCONFIG_HZ_250=y\nCONFIG_HZ=250\n";
        assert_eq!(setting(text, "CONFIG_HZ"), Some("250"));
        assert_eq!(setting(text, "CONFIG_HZ_100"), None);
    }

    #[test]
    fn a_program_that_does_not_compile_is_not_a_missing_tool() {
        let folder = std::env::temp_dir().join(format!("diapason-guest-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let source = "int main(void) { return missing; }\n";
        let program = GuestProgram { name: "bad", source, drivers: Drivers::Ethernet, tools: None };
        let compiled = compile(&folder, program);
        fs::remove_dir_all(&folder).unwrap();
        let Err(NoGuest::Wrong(why)) = compiled else { panic!("{compiled:?}") };
        assert!(why.contains("bad.c"), "{why}");
    }
}
