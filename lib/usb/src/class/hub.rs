//! Hubs of both kinds: power, status and reset of their ports.
//!
//! The hub says which ports changed; the driver asks each for its status, takes its changes back
//! and tells what they mean. A new device is told when it was there for 100 ms without a break; the
//! caller resets its port when it is that device's turn.

use super::flow::{Errand, Inlet};
use super::{Class, Completion, Request, TransferFault};
use crate::context::EndpointKind;
use crate::descriptor::{self, Configuration, HUB_PORTS_MAX};
use crate::setup::descriptor_type::{HUB, SUPERSPEED_HUB};
use crate::setup::request::{CLEAR_FEATURE, GET_DESCRIPTOR, GET_STATUS, SET_FEATURE};
use crate::{Setup, Speed};
use diapason_abi::Nanos;

/// So deep hubs may be: what a route string can say.
pub const TIER_MAX: u8 = 4;
/// A device must be there for so long.
pub const DEBOUNCE: Nanos = Nanos::from_millis(100);
/// During a reset a port is asked so often whether it is over.
pub const RESET_LOOK: Nanos = Nanos::from_millis(20);
/// A reset takes no longer.
pub const RESET_TIME: Nanos = Nanos::from_millis(500);
const PORTS: usize = HUB_PORTS_MAX as usize;
const CLASS: u8 = 9;
/// Kinds of requests: class, hub or port, to the host or not.
const HUB_IN: u8 = 0xa0;
const HUB_OUT: u8 = 0x20;
const PORT_IN: u8 = 0xa3;
const PORT_OUT: u8 = 0x23;
const SET_DEPTH: u8 = 12;
/// Features of a port.
const ENABLE: u16 = 1;
const RESET: u16 = 4;
const POWER: u16 = 8;
/// Bits of its status, and of its changes.
const CONNECTED: u16 = 1;
const ENABLED: u16 = 1 << 1;
const OVER_CURRENT: u16 = 1 << 3;
const RESETTING: u16 = 1 << 4;
/// Changes, and the feature that takes each back.
const CHANGES: [(u16, u16); 5] = [(1, 16), (1 << 1, 17), (1 << 2, 18), (1 << 3, 19), (1 << 4, 20)];
const SUPER_CHANGES: [(u16, u16); 5] =
    [(1, 16), (1 << 3, 19), (1 << 4, 20), (1 << 5, 29), (1 << 6, 25)];
const SUPER_CONFIG_ERROR: (u16, u16) = (1 << 7, 26);

/// An event of the hub; ports count from 1.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum HubEvent {
    Ready(descriptor::HubDescriptor),
    /// Something is there and stays.
    Connected {
        port: u8,
    },
    /// A reset ended well: the device answers at address 0.
    Enabled {
        port: u8,
        speed: Speed,
    },
    /// A reset did not end well.
    NotEnabled {
        port: u8,
    },
    /// The device is gone, or does not answer any more.
    Disconnected {
        port: u8,
    },
    /// Too much current: the port is off.
    OverCurrent {
        port: u8,
    },
    /// The hub does not work.
    Failed,
}

/// The state of a port.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Port {
    Empty,
    /// There, but not for long.
    New {
        until: Nanos,
    },
    There,
    Resetting {
        deadline: Nanos,
        /// When it is asked how far it is: many hubs tell only four times a second.
        look: Nanos,
    },
    Working,
}

/// The request that the errand makes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Step {
    Depth,
    Describe,
    Power(u8),
    Settle(Nanos),
    /// Nothing: look for what is to be done.
    Watch,
    Status(u8),
    /// These changes of a port are to be taken back, then its status counts.
    Clear {
        port: u8,
        status: u16,
        changes: u16,
    },
    Command,
    Failed,
}

/// The driver of one hub.
#[derive(Clone, Debug)]
pub struct Hub {
    speed: Speed,
    tier: u8,
    step: Step,
    errand: Errand,
    inlet: Inlet,
    hub: Option<descriptor::HubDescriptor>,
    ports: [Port; PORTS],
    /// Bit n: port n changed, is to be reset, switched off, switched on.
    changed: u16,
    to_reset: u16,
    to_disable: u16,
    to_power: u16,
}

impl Hub {
    /// Returns the class for a hub at this tier: 0 is at a root port. `None` if it is no hub, or
    /// one too deep.
    #[must_use]
    pub fn find(configuration: &Configuration<'_>, tier: u8) -> Option<Hub> {
        let interface = configuration.interfaces().find(|i| i.class[0] == CLASS)?;
        let input = interface.endpoint(EndpointKind::InterruptIn)?;
        let speed = configuration.speed();
        (tier <= TIER_MAX).then_some(Hub {
            speed,
            tier,
            step: if speed == Speed::Super { Step::Depth } else { Step::Describe },
            errand: Errand::new(),
            inlet: Inlet::new(input.address, input.packet.into(), 1),
            hub: None,
            ports: [Port::Empty; PORTS],
            changed: 0,
            to_reset: 0,
            to_disable: 0,
            to_power: 0,
        })
    }

    /// Resets a port that something is connected to. False if nothing is.
    pub fn reset(&mut self, port: u8) -> bool {
        let there = matches!(self.port(port), Some(Port::There | Port::Working));
        if there {
            self.to_reset |= 1 << port;
        }
        there
    }

    /// Disables a port, so that its device is not heard any more.
    pub fn disable(&mut self, port: u8) {
        if self.port(port).is_some() {
            self.to_disable |= 1 << port;
        }
    }

    /// Switches a port on again, after too much current.
    pub fn power(&mut self, port: u8) {
        if self.port(port).is_some() {
            self.to_power |= 1 << port;
        }
    }

    fn count(&self) -> u8 {
        self.hub.map_or(0, |hub| hub.ports)
    }

    fn port(&self, port: u8) -> Option<Port> {
        let there = port >= 1 && port <= self.count();
        there.then(|| self.ports[usize::from(port - 1) % PORTS])
    }

    fn set(&mut self, port: u8, to: Port) {
        if self.port(port).is_some() {
            self.ports[usize::from(port - 1) % PORTS] = to;
        }
    }

    fn of_port(kind: u8, request: u8, value: u16, port: u8, length: u16) -> Setup {
        Setup { kind, request, value, index: port.into(), length }
    }

    /// Begins what is to be done next.
    fn begin(&mut self, now: Nanos) {
        if !self.errand.is_idle() {
            return;
        }
        let setup = match self.step {
            Step::Depth => {
                let value = self.tier.into();
                Setup { kind: HUB_OUT, request: SET_DEPTH, value, index: 0, length: 0 }
            }
            Step::Describe => {
                let superspeed = self.speed == Speed::Super;
                let kind = if superspeed { SUPERSPEED_HUB } else { HUB };
                let value = u16::from(kind) << 8;
                let length = descriptor::HubDescriptor::SUPERSPEED_BYTES
                    .max(descriptor::HubDescriptor::BYTES_MAX);
                let length = length as u16;
                Setup { kind: HUB_IN, request: GET_DESCRIPTOR, value, index: 0, length }
            }
            Step::Power(port) => Hub::of_port(PORT_OUT, SET_FEATURE, POWER, port, 0),
            Step::Clear { port, changes, .. } => {
                let mut all = self.changes();
                let Some((_, feature)) = all.find(|(bit, _)| changes & bit != 0) else { return };
                Hub::of_port(PORT_OUT, CLEAR_FEATURE, feature, port, 0)
            }
            Step::Watch => match self.work(now) {
                Some(setup) => setup,
                None => return,
            },
            Step::Settle(_) | Step::Status(_) | Step::Command | Step::Failed => return,
        };
        self.errand.begin(setup, &[]);
    }

    /// Returns the changes that this kind of hub can report.
    fn changes(&self) -> impl Iterator<Item = (u16, u16)> + use<> {
        let superspeed = self.speed == Speed::Super;
        let table = if superspeed { SUPER_CHANGES } else { CHANGES };
        table.into_iter().chain(superspeed.then_some(SUPER_CONFIG_ERROR))
    }

    /// Returns the next request of the normal life of a hub.
    fn work(&mut self, now: Nanos) -> Option<Setup> {
        let take = |set: &mut u16| {
            let port = set.trailing_zeros() as u8;
            *set &= set.wrapping_sub(1);
            port
        };
        if self.to_disable != 0 {
            let port = take(&mut self.to_disable);
            self.step = Step::Command;
            Some(Hub::of_port(PORT_OUT, CLEAR_FEATURE, ENABLE, port, 0))
        } else if self.changed != 0 {
            let port = take(&mut self.changed);
            self.step = Step::Status(port);
            Some(Hub::of_port(PORT_IN, GET_STATUS, 0, port, 4))
        } else if self.to_power != 0 {
            let port = take(&mut self.to_power);
            self.step = Step::Command;
            Some(Hub::of_port(PORT_OUT, SET_FEATURE, POWER, port, 0))
        } else if self.to_reset != 0 {
            let port = take(&mut self.to_reset);
            self.step = Step::Command;
            let (deadline, look) = (now + RESET_TIME, now + RESET_LOOK);
            self.set(port, Port::Resetting { deadline, look });
            Some(Hub::of_port(PORT_OUT, SET_FEATURE, RESET, port, 0))
        } else {
            None
        }
    }

    fn fail(&mut self, tell: &mut dyn FnMut(HubEvent)) {
        if self.step != Step::Failed {
            self.step = Step::Failed;
            tell(HubEvent::Failed);
        }
    }

    /// A control transfer ended.
    fn answered(
        &mut self,
        now: Nanos,
        result: Result<&[u8], TransferFault>,
        tell: &mut dyn FnMut(HubEvent),
    ) {
        let Ok(bytes) = result else {
            // A port that refuses a request is looked at again when it changes.
            let forgiven =
                matches!(self.step, Step::Command) && result == Err(TransferFault::Stall);
            return if forgiven { self.step = Step::Watch } else { self.fail(tell) };
        };
        match self.step {
            Step::Depth => self.step = Step::Describe,
            Step::Describe => match descriptor::HubDescriptor::parse(bytes) {
                Ok(hub) if hub.superspeed == (self.speed == Speed::Super) => {
                    self.hub = Some(hub);
                    self.step = Step::Power(1);
                }
                _ => self.fail(tell),
            },
            Step::Power(port) if port < self.count() => self.step = Step::Power(port + 1),
            Step::Power(_) => {
                let wait = self.hub.map_or(Nanos::ZERO, |hub| hub.power_good);
                self.step = Step::Settle(now + wait);
            }
            Step::Status(port) => match *bytes {
                [s0, s1, c0, c1] => {
                    let known = self.changes().fold(0, |all, (bit, _)| all | bit);
                    let status = u16::from_le_bytes([s0, s1]);
                    let changes = u16::from_le_bytes([c0, c1]) & known;
                    self.step = Step::Clear { port, status, changes };
                    self.judge(now, tell);
                }
                _ => self.fail(tell),
            },
            Step::Clear { port, status, changes } => {
                // The lowest bit in the order of the table is the one that was asked for.
                let done = self.changes().find(|(bit, _)| changes & bit != 0);
                let left = changes & !done.map_or(0, |(bit, _)| bit);
                self.step = Step::Clear { port, status, changes: left };
                self.moved(now, port, changes & !left, status, tell);
                self.judge(now, tell);
            }
            Step::Command => self.step = Step::Watch,
            Step::Settle(_) | Step::Watch | Step::Failed => {}
        }
    }

    /// Judges the status of a port, which counts once all changes were taken back.
    fn judge(&mut self, now: Nanos, tell: &mut dyn FnMut(HubEvent)) {
        let Step::Clear { port, status, changes: 0 } = self.step else { return };
        self.step = Step::Watch;
        let Some(was) = self.port(port) else { return };
        let connected = status & CONNECTED != 0;
        let (next, event) = match was {
            _ if status & OVER_CURRENT != 0 => {
                let known = was != Port::Empty;
                (Port::Empty, known.then_some(HubEvent::Disconnected { port }))
            }
            Port::Empty if connected => (Port::New { until: now + DEBOUNCE }, None),
            Port::New { .. } if !connected => (Port::Empty, None),
            Port::Empty | Port::New { .. } => (was, None),
            _ if !connected => (Port::Empty, Some(HubEvent::Disconnected { port })),
            Port::Resetting { .. } if status & RESETTING != 0 => (was, None),
            Port::Resetting { deadline, .. } if status & ENABLED == 0 && now < deadline => {
                (was, None)
            }
            Port::Resetting { .. } if status & ENABLED == 0 => {
                (Port::There, Some(HubEvent::NotEnabled { port }))
            }
            Port::Resetting { .. } => {
                let speed = self.speed_of(status);
                (Port::Working, Some(HubEvent::Enabled { port, speed }))
            }
            Port::Working if status & ENABLED == 0 => {
                (Port::New { until: now + DEBOUNCE }, Some(HubEvent::Disconnected { port }))
            }
            Port::There | Port::Working => (was, None),
        };
        self.set(port, next);
        if !matches!(next, Port::There | Port::Working) {
            self.to_reset &= !(1 << port);
        }
        if let Some(event) = event {
            tell(event);
        }
    }

    /// A change was taken back: what it means whatever the status is now.
    fn moved(
        &mut self,
        now: Nanos,
        port: u8,
        change: u16,
        status: u16,
        tell: &mut dyn FnMut(HubEvent),
    ) {
        let was = self.port(port);
        if change == OVER_CURRENT && status & OVER_CURRENT != 0 {
            tell(HubEvent::OverCurrent { port });
        }
        if change != CONNECTED {
            return;
        }
        match was {
            Some(Port::New { .. }) => self.set(port, Port::New { until: now + DEBOUNCE }),
            Some(Port::There | Port::Resetting { .. } | Port::Working) => {
                // It was away, even if something is there again.
                self.set(port, Port::Empty);
                self.to_reset &= !(1 << port);
                tell(HubEvent::Disconnected { port });
            }
            Some(Port::Empty) | None => {}
        }
    }

    fn speed_of(&self, status: u16) -> Speed {
        match self.speed {
            Speed::Super => Speed::Super,
            _ if status & 1 << 9 != 0 => Speed::Low,
            _ if status & 1 << 10 != 0 => Speed::High,
            _ => Speed::Full,
        }
    }
}

impl Class for Hub {
    type Event<'a> = HubEvent;

    fn request(&mut self, now: Nanos) -> Option<Request<'_>> {
        if self.step == Step::Failed {
            return None;
        }
        self.begin(now);
        if let Some(request) = self.errand.request(now) {
            return Some(request);
        }
        let starting = matches!(self.step, Step::Depth | Step::Describe | Step::Power(_));
        if starting { None } else { self.inlet.request() }
    }

    fn complete(&mut self, now: Nanos, done: Completion<'_>, tell: &mut dyn FnMut(HubEvent)) {
        if done.endpoint == 0 {
            if let Some(result) = self.errand.end(done.result) {
                self.answered(now, result, tell);
            }
        } else if done.endpoint == self.inlet.pipe.endpoint() {
            if let Some(bytes) = self.inlet.pipe.end(done.result) {
                let bits = [bytes.first(), bytes.get(1)].map(|byte| byte.copied().unwrap_or(0));
                // Bit 0 is the hub itself; bits of ports that are not there mean nothing.
                self.changed |= u16::from_le_bytes(bits) & ports_up_to(self.count());
            }
            if self.inlet.pipe.is_dead() {
                self.fail(tell);
            }
        }
    }

    fn next_wake(&self) -> Nanos {
        let own = match self.step {
            Step::Settle(until) => until,
            Step::Failed => return Nanos::FOREVER,
            _ => self.errand.next_wake(),
        };
        self.ports.iter().fold(own, |next, port| match *port {
            Port::New { until } => next.min(until),
            Port::Resetting { deadline, look } => next.min(deadline).min(look),
            Port::Empty | Port::There | Port::Working => next,
        })
    }

    fn wake(&mut self, now: Nanos, tell: &mut dyn FnMut(HubEvent)) {
        self.errand.wake(now);
        if let (Step::Settle(until), Some(hub)) = (self.step, self.hub)
            && now >= until
        {
            self.step = Step::Watch;
            self.changed = ports_up_to(hub.ports);
            tell(HubEvent::Ready(hub));
        }
        for port in 1..=self.count() {
            match self.port(port) {
                Some(Port::New { until }) if now >= until => {
                    self.set(port, Port::There);
                    tell(HubEvent::Connected { port });
                }
                Some(Port::Resetting { deadline, .. }) if now >= deadline => {
                    self.set(port, Port::There);
                    tell(HubEvent::NotEnabled { port });
                }
                Some(Port::Resetting { deadline, look }) if now >= look => {
                    self.set(port, Port::Resetting { deadline, look: now + RESET_LOOK });
                    self.changed |= 1 << port;
                }
                _ => {}
            }
        }
    }
}

/// Bits 1 to `count`.
const fn ports_up_to(count: u8) -> u16 {
    if count >= 15 { 0xfffe } else { (2 << count) - 2 }
}
