//! `[[fault]]` and `--fault`: what goes wrong in the simulator, and when. One table of kinds gives
//! both their words; neither reaches the boot archive.

mod words;

pub(crate) use words::parse;

use crate::declared::{Declared, DeclaredFault, DeclaredPlace};
use crate::diagnostics::{Problem, Report};
use crate::source::At;
use crate::suggest::{listed, nearest};
use crate::system::{System, UsbModel};
use crate::table::{Raw, Table};
use crate::units;
use crate::usb::XHCI;
use diapason_abi::archive::Location;
use std::ops::RangeInclusive;

/// Latest instant of a fault, and longest time that one lasts.
const TIME_MAX: u64 = 1_000_000_000_000_000;

/// Something that goes wrong.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Fault {
    pub at_ns: u64,
    /// The kind of fault.
    pub kind: FaultKind,
    /// A number of a USB device, of a device (the controller), or of a process; 0 for the host.
    pub target: usize,
    /// The arguments of the kind, in its order: times in ns, and numbers.
    pub arguments: [u64; 2],
}

/// A kind of fault.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum FaultKind {
    /// A device is pulled, and plugged in again so much later.
    Unplug,
    /// All endpoints of a device but its control endpoint stall.
    Stall,
    /// All packets of a device but control requests are damaged on the wire.
    Damage,
    /// A device starts anew and tells a lie about itself, by number of the catalogue.
    Lie,
    /// The link of a device breaks down.
    LinkLoss,
    /// The clock of a device goes faster from then on, by parts per million.
    FastClock,
    /// The clock of a device goes slower from then on.
    SlowClock,
    /// So many frames of a channel's bus are destroyed.
    CanErrors,
    /// A node on a channel's bus sends the most urgent frame without pause.
    Babble,
    /// The controller of a channel leaves its bus after too many errors.
    BusOff,
    /// The next interrupt of a controller never arrives.
    LostInterrupt,
    /// The next interrupt arrives so much later.
    LateInterrupt,
    /// The next interrupt arrives again so much later.
    DoubleInterrupt,
    /// The controller halts with a host system error.
    SystemError,
    /// The controller breaks until it is reset.
    ControllerError,
    /// The controller writes to memory that nobody has.
    StrayDma,
    /// The work of a process takes so many times as long as declared.
    Overrun,
    /// A thread of a process executes an invalid instruction.
    Crash,
    /// The host loses its power, and boots again when it is back.
    Reboot,
}

/// The target of a fault.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FaultTarget {
    Usb,
    /// A `[[usb]]` device that is a CAN interface.
    Can,
    /// A `[[device]]` that is a USB controller.
    Controller,
    Process,
    Host,
}

impl FaultTarget {
    /// The key of a description that names it.
    const fn key(self) -> Option<&'static str> {
        match self {
            FaultTarget::Usb | FaultTarget::Can | FaultTarget::Controller => Some("device"),
            FaultTarget::Process => Some("process"),
            FaultTarget::Host => None,
        }
    }

    const fn noun(self) -> &'static str {
        match self {
            FaultTarget::Usb => "USB device",
            FaultTarget::Can => "CAN interface",
            FaultTarget::Controller => "USB controller",
            FaultTarget::Process => "process",
            FaultTarget::Host => "host",
        }
    }
}

/// An argument of a kind besides its target.
struct Argument {
    key: &'static str,
    /// A time in ns, or a number.
    is_time: bool,
    range: RangeInclusive<u64>,
    /// If it is not said.
    default: Option<u64>,
}

const fn time(key: &'static str) -> Argument {
    Argument { key, is_time: true, range: 1..=TIME_MAX, default: None }
}

const fn number(key: &'static str, range: RangeInclusive<u64>) -> Argument {
    Argument { key, is_time: false, range, default: None }
}

const CHANNEL: Argument = Argument { default: Some(0), ..number("channel", 0..=4) };
const FOR: Argument = time("for");
const PPM: Argument = number("ppm", 1..=100_000);

/// The lies of the catalogue.
pub const LIES: u64 = 52;

/// A kind, its word, what it happens to, and what else it asks for.
struct Row(FaultKind, &'static str, FaultTarget, &'static [Argument]);

const KINDS: [Row; 19] = [
    Row(FaultKind::Unplug, "unplug", FaultTarget::Usb, &[FOR]),
    Row(FaultKind::Stall, "stall", FaultTarget::Usb, &[FOR]),
    Row(FaultKind::Damage, "damage", FaultTarget::Usb, &[FOR]),
    Row(FaultKind::Lie, "lie", FaultTarget::Usb, &[number("which", 1..=LIES), FOR]),
    Row(FaultKind::LinkLoss, "link-loss", FaultTarget::Usb, &[]),
    Row(FaultKind::FastClock, "fast-clock", FaultTarget::Usb, &[PPM]),
    Row(FaultKind::SlowClock, "slow-clock", FaultTarget::Usb, &[PPM]),
    Row(
        FaultKind::CanErrors,
        "can-errors",
        FaultTarget::Can,
        &[number("count", 1..=10_000), CHANNEL],
    ),
    Row(FaultKind::Babble, "babble", FaultTarget::Can, &[FOR, CHANNEL]),
    Row(FaultKind::BusOff, "bus-off", FaultTarget::Can, &[CHANNEL]),
    Row(FaultKind::LostInterrupt, "lost-interrupt", FaultTarget::Controller, &[]),
    Row(FaultKind::LateInterrupt, "late-interrupt", FaultTarget::Controller, &[time("by")]),
    Row(FaultKind::DoubleInterrupt, "double-interrupt", FaultTarget::Controller, &[time("by")]),
    Row(FaultKind::SystemError, "system-error", FaultTarget::Controller, &[]),
    Row(FaultKind::ControllerError, "controller-error", FaultTarget::Controller, &[]),
    Row(FaultKind::StrayDma, "stray-dma", FaultTarget::Controller, &[]),
    Row(FaultKind::Overrun, "overrun", FaultTarget::Process, &[number("times", 2..=1_000), FOR]),
    Row(FaultKind::Crash, "crash", FaultTarget::Process, &[]),
    Row(FaultKind::Reboot, "reboot", FaultTarget::Host, &[FOR]),
];

impl FaultKind {
    /// Returns every kind of fault.
    pub fn all() -> impl Iterator<Item = FaultKind> {
        KINDS.iter().map(|row| row.0)
    }

    /// As descriptions and command lines write it.
    #[must_use]
    pub fn name(self) -> &'static str {
        self.row().1
    }

    /// Returns the target of the fault.
    #[must_use]
    pub fn target(self) -> FaultTarget {
        self.row().2
    }

    fn arguments(self) -> &'static [Argument] {
        self.row().3
    }

    fn row(self) -> &'static Row {
        // The table is in the order of the kinds, which a test holds.
        &KINDS[self as usize]
    }
}

fn words() -> Vec<(&'static str, FaultKind)> {
    KINDS.iter().map(|row| (row.1, row.0)).collect()
}

/// A table of a description.
pub(crate) fn fault(raw: Raw<'_>, report: &mut Report) -> Option<DeclaredFault> {
    let mut table = Table::new("[[fault]]", "fault", raw, report);
    let at = table.duration("at", 0..=TIME_MAX);
    if at.is_none() {
        table.missing("at", "add `at = \"2s\"`, when it happens");
    }
    let kind = table.choice("what", &words(), "");
    let Some(kind) = kind else {
        table.missing("what", "add `what = \"unplug\"`, or another fault");
        // The other keys depend on it.
        return None;
    };
    let target = kind.value.target().key().and_then(|key| {
        let name = table.text(key, &format!("{key} = \"…\""));
        if name.is_none() {
            let noun = kind.value.target().noun();
            table.missing(key, &format!("add `{key} = \"…\"`, the {noun} it happens to"));
        }
        name
    });
    let mut arguments = [0; 2];
    for (to, argument) in arguments.iter_mut().zip(kind.value.arguments()) {
        *to = argued(&mut table, argument);
    }
    table.report_unknown();
    Some(DeclaredFault { at: at?.value, kind: kind.value, target, arguments })
}

fn argued(table: &mut Table<'_, '_>, argument: &Argument) -> u64 {
    let Argument { key, range, .. } = argument;
    let found = match argument.is_time {
        true => table.duration(key, range.clone()),
        false => table.number(key, range.clone(), ""),
    };
    if found.is_none() && argument.default.is_none() {
        let value = if argument.is_time { "\"100ms\"" } else { "2" };
        table.missing(key, &format!("add `{key} = {value}`"));
    }
    found.map(|value| value.value).or(argument.default).unwrap_or(0)
}

/// The possible targets of faults, by name.
struct Targets<'a> {
    plugs: Vec<(&'a str, Option<UsbModel>)>,
    /// Devices that are no controllers have no name here.
    controllers: Vec<Option<&'a str>>,
    processes: Vec<&'a str>,
}

impl<'a> Targets<'a> {
    fn declared(declared: &'a Declared) -> Targets<'a> {
        let is_controller = |place: &DeclaredPlace| match place {
            DeclaredPlace::Pci(pci) => pci.value.class == XHCI,
            DeclaredPlace::Address(_) | DeclaredPlace::Unusable => false,
        };
        Targets {
            plugs: declared.usb.iter().map(|usb| (&*usb.name.value, usb.model)).collect(),
            controllers: (declared.devices.iter())
                .map(|device| is_controller(&device.what.place).then_some(&*device.name.value))
                .collect(),
            processes: declared.processes.iter().map(|process| &*process.name.value).collect(),
        }
    }

    fn of(system: &'a System) -> Targets<'a> {
        let is_controller = |location| matches!(location, Location::Pci(pci) if pci.class == XHCI);
        Targets {
            plugs: system.usb.iter().map(|plug| (&*plug.name, Some(plug.model))).collect(),
            controllers: (system.devices.iter())
                .map(|device| is_controller(device.location).then_some(&*device.name))
                .collect(),
            processes: system.processes.iter().map(|process| &*process.name).collect(),
        }
    }

    fn names(&self, target: FaultTarget) -> Vec<Option<&'a str>> {
        let is_can = |model| model == Some(UsbModel::UsbCan);
        match target {
            FaultTarget::Usb => self.plugs.iter().map(|(name, _)| Some(*name)).collect(),
            FaultTarget::Can => {
                self.plugs.iter().map(|(name, model)| is_can(*model).then_some(*name)).collect()
            }
            FaultTarget::Controller => self.controllers.clone(),
            FaultTarget::Process => self.processes.iter().map(|name| Some(*name)).collect(),
            FaultTarget::Host => Vec::new(),
        }
    }

    /// The number of what is called so; a problem is reported.
    fn find(&self, target: FaultTarget, name: &At<String>, report: &mut Report) -> Option<usize> {
        let names = self.names(target);
        let found = names.iter().position(|known| *known == Some(&*name.value));
        if found.is_none() {
            let known = names.into_iter().flatten();
            let help = match nearest(&name.value, known.clone()) {
                Some(word) => format!("did you mean `{word}`?"),
                None if known.clone().next().is_none() => {
                    format!("describe a {} first", target.noun())
                }
                None => format!("name {}", listed(known, "or")),
            };
            let title = format!("no {} is called `{}`", target.noun(), name.value);
            report.push(Problem::new(&name.span, title, help));
        }
        found
    }

    fn resolve(&self, fault: &DeclaredFault, report: &mut Report) -> Option<Fault> {
        let target = match (fault.kind.target(), &fault.target) {
            (FaultTarget::Host, _) => 0,
            (target, Some(name)) => self.find(target, name, report)?,
            (_, None) => return None,
        };
        let DeclaredFault { at, kind, arguments, .. } = *fault;
        Some(Fault { at_ns: at, kind, target, arguments })
    }
}

pub(crate) fn check(declared: &Declared, report: &mut Report) {
    let targets = Targets::declared(declared);
    for fault in &declared.faults {
        targets.resolve(fault, report);
    }
}

/// The faults of a description that is consistent.
pub(crate) fn faults(declared: &Declared) -> Vec<Fault> {
    let targets = Targets::declared(declared);
    let resolve = |fault| targets.resolve(fault, &mut Report::new());
    declared.faults.iter().filter_map(resolve).collect()
}

impl System {
    /// A fault in the words of a command line: `2s unplug interface 100ms`.
    #[must_use]
    pub fn fault_words(&self, fault: &Fault) -> String {
        let mut words = vec![units::show_duration(fault.at_ns), fault.kind.name().to_owned()];
        let names = Targets::of(self).names(fault.kind.target());
        words.extend(names.get(fault.target).copied().flatten().map(str::to_owned));
        for (argument, value) in fault.kind.arguments().iter().zip(fault.arguments) {
            words.push(match argument.is_time {
                true => units::show_duration(value),
                false => value.to_string(),
            });
        }
        words.join(" ")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_in_the_order_of_the_kinds() {
        assert!(KINDS.iter().enumerate().all(|(index, row)| row.0 as usize == index));
        assert!(KINDS.iter().all(|row| row.3.len() <= 2));
    }
}
