//! Adapters of this computer that a system in QEMU drives: `model = "host:VENDOR:PRODUCT"`.
//!
//! QEMU opens such an adapter through the files of the kernel for USB. A run looks for it before it
//! builds anything. The adapter acts in the computer's own time, so the machine waits for that each
//! millisecond, and the run is no evidence.

use crate::failure::Failure;
use diapason_redir::CONTROLLER;
use diapason_system::{System, UsbPlug};
use std::fs::{self, OpenOptions};
use std::path::{Path, PathBuf};

/// The folder in which Linux describes the USB devices of this computer.
const DEVICES: &str = "/sys/bus/usb/devices";
/// The folder with a file for each of them.
const FILES: &str = "/dev/bus/usb";

/// Returns the option of QEMU for an adapter at `port`.
pub(crate) fn option(plug: &UsbPlug, port: &str) -> String {
    let (vendor, product) = plug.identity;
    format!(
        "usb-host,bus={CONTROLLER}.0,port={port},vendorid={vendor:#06x},productid={product:#06x}"
    )
}

/// Checks that this computer has all adapters of a system, and that they may be used.
///
/// # Errors
/// Names the first that is not there, or that nobody but the administrator may use.
pub(crate) fn require(system: &System) -> Result<(), Failure> {
    let roots = (Path::new(DEVICES), Path::new(FILES));
    adapters(system).try_for_each(|plug| find(plug, roots))
}

/// Returns what a run with adapters does not show, as sentences.
pub(crate) fn unseen(system: &System) -> Vec<String> {
    let sentence = |plug: &UsbPlug| {
        let (name, model) = (&plug.name, plug.word());
        format!(
            "the system alone: the adapter `{name}` (`{model}`) acts in the time of this computer, \
             and another run may differ"
        )
    };
    adapters(system).map(sentence).collect()
}

/// Returns what a plan assumes about adapters, a line for each.
pub(crate) fn remark(system: &System) -> String {
    let line = |plug: &UsbPlug| {
        let (name, real, model) = (&plug.name, plug.word(), plug.model.name());
        format!(
            "assumed: the adapter `{name}` (`{real}`) has the speed, the endpoints and the queues \
             of the model `{model}`, and its buses carry what the description says\n"
        )
    };
    adapters(system).map(line).collect()
}

/// Returns the adapters of a system.
pub(crate) fn adapters(system: &System) -> impl Iterator<Item = &UsbPlug> {
    system.usb.iter().filter(|plug| plug.is_real)
}

/// Checks that one adapter is among the devices and may be opened.
fn find(plug: &UsbPlug, (devices, files): (&Path, &Path)) -> Result<(), Failure> {
    let (name, model, (vendor, product)) = (&plug.name, plug.word(), plug.identity);
    let Some(file) = place(plug, devices).map(|place| files.join(place)) else {
        return Err(Failure::World(format!(
            "this computer has no USB device {vendor:04x}:{product:04x}, which is `{name}`\n\
             help: plug it in (`lsusb` lists what is there), or start the system with a model"
        )));
    };
    let opened = OpenOptions::new().read(true).write(true).open(&file);
    opened.map(|_| ()).map_err(|error| {
        let file = file.display();
        Failure::World(format!(
            "the adapter `{name}` (`{model}`) cannot be used: {file}: {error}\n\
             help: allow it by `sudo chmod a+rw {file}`, or by a rule of udev: \
             SUBSYSTEM==\"usb\", ATTR{{idVendor}}==\"{vendor:04x}\", \
             ATTR{{idProduct}}==\"{product:04x}\", MODE=\"0666\""
        ))
    })
}

/// Returns bus and device number of the first adapter of this vendor and product, as the path of
/// its file.
fn place(plug: &UsbPlug, devices: &Path) -> Option<PathBuf> {
    let mut folders: Vec<PathBuf> =
        fs::read_dir(devices).ok()?.flatten().map(|entry| entry.path()).collect();
    folders.sort();
    let wanted = format!("{:04x} {:04x}", plug.identity.0, plug.identity.1);
    let word = |folder: &Path, file: &str| {
        Some(fs::read_to_string(folder.join(file)).ok()?.trim().to_owned())
    };
    folders.iter().find_map(|folder| {
        let identity = [word(folder, "idVendor")?, word(folder, "idProduct")?].join(" ");
        let number = |file| word(folder, file)?.parse::<u16>().ok();
        let (bus, device) = (number("busnum")?, number("devnum")?);
        (identity == wanted).then(|| PathBuf::from(format!("{bus:03}/{device:03}")))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn system(model: &str) -> System {
        let text = format!(
            "[system]\nname = \"s\"\n[[process]]\nname = \"p\"\npriority = 1\n\
             [[device]]\nname = \"xhci\"\npci = \"0c0330\"\nsize = \"16K\"\n\
             [[usb]]\nname = \"cable\"\non = \"xhci\"\nmodel = \"{model}\"\n"
        );
        diapason_system::parse("f", &text).unwrap_or_else(|wrong| panic!("{wrong}"))
    }

    /// Makes a device as Linux describes it.
    fn plug_in(root: &Path, name: &str, words: [&str; 4]) {
        let folder = root.join("devices").join(name);
        fs::create_dir_all(&folder).unwrap();
        for (file, word) in ["idVendor", "idProduct", "busnum", "devnum"].iter().zip(words) {
            fs::write(folder.join(file), format!("{word}\n")).unwrap();
        }
    }

    #[test]
    fn an_adapter_is_found_by_what_it_says() {
        let root = std::env::temp_dir().join(format!("adapters-{}", std::process::id()));
        plug_in(&root, "1-1", ["0bfd", "0108", "1", "4"]);
        plug_in(&root, "2-3", ["1d50", "606f", "2", "17"]);
        // An interface of a device has no numbers of its own.
        fs::create_dir_all(root.join("devices/2-3:1.0")).unwrap();
        let (devices, files) = (root.join("devices"), root.join("files"));
        let found = |model: &str| {
            let system = system(model);
            find(adapters(&system).next().unwrap(), (&devices, &files))
        };
        let text = |model: &str| match found(model) {
            Err(Failure::World(text)) => text,
            other => panic!("{other:?}"),
        };
        assert!(text("host:1209:2323").contains("no USB device 1209:2323, which is `cable`"));
        let refused = text("host:1d50:606f");
        assert!(refused.contains("files/002/017: No such file"), "{refused}");
        assert!(refused.contains("ATTR{idVendor}==\"1d50\""), "{refused}");
        fs::create_dir_all(files.join("001")).unwrap();
        fs::write(files.join("001/004"), "").unwrap();
        assert!(found("host:0bfd:0108").is_ok());
        fs::remove_dir_all(&root).unwrap();
    }

    #[test]
    fn a_run_with_an_adapter_is_no_evidence() {
        assert!(unseen(&system("gs-usb")).is_empty());
        let said = unseen(&system("host:1d50:606f"));
        assert!(said[0].starts_with("the system alone: the adapter `cable` (`host:1d50:606f`)"));
    }

    #[test]
    fn qemu_is_told_which_adapter_is_at_which_port() {
        let system = system("host:0BFD:0108");
        let plug = adapters(&system).next().unwrap();
        let expected = "usb-host,bus=xhci.0,port=3,vendorid=0x0bfd,productid=0x0108";
        assert_eq!(option(plug, "3").replace(CONTROLLER, "xhci"), expected);
    }
}
