//! The device server: the other side of QEMU's `usb-redir` devices and of the clock plugin.
//!
//! The guest stands still at T = 0, slice, 2 x slice, … At each T the devices are advanced to T,
//! then whatever the guest asked for since the last T is answered, until neither side has anything
//! left to say; then the guest goes on. So a request waits for the end of its slice, and data that
//! a device has within a slice arrives at its end.

mod clock;
mod link;
mod socket;

use crate::plugin;
use crate::redirected::{Journal, Redirected, Trouble};
pub use clock::Stop;
use clock::{Answer, Clock};
use diapason_abi::Nanos;
use diapason_devices::UsbDevice;
use link::Link;
use std::ffi::OsString;
use std::io;
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Most devices: QEMU's controller has fifteen ports for each of USB 2 and USB 3.
const DEVICES_MAX: usize = 14;
/// Exchanges at one T after which somebody must be talking to himself.
const EXCHANGES_MAX: u32 = 1_000_000;

/// How a run goes.
#[derive(Clone, Copy, Debug)]
pub struct RunPlan {
    /// How often the guest waits for the devices.
    pub slice: Nanos,
    /// How long an instruction takes: by less than that the guest may stop too late.
    pub instruction: Nanos,
    /// When the run ends; rounded up to a slice.
    pub end: Nanos,
    /// QEMU's exit status then.
    pub status: u8,
    /// Wall time without a sign of life after which QEMU is given up.
    pub patience: Duration,
}

impl Default for RunPlan {
    fn default() -> RunPlan {
        RunPlan {
            slice: Nanos::from_millis(1),
            instruction: Nanos(1),
            end: Nanos::FOREVER,
            status: 0,
            patience: Duration::from_secs(60),
        }
    }
}

impl RunPlan {
    /// Returns whether the guest may stop at `now`.
    fn is_punctual(&self, expected: Nanos, now: Nanos) -> bool {
        now >= expected && (now == expected || now - expected < self.instruction)
    }
}

/// How a run ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RunEnding {
    /// The planned end was reached.
    Planned,
    /// QEMU ended by itself.
    Guest,
}

/// The report of a run.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RunReport {
    pub ending: RunEnding,
    /// The last time at which the guest stood still.
    pub time: Nanos,
    /// Over every packet of every device, its direction and its time: the run's fingerprint.
    pub hash: u64,
    /// The fingerprint of each device.
    pub journals: Vec<Journal>,
    /// How often the guest stood still.
    pub stops: u64,
    /// Exchanges with QEMU, at least one for each stop.
    pub exchanges: u64,
}

/// Why a run could not be finished.
#[derive(Debug)]
pub enum RunError {
    /// The plugin cannot be built.
    Plugin(plugin::Unavailable),
    Io(&'static str, io::Error),
    /// Too many devices, or a slice of no length.
    Plan,
    /// QEMU did not appear, or stopped answering after this time.
    Silent(Nanos),
    /// QEMU stopped at a time at which it should not: expected, reported.
    Astray(Nanos, Nanos),
    /// The connection of a device went wrong: which device, when, why.
    Device(usize, Nanos, Trouble),
    /// Devices and QEMU found no end at this time.
    Endless(Nanos),
}

impl core::fmt::Display for RunError {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            RunError::Plugin(unavailable) => unavailable.fmt(f),
            RunError::Io(what, error) => write!(f, "cannot {what}: {error}"),
            RunError::Plan => write!(f, "a slice of no length, or more than {DEVICES_MAX} devices"),
            RunError::Silent(time) => write!(f, "no sign of life from QEMU after {} ns", time.0),
            RunError::Astray(expected, time) => {
                write!(f, "QEMU stopped at {} ns instead of {} ns", time.0, expected.0)
            }
            RunError::Device(index, time, trouble) => {
                write!(f, "device {index} at {} ns: {trouble}", time.0)
            }
            RunError::Endless(time) => write!(f, "no end of packets at {} ns", time.0),
        }
    }
}

impl std::error::Error for RunError {}

/// Devices that wait for QEMU.
pub struct DeviceServer<D: UsbDevice + ?Sized> {
    plan: RunPlan,
    folder: PathBuf,
    plugin: PathBuf,
    clock: UnixListener,
    listeners: Vec<UnixListener>,
    devices: Vec<Redirected<D>>,
}

impl<D: UsbDevice + ?Sized> DeviceServer<D> {
    /// Builds the plugin and opens the sockets, in a folder of the run's own.
    ///
    /// # Errors
    /// If the plugin cannot be built, a socket not be opened, or a device does not describe itself.
    pub fn start(
        folder: &Path,
        devices: Vec<Box<D>>,
        plan: RunPlan,
    ) -> Result<DeviceServer<D>, RunError> {
        if plan.slice == Nanos::ZERO || devices.len() > DEVICES_MAX {
            return Err(RunError::Plan);
        }
        let plugin = plugin::build(folder).map_err(RunError::Plugin)?;
        let listen = |name: &str| {
            let listener = UnixListener::bind(folder.join(name))
                .map_err(|error| RunError::Io("open a socket", error))?;
            listener.set_nonblocking(true).map_err(|e| RunError::Io("open a socket", e))?;
            Ok(listener)
        };
        let redirect = |(index, device)| {
            Redirected::new(device).map_err(|trouble| RunError::Device(index, Nanos::ZERO, trouble))
        };
        Ok(DeviceServer {
            plan,
            folder: folder.to_path_buf(),
            plugin,
            clock: listen(CLOCK)?,
            listeners: (0..devices.len()).map(|i| listen(&socket(i))).collect::<Result<_, _>>()?,
            devices: devices.into_iter().enumerate().map(redirect).collect::<Result<_, _>>()?,
        })
    }

    /// Returns the options that QEMU needs besides `-icount shift=N,sleep=off`: a controller, the
    /// devices in the order of its ports, and the plugin.
    #[must_use]
    pub fn arguments(&self) -> Vec<OsString> {
        // One to spare: QEMU puts a hub of its own into the last free port.
        let ports = self.devices.len() + 1;
        let controller = format!("qemu-xhci,id={CONTROLLER},p2={ports},p3={ports}");
        let mut arguments: Vec<OsString> = ["-device".into(), controller.into()].into();
        arguments.extend(self.arguments_at(&[]));
        arguments
    }

    /// The options for a caller that has a controller called [`CONTROLLER`], and perhaps hubs: each
    /// device at its port ("2", or "1.3" behind a hub), or wherever there is room.
    #[must_use]
    pub fn arguments_at(&self, ports: &[String]) -> Vec<OsString> {
        let mut arguments: Vec<OsString> = Vec::new();
        let mut add = |option: &str, value: OsString| arguments.extend([option.into(), value]);
        for index in 0..self.devices.len() {
            let path = quoted(&self.folder.join(socket(index)));
            add("-chardev", joined(&format!("socket,id=redirected{index},path="), &path));
            let port = ports.get(index).map_or(String::new(), |port| format!(",port={port}"));
            let device = format!("usb-redir,bus={CONTROLLER}.0,chardev=redirected{index}{port}");
            add("-device", device.into());
        }
        let plugin = joined("", &quoted(&self.plugin));
        let clock = joined(",socket=", &quoted(&self.folder.join(CLOCK)));
        let mut value = plugin;
        value.push(clock);
        value.push(format!(",slice={}", self.plan.slice.0));
        add("-plugin", value);
        arguments
    }

    /// Serves QEMU, which the caller has started, until the planned end or its own. `at_stop` is
    /// called each time the guest stands still, after the devices have come to that time.
    ///
    /// The devices come back with the report: they may have counted something.
    ///
    /// # Errors
    /// If QEMU falls silent or does not keep to the protocol. The caller ends it then.
    pub fn run(
        mut self,
        mut at_stop: impl FnMut(Stop, &mut [Redirected<D>]),
    ) -> Result<(RunReport, Vec<Redirected<D>>), RunError> {
        let (mut clock, mut links) = self.accept()?;
        let mut expected = Nanos::ZERO;
        let (mut stops, mut exchanges) = (0, 0);
        let (ending, time) = loop {
            let Some(stop) = clock.wait(expected)? else {
                break (RunEnding::Guest, expected - self.plan.slice);
            };
            if !self.plan.is_punctual(expected, stop.now) {
                return Err(RunError::Astray(expected, stop.now));
            }
            let now = expected;
            stops += 1;
            self.advance(now);
            at_stop(Stop { now, ..stop }, &mut self.devices);
            exchanges += self.exchange(now, &mut clock, &mut links)?;
            if now >= self.plan.end {
                clock.answer(Answer::End(self.plan.status))?;
                break (RunEnding::Planned, now);
            }
            clock.answer(Answer::Go)?;
            expected += self.plan.slice;
        };
        let journals: Vec<Journal> = self.devices.iter().map(|device| *device.journal()).collect();
        let hash = Journal::join(journals.iter());
        let report = RunReport { ending, time, hash, journals, stops, exchanges };
        Ok((report, self.devices))
    }

    fn accept(&self) -> Result<(Clock, Vec<Link>), RunError> {
        let clock = Clock::accept(&self.clock, self.plan.patience)?;
        let links = self.listeners.iter().map(|l| Link::accept(l, self.plan.patience));
        Ok((clock, links.collect::<Result<_, _>>()?))
    }

    /// Brings all devices to `to`, together: they may share a bus or a cable.
    fn advance(&mut self, to: Nanos) {
        while let Some(at) = self.devices.iter().filter_map(|d| d.next_moment(to)).min() {
            self.devices.iter_mut().for_each(|device| device.advance(at));
        }
        self.devices.iter_mut().for_each(|device| device.advance(to));
    }

    /// Exchanges packets at one time until nobody has anything left to say; how often.
    fn exchange(
        &mut self,
        now: Nanos,
        clock: &mut Clock,
        links: &mut [Link],
    ) -> Result<u64, RunError> {
        for count in 1..=EXCHANGES_MAX {
            if !self.exchange_once(now, links)? {
                return Ok(u64::from(count));
            }
            clock.answer(Answer::Again)?;
            if clock.wait(now)?.map(|stop| stop.now) != Some(now) {
                // It ended, or was stopped: the next wait says so.
                return Ok(u64::from(count));
            }
        }
        Err(RunError::Endless(now))
    }

    /// Takes in what QEMU has sent, and sends what one device has to say. Returns whether anything
    /// moved that QEMU may have an answer to. It serves one device at a time, so that QEMU takes
    /// their packets in an order that does not depend on how fast it reads.
    fn exchange_once(&mut self, now: Nanos, links: &mut [Link]) -> Result<bool, RunError> {
        let (mut moved, mut sent) = (false, false);
        for (index, (device, link)) in self.devices.iter_mut().zip(&mut *links).enumerate() {
            moved |= link.read(device).map_err(|trouble| trouble.at(index, now))?;
        }
        self.advance(now);
        for (device, link) in self.devices.iter_mut().zip(links) {
            if !sent && device.is_greeted() {
                sent = link.write(device.output())?;
            }
        }
        let silent = self.devices.iter().any(|device| !device.is_greeted());
        Ok(moved || sent || silent)
    }
}

/// Names of sockets in the run's folder.
const CLOCK: &str = "clock.sock";
/// The name of the controller that the devices are plugged into.
pub const CONTROLLER: &str = "redirected";

fn socket(index: usize) -> String {
    format!("device{index}.sock")
}

/// A path as QEMU's options have it: a comma is written twice.
fn quoted(path: &Path) -> OsString {
    use std::os::unix::ffi::{OsStrExt, OsStringExt};
    let bytes = path.as_os_str().as_bytes().iter();
    let twice = bytes.flat_map(|byte| std::iter::repeat_n(*byte, 1 + usize::from(*byte == b',')));
    OsString::from_vec(twice.collect())
}

fn joined(prefix: &str, rest: &OsString) -> OsString {
    let mut whole = OsString::from(prefix);
    whole.push(rest);
    whole
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_guest_stops_too_late_by_less_than_an_instruction() {
        let slow = RunPlan { instruction: Nanos(8), ..RunPlan::default() };
        let stops = |plan: RunPlan, now| plan.is_punctual(Nanos(1_000), Nanos(now));
        for (plan, latest) in [(RunPlan::default(), 1_000), (slow, 1_007)] {
            assert!(stops(plan, 1_000) && stops(plan, latest));
            assert!(!stops(plan, 999) && !stops(plan, latest + 1));
        }
    }
}
