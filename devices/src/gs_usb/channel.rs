//! One channel: its bit timing, its controller on the bus, and the frames under way to it.

use super::wire::{HostFrame, feature};
use crate::can::{CanPlug, Mistuned};
use diapason_abi::Nanos;
use diapason_can::bus::{Health, Ticket};
use diapason_can::{CanFrame, WireError};

/// The clock of the controllers.
pub const CLOCK: u32 = 48_000_000;
/// Limits of the quanta before the sample, of those after it, of a resynchronisation, and of the
/// prescaler.
pub const BEFORE: (u32, u32) = (1, 16);
pub const AFTER: (u32, u32) = (1, 8);
pub const JUMP_MAX: u32 = 4;
pub const PRESCALER: (u32, u32) = (1, 1024);

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
    hertz: Option<u32>,
    started: bool,
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
        let (hertz, started, stamps, mistuned, off) = (None, false, false, None, false);
        Channel { number, plug, hertz, started, stamps, mistuned, off, outstanding: Vec::new() }
    }

    /// Returns the plug of the channel, if it is on a bus.
    pub fn plug(&self) -> Option<&CanPlug> {
        self.plug.as_ref()
    }

    /// Returns how many frames of the host are under way.
    pub fn outstanding(&self) -> usize {
        self.outstanding.len()
    }

    /// Takes over the segments of a bit and the prescaler; false if the controller has none such.
    pub fn set_timing(&mut self, [propagation, phase1, after, jump, prescaler]: [u32; 5]) -> bool {
        let inside = |value: u32, (low, high)| (low..=high).contains(&value);
        let before = propagation.saturating_add(phase1);
        let fits = inside(before, BEFORE)
            && inside(after, AFTER)
            && inside(jump, (1, JUMP_MAX))
            && inside(prescaler, PRESCALER)
            && !self.started;
        if fits {
            self.hertz = Some(CLOCK / (prescaler * (1 + before + after)));
        }
        fits
    }

    /// Takes part in the bus; false if the channel does not do that. At another bit rate than that
    /// of its bus it understands nothing that it hears, and nobody understands what it sends.
    pub fn start(&mut self, now: Nanos, flags: u32) -> bool {
        let Some(hertz) = self.hertz.filter(|_| flags & !feature::ALL == 0) else { return false };
        self.outstanding.clear();
        (self.started, self.off) = (true, false);
        self.stamps = flags & feature::TIMESTAMP != 0;
        if let Some(plug) = self.plug.as_mut() {
            self.mistuned = Mistuned::at(hertz, plug);
            plug.switch_on(now, flags & feature::LISTEN_ONLY != 0 || self.mistuned.is_some());
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
        self.hertz = None;
    }

    /// Sends a frame. It is dropped without a word if no classic frame is like that, or the channel
    /// does not send.
    pub fn transmit(&mut self, now: Nanos, frame: HostFrame) {
        let Some(content) = frame.frame().filter(|_| self.started) else { return };
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
    pub fn received(&self, frame: &CanFrame) -> HostFrame {
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
