//! A guest in QEMU, in step with the five-channel interface, watched from outside.
//!
//! Both kernels run through this: the same controller, interface, traffic and clock. The frames on
//! the buses, the interface's overruns and the processor's idle time are counted here, so none of
//! it is a guest's own word.

use diapason::Failure;
use diapason::qemu::RunFolder;
use diapason_abi::Nanos;
use diapason_can::BitRate;
use diapason_devices::can::{BUSY, CanBus, Sent};
use diapason_devices::kvaser::{CHANNELS, Hydra, Identity};
use diapason_redir::{DeviceServer, Emulator, Redirected, RunPlan, RunReport, Stop, firmware};
use std::ffi::OsString;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

/// Wall time without a sign of life after which QEMU must hang, on however busy a host.
const PATIENCE: Duration = Duration::from_secs(600);
/// QEMU's status at a planned end.
const PLANNED: u8 = 7;
/// More frames than a bus has in a millisecond.
const FRAMES_A_MILLISECOND: u64 = 8;

/// The part of a run that counts.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Window {
    pub begin: Nanos,
    /// to here: whole milliseconds.
    pub end: Nanos,
}

/// A moment of a run, from outside.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Look {
    /// Instructions executed so far.
    pub instructions: u64,
    /// Frames of each channel that the interface overwrote so far.
    pub overruns: [u64; CHANNELS],
}

impl Look {
    fn at(stop: Stop, interface: Option<&Hydra>) -> Look {
        let count = |channel| interface.map_or(0, |interface| interface.overruns(channel));
        let instructions = (stop.now - stop.idle).0;
        Look { instructions, overruns: std::array::from_fn(count) }
    }
}

/// A run from outside.
#[derive(Debug)]
pub(crate) struct Seen {
    /// The output of the guest.
    pub console: Vec<u8>,
    /// Everything each bus carried.
    pub buses: Vec<Vec<Sent>>,
    /// At the window's begin and end.
    pub looks: [Look; 2],
    /// The report of the server.
    pub report: RunReport,
    pub status: Option<i32>,
}

impl Seen {
    /// Returns the difference between the two looks.
    #[must_use]
    pub fn within(&self) -> Look {
        let [first, last] = self.looks;
        let overruns = std::array::from_fn(|i| last.overruns[i] - first.overruns[i]);
        Look { instructions: last.instructions - first.instructions, overruns }
    }

    /// Returns how many frames a bus carried in the window.
    #[must_use]
    pub fn carried(&self, channel: usize, window: Window) -> u64 {
        let inside = |sent: &&Sent| sent.time >= window.begin && sent.time < window.end;
        self.buses.get(channel).map_or(0, |bus| bus.iter().filter(inside).count() as u64)
    }
}

/// The setting behind the interface, and its duration.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Setting {
    /// True for the article's traffic; false for buses on which nobody talks.
    pub traffic: bool,
    /// The window that is looked at.
    pub window: Window,
    /// When the run ends, unless the guest ends it.
    pub end: Nanos,
}

/// Runs what `command` starts, given the console as QEMU's option has it, in `folder`.
///
/// # Errors
/// If QEMU or its plugin cannot be used, or they lose each other.
pub fn run(
    folder: &RunFolder,
    setting: Setting,
    command: impl FnOnce(&Path) -> Result<Command, Failure>,
) -> Result<Seen, Failure> {
    let path = folder.path().canonicalize();
    let path = path.map_err(|error| Failure::io("find the run's folder", &error))?;
    let buses = buses(setting);
    let plugged: Vec<Option<CanBus>> = buses.iter().cloned().map(Some).collect();
    let device = Box::new(Hydra::new(Identity::default(), &plugged));
    let plan = RunPlan {
        plugged: firmware::DONE,
        end: setting.end,
        status: PLANNED,
        patience: PATIENCE,
        ..RunPlan::default()
    };
    let lost = |failure: diapason_redir::RunError| Failure::World(failure.to_string());
    let server = DeviceServer::start(&path, vec![device], plan).map_err(lost)?;
    let console = path.join("console");
    let mut command = command(&console)?;
    command.args::<_, OsString>(server.arguments());
    let start = Emulator::start(&mut command);
    let mut emulator = start.map_err(|error| Failure::io("start QEMU", &error))?;
    let mut looks = [Look::default(); 2];
    let edges = [setting.window.begin, setting.window.end];
    let (report, _) = server
        .run(|stop: Stop, devices| {
            for (look, _) in looks.iter_mut().zip(edges).filter(|(_, edge)| *edge == stop.now) {
                *look = Look::at(stop, devices.first().map(Redirected::device));
            }
        })
        .map_err(lost)?;
    let status = emulator.wait(PATIENCE).map_err(|error| Failure::io("wait for QEMU", &error))?;
    let console = std::fs::read(&console);
    let console = console.map_err(|error| Failure::io("read the console", &error))?;
    let buses = buses.iter().map(CanBus::take_record).collect();
    Ok(Seen { console, buses, looks, report, status: status.and_then(|status| status.code()) })
}

/// Five buses with the rates of [USB 2023, table 7], each with somebody who acknowledges.
fn buses(setting: Setting) -> Vec<CanBus> {
    // A guest that ends the run itself does so soon after the window.
    let longest = setting.window.end.0 / 1_000_000 * 2;
    let bus = |number: usize| {
        let (hertz, load) = *BUSY.get(number)?;
        let bus = CanBus::new(BitRate::new(hertz).ok()?);
        bus.add_unit(if setting.traffic { load.messages(number, false) } else { Vec::new() });
        bus.add_unit(Vec::new());
        bus.record(usize::try_from(longest * FRAMES_A_MILLISECOND).unwrap_or(usize::MAX));
        Some(bus)
    };
    (0..BUSY.len()).filter_map(bus).collect()
}
