//! The USB devices of a description behind QEMU: models, served in step with the guest's clock.

use crate::capture::{Captures, Redirection, Request};
use crate::{Failure, surroundings};
use diapason_abi::Nanos;
use diapason_abi::record::exit;
use diapason_devices::Device;
use diapason_devices::can::CanBus;
use diapason_redir::{Plan, Redirected, Report, Server};
use diapason_system::UsbModel;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::mpsc::channel;
use std::thread::JoinHandle;
use std::time::Duration;

/// How often the guest waits for its devices.
pub const SLICE: Nanos = Nanos::from_millis(1);

/// Devices that are being served.
pub struct Plugged {
    /// What QEMU must be told.
    pub arguments: Vec<OsString>,
    server: JoinHandle<Result<Report, String>>,
}

impl Plugged {
    /// Serves these devices from sockets in `folder`. Models cannot change threads, so they are
    /// made in the server's.
    ///
    /// # Errors
    /// If the clock's plugin cannot be built, or a socket not be opened.
    pub fn serve(
        folder: &Path,
        models: Vec<UsbModel>,
        patience: Duration,
        wanted: Request,
    ) -> Result<Plugged, Failure> {
        let (sender, receiver) = channel();
        let folder = absolute(folder)?;
        let server = std::thread::spawn(move || {
            let mut buses = Vec::new();
            let make = |model| surroundings::device(model, &mut buses);
            let devices: Vec<Box<dyn Device>> = models.into_iter().map(make).collect();
            let begin = || Log::begin(&wanted, &buses).map_err(|failure| failure.to_string());
            let log = wanted.is_some().then(begin).transpose()?;
            let status = u8::try_from(exit::status(exit::FINISHED)).unwrap_or(0);
            let plan = Plan { slice: SLICE, status, patience, ..Plan::default() };
            let server = Server::start(&folder, devices, plan).map_err(|e| e.to_string())?;
            if sender.send(server.arguments()).is_err() {
                return Err(String::from("nobody wants the devices any more"));
            }
            follow(server, log)
        });
        match receiver.recv() {
            Ok(arguments) => Ok(Plugged { arguments, server }),
            Err(_) => Err(Failure::World(wrong(server.join()))),
        }
    }

    /// What was served, now that QEMU has ended: a number that is equal for equal runs.
    ///
    /// # Errors
    /// If the devices and QEMU lost each other.
    pub fn finish(self) -> Result<u64, Failure> {
        match self.server.join() {
            Ok(Ok(report)) => Ok(report.hash),
            ended => Err(Failure::Ours(wrong(ended))),
        }
    }
}

/// Serve the devices until QEMU has ended, and capture what they say if that is wanted.
fn follow(server: Server<dyn Device>, log: Option<Log>) -> Result<Report, String> {
    let Some(mut log) = log else {
        let (report, _) = server.run(|_, _| {}).map_err(|failure| failure.to_string())?;
        return Ok(report);
    };
    let ended = server.run(|stop, devices| log.look(stop.now, devices));
    let (report, mut devices) = ended.map_err(|failure| failure.to_string())?;
    log.look(report.time, &mut devices);
    log.captures.finish().map_err(|failure| failure.to_string())?;
    Ok(report)
}

/// The captures of what is served.
struct Log {
    captures: Captures,
    devices: Vec<Redirection>,
}

impl Log {
    fn begin(wanted: &Request, buses: &[CanBus]) -> Result<Log, Failure> {
        Ok(Log { captures: Captures::begin(wanted, 1, buses)?, devices: Vec::new() })
    }

    /// Write what was said up to `now`.
    fn look(&mut self, now: Nanos, devices: &mut [Redirected<dyn Device>]) {
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
        self.captures.frames();
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
