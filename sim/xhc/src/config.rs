//! The configuration of the controller.

use crate::debug::DebugConfig;
use diapason_abi::Nanos;
use diapason_bus::Coding;

/// The half of a connector that a port is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Protocol {
    /// High, full and low speed.
    Usb2,
    Usb3,
}

/// Root ports that share bus instances: one of super speed, or one of high speed and one of full
/// and low speed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Group {
    /// The protocol of the ports.
    pub protocol: Protocol,
    /// The number of ports in the group.
    pub ports: u8,
}

/// How long things take that no bus decides.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ControllerTimes {
    /// Reset of the controller, until it is ready.
    pub reset: Nanos,
    /// From "stop" to "halted".
    pub halt: Nanos,
    pub command: Nanos,
    /// The firmware's part of the hand-over.
    pub handover: Nanos,
    /// Reset of a USB 2 port.
    pub port_reset: Nanos,
    /// Hot reset of a USB 3 port.
    pub hot_reset: Nanos,
    /// Warm reset of a USB 3 port.
    pub warm_reset: Nanos,
    /// From the plug to the trained link of a USB 3 port.
    pub training: Nanos,
}

/// The configuration of a controller.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Config {
    /// Device slots, at least 1.
    pub slots: u8,
    /// Interrupters, 1 to 128.
    pub interrupters: u16,
    /// Root ports in the order of their numbers, 255 at most.
    pub groups: Vec<Group>,
    /// Contexts of 64 bytes instead of 32.
    pub large_contexts: bool,
    /// Pages the controller wants for itself, up to 1023.
    pub scratchpads: u16,
    /// 2ⁿ segments of an event ring at most, n up to 15.
    pub segments_log2: u8,
    /// Ports can be switched off; they are when the controller comes out of reset.
    pub port_power: bool,
    /// Isochronous scheduling threshold in microframes, 0 to 7.
    pub threshold: u8,
    /// How the line code of super speed counts.
    pub coding: Coding,
    /// Most of a slot for periodic packets, in per cent; `None` is what the standard allows.
    pub periodic_percent: Option<u8>,
    /// The firmware owns the controller until asked.
    pub firmware: bool,
    /// The debug capability, if there is one.
    pub debug: Option<DebugConfig>,
    pub times: ControllerTimes,
}

impl Default for Config {
    /// Four connectors with both protocols, 32 slots, eight interrupters, times as real parts
    /// have them.
    fn default() -> Config {
        Config {
            slots: 32,
            interrupters: 8,
            groups: vec![
                Group { protocol: Protocol::Usb2, ports: 4 },
                Group { protocol: Protocol::Usb3, ports: 4 },
            ],
            large_contexts: false,
            scratchpads: 4,
            segments_log2: 4,
            port_power: false,
            threshold: 4,
            coding: Coding::EightTen,
            periodic_percent: None,
            firmware: false,
            debug: None,
            times: ControllerTimes::default(),
        }
    }
}

impl Default for ControllerTimes {
    fn default() -> ControllerTimes {
        ControllerTimes {
            reset: Nanos::from_millis(1),
            halt: Nanos::from_micros(125),
            command: Nanos::from_micros(2),
            handover: Nanos::from_millis(5),
            port_reset: Nanos::from_millis(50),
            hot_reset: Nanos::from_millis(2),
            warm_reset: Nanos::from_millis(100),
            training: Nanos::from_millis(20),
        }
    }
}

impl Config {
    /// Returns the protocol of each port, port 1 first.
    pub(crate) fn protocols(&self) -> impl Iterator<Item = Protocol> + '_ {
        let ports = |group: &Group| core::iter::repeat_n(group.protocol, usize::from(group.ports));
        self.groups.iter().flat_map(ports)
    }

    /// Returns the group of a port, if there is such a port.
    pub(crate) fn group(&self, port: u8) -> Option<usize> {
        let mut last = 0;
        self.groups.iter().position(|group| {
            last += u32::from(group.ports);
            port > 0 && u32::from(port) <= last
        })
    }

    pub(crate) fn check(&self) {
        let ports: u32 = self.groups.iter().map(|group| u32::from(group.ports)).sum();
        assert!(self.slots > 0, "a controller has slots");
        assert!((1..=255).contains(&ports), "a controller has 1 to 255 ports");
        assert!((1..=128).contains(&self.interrupters), "1 to 128 interrupters");
        assert!(self.scratchpads < 1024 && self.segments_log2 < 16 && self.threshold < 8);
    }
}
