//! Root ports: what is plugged in, and how it gets ready to be addressed.

use super::access::{Dma, GONE, Mmio};
use super::controller::Controller;
use super::device::{Device, Place, Step, speed_of};
use super::lane::Lanes;
use super::report::{Death, DeviceFailure, Notice};
use super::state::{ControllerState, Phase, Port};
use crate::register::port;
use diapason_abi::Nanos;

/// A plug has to rest this long before its device is reset (USB 2).
const DEBOUNCE: Nanos = Nanos::from_millis(100);
/// How long a reset or the training of a link may take.
const PATIENCE: Nanos = Nanos::from_millis(500);
/// The rest that a device may have after a reset.
const RECOVERY: Nanos = Nanos::from_millis(10);
/// How often a port that waits for a free place looks again.
const AGAIN: Nanos = Nanos::from_millis(100);
/// Attempts to make a device work.
pub(super) const ATTEMPTS: u8 = 3;

impl<M: Mmio, D: Dma, L: Lanes<M, D>> Controller<M, D, L> {
    /// Every port that reported something or whose time has come.
    pub(super) fn service_ports(&mut self, now: Nanos) {
        self.stirred = false;
        for number in 1..=self.port_count() {
            let port = &self.ports[usize::from(number) - 1];
            let due = !port.held && (port.dirty || now >= port.deadline);
            if self.state == ControllerState::Running && due {
                self.service_port(number, now);
            }
        }
    }

    /// Leaves everything that is plugged in alone until [`Controller::release`].
    pub fn hold(&mut self) {
        self.ports.iter_mut().for_each(|port| port.held = true);
    }

    /// Enumerates what is plugged into the ports that `admits` names, now and from now on.
    pub fn release(&mut self, admits: impl Fn(u8) -> bool) {
        for number in 1..=self.port_count() {
            if admits(number) && core::mem::take(&mut self.port(number).held) {
                self.stir(number);
            }
        }
    }

    /// Returns whether something is plugged into a port, also into one that is held.
    pub fn senses(&mut self, number: u8) -> bool {
        let known =
            self.state == ControllerState::Running && (1..=self.port_count()).contains(&number);
        let word = if known { self.hw.port(number) } else { GONE };
        word != GONE && word & port::CONNECTED != 0
    }

    /// Returns whether a device at a port that is not held is on its way to be known, or is being
    /// configured.
    #[must_use]
    pub fn is_enumerating(&self) -> bool {
        let moves = |port: &Port| {
            let coming = matches!(port.phase, Phase::Debounce | Phase::Reset | Phase::Recover);
            !port.held && (port.dirty || coming)
        };
        let busy = |device: &Device| !matches!(device.step, Step::Free | Step::Idle);
        self.ports.iter().any(moves) || self.devices.iter().any(busy)
    }

    fn service_port(&mut self, number: u8, now: Nanos) {
        let word = self.hw.port(number);
        if word == GONE {
            return self.die(Death::Removed, now);
        }
        let changes = word & port::CHANGES;
        if changes != 0 {
            self.hw.set_port(number, word & port::NEUTRAL | changes);
        }
        self.ports[usize::from(number) - 1].dirty = false;
        let mut phase = self.ports[usize::from(number) - 1].phase;
        if word & port::OVER_CURRENT != 0 {
            return self.over_current(number, now);
        }
        if phase == Phase::OverCurrent {
            self.hw.set_port(number, word & port::NEUTRAL | port::POWER);
            self.port(number).enter(Phase::Empty, Nanos::FOREVER);
            phase = Phase::Empty;
        }
        let connected = word & port::CONNECTED != 0;
        if !connected || changes & port::CONNECT_CHANGE != 0 {
            self.plug_moved(number, connected, word, now);
        } else if phase == Phase::InUse && word & port::ENABLED == 0 {
            // The controller switched it off after an error.
            self.unplug(number);
            self.port(number).enter(Phase::Debounce, now);
        } else if phase == Phase::Empty {
            self.port(number).enter(Phase::Debounce, now + DEBOUNCE);
        }
        self.step_port(number, word, now);
    }

    /// A port's register has to be looked at.
    pub(super) fn stir(&mut self, number: u8) {
        self.port(number).dirty = true;
        self.stirred = true;
    }

    fn port(&mut self, number: u8) -> &mut Port {
        &mut self.ports[usize::from(number) - 1]
    }

    fn over_current(&mut self, number: u8, now: Nanos) {
        if self.port(number).phase != Phase::OverCurrent {
            self.unplug(number);
            self.notice(Notice::OverCurrent(number));
        }
        self.port(number).enter(Phase::OverCurrent, now + AGAIN);
    }

    /// Something was plugged in, or out, or both.
    fn plug_moved(&mut self, number: u8, connected: bool, word: u32, now: Nanos) {
        self.unplug(number);
        let port = self.port(number);
        port.attempts = 0;
        let trained = port.usb3 && word & port::ENABLED != 0;
        match (connected, trained) {
            (false, _) => port.enter(Phase::Empty, Nanos::FOREVER),
            (true, true) => port.enter(Phase::Debounce, now),
            (true, false) => port.enter(Phase::Debounce, now + DEBOUNCE),
        }
    }

    fn step_port(&mut self, number: u8, word: u32, now: Nanos) {
        let crowded = self.is_crowded();
        let port = self.port(number);
        let over = now >= port.deadline;
        let enabled = word & port::ENABLED != 0;
        match port.phase {
            // The last device has not left yet, or nobody listens.
            Phase::Debounce | Phase::Recover if over && (port.device.is_some() || crowded) => {
                port.deadline = now + AGAIN;
            }
            Phase::Debounce if over && port.usb3 && enabled && port.attempts == 0 => {
                port.enter(Phase::Recover, now);
                self.plug(number, word, now);
            }
            Phase::Debounce if over => self.reset_port(number, word, now),
            Phase::Reset if enabled && word & (port::RESET | port::WARM_RESET) == 0 => {
                port.enter(Phase::Recover, now + RECOVERY);
            }
            Phase::Reset if over => self.retry_port(number, DeviceFailure::Reset, now),
            Phase::Recover if over => self.plug(number, word, now),
            _ => {}
        }
    }

    fn reset_port(&mut self, number: u8, word: u32, now: Nanos) {
        let link = word >> port::LINK_SHIFT & 0xf;
        let port = self.port(number);
        port.enter(Phase::Reset, now + PATIENCE);
        let warm = port.usb3 && (link == port::link::INACTIVE || word & port::ENABLED == 0);
        let order = if warm { port::WARM_RESET } else { port::RESET };
        self.hw.set_port(number, word & port::NEUTRAL | order);
    }

    /// Starts the failed device at the port again, or gives it up.
    pub(super) fn retry_port(&mut self, number: u8, cause: DeviceFailure, now: Nanos) {
        let port = self.port(number);
        port.attempts += 1;
        if port.attempts < ATTEMPTS {
            port.enter(Phase::Debounce, now);
            self.stir(number);
        } else {
            port.enter(Phase::Broken, Nanos::FOREVER);
            self.notice(Notice::Failed { port: number, route: 0, cause });
        }
    }

    /// A device is ready to be addressed.
    fn plug(&mut self, number: u8, word: u32, now: Nanos) {
        let place = Place { port: number, ..Place::default() };
        let Some(speed) = speed_of(word >> port::SPEED_SHIFT & 0xf) else {
            return self.retry_port(number, DeviceFailure::Reset, now);
        };
        let last_try = self.port(number).attempts + 1 == ATTEMPTS;
        match self.new_device(place, speed, last_try) {
            Ok(index) => {
                let port = self.port(number);
                port.device = Some(index);
                port.enter(Phase::InUse, Nanos::FOREVER);
            }
            Err(_) => self.port(number).deadline = now + AGAIN,
        }
    }

    /// Removes the device at this port and everything behind it.
    fn unplug(&mut self, number: u8) {
        if let Some(index) = self.ports[usize::from(number) - 1].device {
            self.lose_device(index, None);
        }
    }
}
