//! Devices of a description, and whether the one at each place was served.

use super::super::{Outcome, RaisedAlarm, entry};
use super::cameras::CameraPromise;
use crate::names::Names;
use crate::table::Columns;
use diapason_contract::settings::{CRITICAL, DEVICE, PROGRAM};
use diapason_contract::threads::{HUBS, ServiceKind, services};
use diapason_pipe::measured::{DeviceReport, Fate};
use diapason_system::{ProcessSpec, System, UsbPlug};

/// The last report of a server on the devices at one place.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PlugRow {
    /// The place of the server in the description.
    pub process: u64,
    pub last: DeviceReport,
    /// A device worked there at some time.
    pub worked: bool,
}

/// Takes in what the server in place `process` said.
pub(in super::super) fn note(rows: &mut Vec<PlugRow>, process: u64, report: &DeviceReport) {
    let place = (process, report.connector, report.route);
    let is = |row: &PlugRow| (row.process, row.last.connector, row.last.route) == place;
    let row = entry(rows, is, || PlugRow { process, last: *report, worked: false });
    (row.last, row.worked) = (*report, row.worked || report.fate == Fate::Works);
}

impl PlugRow {
    pub(in super::super) fn columns(names: &Names) -> Columns<'_, PlugRow> {
        Columns::<PlugRow>::default()
            .json("process", |row| names.process(row.process))
            .json("port", |row| row.last.connector)
            .json("route", |row| format!("{:x}", row.last.route))
            .json("vendor", |row| format!("{:04x}", row.last.identity.0))
            .json("product", |row| format!("{:04x}", row.last.identity.1))
            .json("state", |row| word(row.last.fate))
            .json("worked", |row| row.worked)
    }
}

/// Returns the word for what became of a device.
const fn word(fate: Fate) -> &'static str {
    match fate {
        Fate::Works => "works",
        Fate::Failed => "failed",
        Fate::Unserved => "unserved",
        Fate::Stranger => "stranger",
        Fate::OtherSerial => "other-serial",
        Fate::Unconfigured => "unconfigured",
        Fate::Dead => "dead",
    }
}

/// Returns whether a process is the server of the controller that a device is plugged into.
pub(super) fn drives(system: &System, process: &ProcessSpec, plug: &UsbPlug) -> bool {
    let controller = system.devices.get(plug.device).map(|device| device.name.as_str());
    let is_granted = process.uses.iter().any(|name| name == DEVICE);
    process.program == PROGRAM && controller == Some(DEVICE) && is_granted
}

pub(super) fn is_camera(plug: &UsbPlug) -> bool {
    plug.model.service() == Some(ServiceKind::Cameras)
}

/// Returns the kind of service that a device needs.
fn kind(plug: &UsbPlug) -> ServiceKind {
    plug.model.service().unwrap_or(ServiceKind::Hubs)
}

/// Returns how many devices of a kind a server serves at a time, whatever else is there. Streams
/// that are not critical may be refused.
fn seats(process: &ProcessSpec, kind: ServiceKind) -> usize {
    let setting = |name: &str| process.setting(name);
    let served = usize::from(services(&setting).any(|served| served == kind));
    match kind {
        ServiceKind::Hubs => served * HUBS,
        ServiceKind::Cameras => served + setting(CRITICAL).len(),
        _ => served,
    }
}

/// A device that a description has, and that a server is to serve.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct DevicePromise {
    /// The device's name in the description.
    pub name: String,
    /// The place of its server in the description.
    process: u64,
    kind: ServiceKind,
    /// The number of such devices that the server serves at a time.
    seats: usize,
    /// The places of all of its kind, and its own among them: connectors and routes.
    places: Vec<(u8, u32)>,
    own: usize,
    /// The device's port as the description has it, for sentences.
    port: String,
}

impl DevicePromise {
    /// Returns the devices of a description that its servers are to serve.
    #[must_use]
    pub fn of(system: &System) -> Vec<DevicePromise> {
        let servers = (0..).zip(&system.processes).filter(|(_, it)| it.program == PROGRAM);
        let of_server = |(process, server): (u64, &ProcessSpec)| {
            let plugged = || system.usb.iter().filter(|plug| drives(system, server, plug));
            let bound = CameraPromise::bound(system, server);
            let promise = |plug: &UsbPlug| {
                let is_it = |usb: usize| system.usb[usb].name == plug.name;
                let own = bound.iter().find(|(usb, _)| is_it(*usb)).map(|(_, promised)| *promised);
                // No other device of its kind is served in the place of one with a pipe.
                let has_pipe = system.pipes.iter().any(|pipe| is_it(pipe.usb));
                let own = own.or(has_pipe.then_some(true));
                let (kind, seats) = match own {
                    Some(is_promised) => (kind(plug), usize::from(is_promised)),
                    None => (kind(plug), seats(server, kind(plug))),
                };
                let same = |other: &&UsbPlug| match own {
                    Some(_) => other.name == plug.name,
                    None => self::kind(other) == kind,
                };
                let same: Vec<_> = plugged().filter(same).collect();
                let own = same.iter().position(|other| other.name == plug.name)?;
                let places = same.into_iter().map(|other| system.place_of(other)).collect();
                let port = match plug.behind.and_then(|hub| system.usb.get(hub)) {
                    Some(hub) => format!("port {} of {}", plug.port, hub.name),
                    None => format!("port {}", plug.port),
                };
                let name = plug.name.clone();
                (seats > 0).then_some(DevicePromise {
                    name,
                    process,
                    kind,
                    seats,
                    places,
                    own,
                    port,
                })
            };
            plugged().filter_map(promise).collect::<Vec<_>>()
        };
        servers.flat_map(of_server).collect()
    }

    fn row<'o>(&self, outcome: &'o Outcome, place: (u8, u32)) -> Option<&'o PlugRow> {
        let place = (self.process, place.0, place.1);
        let at = |row: &PlugRow| (row.process, row.last.connector, row.last.route);
        outcome.plugs.iter().find(|row| at(row) == place)
    }

    fn is_served(&self, outcome: &Outcome, place: (u8, u32)) -> bool {
        self.row(outcome, place).is_some_and(|row| row.worked)
    }

    /// Returns whether it was served, or as many of its kind as the server has room for.
    pub(super) fn is_kept(&self, outcome: &Outcome) -> bool {
        let served = self.places.iter().filter(|place| self.is_served(outcome, **place)).count();
        self.is_served(outcome, self.places[self.own]) || served >= self.seats
    }

    /// Returns why it was not served.
    pub(super) fn sentence(&self, outcome: &Outcome) -> String {
        let DevicePromise { name, port, .. } = self;
        let Some(row) = self.row(outcome, self.places[self.own]) else {
            return format!("device {name} was not served: nothing was found at {port}");
        };
        let (vendor, product) = row.last.identity;
        let it = format!("the device {vendor:04x}:{product:04x} at {port}");
        let why = match row.last.fate {
            Fate::Works | Fate::Failed => format!("{it} does not do what its class asks of it"),
            Fate::Unserved => format!("no service takes {it}"),
            Fate::Stranger => format!("{it} is not the described one"),
            Fate::OtherSerial => format!("{it} has not the described serial number"),
            Fate::Unconfigured => {
                format!("there is no bandwidth or no memory for what is at {port}, or it refused")
            }
            Fate::Dead => format!("what is at {port} does not answer"),
        };
        format!("device {name} was not served: {why}")
    }

    /// Returns an alarm if what is at its place is not served, or nothing was there for long.
    pub(super) fn alarm(&self, outcome: &Outcome, patience_ns: u64) -> Option<RaisedAlarm> {
        let is_refused = self.row(outcome, self.places[self.own]).is_some();
        let is_over = is_refused || outcome.end?.time_ns >= patience_ns;
        (is_over && !self.is_kept(outcome))
            .then(|| RaisedAlarm::missing("device-unserved", &self.name, self.sentence(outcome)))
    }
}
