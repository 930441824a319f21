//! A Linux guest beside the device models: Debian's real-time kernel as it is, and an initial file
//! system made on the spot.
//!
//! That holds one static C program and the modules it loads: less than a shell and its tools would
//! be, and the C compiler is there for the clock plugin anyway. `linux/can.h` has what such a
//! program does first.

mod archive;
mod package;

use crate::firmware;
use crate::plugin::QEMU;
use archive::{Archive, Kind};
pub use package::Drivers;
use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// The header that a program may include.
const HEADER: &str = include_str!("../../linux/can.h");
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

/// The only process of a guest.
#[derive(Clone, Copy, Debug)]
pub struct GuestProgram {
    /// Names its files in the cache.
    pub name: &'static str,
    /// In C; it may include `can.h`.
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

impl Guest {
    /// Gets and builds everything for a guest, into a folder that the next run finds again.
    ///
    /// # Errors
    /// Returns an error that names the missing part.
    pub fn prepare(cache: &Path, program: GuestProgram) -> Result<Guest, String> {
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

fn compile(cache: &Path, program: GuestProgram) -> Result<PathBuf, String> {
    let source = cache.join(format!("{}.c", program.name));
    write(&cache.join("can.h"), HEADER.as_bytes())?;
    write(&source, program.source.as_bytes())?;
    let init = cache.join(program.name);
    let flags = ["-O2", "-Wall", "-Wextra", "-Werror", "-static", "-pthread", "-o"];
    package::run(Command::new("cc").args(flags).arg(&init).arg(&source))?;
    Ok(init)
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
}
