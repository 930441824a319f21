//! The device server: the other side of QEMU's `usb-redir` devices and of the clock plugin.
//!
//! All guests stand still at T = 0, slice, 2 x slice, … At each T the devices are advanced to T,
//! then whatever the guests asked for since the last T is answered, one guest after the other,
//! until nobody has anything left to say; then the guests go on. So a request waits for the end of
//! its slice, and data that a device has within a slice arrives at its end.
//!
//! Ethernet adapters of several guests are joined by [`Wires`].

mod clock;
mod guest;
mod link;
mod socket;
mod wires;

use crate::plugin;
use crate::redirected::{Journal, Redirected, Trouble};
use clock::Answer;
pub use clock::Stop;
use diapason_abi::Nanos;
use diapason_devices::UsbDevice;
use guest::{Guest, Seat, advance};
use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;
use wires::NoWires;
pub use wires::{AdapterFrame, WIRES_MAX, Wires};

/// Most devices: QEMU's controller has fifteen ports for each of USB 2 and USB 3.
const DEVICES_MAX: usize = 14;
/// Exchanges at one T after which somebody must be talking to himself.
const EXCHANGES_MAX: u32 = 1_000_000;

/// How a run goes.
#[derive(Clone, Copy, Debug)]
pub struct RunPlan {
    /// How often guests wait for the devices.
    pub slice: Nanos,
    /// When the devices are plugged in. Firmware that is done by then does not wait for them.
    pub plugged: Nanos,
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
            plugged: Nanos::ZERO,
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
    /// Every QEMU ended by itself.
    Guest,
}

/// The report of a run.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RunReport {
    pub ending: RunEnding,
    /// The last time at which a guest stood still.
    pub time: Nanos,
    /// Over every packet of every device, its direction and its time: the run's fingerprint.
    pub hash: u64,
    /// The fingerprint of each device.
    pub journals: Vec<Journal>,
    /// How often guests stood still.
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
    /// Too many devices of a guest, or a slice of no length.
    Plan,
    /// QEMU did not appear, or stopped answering after this time.
    Silent(Nanos),
    /// QEMU stopped at a time at which it should not: expected, reported.
    Astray(Nanos, Nanos),
    /// The connection of a device went wrong: which device, when, why.
    Device(usize, Nanos, Trouble),
    /// Devices and QEMU found no end at this time.
    Endless(Nanos),
    /// An error at one of several guests: which guest, what error.
    Guest(usize, Box<RunError>),
}

impl core::fmt::Display for RunError {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            RunError::Plugin(unavailable) => unavailable.fmt(f),
            RunError::Io(what, error) => write!(f, "cannot {what}: {error}"),
            RunError::Plan => {
                write!(f, "a slice of no length, or more than {DEVICES_MAX} devices of a guest")
            }
            RunError::Silent(time) => write!(f, "no sign of life from QEMU after {} ns", time.0),
            RunError::Astray(expected, time) => {
                write!(f, "QEMU stopped at {} ns instead of {} ns", time.0, expected.0)
            }
            RunError::Device(index, time, trouble) => {
                write!(f, "device {index} at {} ns: {trouble}", time.0)
            }
            RunError::Endless(time) => write!(f, "no end of packets at {} ns", time.0),
            RunError::Guest(guest, error) => write!(f, "guest {guest}: {error}"),
        }
    }
}

impl std::error::Error for RunError {}

/// Devices that wait for QEMU, or for several that stand still together.
pub struct DeviceServer<D: UsbDevice + ?Sized> {
    plan: RunPlan,
    folder: PathBuf,
    plugin: PathBuf,
    seats: Vec<Seat<D>>,
}

impl<D: UsbDevice + ?Sized> DeviceServer<D> {
    /// Builds the plugin and opens the sockets, in a folder of the run's own, for one guest.
    ///
    /// # Errors
    /// If the plugin cannot be built, a socket not be opened, or a device does not describe itself.
    pub fn start(
        folder: &Path,
        devices: Vec<Box<D>>,
        plan: RunPlan,
    ) -> Result<DeviceServer<D>, RunError> {
        DeviceServer::start_together(folder, vec![devices], plan)
    }

    /// Builds the plugin and opens the sockets for several guests, each with these devices.
    ///
    /// # Errors
    /// As of [`DeviceServer::start`].
    pub fn start_together(
        folder: &Path,
        guests: Vec<Vec<Box<D>>>,
        plan: RunPlan,
    ) -> Result<DeviceServer<D>, RunError> {
        let crowded = guests.iter().any(|devices| devices.len() > DEVICES_MAX);
        if plan.slice == Nanos::ZERO || crowded {
            return Err(RunError::Plan);
        }
        let plugin = plugin::build(folder, &plugin::CLOCK).map_err(RunError::Plugin)?;
        let seats = guests.into_iter().enumerate();
        let seats = seats.map(|(guest, devices)| Seat::open(folder, guest, devices));
        let mut seats = seats.collect::<Result<Vec<_>, _>>()?;
        if plan.plugged > Nanos::ZERO {
            seats.iter_mut().for_each(Seat::unplug);
        }
        let folder = folder.to_path_buf();
        Ok(DeviceServer { plan, folder, plugin, seats })
    }

    /// Returns the options that the only QEMU needs besides `-icount shift=N,sleep=off`: a
    /// controller, the devices in the order of its ports, and the plugin.
    #[must_use]
    pub fn arguments(&self) -> Vec<OsString> {
        // One to spare: QEMU puts a hub of its own into the last free port.
        let ports = self.seats.first().map_or(0, Seat::devices) + 1;
        let controller = format!("qemu-xhci,id={CONTROLLER},p2={ports},p3={ports}");
        let mut arguments: Vec<OsString> = ["-device".into(), controller.into()].into();
        arguments.extend(self.arguments_at(0, &[], 0));
        arguments
    }

    /// The options for a caller that has a controller called [`CONTROLLER`], and perhaps hubs: each
    /// device of this guest at its port ("2", or "1.3" behind a hub), or wherever there is room.
    /// The netdevs `wire0`, `wire1`, … of so many adapters, all of the kind `dgram`, are joined by
    /// the wires of [`DeviceServer::run_on`].
    #[must_use]
    pub fn arguments_at(&self, guest: usize, ports: &[String], adapters: usize) -> Vec<OsString> {
        let mut arguments: Vec<OsString> = Vec::new();
        let mut add = |option: &str, value: OsString| arguments.extend([option.into(), value]);
        for index in 0..self.seats.get(guest).map_or(0, Seat::devices) {
            let path = quoted(&self.folder.join(device_socket(guest, index)));
            add("-chardev", joined(&format!("socket,id=redirected{index},path="), &path));
            let port = ports.get(index).map_or(String::new(), |port| format!(",port={port}"));
            let device = format!("usb-redir,bus={CONTROLLER}.0,chardev=redirected{index}{port}");
            add("-device", device.into());
        }
        let plugin = joined("", &quoted(&self.plugin));
        let clock = joined(",socket=", &quoted(&self.folder.join(clock_socket(guest))));
        let mut value = plugin;
        value.push(clock);
        value.push(format!(",slice={},wires={adapters}", self.plan.slice.0));
        add("-plugin", value);
        arguments
    }

    /// Serves the QEMUs, which the caller has started, until the planned end or until all have
    /// ended. `at_stop` is called for each guest that stands still, after the devices have come to
    /// that time, with the guest's devices.
    ///
    /// The devices come back with the report: they may have counted something.
    ///
    /// # Errors
    /// If a QEMU falls silent or does not keep to the protocol. The caller ends all then.
    pub fn run(
        self,
        at_stop: impl FnMut(Stop, &mut [Redirected<D>]),
    ) -> Result<(RunReport, Vec<Redirected<D>>), RunError> {
        self.run_on(&mut NoWires, at_stop)
    }

    /// Does the same for guests whose adapters are joined by these wires.
    ///
    /// # Errors
    /// As of [`DeviceServer::run`].
    pub fn run_on(
        self,
        wires: &mut impl Wires,
        mut at_stop: impl FnMut(Stop, &mut [Redirected<D>]),
    ) -> Result<(RunReport, Vec<Redirected<D>>), RunError> {
        let plan = self.plan;
        let all = self.seats.len();
        let seats = self.seats.into_iter().enumerate();
        let seats = seats.map(|(guest, seat)| seat.accept(plan.patience).map_err(of(guest, all)));
        let mut guests = seats.collect::<Result<Vec<Guest<D>>, RunError>>()?;
        let (mut expected, mut are_out) = (Nanos::ZERO, plan.plugged > Nanos::ZERO);
        let (mut stops, mut exchanges) = (0, 0);
        let (ending, time) = loop {
            let stopped = barrier(&mut guests, plan, expected)?;
            if !guests.iter().any(Guest::is_there) {
                break (RunEnding::Guest, expected - plan.slice);
            }
            let now = expected;
            stops += 1;
            let mut of_all: Vec<_> = guests.iter_mut().map(|guest| &mut guest.devices).collect();
            advance(&mut of_all, now);
            if now >= plan.plugged && std::mem::take(&mut are_out) {
                of_all.iter_mut().flat_map(|of_one| of_one.iter_mut()).for_each(Redirected::replug);
            }
            for stop in stopped {
                let guest = &mut guests[stop.guest];
                at_stop(stop, &mut guest.devices);
                exchanges += guest.exchange(now).map_err(of(stop.guest, all))?;
            }
            if now >= plan.end {
                let end = Answer::End(plan.status);
                guests.iter_mut().try_for_each(|guest| guest.answer(&end))?;
                break (RunEnding::Planned, now);
            }
            carry(&mut guests, wires);
            for (number, guest) in guests.iter_mut().enumerate() {
                let mut frames = wires.came(number, now);
                frames.iter_mut().for_each(|frame| frame.at += plan.slice);
                guest.answer(&Answer::Go(frames))?;
            }
            expected += plan.slice;
        };
        let devices: Vec<Redirected<D>> =
            guests.into_iter().flat_map(|guest| guest.devices).collect();
        let journals: Vec<Journal> = devices.iter().map(|device| *device.journal()).collect();
        let hash = Journal::join(journals.iter());
        Ok((RunReport { ending, time, hash, journals, stops, exchanges }, devices))
    }
}

/// Returns an error with the guest that it is about, if there are several.
fn of(guest: usize, guests: usize) -> impl Fn(RunError) -> RunError {
    move |error| if guests > 1 { RunError::Guest(guest, Box::new(error)) } else { error }
}

/// Hands what the guests have sent to the wires, in the order of time.
fn carry<D: UsbDevice + ?Sized>(guests: &mut [Guest<D>], wires: &mut impl Wires) {
    let each = guests.iter_mut().enumerate();
    let all = each.flat_map(|(guest, it)| it.sent.drain(..).map(move |frame| (guest, frame)));
    let mut all: Vec<(usize, AdapterFrame)> = all.collect();
    all.sort_by_key(|(_, frame)| frame.at);
    all.iter().for_each(|(guest, frame)| wires.sent(*guest, frame));
}

/// Waits until every guest that has not ended stands still at `expected`. Returns where they do.
fn barrier<D: UsbDevice + ?Sized>(
    guests: &mut [Guest<D>],
    plan: RunPlan,
    expected: Nanos,
) -> Result<Vec<Stop>, RunError> {
    let (mut stopped, all) = (Vec::new(), guests.len());
    for (number, guest) in guests.iter_mut().enumerate() {
        let stop = guest.wait(expected).map_err(of(number, all))?;
        let Some(stop) = stop else { continue };
        if !plan.is_punctual(expected, stop.now) {
            return Err(of(number, all)(RunError::Astray(expected, stop.now)));
        }
        stopped.push(Stop { guest: number, now: expected, ..stop });
    }
    Ok(stopped)
}

/// The name of the controller that the devices are plugged into.
pub const CONTROLLER: &str = "redirected";

/// Names of sockets in the run's folder.
fn clock_socket(guest: usize) -> String {
    format!("clock{guest}.sock")
}

fn device_socket(guest: usize, index: usize) -> String {
    format!("device{guest}-{index}.sock")
}

/// Returns a path as QEMU's options have it: a comma is written twice.
pub(crate) fn quoted(path: &Path) -> OsString {
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
