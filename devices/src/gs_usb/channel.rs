//! One channel: its bit timing, its controller on the bus, and the frames under way to it.

use super::wire::{HostFrame, feature};
use crate::can::{CanPlug, Mistuned};
use diapason_abi::Nanos;
use diapason_can::bus::{Health, Ticket};
use diapason_can::{AnyFrame, BitRate, WireError};

/// Limits of the quanta before the sample, of those after it, of a resynchronisation, and of the
/// prescaler.
#[derive(Clone, Copy, Debug)]
struct Limits {
    before: (u32, u32),
    after: (u32, u32),
    jump_max: u32,
    prescaler: (u32, u32),
}

/// A kind of controller: its clock, and the limits of its bits.
#[derive(Debug)]
struct Controller {
    features: u32,
    clock: u32,
    limits: Limits,
    /// Limits of the bits of data, if it has CAN FD.
    data: Option<Limits>,
}

/// The controller of a channel on a classic bus, or on none.
const CLASSIC: Controller = Controller {
    features: feature::ALL,
    clock: 48_000_000,
    limits: Limits { before: (1, 16), after: (1, 8), jump_max: 4, prescaler: (1, 1_024) },
    data: None,
};
/// The controller of a channel on a bus with CAN FD.
const FLEXIBLE: Controller = Controller {
    features: feature::ALL_FD,
    clock: 80_000_000,
    limits: Limits { before: (1, 256), after: (1, 128), jump_max: 128, prescaler: (1, 512) },
    data: Some(Limits { before: (1, 32), after: (1, 16), jump_max: 16, prescaler: (1, 32) }),
};

impl Limits {
    /// Returns the limits as the host reads them.
    fn words(&self) -> [u32; 8] {
        let (before, after, prescaler) = (self.before, self.after, self.prescaler);
        [before.0, before.1, after.0, after.1, self.jump_max, prescaler.0, prescaler.1, 1]
    }

    /// Returns the bit rate of these segments and this prescaler, if they are within the limits.
    fn hertz(&self, clock: u32, timing: [u32; 5]) -> Option<u32> {
        let [propagation, phase1, after, jump, prescaler] = timing;
        let inside = |value: u32, (low, high)| (low..=high).contains(&value);
        let before = propagation.saturating_add(phase1);
        let fits = inside(before, self.before)
            && inside(after, self.after)
            && inside(jump, (1, self.jump_max))
            && inside(prescaler, self.prescaler);
        fits.then(|| clock / (prescaler * (1 + before + after)))
    }
}

/// Kinds of error frames.
mod kind {
    pub const CONTROLLER: u32 = 1 << 2;
    pub const PROTOCOL: u32 = 1 << 3;
    pub const ACKNOWLEDGE: u32 = 1 << 5;
    pub const BUS_OFF: u32 = 1 << 6;
    pub const BUS_ERROR: u32 = 1 << 7;
    pub const RESTARTED: u32 = 1 << 8;
    pub const COUNTERS: u32 = 1 << 9;
}
/// The states of a controller in the second byte of an error frame.
mod state {
    pub const RECEIVE_WARNING: u8 = 1 << 2;
    pub const SEND_WARNING: u8 = 1 << 3;
    pub const RECEIVE_PASSIVE: u8 = 1 << 4;
    pub const SEND_PASSIVE: u8 = 1 << 5;
    pub const ACTIVE: u8 = 1 << 6;
}
/// Errors of a protocol in the third byte of an error frame.
mod fault {
    pub const BIT: u8 = 1;
    pub const FORM: u8 = 1 << 1;
    pub const STUFF: u8 = 1 << 2;
}
/// The state that `GET_STATE` has of a channel that is not started.
const STOPPED: u32 = 4;

/// A frame on its way to the bus. Without a ticket it waits for a bus that does not understand it.
#[derive(Clone, Copy, Debug)]
struct Outstanding {
    ticket: Option<Ticket>,
    frame: HostFrame,
}

/// A channel of the interface.
pub(super) struct Channel {
    number: u8,
    plug: Option<CanPlug>,
    controller: &'static Controller,
    hertz: Option<u32>,
    /// The rate of the data of CAN FD.
    data_hertz: Option<u32>,
    started: bool,
    /// The channel was started with CAN FD.
    fd: bool,
    /// Frames to the host bear times.
    pub stamps: bool,
    /// The errors that it heard at another bit rate than that of its bus.
    mistuned: Option<Mistuned>,
    /// The controller was bus-off, and did not say that it is back.
    off: bool,
    outstanding: Vec<Outstanding>,
}

impl Channel {
    /// Returns a channel that was never started, on a bus or not.
    pub fn new(number: u8, plug: Option<CanPlug>) -> Channel {
        let has_fd = plug.as_ref().is_some_and(|plug| plug.data_rate().is_some());
        Channel {
            number,
            plug,
            controller: if has_fd { &FLEXIBLE } else { &CLASSIC },
            hertz: None,
            data_hertz: None,
            started: false,
            fd: false,
            stamps: false,
            mistuned: None,
            off: false,
            outstanding: Vec::new(),
        }
    }

    /// Returns the plug of the channel, if it is on a bus.
    pub fn plug(&self) -> Option<&CanPlug> {
        self.plug.as_ref()
    }

    /// Returns how many frames of the host are under way.
    pub fn outstanding(&self) -> usize {
        self.outstanding.len()
    }

    /// Returns the answer to a question for the limits of bits, those of data included or not.
    pub fn limits(&self, data: bool) -> Option<Vec<u32>> {
        let Controller { features, clock, limits, data: of_data } = self.controller;
        let mut words = vec![*features, *clock];
        words.extend(limits.words());
        if data {
            words.extend(of_data.as_ref()?.words());
        }
        Some(words)
    }

    /// Takes over the segments of a bit and the prescaler; false if the controller has none such.
    pub fn set_timing(&mut self, timing: [u32; 5]) -> bool {
        let hertz = self.controller.limits.hertz(self.controller.clock, timing);
        let hertz = hertz.filter(|_| !self.started);
        self.hertz = hertz.or(self.hertz);
        hertz.is_some()
    }

    /// Takes over those of a bit of data; false if the controller has none such.
    pub fn set_data_timing(&mut self, timing: [u32; 5]) -> bool {
        let limits = self.controller.data.as_ref().filter(|_| !self.started);
        let hertz = limits.and_then(|limits| limits.hertz(self.controller.clock, timing));
        self.data_hertz = hertz.or(self.data_hertz);
        hertz.is_some()
    }

    /// Takes part in the bus; false if the channel does not do that. At another bit rate than that
    /// of its bus it understands nothing that it hears, and nobody understands what it sends. With
    /// CAN FD both rates count.
    pub fn start(&mut self, now: Nanos, flags: u32) -> bool {
        let modes = self.controller.features & !feature::ALL_TIMING_LIMITS;
        let Some(hertz) = self.hertz.filter(|_| flags & !modes == 0) else { return false };
        let fd = flags & feature::FD != 0;
        if fd && self.data_hertz.is_none() {
            return false;
        }
        self.outstanding.clear();
        (self.started, self.off, self.fd) = (true, false, fd);
        self.stamps = flags & feature::TIMESTAMP != 0;
        if let Some(plug) = self.plug.as_mut() {
            let is_slow = fd && plug.data_rate().map(BitRate::hertz) != self.data_hertz;
            self.mistuned = Mistuned::at(if is_slow { 0 } else { hertz }, plug);
            let listens = flags & feature::LISTEN_ONLY != 0 || self.mistuned.is_some();
            plug.switch_on_as(now, listens, fd || self.mistuned.is_some());
        }
        true
    }

    /// Leaves the bus; frames under way are forgotten.
    pub fn stop(&mut self, now: Nanos) {
        self.started = false;
        self.outstanding.clear();
        if let Some(plug) = self.plug.as_mut() {
            plug.switch_off(now);
        }
    }

    /// As it was when the device got power.
    pub fn reset(&mut self, now: Nanos) {
        self.stop(now);
        (self.hertz, self.data_hertz) = (None, None);
    }

    /// Sends a frame. It is dropped without a word if no frame is like that, or if the channel
    /// sends nothing or no such frame.
    pub fn transmit(&mut self, now: Nanos, frame: HostFrame) {
        let content = frame.frame().filter(|content| self.started && (self.fd || !content.is_fd()));
        let Some(content) = content else { return };
        let ticket = match (self.mistuned, self.plug.as_ref()) {
            (Some(_), _) | (_, None) => None,
            (None, Some(plug)) => match plug.send(now, content, false) {
                Ok(ticket) => Some(ticket),
                Err(_) => return,
            },
        };
        self.outstanding.push(Outstanding { ticket, frame });
    }

    /// Returns the echo of a frame that is through.
    pub fn acknowledge(&mut self, ticket: Ticket) -> Option<HostFrame> {
        let at = self.outstanding.iter().position(|o| o.ticket == Some(ticket))?;
        Some(self.outstanding.remove(at).frame)
    }

    /// Notes that another's frame went by. Returns `None` at the right bit rate. At a wrong one it
    /// is an error, and true if this one makes the controller error-passive.
    pub fn stray(&mut self) -> Option<bool> {
        self.mistuned.as_mut().map(Mistuned::hear)
    }

    /// Returns a frame from the bus.
    pub fn received(&self, frame: &AnyFrame) -> HostFrame {
        HostFrame::received(self.number, frame)
    }

    /// Returns the health of the controller with its counters, transmit before receive.
    fn health(&self) -> (Health, [u8; 2]) {
        if let Some(mistuned) = self.mistuned {
            let passive = mistuned.is_passive();
            let health = if passive { Health::ErrorPassive } else { Health::ErrorActive };
            return (health, [0, mistuned.errors()]);
        }
        let Some(plug) = self.plug.as_ref() else { return (Health::ErrorActive, [0; 2]) };
        let (health, transmit, receive) = plug.health();
        (health, [transmit, receive].map(|count| count.min(255) as u8))
    }

    /// Returns the answer to `GET_STATE`: state, receive errors, transmit errors.
    pub fn state(&self) -> [u32; 3] {
        if !self.started {
            return [STOPPED, 0, 0];
        }
        let (health, [transmit, receive]) = self.health();
        let state = match health {
            Health::ErrorActive => 0,
            Health::Warning => 1,
            Health::ErrorPassive => 2,
            Health::BusOff => 3,
        };
        [state, receive.into(), transmit.into()]
    }

    /// Returns what the host is told of an error on the bus.
    pub fn bus_error(&self, error: WireError) -> HostFrame {
        let (kind, fault) = match error {
            WireError::Acknowledge => (kind::ACKNOWLEDGE, 0),
            WireError::Bit => (kind::PROTOCOL, fault::BIT),
            WireError::Form => (kind::PROTOCOL, fault::FORM),
            WireError::Stuff => (kind::PROTOCOL, fault::STUFF),
            WireError::Crc | WireError::Short => (kind::PROTOCOL, 0),
        };
        let (_, [transmit, receive]) = self.health();
        let data = [0, 0, fault, 0, 0, 0, transmit, receive];
        HostFrame::error(self.number, kind | kind::BUS_ERROR | kind::COUNTERS, data)
    }

    /// Returns what the host is told when the controller's health has changed.
    pub fn changed(&mut self) -> HostFrame {
        let (health, [transmit, receive]) = self.health();
        let back = std::mem::replace(&mut self.off, health == Health::BusOff);
        let sends = transmit >= receive;
        let (kind, state) = match health {
            Health::BusOff => (kind::BUS_OFF, 0),
            Health::ErrorActive if back => (kind::RESTARTED, 0),
            Health::ErrorActive => (kind::CONTROLLER, state::ACTIVE),
            Health::Warning if sends => (kind::CONTROLLER, state::SEND_WARNING),
            Health::Warning => (kind::CONTROLLER, state::RECEIVE_WARNING),
            Health::ErrorPassive if sends => (kind::CONTROLLER, state::SEND_PASSIVE),
            Health::ErrorPassive => (kind::CONTROLLER, state::RECEIVE_PASSIVE),
        };
        let data = [0, state, 0, 0, 0, 0, transmit, receive];
        HostFrame::error(self.number, kind | kind::COUNTERS, data)
    }
}
