//! A root port: what its register says, how long its resets take, what is plugged in.

use crate::config::{ControllerTimes, Protocol};
use diapason_abi::Nanos;
use diapason_devices::UsbDevice;
use diapason_usb::Speed;
use diapason_usb::register::port::{self as bit, link};
use diapason_usb::register::speed;

/// The event that a port waits for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Wait {
    Nothing,
    Training,
    Reset { warm: bool },
}

pub(crate) struct Port {
    protocol: Protocol,
    device: Option<Box<dyn UsbDevice>>,
    /// True if the device was there at the last look.
    there: bool,
    power: bool,
    connected: bool,
    enabled: bool,
    link: u32,
    speed: u32,
    changes: u32,
    /// Indicators and wake enables: stored, without effect.
    stored: u32,
    management: u32,
    errors: u32,
    wait: Wait,
    /// When the wait ends.
    pub due: Nanos,
    /// The number of lives of the device: each reset begins a new one.
    pub generation: u32,
    /// The device was last let go on at this time.
    advanced: Nanos,
    advances: u64,
    /// Consecutive times that its next change lay in the past afterwards.
    late: u32,
}

const STORED: u32 = 0x0e00_c000;
/// A device whose next change stays in the past is asked again so much later.
const PATIENCE: Nanos = Nanos::from_micros(1);
/// If that happens so often in a row, its model is wrong.
const LATE: u32 = 10_000;

/// Returns the speed number of a port.
pub(crate) fn number(of: Speed) -> u32 {
    match of {
        Speed::Full => speed::FULL,
        Speed::Low => speed::LOW,
        Speed::High => speed::HIGH,
        Speed::Super => speed::SUPER,
    }
}

impl Port {
    /// Returns a port without a device.
    pub fn new(protocol: Protocol, power: bool) -> Port {
        let mut port = Port {
            protocol,
            device: None,
            there: false,
            power,
            connected: false,
            enabled: false,
            link: link::RX_DETECT,
            speed: 0,
            changes: 0,
            stored: 0,
            management: 0,
            errors: 0,
            wait: Wait::Nothing,
            due: Nanos::FOREVER,
            generation: 0,
            advanced: Nanos::ZERO,
            advances: 0,
            late: 0,
        };
        port.link = port.idle_link();
        port
    }

    /// The controller was reset: it finds plugged devices again.
    pub fn restart(&mut self, power: bool, now: Nanos, times: &ControllerTimes) {
        let device = self.device.take();
        let generation = self.generation + 1;
        let there = device.as_ref().is_some_and(|device| device.is_there());
        let Port { advanced, advances, .. } = *self;
        let fresh = Port::new(self.protocol, power);
        *self = Port { device, there, generation, advanced, advances, ..fresh };
        self.look(now, times);
    }

    /// Looks for a partner.
    fn look(&mut self, now: Nanos, times: &ControllerTimes) {
        if !self.power || !self.there {
            return;
        }
        self.link = link::POLLING;
        if self.protocol == Protocol::Usb3 {
            self.wait = Wait::Training;
            self.due = now + times.training;
        } else {
            self.connected = true;
            self.changes |= bit::CONNECT_CHANGE;
        }
    }

    /// Attaches a device instead of the one that was there.
    pub fn attach(&mut self, device: Box<dyn UsbDevice>, now: Nanos, times: &ControllerTimes) {
        self.detach();
        self.there = device.is_there();
        self.device = Some(device);
        self.look(now, times);
    }

    /// Returns whether its device has come or gone by itself.
    pub fn is_news(&self) -> bool {
        self.device.as_ref().is_some_and(|device| device.is_there()) != self.there
    }

    /// Notes a change of its device.
    pub fn notice(&mut self, now: Nanos, times: &ControllerTimes) {
        self.there = !self.there;
        if self.there { self.look(now, times) } else { self.disconnect() }
    }

    /// Pulls the plug of its device.
    pub fn detach(&mut self) -> Option<Box<dyn UsbDevice>> {
        let device = self.device.take();
        self.there = false;
        self.disconnect();
        device
    }

    fn disconnect(&mut self) {
        if self.connected {
            self.changes |= bit::CONNECT_CHANGE;
        }
        self.generation += 1;
        self.connected = false;
        self.enabled = false;
        self.speed = 0;
        // A reset that is under way ends in its time and finds nothing.
        if self.wait == Wait::Training {
            self.rest();
        }
        self.link = self.idle_link();
    }

    fn idle_link(&self) -> u32 {
        if self.power || self.protocol == Protocol::Usb2 { link::RX_DETECT } else { link::DISABLED }
    }

    fn rest(&mut self) {
        self.wait = Wait::Nothing;
        self.due = Nanos::FOREVER;
    }

    /// The wait is over.
    pub fn expire(&mut self, now: Nanos) {
        let wait = self.wait;
        self.rest();
        let before = self.connected;
        self.enable(now);
        match wait {
            Wait::Nothing => {}
            Wait::Training => self.changes |= bit::CONNECT_CHANGE,
            Wait::Reset { warm } => {
                self.changes |= bit::RESET_CHANGE;
                if warm {
                    self.changes |= bit::WARM_RESET_CHANGE;
                }
                if self.connected != before {
                    self.changes |= bit::CONNECT_CHANGE;
                }
            }
        }
    }

    fn enable(&mut self, now: Nanos) {
        let Some(device) = self.device.as_mut().filter(|_| self.there) else {
            self.link = self.idle_link();
            return;
        };
        device.reset(now);
        self.generation += 1;
        self.speed = number(device.speed());
        self.connected = true;
        self.enabled = true;
        self.link = link::U0;
    }

    /// The link broke down: only a warm reset helps.
    pub fn lose_link(&mut self) {
        if self.enabled {
            self.enabled = false;
            self.link = link::INACTIVE;
            self.changes |= bit::LINK_CHANGE;
            self.errors += 1;
        }
    }

    /// Returns the port's device, if one can be talked to.
    pub fn partner(&mut self) -> Option<&mut (dyn UsbDevice + 'static)> {
        let reachable = self.enabled && self.link == link::U0;
        self.device.as_deref_mut().filter(|_| reachable)
    }

    /// Returns the change bits that are set.
    pub fn changes(&self) -> u32 {
        self.changes
    }

    /// Returns whether something can happen at it by itself.
    pub fn is_busy(&self) -> bool {
        self.device.is_some() || self.due != Nanos::FOREVER
    }

    /// Returns when its device wants to be let go on.
    pub fn next_change(&self) -> Nanos {
        self.wish().0
    }

    /// Returns when its device wants to be let go on, and whether it named an instant that had
    /// passed.
    fn wish(&self) -> (Nanos, bool) {
        let Some(device) = &self.device else { return (Nanos::FOREVER, false) };
        match device.next_change() {
            at if at > self.advanced => (at, false),
            _ => (self.advanced + PATIENCE, true),
        }
    }

    /// Returns whether its device wants to go on by `now`.
    pub fn is_due(&mut self, now: Nanos) -> bool {
        let (next, passed) = self.wish();
        if next <= now {
            self.late = if passed { self.late + 1 } else { 0 };
        }
        next <= now
    }

    /// Lets the device go on.
    pub fn advance(&mut self, now: Nanos) {
        self.advanced = now;
        self.advances += 1;
        if let Some(device) = &mut self.device {
            device.advance(now);
        }
    }

    /// Returns how often its device was let go on.
    pub fn advances(&self) -> u64 {
        self.advances
    }

    /// Returns whether its device will never be done with the past.
    pub fn is_late(&self) -> bool {
        self.late >= LATE
    }

    /// Reads a word of the port's registers.
    pub fn read(&self, word: u64) -> u32 {
        match word {
            0 => self.status(),
            1 => self.management,
            2 => self.errors & 0xffff,
            _ => 0,
        }
    }

    fn status(&self) -> u32 {
        let flag = |set: bool, bit: u32| if set { bit } else { 0 };
        flag(self.connected, bit::CONNECTED)
            | flag(self.enabled, bit::ENABLED)
            | flag(matches!(self.wait, Wait::Reset { .. }), bit::RESET)
            | self.link << bit::LINK_SHIFT
            | flag(self.power, bit::POWER)
            | self.speed << bit::SPEED_SHIFT
            | self.changes
            | self.stored
    }

    /// Writes a word of the port's registers.
    pub fn write(
        &mut self,
        word: u64,
        value: u32,
        switched: bool,
        now: Nanos,
        times: &ControllerTimes,
    ) {
        match word {
            0 => self.control(value, switched, now, times),
            1 => self.management = value,
            _ => {}
        }
    }

    fn control(&mut self, value: u32, switched: bool, now: Nanos, times: &ControllerTimes) {
        self.changes &= !(value & bit::CHANGES);
        self.stored = value & STORED;
        let power = value & bit::POWER != 0;
        if switched && power != self.power {
            self.switch(power, now, times);
        }
        if !self.power {
            return;
        }
        let warm = value & bit::WARM_RESET != 0 && self.protocol == Protocol::Usb3;
        if warm || value & bit::RESET != 0 {
            self.reset(warm, now, times);
        } else if value & bit::ENABLED != 0 && self.enabled {
            self.enabled = false;
            let usb3 = self.protocol == Protocol::Usb3;
            self.link = if usb3 { link::DISABLED } else { link::POLLING };
        } else if value & bit::LINK_STROBE != 0 {
            self.steer(value >> bit::LINK_SHIFT & 0xf, now, times);
        }
    }

    fn switch(&mut self, power: bool, now: Nanos, times: &ControllerTimes) {
        self.power = power;
        if power {
            self.link = self.idle_link();
            self.look(now, times);
        } else {
            self.rest();
            self.disconnect();
        }
    }

    fn reset(&mut self, warm: bool, now: Nanos, times: &ControllerTimes) {
        let usb3 = self.protocol == Protocol::Usb3;
        let possible = warm || self.connected && (!usb3 || self.link != link::INACTIVE);
        if !possible || matches!(self.wait, Wait::Reset { .. }) {
            return;
        }
        self.generation += 1;
        self.enabled = false;
        self.wait = Wait::Reset { warm };
        self.link = if usb3 { link::RX_DETECT } else { link::POLLING };
        let length = match (usb3, warm) {
            (false, _) => times.port_reset,
            (true, false) => times.hot_reset,
            (true, true) => times.warm_reset,
        };
        self.due = now + length;
    }

    /// Software wants this link state.
    fn steer(&mut self, wanted: u32, now: Nanos, times: &ControllerTimes) {
        match (self.link, wanted) {
            (link::U0, link::U3) if self.enabled => self.link = link::U3,
            (link::U3, link::RESUME) if self.protocol == Protocol::Usb2 => {
                self.link = link::RESUME;
            }
            (link::RESUME | link::U3, link::U0) => {
                self.link = link::U0;
                self.changes |= bit::LINK_CHANGE;
            }
            (link::DISABLED, link::RX_DETECT) if self.protocol == Protocol::Usb3 => {
                self.disconnect();
                self.look(now, times);
            }
            _ => {}
        }
    }
}
