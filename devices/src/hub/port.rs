//! One port of a hub: power, reset, what changed, and what is plugged into it.

use crate::device::{Stall, UsbDevice};
use diapason_abi::Nanos;
use diapason_usb::Speed;

/// From power to use.
pub const POWER_GOOD: Nanos = Nanos::from_millis(20);
/// How long a reset takes.
const RESET: Nanos = Nanos::from_millis(10);

/// Bits of status, and of change where there is one; the same in both kinds of hubs.
const CONNECTED: u16 = 1;
const ENABLED: u16 = 1 << 1;
const SUSPENDED: u16 = 1 << 2;
const OVER_CURRENT: u16 = 1 << 3;
const RESETTING: u16 = 1 << 4;
/// The bit of a USB 2 hub.
const POWERED_2: u16 = 1 << 8;
const LOW_SPEED: u16 = 1 << 9;
const HIGH_SPEED: u16 = 1 << 10;
/// The bit of a SuperSpeed hub.
const POWERED_3: u16 = 1 << 9;
const LINK_DISABLED: u16 = 4 << 5;
const LINK_RX_DETECT: u16 = 5 << 5;

mod feature {
    pub const ENABLE: u16 = 1;
    pub const SUSPEND: u16 = 2;
    pub const RESET: u16 = 4;
    pub const LINK_STATE: u16 = 5;
    pub const POWER: u16 = 8;
    /// The first change, of the connection; those of bits 1 to 4 follow.
    pub const CHANGES: std::ops::RangeInclusive<u16> = 16..=20;
    pub const U1_TIMEOUT: u16 = 23;
    pub const U2_TIMEOUT: u16 = 24;
    pub const CHANGE_LINK_STATE: u16 = 25;
    pub const CHANGE_CONFIG_ERROR: u16 = 26;
    pub const WARM_RESET: u16 = 28;
    pub const CHANGE_WARM_RESET: u16 = 29;
}
/// Where a warm reset is reported.
const WARM: u16 = 1 << 5;
/// The link state that switches a port off.
const DISABLED: u8 = 4;

/// A port of the hub.
pub(crate) struct Port {
    superspeed: bool,
    device: Option<Box<dyn UsbDevice>>,
    /// The port says that nothing is in it.
    feigned: bool,
    /// Status without the bits that follow from the rest.
    status: u16,
    changes: u16,
    powered: bool,
    reset_ends: Nanos,
}

impl Port {
    /// Returns a port without power and without a device.
    pub fn new(superspeed: bool) -> Port {
        Port {
            superspeed,
            device: None,
            feigned: false,
            status: 0,
            changes: 0,
            powered: false,
            reset_ends: Nanos::FOREVER,
        }
    }

    /// Returns whether a device is plugged in.
    pub fn occupied(&self) -> bool {
        self.device.is_some()
    }

    /// Plugs a device in.
    pub fn plug(&mut self, now: Nanos, device: Box<dyn UsbDevice>) {
        (self.device, self.feigned) = (Some(device), false);
        if self.powered {
            self.connect(now);
        }
    }

    /// Pulls the device out and returns it.
    pub fn unplug(&mut self) -> Option<Box<dyn UsbDevice>> {
        if !self.feigned {
            self.disconnect();
        }
        self.feigned = false;
        self.device.take()
    }

    /// Lets the port look as if its device had been pulled out.
    pub fn feign_unplug(&mut self) {
        if self.occupied() && !self.feigned {
            self.feigned = true;
            self.disconnect();
        }
    }

    /// Takes the power away and reports too high a current.
    pub fn over_current(&mut self) {
        if self.powered {
            self.power_off();
            self.changes |= OVER_CURRENT;
        }
    }

    /// Takes the power away.
    pub fn power_off(&mut self) {
        (self.status, self.changes, self.powered) = (0, 0, false);
        self.reset_ends = Nanos::FOREVER;
    }

    /// Somebody is there. The link of SuperSpeed trains by itself.
    fn connect(&mut self, now: Nanos) {
        self.status |= CONNECTED;
        self.changes |= CONNECTED;
        if self.superspeed {
            self.enable(now);
        }
    }

    fn enable(&mut self, now: Nanos) {
        self.status = self.status & !SUSPENDED | ENABLED;
        if let Some(device) = self.device.as_mut() {
            device.reset(now);
        }
    }

    fn disconnect(&mut self) {
        if self.status & CONNECTED != 0 {
            self.changes |= CONNECTED;
        }
        self.status = 0;
        self.reset_ends = Nanos::FOREVER;
    }

    /// Status and change, as the host reads them.
    pub fn status(&self) -> [u8; 4] {
        let powered = if self.superspeed { POWERED_3 } else { POWERED_2 };
        let mut status = self.status | if self.powered { powered } else { 0 };
        if self.superspeed {
            status |= match (self.powered, self.status & ENABLED != 0) {
                (_, true) => 0,
                (true, false) => LINK_RX_DETECT,
                (false, false) => LINK_DISABLED,
            };
        } else if self.status & CONNECTED != 0 {
            status |= match self.device.as_ref().map(|device| device.speed()) {
                Some(Speed::Low) => LOW_SPEED,
                Some(Speed::High) => HIGH_SPEED,
                _ => 0,
            };
        }
        let ([s0, s1], [c0, c1]) = (status.to_le_bytes(), self.changes.to_le_bytes());
        [s0, s1, c0, c1]
    }

    /// Returns whether there is a change to report.
    pub fn has_news(&self) -> bool {
        self.changes != 0
    }

    /// Sets a feature, and stalls if the port does not have it.
    pub fn set(&mut self, now: Nanos, feature: u16, selector: u8) -> Result<(), Stall> {
        match feature {
            feature::POWER if !self.powered => {
                self.powered = true;
                if self.occupied() && !self.feigned {
                    self.connect(now);
                }
            }
            feature::POWER | feature::U1_TIMEOUT | feature::U2_TIMEOUT => {}
            feature::RESET | feature::WARM_RESET if self.status & CONNECTED != 0 => {
                self.status = self.status & !ENABLED | RESETTING;
                self.reset_ends = now + RESET;
                if feature == feature::WARM_RESET {
                    self.changes |= WARM;
                }
            }
            feature::RESET | feature::WARM_RESET => {}
            feature::SUSPEND if !self.superspeed => {
                self.status |= if self.status & ENABLED != 0 { SUSPENDED } else { 0 };
            }
            feature::LINK_STATE if self.superspeed => {
                if selector == DISABLED {
                    self.status &= !ENABLED;
                }
            }
            _ => return Err(Stall),
        }
        Ok(())
    }

    /// Clears a feature, and stalls if the port does not have it.
    pub fn clear(&mut self, feature: u16) -> Result<(), Stall> {
        match feature {
            feature::ENABLE if !self.superspeed => self.status &= !(ENABLED | SUSPENDED),
            feature::SUSPEND if !self.superspeed => {
                if self.status & SUSPENDED != 0 {
                    self.status &= !SUSPENDED;
                    self.changes |= SUSPENDED;
                }
            }
            feature::POWER => self.power_off(),
            feature if feature::CHANGES.contains(&feature) => {
                self.changes &= !(1 << (feature - feature::CHANGES.start()));
            }
            feature::CHANGE_WARM_RESET => self.changes &= !WARM,
            feature::CHANGE_LINK_STATE | feature::CHANGE_CONFIG_ERROR => {}
            _ => return Err(Stall),
        }
        Ok(())
    }

    /// Returns when something changes next by itself.
    pub fn next_change(&self) -> Nanos {
        let device = self.device.as_ref().map_or(Nanos::FOREVER, |device| device.next_change());
        device.min(self.reset_ends)
    }

    /// Does everything that is due by `now`.
    pub fn advance(&mut self, now: Nanos) {
        if self.reset_ends <= now {
            let end = std::mem::replace(&mut self.reset_ends, Nanos::FOREVER);
            self.status &= !RESETTING;
            self.changes |= RESETTING;
            self.enable(end);
        }
        if let Some(device) = self.device.as_mut() {
            device.advance(now);
        }
    }

    /// Returns the device in it, as far as packets reach it.
    pub fn child(&mut self) -> Option<&mut dyn UsbDevice> {
        let reached = self.feigned && self.powered
            || self.status & (ENABLED | SUSPENDED | RESETTING) == ENABLED;
        self.device.as_deref_mut().filter(|_| reached).map(|device| device as &mut dyn UsbDevice)
    }
}
