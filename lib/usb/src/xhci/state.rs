//! The states of the controller and of its ports.

use super::report::{Death, Waiting};
use diapason_abi::Nanos;

/// The state of the controller.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ControllerState {
    /// Nothing: it was never started.
    Stopped,
    /// The controller starts; the time is the end of patience.
    Starting(Waiting, Nanos),
    Running,
    /// The controller died and is being halted; transfers are reported when it is.
    Dying(Death, Nanos),
    /// The controller died. It can be started again.
    Dead(Death),
}

/// The capabilities of the controller.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Capabilities {
    /// Version, 0x110 for 1.1.
    pub version: u16,
    pub slots: u8,
    pub interrupters: u16,
    pub ports: u8,
    /// Bytes of a context: 32 or 64.
    pub context: u64,
    /// Scratchpad pages it wants.
    pub scratchpads: u32,
    /// Ports can be switched on and off.
    pub port_power: bool,
    /// The controller takes addresses above 4 GiB.
    pub wide: bool,
    /// Extended capabilities, from the base; 0 if there are none.
    pub(super) extended: u64,
}

/// The state of a port.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Phase {
    /// Nothing is plugged in.
    Empty,
    /// Something is: it comes to rest, or its link is trained.
    Debounce,
    /// The port is being reset.
    Reset,
    Recover,
    /// The port has a device.
    InUse,
    /// The device at the port does not work.
    Broken,
    OverCurrent,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Port {
    pub usb3: bool,
    pub phase: Phase,
    pub deadline: Nanos,
    /// The device at it, also while that is leaving.
    pub device: Option<u8>,
    /// The number of times that the port's device failed.
    pub attempts: u8,
    /// The port's register has to be looked at.
    pub dirty: bool,
    /// Nothing that is plugged in there is touched.
    pub held: bool,
}

impl Port {
    /// Returns a port without a device.
    pub const fn new() -> Port {
        Port {
            usb3: false,
            phase: Phase::Empty,
            deadline: Nanos::FOREVER,
            device: None,
            attempts: 0,
            dirty: false,
            held: false,
        }
    }

    pub(super) fn enter(&mut self, phase: Phase, deadline: Nanos) {
        (self.phase, self.deadline) = (phase, deadline);
    }
}
