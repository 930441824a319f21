//! The kinds of faults: one table gives descriptions and command lines their words.

use diapason_contract::can::EACH;
use std::ops::RangeInclusive;

/// Latest instant of a fault, and longest time that one lasts.
pub(crate) const TIME_MAX: u64 = 1_000_000_000_000_000;

/// Something that goes wrong.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct InjectedFault {
    pub at_ns: u64,
    /// The kind of fault.
    pub kind: FaultKind,
    /// A number of a USB device, of a device (controller or adapter), or of a process; 0 for the
    /// host. Of a CAN bus that a controller connects: the number of its device, counted behind all
    /// USB devices. Of a CAN bus without this host: the number of the bus, counted behind all
    /// devices. Of another node: its place in [`System::other_nodes`](crate::System::other_nodes).
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
    /// A device restarts and tells a lie about itself, by number of the catalogue.
    Lie,
    /// The link of a device breaks down.
    LinkLoss,
    /// The clock of a device goes faster from then on, by parts per million.
    FastClock,
    /// The clock of a device goes slower from then on.
    SlowClock,
    /// A number of frames on a bus of this host are destroyed.
    CanErrors,
    /// A node on a bus of this host sends the most urgent frame without pause.
    Babble,
    /// The controller of this host on a bus leaves it after too many errors.
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
    /// A stranger sends so many frames a second to an adapter, for a port that nobody has.
    Flood,
    /// The work of a process takes so many times as long as declared.
    Overrun,
    /// A thread of a process executes an invalid instruction.
    Crash,
    /// Another node of a CAN bus is switched off, and begins anew so much later.
    NodeReset,
    /// Another node of a CAN bus hears no frame of the time, and none that tells to renew.
    NodeDeaf,
    /// The host loses its power, and boots again when it is back.
    Reboot,
}

/// The target of a fault.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FaultTarget {
    Usb,
    /// A `[[usb]]` device that is a CAN interface, or a `[[device]]` that is the `controller` of a
    /// bus.
    Can,
    /// A target as of [`FaultTarget::Can`], or a `[[can]]` of a description without processes.
    Bus,
    /// A `node` of a `[[message]]`, on a bus with a controller, or in a description without
    /// processes.
    Node,
    /// A `[[device]]` that is a USB controller, or the `controller` of a CAN bus.
    Controller,
    /// A `[[device]]` that is a USB controller.
    UsbController,
    /// A `[[device]]` that is an adapter for Ethernet.
    Adapter,
    Process,
    Host,
}

impl FaultTarget {
    /// Returns the key of a description that names it.
    pub(super) const fn key(self) -> Option<&'static str> {
        match self {
            FaultTarget::Usb
            | FaultTarget::Can
            | FaultTarget::Bus
            | FaultTarget::Controller
            | FaultTarget::UsbController
            | FaultTarget::Adapter => Some("device"),
            FaultTarget::Node => Some("node"),
            FaultTarget::Process => Some("process"),
            FaultTarget::Host => None,
        }
    }

    pub(super) const fn noun(self) -> &'static str {
        match self {
            FaultTarget::Usb => "USB device",
            FaultTarget::Can => "CAN interface",
            FaultTarget::Bus => "CAN bus",
            FaultTarget::Node => "other node",
            FaultTarget::Controller => "controller",
            FaultTarget::UsbController => "USB controller",
            FaultTarget::Adapter => "network adapter",
            FaultTarget::Process => "process",
            FaultTarget::Host => "host",
        }
    }
}

/// An argument of a kind besides its target.
pub(super) struct Argument {
    pub key: &'static str,
    /// A time in ns, or a number.
    pub is_time: bool,
    pub range: RangeInclusive<u64>,
    /// If it is not said.
    pub default: Option<u64>,
}

const fn time(key: &'static str) -> Argument {
    Argument { key, is_time: true, range: 1..=TIME_MAX, default: None }
}

const fn number(key: &'static str, range: RangeInclusive<u64>) -> Argument {
    Argument { key, is_time: false, range, default: None }
}

const CHANNEL: Argument = Argument { default: Some(0), ..number(CHANNEL_KEY, 0..=EACH as u64 - 1) };
/// The key of a channel.
const CHANNEL_KEY: &str = "channel";
const FOR: Argument = time("for");
const PPM: Argument = number("ppm", 1..=100_000);

/// The lies of the catalogue.
pub const LIES: u64 = 52;

/// A kind, its word, what it happens to, and what else it asks for.
pub(super) struct Row(pub FaultKind, pub &'static str, FaultTarget, &'static [Argument]);

pub(super) const KINDS: [Row; 22] = [
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
        FaultTarget::Bus,
        &[number("count", 1..=10_000), CHANNEL],
    ),
    Row(FaultKind::Babble, "babble", FaultTarget::Bus, &[FOR, CHANNEL]),
    Row(FaultKind::BusOff, "bus-off", FaultTarget::Can, &[CHANNEL]),
    Row(FaultKind::LostInterrupt, "lost-interrupt", FaultTarget::Controller, &[]),
    Row(FaultKind::LateInterrupt, "late-interrupt", FaultTarget::Controller, &[time("by")]),
    Row(FaultKind::DoubleInterrupt, "double-interrupt", FaultTarget::Controller, &[time("by")]),
    Row(FaultKind::SystemError, "system-error", FaultTarget::UsbController, &[]),
    Row(FaultKind::ControllerError, "controller-error", FaultTarget::Controller, &[]),
    Row(FaultKind::StrayDma, "stray-dma", FaultTarget::UsbController, &[]),
    Row(FaultKind::Flood, "flood", FaultTarget::Adapter, &[number("rate", 1..=10_000_000), FOR]),
    Row(FaultKind::Overrun, "overrun", FaultTarget::Process, &[number("times", 2..=1_000), FOR]),
    Row(FaultKind::Crash, "crash", FaultTarget::Process, &[]),
    Row(FaultKind::NodeReset, "node-reset", FaultTarget::Node, &[FOR]),
    Row(FaultKind::NodeDeaf, "node-deaf", FaultTarget::Node, &[FOR]),
    Row(FaultKind::Reboot, "reboot", FaultTarget::Host, &[FOR]),
];

impl FaultKind {
    /// Returns every kind of fault.
    pub fn all() -> impl Iterator<Item = FaultKind> {
        KINDS.iter().map(|row| row.0)
    }

    /// Returns the word that descriptions and command lines have for it.
    #[must_use]
    pub fn name(self) -> &'static str {
        self.row().1
    }

    /// Returns the target of the fault.
    #[must_use]
    pub fn target(self) -> FaultTarget {
        self.row().2
    }

    /// Returns which of its arguments is a channel.
    pub(super) fn channel(self) -> Option<usize> {
        self.arguments().iter().position(|argument| argument.key == CHANNEL_KEY)
    }

    pub(super) fn arguments(self) -> &'static [Argument] {
        self.row().3
    }

    fn row(self) -> &'static Row {
        // The table is in the order of the kinds, which a test holds.
        &KINDS[self as usize]
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
