//! The USB devices of a description behind QEMU: models, served in step with the guest's clock, and
//! devices that QEMU has itself.

use crate::can_server::CanServer;
use crate::capture::{CaptureRequest, Captures, Redirection};
use crate::failure::Failure;
use crate::pace::Pace;
use crate::qemu::Boot;
use crate::{real, surroundings};
use diapason_abi::Nanos;
use diapason_abi::archive::Location;
use diapason_abi::record::exit;
use diapason_devices::UsbDevice;
use diapason_devices::can::CanBus;
use diapason_redir::{CONTROLLER, DeviceServer, Redirected, RunPlan, RunReport};
use diapason_sim::{FrameTap, XHCI};
use diapason_system::{System, UsbModel, UsbPlug};
use std::ffi::OsString;
use std::io::Write;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::mpsc::channel;
use std::thread::JoinHandle;
use std::time::Duration;

/// How often the guest waits for its devices.
pub const SLICE: Nanos = Nanos::from_millis(1);

/// Most ports of a controller of QEMU's, for each of USB 2 and USB 3.
pub(crate) const PORTS_MAX: u8 = 15;

/// Bytes of the medium of QEMU's own disk.
const STORAGE: u64 = 64 << 20;

/// From one key to the next on QEMU's own keyboard, and how many such pauses QEMU may take to
/// start.
const KEY_PAUSE: Duration = Duration::from_millis(200);
const PATIENCE: u32 = 300;
/// A loose network device stays in, and then out, for so long.
const LOOSE: [Duration; 2] = [Duration::from_millis(1_500), Duration::from_millis(500)];

/// A device, and where it is plugged in, as QEMU writes it: "2", or "1.3" behind a hub.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PluggedDevice {
    /// The model of the device.
    pub model: UsbModel,
    pub port: String,
    /// As it is described.
    pub described: UsbPlug,
}

impl PluggedDevice {
    /// Returns whether the device server has a model of it. The others are QEMU's own.
    #[must_use]
    pub fn is_served(&self) -> bool {
        self.model != UsbModel::Hub && !self.described.only_in_qemu()
    }
}

/// Returns the devices at the first controller with devices: hubs before the devices behind them,
/// and by the order of ports.
#[must_use]
pub fn plugs(system: &System) -> Vec<PluggedDevice> {
    let first = system.usb.iter().map(|plug| plug.device).min();
    let mut found: Vec<(Vec<u8>, &UsbPlug)> = Vec::new();
    for plug in system.usb.iter().filter(|plug| Some(plug.device) == first) {
        let above = |hub: &usize| system.usb.get(*hub).and_then(|hub| hub.behind);
        let hubs = std::iter::successors(plug.behind, above).filter_map(|hub| system.usb.get(hub));
        let mut path: Vec<u8> = [plug.port].into_iter().chain(hubs.map(|hub| hub.port)).collect();
        path.reverse();
        found.push((path, plug));
    }
    found.sort_by(|(a, _), (b, _)| (a.len(), a).cmp(&(b.len(), b)));
    let written = |path: Vec<u8>| path.iter().map(u8::to_string).collect::<Vec<_>>().join(".");
    let plug = |(path, plug): (_, &UsbPlug)| PluggedDevice {
        model: plug.model,
        port: written(path),
        described: plug.clone(),
    };
    found.into_iter().map(plug).collect()
}

/// Devices that are being served.
pub struct Plugged {
    /// The arguments for QEMU.
    pub arguments: Vec<OsString>,
    /// The thread that serves the models and holds the clock, if one is needed.
    server: Option<JoinHandle<Result<RunReport, String>>>,
}

impl Plugged {
    /// Makes the devices of a machine ready, which runs in `folder`, as slow and as patiently as
    /// `plan` says.
    ///
    /// # Errors
    /// If the clock's plugin cannot be built, or a socket or file not be made.
    pub fn serve(folder: &Path, boot: &Boot<'_>, plan: RunPlan) -> Result<Plugged, Failure> {
        let plugs = &boot.plugged;
        let mut arguments = match plugs.is_empty() {
            true => Vec::new(),
            false => placed(folder, boot.hardware.controller, plugs, one_more(plugs))?,
        };
        let served = plugs.iter().filter(|plug| plug.is_served());
        let models: Vec<PluggedDevice> = served.cloned().collect();
        // An adapter of this computer acts in its own time: the guest must not be ahead of that.
        let pace = plugs.iter().any(|plug| plug.described.is_real).then(Pace::default);
        let server = match models.is_empty() && pace.is_none() && !boot.is_side_by_side() {
            true => None,
            false => {
                let wanted = boot.captures.clone();
                let (more, server) = serve(folder, models, (plan, pace), wanted)?;
                arguments.extend(more);
                Some(server)
            }
        };
        Ok(Plugged { arguments, server })
    }

    /// Returns a number that is equal for equal runs, if the clock was held. QEMU must have ended.
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

/// Returns the ports of the first controller that something is plugged into.
fn taken_ports(plugs: &[PluggedDevice]) -> impl Iterator<Item = u8> {
    plugs.iter().filter_map(|plug| plug.port.split('.').next()?.parse().ok())
}

/// Returns how many ports a controller needs so that one stays free.
fn one_more(plugs: &[PluggedDevice]) -> u8 {
    taken_ports(plugs).max().unwrap_or(0).saturating_add(1).min(PORTS_MAX)
}

/// Returns the first port of the first controller that is free.
#[must_use]
pub fn spare_port(plugs: &[PluggedDevice]) -> u8 {
    let is_free = |port: &u8| taken_ports(plugs).all(|taken| taken != *port);
    (1..=PORTS_MAX).find(is_free).unwrap_or(PORTS_MAX)
}

/// Returns the number of the first USB controller of a system.
#[must_use]
pub fn first_controller(system: &System) -> Option<usize> {
    system.devices.iter().position(|device| match device.location {
        Location::Pci(function) => function.class == XHCI && function.instance == 0,
        _ => false,
    })
}

/// Returns the options for a controller with all ports, and for QEMU's own devices at it.
///
/// # Errors
/// If the simulator alone has one of the devices.
pub fn all_ports(
    folder: &Path,
    kind: &str,
    plugs: &[PluggedDevice],
) -> Result<Vec<OsString>, Failure> {
    placed(folder, kind, plugs, PORTS_MAX)
}

/// Returns the options for a controller with so many ports, and for what QEMU has itself.
fn placed(
    folder: &Path,
    kind: &str,
    plugs: &[PluggedDevice],
    ports: u8,
) -> Result<Vec<OsString>, Failure> {
    if let Some(plug) = plugs.iter().find(|plug| plug.model.only_in_simulator()) {
        let (model, port) = (plug.model.name(), &plug.port);
        return Err(Failure::Input(format!(
            "QEMU has no `{model}`, which is plugged into port {port}\n\
             help: start the system with `diapason sim`"
        )));
    }
    let controller = format!("{kind},id={CONTROLLER},p2={ports},p3={ports}");
    let mut arguments: Vec<OsString> = ["-device".into(), controller.into()].into();
    for (number, plug) in plugs.iter().enumerate() {
        arguments.extend(own(folder, number, plug)?);
    }
    Ok(arguments)
}

/// Returns the options for a device of QEMU's own.
fn own(folder: &Path, number: usize, plug: &PluggedDevice) -> Result<Vec<OsString>, Failure> {
    let at = format!("bus={CONTROLLER}.0,port={}{}", plug.port, serial(plug));
    let device = |what: &str| -> Vec<OsString> { ["-device".into(), what.into()].into() };
    if plug.described.is_real {
        return Ok(device(&real::option(&plug.described, &plug.port)));
    }
    Ok(match plug.model {
        UsbModel::Hub => device(&format!("usb-hub,{at}")),
        UsbModel::QemuKeyboard => {
            let mut options = monitor(folder, &format!("keys{number}"), type_at)?;
            options.extend(device(&format!("usb-kbd,{at}")));
            options
        }
        UsbModel::QemuNetwork | UsbModel::QemuLooseNetwork => {
            let name = format!("network{number}");
            // Nobody but what QEMU itself plays on this network can be reached.
            let user = format!("user,id={name}-user,restrict=on");
            let mut options: Vec<OsString> = ["-netdev".into(), user.into()].into();
            let network = format!("usb-net,id={name},netdev={name}-user,{at}");
            options.extend(device(&network));
            if plug.model == UsbModel::QemuLooseNetwork {
                let shake = move |monitor: UnixStream| shake_at(monitor, &name, &network);
                options.extend(monitor(folder, &format!("plug{number}"), shake)?);
            }
            options
        }
        UsbModel::QemuStorage => {
            let file = format!("storage{number}.img");
            std::fs::File::create(folder.join(&file))
                .and_then(|medium| medium.set_len(STORAGE))
                .map_err(|error| Failure::io(format!("make {file}"), &error))?;
            // The guest's clock runs on while the host writes: nothing waits for its disk.
            let drive = format!("if=none,id=storage{number},format=raw,cache=unsafe,file={file}");
            let mut options: Vec<OsString> = ["-drive".into(), drive.into()].into();
            options.extend(device(&format!("usb-storage,{at},drive=storage{number}")));
            options
        }
        _ => Vec::new(),
    })
}

/// Returns the option for the serial number that the description gives a device of QEMU's own.
fn serial(plug: &PluggedDevice) -> String {
    // A comma ends an option, two are one.
    let option = |serial: &String| format!(",serial={}", serial.replace(',', ",,"));
    plug.described.serial.as_ref().map(option).unwrap_or_default()
}

/// Returns the options for a monitor of QEMU's, at which somebody does something as soon as it is
/// there.
pub(crate) fn monitor(
    folder: &Path,
    name: &str,
    act: impl FnOnce(UnixStream) + Send + 'static,
) -> Result<Vec<OsString>, Failure> {
    let socket = absolute(folder)?.join(format!("{name}.sock"));
    std::thread::spawn(move || {
        let connect = |_| {
            std::thread::sleep(KEY_PAUSE);
            UnixStream::connect(&socket).ok()
        };
        if let Some(monitor) = (0..PATIENCE).find_map(connect) {
            act(monitor);
        }
    });
    let path = format!("socket,id={name},path={name}.sock,server=on,wait=off");
    let mode = format!("chardev={name},mode=readline");
    Ok(["-chardev".into(), path.into(), "-mon".into(), mode.into()].into())
}

/// Pulls a device out and plugs it in again, in the time of the host, until QEMU is gone.
fn shake_at(mut monitor: UnixStream, name: &str, device: &str) {
    let orders = [format!("device_del {name}"), format!("device_add {device}")];
    for (pause, order) in LOOSE.iter().zip(&orders).cycle() {
        std::thread::sleep(*pause);
        if writeln!(monitor, "{order}").is_err() {
            return;
        }
    }
}

/// Types the alphabet at a monitor of QEMU's, in the time of the host, until QEMU is gone.
fn type_at(mut monitor: UnixStream) {
    for key in ('a'..='z').cycle() {
        std::thread::sleep(KEY_PAUSE);
        if writeln!(monitor, "sendkey {key} 50").is_err() {
            return;
        }
    }
}

/// The arguments for QEMU, and the thread that serves models.
type Serving = (Vec<OsString>, JoinHandle<Result<RunReport, String>>);

/// Serves these models from sockets in `folder`. They cannot change threads, so they are made in
/// the server's.
fn serve(
    folder: &Path,
    plugs: Vec<PluggedDevice>,
    (plan, pace): (RunPlan, Option<Pace>),
    wanted: CaptureRequest,
) -> Result<Serving, Failure> {
    let (sender, receiver) = channel();
    let folder = absolute(folder)?;
    let server = std::thread::spawn(move || {
        let mut buses = Vec::new();
        let make = |plug: &PluggedDevice| surroundings::device(&plug.described, &mut buses);
        let devices: Vec<Box<dyn UsbDevice>> = plugs.iter().filter_map(make).collect();
        let open = |address| CanServer::open(address).map_err(|failure| failure.to_string());
        let clients = wanted.can_server.map(open).transpose()?;
        clients.into_iter().for_each(|server| server.serve(&buses));
        let begin = || Log::begin(&wanted, &buses, &[]).map_err(|failure| failure.to_string());
        let log = wanted.is_some().then(begin).transpose()?;
        let ports: Vec<String> = plugs.into_iter().map(|plug| plug.port).collect();
        let status = u8::try_from(exit::status(exit::FINISHED)).unwrap_or(0);
        let plan = RunPlan { slice: SLICE, status, ..plan };
        let server = DeviceServer::start(&folder, devices, plan).map_err(|e| e.to_string())?;
        if sender.send(server.arguments_at(0, &ports, 0)).is_err() {
            return Err(String::from("nobody wants the devices any more"));
        }
        follow(server, log, pace)
    });
    match receiver.recv() {
        Ok(arguments) => Ok((arguments, server)),
        Err(_) => Err(Failure::World(wrong(server.join()))),
    }
}

/// Serves the devices until QEMU has ended, no faster than `pace` if there is one, and captures
/// what they say if that is wanted.
fn follow(
    server: DeviceServer<dyn UsbDevice>,
    mut log: Option<Log>,
    mut pace: Option<Pace>,
) -> Result<RunReport, String> {
    let ended = server.run(|stop, devices| {
        pace.iter_mut().for_each(|pace| pace.wait(stop.now));
        log.iter_mut().for_each(|log| log.look(stop.now, devices));
    });
    let (report, mut devices) = ended.map_err(|failure| failure.to_string())?;
    if let Some(log) = log {
        log.finish(report.time, &mut devices).map_err(|failure| failure.to_string())?;
    }
    Ok(report)
}

/// The captures of what is served.
pub(crate) struct Log {
    captures: Captures,
    devices: Vec<Redirection>,
}

impl Log {
    /// Returns the captures that are wanted of devices that have these buses, and of adapters.
    ///
    /// # Errors
    /// If a folder or a file cannot be made.
    pub fn begin(
        wanted: &CaptureRequest,
        buses: &[(usize, CanBus)],
        adapters: &[FrameTap],
    ) -> Result<Log, Failure> {
        let captures = Captures::begin(wanted, 1, buses, adapters)?;
        Ok(Log { captures, devices: Vec::new() })
    }

    /// Writes what was said up to `now`.
    pub fn look(&mut self, now: Nanos, devices: &mut [Redirected<dyn UsbDevice>]) {
        if self.devices.is_empty() {
            // The guest stands still for the first time: nothing but hello was said.
            devices.iter_mut().for_each(|device| device.record(true));
            self.devices = (1..).take(devices.len()).map(Redirection::new).collect();
        }
        for (device, heard) in devices.iter_mut().zip(&mut self.devices) {
            for spoken in device.take_record() {
                heard.hear(&spoken, |event| self.captures.usb(0, event));
            }
        }
        self.captures.settle(0, now);
        self.captures.frames(now);
    }

    /// Writes what was said up to the end.
    ///
    /// # Errors
    /// If a capture could not be written.
    pub fn finish(
        mut self,
        end: Nanos,
        devices: &mut [Redirected<dyn UsbDevice>],
    ) -> Result<(), Failure> {
        self.look(end, devices);
        self.captures.finish()
    }
}

/// QEMU runs in a folder of its own.
pub(crate) fn absolute(folder: &Path) -> Result<PathBuf, Failure> {
    let whole = folder.canonicalize();
    whole.map_err(|error| Failure::io(format!("find {}", folder.display()), &error))
}

fn wrong(ended: std::thread::Result<Result<RunReport, String>>) -> String {
    match ended {
        Ok(Err(text)) => format!("the USB devices cannot be served: {text}"),
        _ => String::from("the server of the USB devices ended by itself"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn options(model: &str, more: &str) -> Vec<OsString> {
        let text = format!(
            "[system]\nname = \"s\"\n[[process]]\nname = \"p\"\npriority = 1\n\
             [[device]]\nname = \"xhci\"\npci = \"0c0330\"\nsize = \"16K\"\n\
             [[usb]]\nname = \"u\"\non = \"xhci\"\nmodel = \"{model}\"\n{more}"
        );
        let system = diapason_system::parse("f", &text).unwrap_or_else(|wrong| panic!("{wrong}"));
        let folder = std::env::temp_dir();
        own(&folder, 0, &plugs(&system)[0]).unwrap()
    }

    #[test]
    fn a_device_of_qemus_own_has_the_serial_number_of_the_description() {
        let device = |more| options("qemu-network", more).pop().unwrap().into_string().unwrap();
        let plain = device("");
        assert!(plain.ends_with("port=1"), "{plain}");
        assert_eq!(device("serial = \"A,1\"\n"), format!("{plain},serial=A,,1"));
    }
}
