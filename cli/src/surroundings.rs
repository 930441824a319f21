//! The surroundings of a host: the USB devices that its description plugs in, as models, and their
//! faults.

mod buffered;
pub(crate) mod nodes;

use crate::failure::Failure;
use crate::logs;
use buffered::buffered;
pub use buffered::buffered_on_buses;
use diapason_abi::Nanos;
use diapason_bus::{Coding, Speed};
use diapason_can::BitRate;
use diapason_devices::UsbDevice;
use diapason_devices::actuator::Actuator;
use diapason_devices::can::{self, BusLoad, CanBus};
use diapason_devices::disk::Disk;
use diapason_devices::faulty::lies::catalogue;
use diapason_devices::faulty::{self, Drifting, Faulty, Lie, OwnClock, Rule};
use diapason_devices::gs_usb::GsUsbModel;
use diapason_devices::hub::NotPlugged;
use diapason_devices::instrument::{self, Instrument};
use diapason_devices::kvaser::{Hydra, Identity};
use diapason_devices::network::{Adapter, DatagramEnd};
use diapason_devices::restarting::Restarting;
use diapason_devices::sensor::{self, Sensor};
use diapason_devices::servo::Servo;
use diapason_ether::{FRAME_MIN, UDP_PAYLOAD, UdpFrame};
use diapason_plan::beside::{self, DISK_BLOCKS};
use diapason_sim::XHCI;
use diapason_sim::{
    CARD, Card, ControllerMishap, EthernetWire, Features, Flood, FrameTap, FunctionModel, Planned,
    PluggedController, Tap, Upset,
};
use diapason_system::{
    CanTraffic, FaultKind, FaultTarget, InjectedFault, SocketAddress, System, UsbBus, UsbModel,
    UsbPlug,
};
use std::net::{Ipv4Addr, SocketAddrV4};

/// CAN buses, each with the number of its channel among those of the host.
pub type Wired = Vec<(usize, CanBus)>;

/// Returns an interface with the buses that are described; the others are quiet.
fn interface(plug: &UsbPlug, wired: &mut Wired) -> Box<dyn UsbDevice> {
    let bus = |channel: usize| {
        let number = plug.first_channel + channel;
        let rate = BitRate::new(*plug.bit_rates.get(channel)?).ok()?;
        let data = plug.data_rates.get(channel).and_then(|data| BitRate::of_data(*data).ok());
        let empty = data.map_or(CanBus::new(rate), |data| CanBus::with_data_rate(rate, data));
        let described = plug.buses.iter().find(|bus| bus.channel == channel);
        match described.map(|bus| &bus.traffic) {
            None => Some(empty.acknowledged()),
            Some(&CanTraffic::Numbered { per_second, extended }) => {
                Some(empty.with_load(number, BusLoad { per_second, extended }))
            }
            Some(CanTraffic::Receiver { turn_ns: (least, most) }) => {
                Some(empty.with_receiver(number, (Nanos(*least), Nanos(*most))))
            }
            Some(CanTraffic::Sender { gap_ns: (least, most) }) => {
                empty.with_sender(number, (Nanos(*least), Nanos(*most)))
            }
            Some(CanTraffic::Replay { log, .. }) => {
                Some(empty.with_replay(logs::frames(number, log).ok()?))
            }
        }
    };
    let buses: Vec<Option<CanBus>> = (0..plug.channels).map(bus).collect();
    let numbered = (plug.first_channel..).zip(&buses);
    wired.extend(numbered.filter_map(|(number, bus)| Some((number, bus.clone()?))));
    let clock_at = Nanos(plug.clock_at_ns);
    match plug.model {
        UsbModel::GsUsb => Box::new(GsUsbModel::new(1, &buses).clock_begins(clock_at)),
        _ => Box::new(Hydra::new(Identity::default(), &buses).clock_begins(clock_at)),
    }
}

/// Returns a disk that takes as long for a command as the description says, and that its host can
/// restart.
fn disk(plug: &UsbPlug, disk: Disk) -> Box<dyn UsbDevice> {
    let disk = disk.numbered().taking(plug.takes_ns.map_or(Nanos::ZERO, Nanos));
    Box::new(Restarting::new(disk))
}

/// Returns a fresh device as it is described. Its CAN buses are added to `wired`. There is no model
/// of what only QEMU has.
#[must_use]
pub fn device(plug: &UsbPlug, wired: &mut Wired) -> Option<Box<dyn UsbDevice>> {
    match plug.model {
        UsbModel::UsbCan | UsbModel::GsUsb => Some(interface(plug, wired)),
        UsbModel::Sensor => {
            let gap = plug.gap_ns.map_or(sensor::PERIOD, Nanos);
            Some(Box::new(Sensor::new(gap, sensor::KEPT)))
        }
        UsbModel::Actuator => {
            Some(Box::new(Actuator::taking(plug.takes_ns.map_or(Nanos::ZERO, Nanos))))
        }
        UsbModel::Servo => {
            let gap = plug.gap_ns.map_or(instrument::PERIOD, Nanos);
            Some(Box::new(Servo::new(gap, plug.takes_ns.map_or(Nanos::ZERO, Nanos))))
        }
        UsbModel::Instrument => {
            Some(Box::new(Instrument::new(plug.gap_ns.map_or(instrument::PERIOD, Nanos))))
        }
        UsbModel::Network => {
            let end = |it: &SocketAddress| DatagramEnd {
                mac: it.mac,
                socket: SocketAddrV4::new(it.address.into(), it.port),
                from_port: it.answers.unwrap_or(NOBODY),
            };
            let ends = plug.datagrams.iter().map(end).collect();
            let takes = plug.takes_ns.map_or(Nanos::ZERO, Nanos);
            let adapter = Adapter::default().taking(takes).with_datagrams(ends);
            Some(Box::new(match plug.gap_ns {
                Some(gap) => adapter.with_frames(Nanos(gap)),
                None => adapter,
            }))
        }
        UsbModel::Disk => Some(disk(plug, Disk::new(DISK_BLOCKS))),
        UsbModel::SuperSpeedDisk => Some(disk(plug, Disk::superspeed(DISK_BLOCKS))),
        other => beside::model(other),
    }
}

/// Returns the faults of the USB device of this number, or of a bus behind it.
fn of_device(faults: &[InjectedFault], number: usize) -> Vec<&InjectedFault> {
    let usb = |fault: &&InjectedFault| {
        let target = fault.kind.target();
        let behind = matches!(target, FaultTarget::Usb | FaultTarget::Can | FaultTarget::Bus);
        behind && fault.target == number
    };
    faults.iter().filter(usb).collect()
}

/// Returns the device that is plugged in here, with the devices behind it if it is a hub, and with
/// its faults, if it has any.
fn plugged(
    system: &System,
    index: usize,
    faults: &[InjectedFault],
    wired: &mut Wired,
) -> Option<Box<dyn UsbDevice>> {
    let plug = system.usb.get(index)?;
    let own = of_device(faults, index);
    if !plug.model.is_hub() {
        let before = wired.len();
        let device = device(plug, wired)?;
        own.iter().for_each(|fault| disturb(&wired[before..], fault));
        return Some(misbehaving(device, plug.port, &own));
    }
    let mut hub = beside::hub(plug.model);
    let behind = |other: &usize| system.usb[*other].behind == Some(index);
    for child in (0..system.usb.len()).filter(behind) {
        let port = system.usb[child].port;
        let device = plugged(system, child, faults, wired);
        for (at, away) in of_device(faults, child).into_iter().flat_map(absences) {
            hub.pull(at, port, away);
        }
        let fits = device.map(|device| hub.plug(Nanos::ZERO, port, device));
        // A description in which something does not fit was refused.
        debug_assert!(!matches!(fits, Some(Err(NotPlugged::Speed(_)))));
    }
    Some(misbehaving(Box::new(hub), plug.port, &own))
}

/// Returns when a fault takes a device behind a hub away, and for how long.
fn absences(fault: &InjectedFault) -> Vec<(Nanos, Nanos)> {
    let (at, [first, second]) = (Nanos(fault.at_ns), fault.arguments);
    match fault.kind {
        FaultKind::Unplug => vec![(at, Nanos(first))],
        FaultKind::LinkLoss => vec![(at, RESTART)],
        FaultKind::Lie => vec![(at, RESTART), (at + Nanos(second), RESTART)],
        _ => Vec::new(),
    }
}

/// Checks that the simulator has a model of everything that is plugged in.
///
/// # Errors
/// Returns the first device that only QEMU has.
pub fn simulable(system: &System) -> Result<(), Failure> {
    let Some(plug) = system.usb.iter().find(|plug| plug.only_in_qemu()) else {
        return Ok(());
    };
    let (name, model) = (&plug.name, plug.word());
    Err(Failure::Input(format!(
        "only QEMU has the USB device `{name}` (`{model}`), and the simulator has none\n\
         help: start it with `diapason run`, or plug in a model"
    )))
}

/// Checks that QEMU has all controllers for CAN.
///
/// # Errors
/// Returns the first bus whose controller it has not.
pub fn emulable(system: &System) -> Result<(), Failure> {
    let Some(network) = system.cans.iter().find(|network| network.controller.is_some()) else {
        return Ok(());
    };
    Err(Failure::Input(format!(
        "QEMU has no CAN controller with message buffers, which the bus `{}` has\n\
         help: start the system with `diapason sim`",
        network.name
    )))
}

/// The PCI functions of a host, each with its class.
pub type Functions = Vec<(u32, Box<dyn FunctionModel>)>;

/// Where one can look at what passes around a host.
#[derive(Clone, Default)]
pub struct Sights {
    /// The host's controllers: the place of each in the description.
    pub taps: Vec<(usize, Tap)>,
    pub buses: Wired,
    /// The host's adapters for Ethernet.
    pub adapters: Vec<FrameTap>,
}

/// Applies a fault to the CAN bus of its channel.
fn disturb(buses: &[(usize, CanBus)], fault: &InjectedFault) {
    if let Some((mishap, channel)) = bus_mishap(fault)
        && let Some((_, bus)) = buses.get(channel as usize)
    {
        bus.suffer(Nanos(fault.at_ns), mishap);
    }
}

/// Returns what a fault does to a CAN bus, and the channel of that bus.
pub(crate) fn bus_mishap(fault: &InjectedFault) -> Option<(can::BusMishap, u64)> {
    let [first, second] = fault.arguments;
    match fault.kind {
        FaultKind::CanErrors => Some((can::BusMishap::Errors(first as u32), second)),
        FaultKind::Babble => Some((can::BusMishap::Babble(Nanos(first)), second)),
        FaultKind::BusOff => Some((can::BusMishap::BusOff, first)),
        _ => None,
    }
}

/// Returns a device in what makes it misbehave; the device itself if nothing does.
fn misbehaving(
    mut device: Box<dyn UsbDevice>,
    port: u8,
    faults: &[&InjectedFault],
) -> Box<dyn UsbDevice> {
    let drift: Vec<(Nanos, i32)> = faults.iter().filter_map(|fault| drift(fault)).collect();
    if !drift.is_empty() {
        device = Box::new(Drifting::new(device, drift));
    }
    let rules: Vec<Rule> = faults.iter().filter_map(|fault| rule(fault)).collect();
    let lies: Vec<Lie> = faults.iter().filter_map(|fault| lie(fault)).collect();
    if rules.is_empty() && lies.is_empty() {
        return device;
    }
    let faulty = Faulty::new(device, port.into());
    let faulty = rules.into_iter().fold(faulty, Faulty::rule);
    Box::new(lies.into_iter().fold(faulty, Faulty::lie))
}

/// Returns the clock of the USB device of this number, as faults make it.
#[must_use]
pub fn clock_of(faults: &[InjectedFault], number: usize) -> OwnClock {
    OwnClock::new(of_device(faults, number).into_iter().filter_map(drift).collect())
}

/// Returns how many parts per million a clock goes faster from then on.
fn drift(fault: &InjectedFault) -> Option<(Nanos, i32)> {
    let ppm = i32::try_from(fault.arguments[0]).ok()?;
    match fault.kind {
        FaultKind::FastClock => Some((Nanos(fault.at_ns), ppm)),
        FaultKind::SlowClock => Some((Nanos(fault.at_ns), -ppm)),
        _ => None,
    }
}

fn rule(fault: &InjectedFault) -> Option<Rule> {
    let what = match fault.kind {
        FaultKind::Stall => faulty::PacketFault::Stall,
        FaultKind::Damage => faulty::PacketFault::Error,
        _ => return None,
    };
    let from = Nanos(fault.at_ns);
    Some(Rule { from, until: from + Nanos(fault.arguments[0]), ..Rule::always(what) })
}

fn lie(fault: &InjectedFault) -> Option<Lie> {
    let FaultKind::Lie = fault.kind else { return None };
    let [which, length] = fault.arguments;
    let (_, lie) = catalogue().into_iter().nth(usize::try_from(which).ok()?.checked_sub(1)?)?;
    let from = Nanos(fault.at_ns);
    Some(Lie { during: (from, from + Nanos(length)), ..lie })
}

/// Returns the PCI functions of a simulated host: a controller for each that is described, with
/// what is plugged into it and what of `faults` happens there.
#[must_use]
pub fn functions(system: &System, faults: &[InjectedFault]) -> Functions {
    let mut functions = as_functions(controllers(system, faults, &[]));
    functions.extend(cards(system, faults, |_| None, &mut Vec::new()));
    functions
}

/// Returns the cards of a host: its adapters for Ethernet, with strangers who flood them, and its
/// controllers for CAN. `wire` has the wire of the adapter that is a device; one wire joins those
/// without. `taps` gets a handle on the frames of each adapter, in the order of the devices.
pub fn cards(
    system: &System,
    faults: &[InjectedFault],
    wire: impl Fn(usize) -> Option<EthernetWire>,
    taps: &mut Vec<FrameTap>,
) -> Functions {
    let cards = system.adapters.iter().filter(|adapter| adapter.card().is_some());
    let speed = cards.map(|adapter| adapter.speed).min();
    let shared = EthernetWire::new(speed.unwrap_or(1_000));
    let cards = system.devices.iter().enumerate().filter(|(_, device)| {
        matches!(device.location, diapason_abi::archive::Location::Pci(pci) if pci.class == CARD)
    });
    let card = |(device, _)| -> (u32, Box<dyn FunctionModel>) {
        let mut card = Card::new(wire(device).as_ref().unwrap_or(&shared));
        let own = faults.iter().filter(|it| it.kind == FaultKind::Flood && it.target == device);
        own.filter_map(|fault| flood(system, fault)).for_each(|flood| card.flood(flood));
        taps.push(card.tap());
        (CARD, Box::new(card))
    };
    cards.map(card).chain(buffered(system, faults)).collect()
}

/// The port of the flood: `discard`, which is for nobody.
const NOBODY: u16 = 9;

/// Returns the stranger who floods an adapter.
fn flood(system: &System, fault: &InjectedFault) -> Option<Flood> {
    let adapter = system.adapters.iter().find(|it| it.card() == Some(fault.target))?;
    let datagram = UdpFrame {
        source_mac: [2, 0, 0, 0xff, 0xff, 0xff],
        destination_mac: adapter.mac,
        tag: None,
        source: SocketAddrV4::new(Ipv4Addr::new(198, 51, 100, 1), NOBODY),
        destination: SocketAddrV4::new(adapter.address.into(), NOBODY),
        checksum: false,
    };
    let mut frame = vec![0; FRAME_MIN];
    datagram.write(&[0; FRAME_MIN - UDP_PAYLOAD], &mut frame)?;
    let ([rate, length], from) = (fault.arguments, Nanos(fault.at_ns));
    let words = system.fault_words(fault);
    Some(Flood { from, until: from + Nanos(length), rate, frame, words })
}

/// Returns a controller for each that is described, with what is plugged into it: by the number of
/// its device. Those whose devices are `targets` have a debug capability.
#[must_use]
pub fn controllers(
    system: &System,
    faults: &[InjectedFault],
    targets: &[usize],
) -> Vec<(usize, PluggedController)> {
    build(system, faults, targets, &mut Sights::default(), |_| None)
}

/// Controllers as functions of their host.
#[must_use]
pub fn as_functions(controllers: Vec<(usize, PluggedController)>) -> Functions {
    let function =
        |(_, controller)| -> (u32, Box<dyn FunctionModel>) { (XHCI, Box::new(controller)) };
    controllers.into_iter().map(function).collect()
}

/// Returns the controllers as functions of their host, and a view of them. With `transfers`, the
/// view has the bytes that transfers carry.
#[must_use]
pub fn in_sight(system: &System, faults: &[InjectedFault], transfers: bool) -> (Functions, Sights) {
    let (controllers, mut sights) = controllers_in_sight(system, faults, &[], transfers);
    let mut functions = as_functions(controllers);
    functions.extend(cards(system, faults, |_| None, &mut sights.adapters));
    (functions, sights)
}

/// Returns the controllers as [`controllers`] does, and a view of them as [`in_sight`] does.
#[must_use]
pub fn controllers_in_sight(
    system: &System,
    faults: &[InjectedFault],
    targets: &[usize],
    transfers: bool,
) -> (Vec<(usize, PluggedController)>, Sights) {
    let mut sights = Sights::default();
    let tap = |controller: &mut PluggedController| Some(controller.tap(transfers));
    let controllers = build(system, faults, targets, &mut sights, tap);
    (controllers, sights)
}

fn build(
    system: &System,
    faults: &[InjectedFault],
    targets: &[usize],
    sights: &mut Sights,
    tap: impl Fn(&mut PluggedController) -> Option<Tap>,
) -> Vec<(usize, PluggedController)> {
    let controllers = system.devices.iter().enumerate().filter(|(_, device)| {
        matches!(device.location, diapason_abi::archive::Location::Pci(pci) if pci.class == XHCI)
    });
    let controller = |(index, _): (usize, &diapason_system::DeviceSpec)| {
        let mut controller = PluggedController::with(features(system, index, targets));
        let own = |fault: &&InjectedFault| {
            matches!(fault.kind.target(), FaultTarget::Controller | FaultTarget::UsbController)
        };
        for fault in faults.iter().filter(own).filter(|fault| fault.target == index) {
            happen(system, &mut controller, 0, fault);
        }
        for (number, plug) in system.usb.iter().enumerate() {
            if plug.device != index {
                continue;
            }
            if plug.behind.is_some() {
                // Its hub and its model do it; the controller says when.
                for fault in of_device(faults, number) {
                    let words = system.fault_words(fault);
                    controller.suffer(Nanos(fault.at_ns), ControllerMishap::Device, words);
                }
                continue;
            }
            if let Some(device) = plugged(system, number, faults, &mut sights.buses) {
                controller.plug(plug.port, device);
            }
            for fault in of_device(faults, number) {
                happen(system, &mut controller, plug.port, fault);
            }
        }
        sights.taps.extend(tap(&mut controller).map(|tap| (index, tap)));
        (index, controller)
    };
    controllers.map(controller).collect()
}

/// Pages that a controller wants for itself, of one that wants many.
const SCRATCHPADS: u16 = 64;

/// Returns the features of the controller of this number.
fn features(system: &System, index: usize, targets: &[usize]) -> Features {
    let is_its = |bus: &&UsbBus| bus.device == index && bus.bus.speed == Speed::Super;
    let bus = system.buses.iter().find(is_its).map(|bus| bus.bus);
    let percent = bus.map(|bus| bus.periodic_percent);
    let percent = percent.filter(|percent| *percent != Speed::Super.periodic_percent());
    let variant = system.devices.get(index).map(|device| device.simulated).unwrap_or_default();
    Features {
        large_contexts: variant.large_contexts,
        scratchpads: variant.scratchpads.then_some(SCRATCHPADS),
        firmware: variant.firmware,
        bare: variant.msi,
        debug: targets.contains(&index),
        uncoded: bus.is_some_and(|bus| bus.coding == Coding::Ignored),
        periodic_percent: percent.and_then(|percent| u8::try_from(percent).ok()),
    }
}

/// A device that begins to lie, or ends, is away for so long.
const RESTART: Nanos = Nanos::from_millis(1);

/// Applies a fault to a controller, or to the connector of its device.
fn happen(
    system: &System,
    controller: &mut PluggedController,
    connector: u8,
    fault: &InjectedFault,
) {
    let (at, by) = (Nanos(fault.at_ns), Nanos(fault.arguments[0]));
    let mut words = system.fault_words(fault);
    let mishap = match fault.kind {
        FaultKind::Unplug => ControllerMishap::Unplug(connector, by),
        FaultKind::LinkLoss => ControllerMishap::LoseLink(connector),
        FaultKind::Lie => {
            let name = fault.arguments[0].checked_sub(1).map(|which| catalogue()[which as usize].0);
            words = format!("{words} ({})", name.unwrap_or_default());
            let end = at + Nanos(fault.arguments[1]);
            let over = format!("{words} is over");
            controller.suffer(end, ControllerMishap::Unplug(connector, RESTART), over);
            ControllerMishap::Unplug(connector, RESTART)
        }
        _ => controller_mishap(fault),
    };
    controller.suffer(at, mishap, words);
}

/// Returns what a fault does to the controller itself.
fn controller_mishap(fault: &InjectedFault) -> ControllerMishap {
    let by = Nanos(fault.arguments[0]);
    match fault.kind {
        FaultKind::LostInterrupt => ControllerMishap::LoseInterrupt,
        FaultKind::LateInterrupt => ControllerMishap::DelayInterrupt(by),
        FaultKind::DoubleInterrupt => ControllerMishap::RepeatInterrupt(by),
        FaultKind::SystemError => ControllerMishap::SystemError,
        FaultKind::ControllerError => ControllerMishap::ControllerError,
        FaultKind::StrayDma => ControllerMishap::StrayDma,
        _ => ControllerMishap::Device,
    }
}

/// Returns those of `faults` that concern the host itself.
#[must_use]
pub fn upsets(system: &System, faults: &[InjectedFault]) -> Vec<Planned<Upset>> {
    let upset = |fault: &InjectedFault| {
        let [first, second] = fault.arguments;
        let process = u16::try_from(fault.target).ok()?;
        let upset = match fault.kind {
            FaultKind::Crash => Upset::Crash(process),
            FaultKind::Overrun => {
                let until = Nanos(fault.at_ns) + Nanos(second);
                Upset::Overrun { process, times: first, until }
            }
            FaultKind::Reboot => Upset::PowerLoss(Nanos(first)),
            _ => return None,
        };
        Some((Nanos(fault.at_ns), upset, system.fault_words(fault)))
    };
    faults.iter().filter_map(upset).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_lie_of_the_catalogue_can_be_asked_for() {
        assert_eq!(catalogue().len() as u64, diapason_system::LIES);
    }
}
