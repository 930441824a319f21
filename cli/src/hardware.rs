//! The PC that QEMU emulates, as far as tests want different ones, and what it boots from.

use crate::failure::Failure;
use crate::tools::Tool;
use crate::{plugged, results};
use diapason_redir::CONTROLLER;
use std::ffi::OsString;
use std::fs;
use std::fs::File;
use std::io::Write;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

/// The firmware for UEFI, and its variables as they are at first.
pub const OVMF: Tool = Tool { program: "/usr/share/OVMF/OVMF_CODE_4M.fd", package: "ovmf" };
const VARIABLES: &str = "/usr/share/OVMF/OVMF_VARS_4M.fd";
/// The variables of one run, in its folder.
const OWN_VARIABLES: &str = "variables.fd";
/// A TPM, as PCs with UEFI have one. Without it OVMF waits for some seconds of QEMU's clock,
/// because QEMU reads zero in its place.
pub const SWTPM: Tool = Tool { program: "swtpm", package: "swtpm" };
/// The socket of the TPM of one run, in its folder.
const OWN_TPM: &str = "tpm";

/// The time between two looks at a stick, how many there are, and how long it is away.
const LOOK: Duration = Duration::from_millis(50);
const LOOKS: u32 = 1_200;
const AWAY: Duration = Duration::from_millis(1_000);

/// Where an image is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Medium {
    Disc,
    /// A stick at the controller that the system's own devices are at.
    Stick,
    /// A stick that is pulled out when it has the first block of results, and put back or not.
    Loose {
        back: bool,
    },
}

/// The program that the PC starts with.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Firmware {
    Bios,
    Uefi,
}

/// An image that a PC boots from.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Inserted {
    pub file: PathBuf,
    pub medium: Medium,
    pub firmware: Firmware,
}

/// The properties of a PC that differ between tests, as QEMU writes them.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Hardware {
    pub machine: &'static str,
    pub cpu: &'static str,
    /// The model of every USB controller, with its properties.
    pub controller: &'static str,
    /// It has an IOMMU.
    pub iommu: bool,
    /// It has a serial port, on which the console comes.
    pub serial: bool,
    /// Arguments for what no description has, before the controllers and behind them.
    pub before: &'static [&'static str],
    pub more: &'static [&'static str],
}

impl Hardware {
    /// The PC that everything runs on unless a test wants another.
    pub const USUAL: Hardware = Hardware {
        machine: "q35",
        cpu: "max",
        controller: "qemu-xhci",
        iommu: false,
        serial: true,
        before: &[],
        more: &[],
    };
}

impl Inserted {
    /// Returns the options for the image, in a run in `folder`. The stick goes into `port`.
    ///
    /// # Errors
    /// If the firmware's variables cannot be copied, or its TPM not be started.
    pub fn options(&self, folder: &Path, port: u8) -> Result<Vec<OsString>, Failure> {
        let file = std::path::absolute(&self.file).unwrap_or_else(|_| self.file.clone());
        let path = file.display().to_string().replace(',', ",,");
        let drive = format!("file={path}");
        let mut options = Vec::new();
        let mut add = |option: &str, value: String| options.extend([option.into(), value.into()]);
        if self.firmware == Firmware::Uefi {
            fs::copy(VARIABLES, folder.join(OWN_VARIABLES))
                .map_err(|error| Failure::io(format!("copy {VARIABLES}"), &error))?;
            let code = OVMF.program;
            add("-drive", format!("if=pflash,format=raw,readonly=on,file={code}"));
            add("-drive", format!("if=pflash,format=raw,file={OWN_VARIABLES}"));
            if SWTPM.find().is_some() {
                start_tpm(folder)?;
                add("-chardev", format!("socket,id=tpm,path={OWN_TPM}"));
                add("-tpmdev", "emulator,id=tpm0,chardev=tpm".into());
                add("-device", "tpm-tis,tpmdev=tpm0".into());
            }
        }
        match self.medium {
            Medium::Disc => add("-drive", format!("media=cdrom,format=raw,readonly=on,{drive}")),
            Medium::Stick => {
                // The guest's clock runs on while the host writes: nothing waits for the stick.
                let cache = "cache=unsafe";
                add("-drive", format!("if=none,id=image,format=raw,{cache},{drive}"));
                let at = format!("bus={CONTROLLER}.0,port={port}");
                add("-device", format!("usb-storage,{at},drive=image,bootindex=1"));
            }
            Medium::Loose { back } => {
                // A device that is pulled takes its drive away, and leaves its node.
                let node = format!("driver=file,node-name=image,filename={path}");
                add("-blockdev", format!("{node},cache.no-flush=on"));
                let device =
                    format!("usb-storage,id=stick,drive=image,bus={CONTROLLER}.0,port={port}");
                add("-device", format!("{device},bootindex=1"));
                let pull = move |monitor| pull_at(monitor, &file, back.then_some(&device));
                options.extend(plugged::monitor(folder, "stick", pull)?);
            }
        }
        Ok(options)
    }
}

/// Starts a TPM for the QEMU of a run in `folder`. It ends with that QEMU.
fn start_tpm(folder: &Path) -> Result<(), Failure> {
    let place = folder.canonicalize().map_err(|error| Failure::io("find the TPM's folder", &error));
    let status = Command::new(SWTPM.program)
        .current_dir(folder)
        .args(["socket", "--tpm2", "--terminate", "--daemon", "--tpmstate"])
        .arg(format!("dir={}", place?.display()))
        .args(["--ctrl", &format!("type=unixio,path={OWN_TPM}")])
        .status()
        .map_err(|error| Failure::io("start swtpm", &error))?;
    if status.success() {
        return Ok(());
    }
    Err(Failure::World(format!("swtpm, the TPM of a PC with UEFI, ended with {status}")))
}

/// Pulls the stick out at a monitor of QEMU's as soon as it has results, and puts `device` back.
fn pull_at(mut monitor: UnixStream, file: &Path, device: Option<&String>) {
    let has_results = |_: &u32| {
        std::thread::sleep(LOOK);
        File::open(file).is_ok_and(|mut stick| results::read(&mut stick).is_ok())
    };
    if (0..LOOKS).find(has_results).is_none() || writeln!(monitor, "device_del stick").is_err() {
        return;
    }
    if let Some(device) = device {
        std::thread::sleep(AWAY);
        // It fails only if QEMU is gone.
        let _ = writeln!(monitor, "device_add {device}");
    }
    // A monitor that nobody holds forgets what it was told last.
    let _ = std::io::copy(&mut monitor, &mut std::io::sink());
}
