//! `[[fault]]` and `--fault`: what goes wrong in the simulator, and when. Neither reaches the boot
//! archive.

pub(crate) mod kinds;
mod words;

pub(crate) use words::{Words, parse};

use kinds::{Argument, FaultKind, FaultTarget, InjectedFault, KINDS, TIME_MAX};

use crate::can_network::CanSender;
use crate::declared::{Declared, DeclaredCan, DeclaredFault, DeclaredMessage, DeclaredPlace};
use crate::diagnostics::{Problem, Report};
use crate::limits::XHCI;
use crate::plugged::UsbModel;
use crate::source::At;
use crate::suggest::{listed, nearest};
use crate::system::System;
use crate::table::{Raw, Table};
use crate::units;
use crate::usb;
use diapason_abi::archive::Location;

fn words() -> Vec<(&'static str, FaultKind)> {
    KINDS.iter().map(|row| (row.1, row.0)).collect()
}

/// Returns a table of a description.
pub(crate) fn fault(raw: Raw<'_>, report: &mut Report) -> Option<DeclaredFault> {
    let mut table = Table::new("[[fault]]", "fault", raw, report);
    let at = table.duration("at", 0..=TIME_MAX);
    table.needs("at", "add `at = \"2s\"`, when it happens");
    let kind = table.choice("what", &words(), "");
    let Some(kind) = kind else {
        table.needs("what", "add `what = \"unplug\"`, or another fault");
        // The other keys depend on it.
        return None;
    };
    let target = kind.value.target().key().and_then(|key| {
        let name = table.text(key, &format!("{key} = \"…\""));
        let noun = kind.value.target().noun();
        table.needs(key, &format!("add `{key} = \"…\"`, the {noun} it happens to"));
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
        table.needs(key, &format!("add `{key} = {value}`"));
    }
    found.map(|value| value.value).or(argument.default).unwrap_or(0)
}

/// A USB device by its name, with its model and its channels.
type Plug<'a> = (&'a str, Option<UsbModel>, usize);

/// The possible targets of faults, by name.
struct Targets<'a> {
    plugs: Vec<Plug<'a>>,
    /// Devices that are no USB controllers have no name here.
    controllers: Vec<Option<&'a str>>,
    /// Devices that are the controller of no CAN bus have no name here.
    cans: Vec<Option<&'a str>>,
    /// Devices that are of no `[[adapter]]` have no name here.
    adapters: Vec<Option<&'a str>>,
    /// Buses that this host is on have no name here.
    buses: Vec<Option<&'a str>>,
    nodes: Vec<&'a str>,
    processes: Vec<&'a str>,
}

impl<'a> Targets<'a> {
    fn declared(declared: &'a Declared) -> Targets<'a> {
        let is_controller = |place: &DeclaredPlace| match place {
            DeclaredPlace::Pci(pci) => pci.value.class == XHCI,
            DeclaredPlace::Address(_) | DeclaredPlace::Unusable => false,
        };
        let is_can = |name: &str| {
            let mut controllers = declared.cans.iter().filter_map(|it| it.controller.as_ref());
            controllers.any(|device| device.value == name)
        };
        let is_adapter = |name: &str| {
            let mut cards = declared.adapters.iter().filter_map(|it| it.device.as_ref());
            cards.any(|device| device.value == name)
        };
        // Beside a host the simulator plays the nodes of buses with a controller only.
        let alone = declared.processes.is_empty();
        let is_apart = |can: &DeclaredCan| alone && can.usb.is_none() && can.controller.is_none();
        let played = |message: &'a DeclaredMessage| {
            declared.can(message).filter(|can| alone || can.controller.is_some())?;
            message.node.as_ref().map(|node| &*node.value)
        };
        Targets {
            plugs: (declared.usb.iter())
                .map(|usb| (&*usb.name.value, usb.model, usb::channels(usb)))
                .collect(),
            controllers: (declared.devices.iter())
                .map(|device| is_controller(&device.what.place).then_some(&*device.name.value))
                .collect(),
            cans: (declared.devices.iter())
                .map(|device| is_can(&device.name.value).then_some(&*device.name.value))
                .collect(),
            adapters: (declared.devices.iter())
                .map(|device| is_adapter(&device.name.value).then_some(&*device.name.value))
                .collect(),
            buses: (declared.cans.iter())
                .map(|can| is_apart(can).then_some(&*can.name.value))
                .collect(),
            nodes: sorted(declared.messages.iter().filter_map(played)),
            processes: declared.processes.iter().map(|process| &*process.name.value).collect(),
        }
    }

    fn of(system: &'a System) -> Targets<'a> {
        let is_controller = |location| matches!(location, Location::Pci(pci) if pci.class == XHCI);
        let is_can = |place| {
            let mut controllers = system.cans.iter().filter_map(|it| it.controller);
            controllers.any(|controller| controller.device == place)
        };
        let is_adapter = |place| system.adapters.iter().any(|it| it.card() == Some(place));
        Targets {
            plugs: (system.usb.iter())
                .map(|plug| (&*plug.name, Some(plug.model), plug.channels))
                .collect(),
            controllers: (system.devices.iter())
                .map(|device| is_controller(device.location).then_some(&*device.name))
                .collect(),
            cans: (system.devices.iter().enumerate())
                .map(|(place, device)| is_can(place).then_some(&*device.name))
                .collect(),
            adapters: (system.devices.iter().enumerate())
                .map(|(place, device)| is_adapter(place).then_some(&*device.name))
                .collect(),
            buses: (system.cans.iter())
                .map(|network| {
                    let is_played = network.is_apart() && system.processes.is_empty();
                    is_played.then_some(&*network.name)
                })
                .collect(),
            nodes: system.other_nodes(),
            processes: system.processes.iter().map(|process| &*process.name).collect(),
        }
    }

    fn names(&self, target: FaultTarget) -> Vec<Option<&'a str>> {
        let is_can = |model: Option<UsbModel>| model.is_some_and(UsbModel::is_can);
        match target {
            FaultTarget::Usb => self.plugs.iter().map(|(name, ..)| Some(*name)).collect(),
            FaultTarget::Can => {
                let plugs = self.plugs.iter();
                let plugs = plugs.map(|(name, model, _)| is_can(*model).then_some(*name));
                plugs.chain(self.cans.iter().copied()).collect()
            }
            FaultTarget::Bus => {
                let with_host = self.names(FaultTarget::Can).into_iter();
                with_host.chain(self.buses.iter().copied()).collect()
            }
            FaultTarget::Node => self.nodes.iter().map(|name| Some(*name)).collect(),
            FaultTarget::Controller => {
                let both = self.controllers.iter().zip(&self.cans);
                both.map(|(usb, can)| usb.or(*can)).collect()
            }
            FaultTarget::UsbController => self.controllers.clone(),
            FaultTarget::Adapter => self.adapters.clone(),
            FaultTarget::Process => self.processes.iter().map(|name| Some(*name)).collect(),
            FaultTarget::Host => Vec::new(),
        }
    }

    /// Returns the number of what is called so; a problem is reported.
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

    /// Reports a channel that the interface does not have.
    fn has_channel(&self, fault: &DeclaredFault, target: usize, report: &mut Report) -> Option<()> {
        let Some(argument) = fault.kind.channel() else { return Some(()) };
        let place = fault.target.as_ref()?;
        let name = &place.value;
        // A controller that is no USB device has one bus.
        let channels = self.plugs.get(target).map_or(1, |(_, _, channels)| *channels);
        let channel = fault.arguments[argument];
        if channel < channels as u64 {
            return Some(());
        }
        let title = format!("`{name}` has no channel {channel}");
        let help = match channels {
            1 => "it has one: write channel 0".to_owned(),
            _ => format!("it has {channels}: write a channel from 0 to {}", channels - 1),
        };
        report.push(Problem::new(&place.span, title, help));
        None
    }

    fn resolve(&self, fault: &DeclaredFault, report: &mut Report) -> Option<InjectedFault> {
        let target = match (fault.kind.target(), &fault.target) {
            (FaultTarget::Host, _) => 0,
            (target, Some(name)) => self.find(target, name, report)?,
            (_, None) => return None,
        };
        self.has_channel(fault, target, report)?;
        let DeclaredFault { at, kind, arguments, .. } = *fault;
        Some(InjectedFault { at_ns: at, kind, target, arguments })
    }
}

/// Returns each name once, in order.
fn sorted<'a>(names: impl Iterator<Item = &'a str>) -> Vec<&'a str> {
    let names: std::collections::BTreeSet<&str> = names.collect();
    names.into_iter().collect()
}

pub(crate) fn check(declared: &Declared, report: &mut Report) {
    let targets = Targets::declared(declared);
    for fault in &declared.faults {
        targets.resolve(fault, report);
    }
}

/// Returns the faults of a description that is consistent.
pub(crate) fn faults(declared: &Declared) -> Vec<InjectedFault> {
    let targets = Targets::declared(declared);
    let resolve = |fault| targets.resolve(fault, &mut Report::new());
    declared.faults.iter().filter_map(resolve).collect()
}

impl System {
    /// Returns the number of the CAN bus that a fault is on, but not of one at an interface.
    #[must_use]
    pub fn disturbed_bus(&self, fault: &InjectedFault) -> Option<usize> {
        if !matches!(fault.kind.target(), FaultTarget::Can | FaultTarget::Bus) {
            return None;
        }
        let device = fault.target.checked_sub(self.usb.len())?;
        if let Some(bus) = device.checked_sub(self.devices.len()) {
            return Some(bus);
        }
        self.cans.iter().position(|it| it.controller.is_some_and(|it| it.device == device))
    }

    /// Returns the names of all nodes that the simulator plays on CAN buses, in order.
    #[must_use]
    pub fn other_nodes(&self) -> Vec<&str> {
        let alone = self.processes.is_empty();
        let buses = self.cans.iter().filter(|network| alone || network.controller.is_some());
        let senders = buses.flat_map(|network| &network.messages).map(|message| &message.sender);
        sorted(senders.filter_map(|sender| match sender {
            CanSender::Node(name) => Some(name.as_str()),
            CanSender::Process(_) => None,
        }))
    }

    /// Returns a fault in the words of a command line: `2s unplug interface 100ms`.
    #[must_use]
    pub fn fault_words(&self, fault: &InjectedFault) -> String {
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
