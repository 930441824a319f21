//! What stands around a host: the USB devices that its description plugs in, as models, and what
//! goes wrong with them.

use diapason_abi::Nanos;
use diapason_devices::Device;
use diapason_devices::camera::Camera;
use diapason_devices::can::{self, CanBus};
use diapason_devices::disk::Disk;
use diapason_devices::faulty::lies::catalogue;
use diapason_devices::faulty::{self, Drifting, Faulty, Lie, Rule};
use diapason_devices::keyboard::Keyboard;
use diapason_devices::kvaser::{Hydra, Identity};
use diapason_devices::sensor::Sensor;
use diapason_sim::{Controller, Function, Mishap, Planned, Upset, XHCI};
use diapason_system::{Fault, FaultKind, FaultTarget, System, UsbModel, UsbPlug};

/// Blocks of 512 bytes of a disk.
const DISK_BLOCKS: u32 = 128 << 10;

/// A fresh device of this kind.
#[must_use]
pub fn device(model: UsbModel) -> Box<dyn Device> {
    suffering(model, &[]).0
}

/// A fresh device of this kind, with what will go wrong on the buses behind it; and those buses.
fn suffering(model: UsbModel, faults: &[&Fault]) -> (Box<dyn Device>, Vec<CanBus>) {
    let device: Box<dyn Device> = match model {
        UsbModel::UsbCan => {
            let (interface, buses) = Hydra::article(Identity::default());
            faults.iter().for_each(|fault| disturb(&buses, fault));
            return (Box::new(interface), buses);
        }
        UsbModel::Sensor => Box::new(Sensor::article()),
        UsbModel::Camera => Box::new(Camera::default()),
        UsbModel::Keyboard => Box::new(Keyboard::new(Vec::new())),
        UsbModel::Disk => Box::new(Disk::new(DISK_BLOCKS)),
    };
    (device, Vec::new())
}

/// What a fault does to the CAN bus of its channel.
fn disturb(buses: &[CanBus], fault: &Fault) {
    let [first, second] = fault.arguments;
    let (mishap, channel) = match fault.kind {
        FaultKind::CanErrors => (can::Mishap::Errors(first as u32), second),
        FaultKind::Babble => (can::Mishap::Babble(Nanos(first)), second),
        FaultKind::BusOff => (can::Mishap::BusOff, first),
        _ => return,
    };
    if let Some(bus) = buses.get(channel as usize) {
        bus.suffer(Nanos(fault.at_ns), mishap);
    }
}

/// A plugged device, wrapped into what makes it misbehave, if anything does.
fn plugged(plug: &UsbPlug, faults: &[&Fault]) -> Box<dyn Device> {
    let (mut device, _) = suffering(plug.model, faults);
    let drift: Vec<(Nanos, i32)> = faults.iter().filter_map(|fault| drift(fault)).collect();
    if !drift.is_empty() {
        device = Box::new(Drifting::new(device, drift));
    }
    let rules: Vec<Rule> = faults.iter().filter_map(|fault| rule(fault)).collect();
    let lies: Vec<Lie> = faults.iter().filter_map(|fault| lie(fault)).collect();
    if rules.is_empty() && lies.is_empty() {
        return device;
    }
    let faulty = Faulty::new(device, plug.port.into());
    let faulty = rules.into_iter().fold(faulty, Faulty::rule);
    Box::new(lies.into_iter().fold(faulty, Faulty::lie))
}

/// How many parts per million a clock goes faster from then on.
fn drift(fault: &Fault) -> Option<(Nanos, i32)> {
    let ppm = i32::try_from(fault.arguments[0]).ok()?;
    match fault.kind {
        FaultKind::FastClock => Some((Nanos(fault.at_ns), ppm)),
        FaultKind::SlowClock => Some((Nanos(fault.at_ns), -ppm)),
        _ => None,
    }
}

fn rule(fault: &Fault) -> Option<Rule> {
    let what = match fault.kind {
        FaultKind::Stall => faulty::Fault::Stall,
        FaultKind::Damage => faulty::Fault::Error,
        _ => return None,
    };
    let from = Nanos(fault.at_ns);
    Some(Rule { from, until: from + Nanos(fault.arguments[0]), ..Rule::always(what) })
}

fn lie(fault: &Fault) -> Option<Lie> {
    let FaultKind::Lie = fault.kind else { return None };
    let [which, length] = fault.arguments;
    let (_, lie) = catalogue().into_iter().nth(usize::try_from(which).ok()?.checked_sub(1)?)?;
    let from = Nanos(fault.at_ns);
    Some(Lie { during: (from, from + Nanos(length)), ..lie })
}

/// The PCI functions of a simulated host: a controller for each that is described, with what is
/// plugged into it and what of `faults` happens there.
#[must_use]
pub fn functions(system: &System, faults: &[Fault]) -> Vec<(u32, Box<dyn Function>)> {
    let controllers = system.devices.iter().enumerate().filter(|(_, device)| {
        matches!(device.location, diapason_abi::archive::Location::Pci(pci) if pci.class == XHCI)
    });
    let controller = |(index, _)| -> (u32, Box<dyn Function>) {
        let mut controller = Controller::new();
        let own = |fault: &&Fault| fault.kind.target() == FaultTarget::Controller;
        for fault in faults.iter().filter(own).filter(|fault| fault.target == index) {
            happen(system, &mut controller, 0, fault);
        }
        for (number, plug) in system.usb.iter().enumerate() {
            if plug.device != index {
                continue;
            }
            let usb = |fault: &&Fault| {
                let target = fault.kind.target();
                matches!(target, FaultTarget::Usb | FaultTarget::Can) && fault.target == number
            };
            let faults: Vec<&Fault> = faults.iter().filter(usb).collect();
            controller.plug(plug.port, plugged(plug, &faults));
            for fault in faults {
                happen(system, &mut controller, plug.port, fault);
            }
        }
        (XHCI, Box::new(controller))
    };
    controllers.map(controller).collect()
}

/// A device that begins to lie, or ends, is away for so long.
const RESTART: Nanos = Nanos::from_millis(1);

/// What a fault does at a controller, or at the connector of the device that it is of.
fn happen(system: &System, controller: &mut Controller, connector: u8, fault: &Fault) {
    let (at, by) = (Nanos(fault.at_ns), Nanos(fault.arguments[0]));
    let mut words = system.fault_words(fault);
    let mishap = match fault.kind {
        FaultKind::Unplug => Mishap::Unplug(connector, by),
        FaultKind::LinkLoss => Mishap::LoseLink(connector),
        FaultKind::Lie => {
            let name = fault.arguments[0].checked_sub(1).map(|which| catalogue()[which as usize].0);
            words = format!("{words} ({})", name.unwrap_or_default());
            let end = at + Nanos(fault.arguments[1]);
            let over = format!("{words} is over");
            controller.suffer(end, Mishap::Unplug(connector, RESTART), over);
            Mishap::Unplug(connector, RESTART)
        }
        FaultKind::LostInterrupt => Mishap::LoseInterrupt,
        FaultKind::LateInterrupt => Mishap::DelayInterrupt(by),
        FaultKind::DoubleInterrupt => Mishap::RepeatInterrupt(by),
        FaultKind::SystemError => Mishap::SystemError,
        FaultKind::ControllerError => Mishap::ControllerError,
        FaultKind::StrayDma => Mishap::StrayDma,
        _ => Mishap::Device,
    };
    controller.suffer(at, mishap, words);
}

/// What of `faults` happens to the host itself.
#[must_use]
pub fn upsets(system: &System, faults: &[Fault]) -> Vec<Planned<Upset>> {
    let upset = |fault: &Fault| {
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
