//! The USB devices of a description behind QEMU: models, served in step with the guest's clock, and
//! devices that QEMU has itself.

use crate::{Failure, surroundings};
use diapason_abi::Nanos;
use diapason_abi::record::exit;
use diapason_devices::Device;
use diapason_redir::{CONTROLLER, Plan, Report, Server};
use diapason_system::{System, UsbModel};
use std::ffi::OsString;
use std::io::Write;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::mpsc::channel;
use std::thread::JoinHandle;
use std::time::Duration;

/// How often the guest waits for its devices.
pub const SLICE: Nanos = Nanos::from_millis(1);

/// Bytes of the medium of QEMU's own disk.
const STORAGE: u64 = 64 << 20;

/// From one key to the next on QEMU's own keyboard, and how many such pauses QEMU may take to
/// start.
const KEY_PAUSE: Duration = Duration::from_millis(200);
const PATIENCE: u32 = 300;

/// A device, and where it is plugged in, as QEMU writes it: "2", or "1.3" behind a hub.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Plug {
    /// What it is.
    pub model: UsbModel,
    /// Where.
    pub port: String,
}

/// What is plugged into the first controller that something is plugged into: hubs before what is
/// behind them, and by the order of ports.
#[must_use]
pub fn plugs(system: &System) -> Vec<Plug> {
    let first = system.usb.iter().map(|plug| plug.device).min();
    let mut found: Vec<(Vec<u8>, UsbModel)> = Vec::new();
    for plug in system.usb.iter().filter(|plug| Some(plug.device) == first) {
        let above = |hub: &usize| system.usb.get(*hub).and_then(|hub| hub.behind);
        let hubs = std::iter::successors(plug.behind, above).filter_map(|hub| system.usb.get(hub));
        let mut path: Vec<u8> = [plug.port].into_iter().chain(hubs.map(|hub| hub.port)).collect();
        path.reverse();
        found.push((path, plug.model));
    }
    found.sort_by(|(a, _), (b, _)| (a.len(), a).cmp(&(b.len(), b)));
    let written = |path: Vec<u8>| path.iter().map(u8::to_string).collect::<Vec<_>>().join(".");
    found.into_iter().map(|(path, model)| Plug { model, port: written(path) }).collect()
}

/// Devices that are being served.
pub struct Plugged {
    /// What QEMU must be told.
    pub arguments: Vec<OsString>,
    /// Who serves the models, if there are any.
    server: Option<JoinHandle<Result<Report, String>>>,
}

impl Plugged {
    /// Makes these devices ready for a QEMU that runs in `folder`.
    ///
    /// # Errors
    /// If the clock's plugin cannot be built, or a socket or file not be made.
    pub fn serve(folder: &Path, plugs: &[Plug], patience: Duration) -> Result<Plugged, Failure> {
        let mut arguments = controller(plugs);
        for (number, plug) in plugs.iter().enumerate() {
            arguments.extend(own(folder, number, plug)?);
        }
        let models = |plug: &&Plug| surroundings::device(plug.model).is_some();
        let models: Vec<Plug> = plugs
            .iter()
            .filter(|plug| plug.model != UsbModel::Hub)
            .filter(models)
            .cloned()
            .collect();
        let server = match models.is_empty() {
            true => None,
            false => {
                let (more, server) = serve(folder, models, patience)?;
                arguments.extend(more);
                Some(server)
            }
        };
        Ok(Plugged { arguments, server })
    }

    /// What was served, now that QEMU has ended: a number that is equal for equal runs, if models
    /// were.
    ///
    /// # Errors
    /// If the devices and QEMU lost each other.
    pub fn finish(self) -> Result<Option<u64>, Failure> {
        match self.server.map(JoinHandle::join) {
            None => Ok(None),
            Some(Ok(Ok(report))) => Ok(Some(report.hash)),
            Some(ended) => Err(Failure::Ours(wrong(ended))),
        }
    }
}

/// The controller, with a port to spare.
fn controller(plugs: &[Plug]) -> Vec<OsString> {
    let root = |plug: &Plug| plug.port.split('.').next().and_then(|port| port.parse::<u8>().ok());
    let ports = plugs.iter().filter_map(root).max().unwrap_or(0).saturating_add(1).min(15);
    let controller = format!("qemu-xhci,id={CONTROLLER},p2={ports},p3={ports}");
    ["-device".into(), controller.into()].into()
}

/// The options for a device of QEMU's own.
fn own(folder: &Path, number: usize, plug: &Plug) -> Result<Vec<OsString>, Failure> {
    let at = format!("bus={CONTROLLER}.0,port={}", plug.port);
    let device = |what: &str| -> Vec<OsString> { ["-device".into(), what.into()].into() };
    Ok(match plug.model {
        UsbModel::Hub => device(&format!("usb-hub,{at}")),
        UsbModel::QemuKeyboard => {
            let socket = absolute(folder)?.join(format!("keys{number}.sock"));
            std::thread::spawn(move || type_at(&socket));
            let name = format!("keys{number}");
            let path = format!("socket,id={name},path={name}.sock,server=on,wait=off");
            let mut options: Vec<OsString> = ["-chardev".into(), path.into()].into();
            options.extend(["-mon".into(), format!("chardev={name},mode=readline").into()]);
            options.extend(device(&format!("usb-kbd,{at}")));
            options
        }
        UsbModel::QemuStorage => {
            let file = format!("storage{number}.img");
            std::fs::File::create(folder.join(&file))
                .and_then(|medium| medium.set_len(STORAGE))
                .map_err(|error| Failure::io(format!("make {file}"), &error))?;
            let drive = format!("if=none,id=storage{number},format=raw,file={file}");
            let mut options: Vec<OsString> = ["-drive".into(), drive.into()].into();
            options.extend(device(&format!("usb-storage,{at},drive=storage{number}")));
            options
        }
        _ => Vec::new(),
    })
}

/// Types the alphabet at a monitor of QEMU's, in the time of the host, until QEMU is gone.
fn type_at(socket: &Path) {
    let connect = |_| {
        std::thread::sleep(KEY_PAUSE);
        UnixStream::connect(socket).ok()
    };
    let Some(mut monitor) = (0..PATIENCE).find_map(connect) else { return };
    for key in ('a'..='z').cycle() {
        std::thread::sleep(KEY_PAUSE);
        if writeln!(monitor, "sendkey {key} 50").is_err() {
            return;
        }
    }
}

/// What a thread that serves models is, and what QEMU must be told of it.
type Serving = (Vec<OsString>, JoinHandle<Result<Report, String>>);

/// Serves these models from sockets in `folder`. They cannot change threads, so they are made in
/// the server's.
fn serve(folder: &Path, plugs: Vec<Plug>, patience: Duration) -> Result<Serving, Failure> {
    let (sender, receiver) = channel();
    let folder = absolute(folder)?;
    let server = std::thread::spawn(move || {
        let devices: Vec<Box<dyn Device>> =
            plugs.iter().filter_map(|plug| surroundings::device(plug.model)).collect();
        let ports: Vec<String> = plugs.into_iter().map(|plug| plug.port).collect();
        let status = u8::try_from(exit::status(exit::FINISHED)).unwrap_or(0);
        let plan = Plan { slice: SLICE, status, patience, ..Plan::default() };
        let server = Server::start(&folder, devices, plan).map_err(|e| e.to_string())?;
        if sender.send(server.arguments_at(&ports)).is_err() {
            return Err(String::from("nobody wants the devices any more"));
        }
        let (report, _) = server.run(|_, _| {}).map_err(|failure| failure.to_string())?;
        Ok(report)
    });
    match receiver.recv() {
        Ok(arguments) => Ok((arguments, server)),
        Err(_) => Err(Failure::World(wrong(server.join()))),
    }
}

/// QEMU runs in a folder of its own.
fn absolute(folder: &Path) -> Result<PathBuf, Failure> {
    let whole = folder.canonicalize();
    whole.map_err(|error| Failure::io(format!("find {}", folder.display()), &error))
}

fn wrong(ended: std::thread::Result<Result<Report, String>>) -> String {
    match ended {
        Ok(Err(text)) => format!("the USB devices cannot be served: {text}"),
        _ => String::from("the server of the USB devices ended by itself"),
    }
}
