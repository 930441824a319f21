//! Debian's real-time kernel, as its package has it.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The kernels that will do.
const PACKAGES: &str = r"^linux-image-6\.1\.0-[0-9]+-rt-amd64$";
/// Their packages begin so.
const KERNEL: &str = "linux-image-";
/// Modules in the package, below `kernel/`: those of the USB controller.
const CONTROLLER: [&str; 4] = [
    "drivers/usb/common/usb-common.ko",
    "drivers/usb/core/usbcore.ko",
    "drivers/usb/host/xhci-hcd.ko",
    "drivers/usb/host/xhci-pci.ko",
];
/// Modules of all CAN interfaces.
const CAN: [&str; 3] = ["drivers/net/can/dev/can-dev.ko", "net/can/can.ko", "net/can/can-raw.ko"];
const KVASER: &str = "drivers/net/can/usb/kvaser_usb/kvaser_usb.ko";
const GS_USB: &str = "drivers/net/can/usb/gs_usb.ko";
const CABLE: [&str; 3] =
    ["drivers/net/mii.ko", "drivers/net/usb/usbnet.ko", "drivers/net/usb/plusb.ko"];

const ETHERNET: &str = "drivers/net/ethernet/intel/e1000e/e1000e.ko";
/// Modules of virtual networks, and of the shaper.
const SHAPER: [&str; 6] = [
    "net/llc/llc.ko",
    "net/802/stp.ko",
    "net/802/garp.ko",
    "net/802/mrp.ko",
    "net/8021q/8021q.ko",
    "net/sched/sch_taprio.ko",
];

/// The drivers that a guest has besides those of the controller.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Drivers {
    /// The drivers of a CAN interface of Kvaser.
    Kvaser,
    /// The drivers of a CAN interface that speaks gs_usb.
    GsUsb,
    /// The drivers of a bridge cable between two computers.
    Cable,
    /// The driver of an adapter for Ethernet.
    Ethernet,
    /// The drivers of an adapter for Ethernet, of virtual networks, and of a time-aware shaper.
    Shaper,
}

impl Drivers {
    const ALL: [Drivers; 5] =
        [Drivers::Kvaser, Drivers::GsUsb, Drivers::Cable, Drivers::Ethernet, Drivers::Shaper];

    /// Returns the modules that a guest needs.
    pub fn modules(self) -> Vec<&'static str> {
        let own = match self {
            Drivers::Kvaser => [&CAN[..], &[KVASER]].concat(),
            Drivers::GsUsb => [&CAN[..], &[GS_USB]].concat(),
            Drivers::Cable => CABLE.to_vec(),
            Drivers::Ethernet => vec![ETHERNET],
            Drivers::Shaper => [&[ETHERNET], &SHAPER[..]].concat(),
        };
        [&CONTROLLER, &own[..]].concat()
    }
}

/// Returns the kernel's package in the cache, downloaded if there is none.
pub fn find(cache: &Path) -> Result<PathBuf, String> {
    if let Some(known) = newest_in(cache, KERNEL) {
        return Ok(known);
    }
    let names = run(Command::new("apt-cache").args(["search", "--names-only", PACKAGES]))?;
    let names = names.lines().filter_map(|line| line.split_whitespace().next());
    let newest = names.max_by_key(|name| numbers(name));
    let newest = newest.ok_or("no real-time kernel in the package lists: apt-get update")?;
    run(Command::new("apt-get").current_dir(cache).args(["download", newest]))?;
    newest_in(cache, KERNEL).ok_or_else(|| "apt-get downloaded nothing".into())
}

/// Returns the newest package in the cache whose name begins so.
fn newest_in(cache: &Path, begin: &str) -> Option<PathBuf> {
    let files = fs::read_dir(cache).into_iter().flatten().flatten().map(|entry| entry.path());
    let is_one = |path: &PathBuf| {
        let name = path.file_name().map(|name| name.to_string_lossy().into_owned());
        name.is_some_and(|name| name.starts_with(begin) && name.ends_with(".deb"))
    };
    let packages = files.filter(is_one);
    packages.max_by_key(|path| numbers(&path.to_string_lossy()))
}

/// The numbers of a name: 6.1.0-9 is before 6.1.0-10.
fn numbers(name: &str) -> Vec<u64> {
    name.split(|c: char| !c.is_ascii_digit()).filter_map(|word| word.parse().ok()).collect()
}

/// Returns the release of a package: `6.1.0-1-rt-amd64` of
/// `…/linux-image-6.1.0-1-rt-amd64_6.1.2-3_amd64.deb`.
pub fn release(package: &Path) -> Option<String> {
    Some(words(package)?.0.to_string())
}

/// `6.1.2-3` of the same.
pub fn version(package: &Path) -> Option<String> {
    Some(words(package)?.1.split('_').next()?.to_string())
}

fn words(package: &Path) -> Option<(&str, &str)> {
    package.file_name()?.to_str()?.strip_prefix(KERNEL)?.split_once('_')
}

/// Unpacks kernel, its settings and the modules of all drivers only.
pub fn unpack(package: &Path, release: &str, folder: &Path) -> Result<(), String> {
    let half = folder.with_extension(format!("half-{}", std::process::id()));
    fs::create_dir_all(&half).map_err(|error| format!("cannot make a folder: {error}"))?;
    let tar = half.join("all.tar");
    let file = fs::File::create(&tar).map_err(|error| format!("cannot write: {error}"))?;
    run(Command::new("dpkg-deb").arg("--fsys-tarfile").arg(package).stdout(file))?;
    let mut names = vec![format!("./boot/vmlinuz-{release}"), format!("./boot/config-{release}")];
    let modules = Drivers::ALL.into_iter().flat_map(Drivers::modules);
    let modules: BTreeSet<&str> = modules.collect();
    names.extend(modules.iter().map(|m| format!("./lib/modules/{release}/kernel/{m}")));
    run(Command::new("tar").arg("-C").arg(&half).arg("-xf").arg(&tar).args(names))?;
    let _ = fs::remove_file(tar);
    // The remains of an older run may lack something. Files that another run made meanwhile are as
    // good.
    let _ = fs::remove_dir_all(folder);
    fs::rename(half, folder).map_err(|error| format!("cannot rename: {error}"))
}

/// Returns a folder with the files of a package, downloaded into the cache if it is not there.
pub fn contents(cache: &Path, package: &str) -> Result<PathBuf, String> {
    let begin = format!("{package}_");
    if newest_in(cache, &begin).is_none() {
        run(Command::new("apt-get").current_dir(cache).args(["download", package]))?;
    }
    let file = newest_in(cache, &begin).ok_or("apt-get downloaded nothing")?;
    let folder = cache.join(package);
    run(Command::new("dpkg-deb").arg("-x").arg(file).arg(&folder))?;
    Ok(folder)
}

/// Returns the libraries of this computer that a program needs.
pub fn libraries(program: &Path) -> Result<Vec<PathBuf>, String> {
    let needs = run(Command::new("ldd").arg(program))?;
    if let Some(missing) = needs.lines().find(|line| line.contains("not found")) {
        return Err(format!("{} needs a library: {}", program.display(), missing.trim()));
    }
    let words = needs.split_whitespace().filter(|word| word.starts_with('/'));
    Ok(words.map(PathBuf::from).collect())
}

/// Runs a command to its end; returns what it said.
pub fn run(command: &mut Command) -> Result<String, String> {
    let output = command.output().map_err(|error| format!("cannot start {command:?}: {error}"))?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    Err(format!("{command:?}: {}", String::from_utf8_lossy(&output.stderr)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_package_says_what_it_holds() {
        let path = Path::new("cache/linux-image-6.1.0-56-rt-amd64_6.1.192-2_amd64.deb");
        assert_eq!(release(path).as_deref(), Some("6.1.0-56-rt-amd64"));
        assert_eq!(version(path).as_deref(), Some("6.1.192-2"));
        assert_eq!((release(Path::new("other.deb")), version(Path::new("x"))), (None, None));
    }

    #[test]
    fn ten_comes_after_nine() {
        let names = ["linux-image-6.1.0-10-rt-amd64", "linux-image-6.1.0-9-rt-amd64"];
        assert_eq!(names.iter().max_by_key(|name| numbers(name)), Some(&names[0]));
    }

    #[test]
    fn a_command_that_fails_is_named_with_what_it_said() {
        let failed = run(Command::new("sh").args(["-c", "echo no >&2; exit 1"])).unwrap_err();
        assert!(failed.contains("\"sh\"") && failed.contains("no"), "{failed}");
        assert!(run(&mut Command::new("no-such-command")).unwrap_err().contains("cannot start"));
    }
}
