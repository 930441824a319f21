//! The Linux guest: Debian's real-time kernel as it is, and an initial file system made on the
//! spot.
//!
//! That holds one static C program and the modules it loads: less than a shell and its tools would
//! be, and the C compiler is there for the clock plugin anyway.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The kernels that will do.
const PACKAGES: &str = r"^linux-image-6\.1\.0-[0-9]+-rt-amd64$";
const INIT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/linux/init.c");
/// Modules in the package, below `kernel/`.
const MODULES: [&str; 8] = [
    "drivers/usb/common/usb-common.ko",
    "drivers/usb/core/usbcore.ko",
    "drivers/usb/host/xhci-hcd.ko",
    "drivers/usb/host/xhci-pci.ko",
    "drivers/net/can/dev/can-dev.ko",
    "drivers/net/can/usb/kvaser_usb/kvaser_usb.ko",
    "net/can/can.ko",
    "net/can/can-raw.ko",
];

/// What boots.
pub struct Guest {
    pub kernel: PathBuf,
    pub initramfs: PathBuf,
}

/// Gets and builds everything, into a folder that the next run finds again.
///
/// # Errors
/// What cannot be had.
pub fn prepare(cache: &Path) -> Result<Guest, String> {
    fs::create_dir_all(cache)
        .map_err(|error| format!("cannot make {}: {error}", cache.display()))?;
    let package = package(cache)?;
    let release = release(&package).ok_or("the package has an unexpected name")?;
    let folder = cache.join(&release);
    if !folder.exists() {
        unpack(&package, &release, &folder)?;
    }
    let init = cache.join("init");
    let build = ["-O2", "-Wall", "-Wextra", "-Werror", "-static", "-o"];
    run(Command::new("cc").args(build).arg(&init).arg(INIT))?;
    let initramfs = cache.join("initramfs");
    let archive = archive(&init, &folder.join(format!("lib/modules/{release}/kernel")))?;
    fs::write(&initramfs, archive).map_err(|error| format!("cannot write: {error}"))?;
    Ok(Guest { kernel: folder.join(format!("boot/vmlinuz-{release}")), initramfs })
}

/// The kernel's package in the cache, downloaded if there is none.
fn package(cache: &Path) -> Result<PathBuf, String> {
    if let Some(known) = packages_in(cache).pop() {
        return Ok(known);
    }
    let names = run(Command::new("apt-cache").args(["search", "--names-only", PACKAGES]))?;
    let newest = names.lines().filter_map(|line| line.split_whitespace().next()).max();
    let newest = newest.ok_or("no real-time kernel in the package lists: apt-get update")?;
    run(Command::new("apt-get").current_dir(cache).args(["download", newest]))?;
    packages_in(cache).pop().ok_or_else(|| "apt-get downloaded nothing".into())
}

fn packages_in(cache: &Path) -> Vec<PathBuf> {
    let files = fs::read_dir(cache).into_iter().flatten().flatten().map(|entry| entry.path());
    let mut all: Vec<PathBuf> =
        files.filter(|path| path.extension().is_some_and(|end| end == "deb")).collect();
    all.sort();
    all
}

/// `6.1.0-1-rt-amd64` of `…/linux-image-6.1.0-1-rt-amd64_6.1.2-3_amd64.deb`.
fn release(package: &Path) -> Option<String> {
    let name = package.file_name()?.to_str()?;
    Some(name.strip_prefix("linux-image-")?.split_once('_')?.0.to_string())
}

/// Unpacks kernel and modules only.
fn unpack(package: &Path, release: &str, folder: &Path) -> Result<(), String> {
    let half = folder.with_extension("half");
    let _ = fs::remove_dir_all(&half);
    fs::create_dir_all(&half).map_err(|error| format!("cannot make a folder: {error}"))?;
    let tar = half.join("all.tar");
    let file = fs::File::create(&tar).map_err(|error| format!("cannot write: {error}"))?;
    run(Command::new("dpkg-deb").arg("--fsys-tarfile").arg(package).stdout(file))?;
    let mut names = vec![format!("./boot/vmlinuz-{release}")];
    names.extend(MODULES.iter().map(|m| format!("./lib/modules/{release}/kernel/{m}")));
    run(Command::new("tar").arg("-C").arg(&half).arg("-xf").arg(&tar).args(names))?;
    let _ = fs::remove_file(tar);
    fs::rename(half, folder).map_err(|error| format!("cannot rename: {error}"))
}

/// An archive as the kernel unpacks it (cpio, "newc").
fn archive(init: &Path, modules: &Path) -> Result<Vec<u8>, String> {
    let mut archive = Vec::new();
    entry(&mut archive, "dev", 0o40_755, &[]);
    entry(&mut archive, "dev/console", 0o20_600, &[]);
    let read = |path: &Path| fs::read(path).map_err(|e| format!("{}: {e}", path.display()));
    entry(&mut archive, "init", 0o100_755, &read(init)?);
    for module in MODULES {
        let name = module.rsplit('/').next().unwrap_or(module);
        entry(&mut archive, name, 0o100_644, &read(&modules.join(module))?);
    }
    entry(&mut archive, "TRAILER!!!", 0, &[]);
    Ok(archive)
}

/// One file; a device is the console (5, 1).
fn entry(archive: &mut Vec<u8>, name: &str, mode: u32, content: &[u8]) {
    let (major, minor) = if mode & 0o170_000 == 0o20_000 { (5, 1) } else { (0, 0) };
    let (inode, length) = (archive.len() as u32, content.len() as u32);
    let fields = [inode, mode, 0, 0, 1, 0, length, 0, 0, major, minor, name.len() as u32 + 1, 0];
    archive.extend(b"070701");
    for field in fields {
        archive.extend(format!("{field:08x}").bytes());
    }
    archive.extend(name.bytes().chain([0]));
    archive.resize(archive.len().next_multiple_of(4), 0);
    archive.extend(content);
    archive.resize(archive.len().next_multiple_of(4), 0);
}

/// Runs a command to its end; what it said.
fn run(command: &mut Command) -> Result<String, String> {
    let output = command.output().map_err(|error| format!("cannot start {command:?}: {error}"))?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    Err(format!("{command:?}: {}", String::from_utf8_lossy(&output.stderr)))
}
