//! Hubs: what is plugged into them is reset, one device at a time, and attached to the driver.

use super::kind::{Kind, Next};
use super::offered::Offered;
use super::service::ClassStage;
use crate::papers::Found;
use crate::platform::{Platform, log};
use crate::slots::Shape;
use diapason_abi::Nanos;
use diapason_usb::Speed;
use diapason_usb::class::hub::{Hub, HubEvent};
use diapason_usb::descriptor::HUB_PORTS_MAX;
use diapason_usb::xhci::{Controller, DeviceId, HubPlan, Lanes, Refused};

/// A device that does not work is reset so often in all.
const TRIES: u8 = 3;
const PORTS: usize = HUB_PORTS_MAX as usize + 1;

/// The device behind a hub that is being reset and read, by its hub and port: one at a time answers
/// at address 0.
pub type Turn = Option<(DeviceId, u8)>;

/// The fate of a device behind a hub.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Child {
    /// The device's descriptors are read.
    Found,
    /// The device does not work.
    Failed,
}

/// The state of a port.
#[derive(Clone, Copy, PartialEq, Eq, Default)]
enum Port {
    #[default]
    Empty,
    /// The port is to be reset, for the so-manieth time.
    Waiting(u8),
    /// The port is being reset.
    Reset(u8),
    /// The port is to be attached.
    Enabled(u8, Speed),
    /// The driver has it.
    Attached(u8),
    /// The port is off until it is plugged again.
    Dead,
}

/// Whether the driver knows that it is a hub.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Known {
    No,
    /// The driver is to be told.
    Plan(HubPlan),
    Told,
    Yes,
}

/// The ports of one hub.
pub(crate) struct Ports {
    known: Known,
    ports: [Port; PORTS],
    /// Ports whose device the driver still has and that have none: bit n stands for port n.
    lost: u16,
    /// Ports to be switched off.
    off: u16,
}

impl Ports {
    /// Returns the service without a hub.
    pub fn new() -> Ports {
        let ports = [Port::Empty; PORTS];
        Ports { known: Known::No, ports, lost: 0, off: 0 }
    }

    fn port(&mut self, port: u8) -> &mut Port {
        &mut self.ports[usize::from(port) % PORTS]
    }

    /// A device failed to come up: once more, or not at all.
    fn failed(&mut self, port: u8, tries: u8) {
        *self.port(port) = if tries < TRIES { Port::Waiting(tries) } else { Port::Dead };
        self.off |= u16::from(tries >= TRIES) << (port % 16);
    }

    /// Gives the turn to the next that waits, if nobody has it.
    fn begin(&mut self, class: &mut Hub, device: DeviceId, turn: &mut Turn) {
        for port in 1..PORTS as u8 {
            let Port::Waiting(tries) = *self.port(port) else { continue };
            if turn.is_some() {
                return;
            }
            let there = class.reset(port);
            *self.port(port) = if there { Port::Reset(tries + 1) } else { Port::Empty };
            *turn = there.then_some((device, port));
        }
    }

    /// Attaches what was reset; the driver may still be at what was there before.
    fn attach<P: Platform, L: Lanes<P::Registers, P::Memory>>(
        &mut self,
        driver: &mut Controller<P::Registers, P::Memory, L>,
        device: DeviceId,
        turn: &mut Turn,
    ) {
        for port in 1..PORTS as u8 {
            let Port::Enabled(tries, speed) = *self.port(port) else { continue };
            match driver.attach_child(device, port, speed) {
                Ok(()) => *self.port(port) = Port::Attached(tries),
                Err(Refused::Busy) => {}
                Err(refused) => {
                    log!(P, "hub, port {port}: not attached: {refused:?}");
                    self.failed(port, TRIES);
                    release(turn, device, port);
                }
            }
        }
    }
}

/// Gives the turn to the next.
fn release(turn: &mut Turn, device: DeviceId, port: u8) {
    turn.take_if(|held| *held == (device, port));
}

impl<P: Platform> Kind<P> for Ports {
    type Class = Hub;

    const NAME: &'static str = "a hub";
    const MEMORY: &'static [Shape] = &[Shape { bytes: 64, count: 4 }];

    fn find(&self, found: &Found<'_>, _: Nanos) -> Option<Hub> {
        Hub::find(&found.set, found.tier)
    }

    fn hear(&mut self, event: HubEvent, _: Nanos) -> Next {
        match event {
            HubEvent::Ready(hub) => {
                log!(P, "hub: {} ports", hub.ports);
                let (ports, think_time) = (hub.ports, hub.think_time() as u8);
                // Setting 0 of a hub has one translator for all ports.
                self.known = Known::Plan(HubPlan { ports, think_time, multi_tt: false });
                // The earlier devices of a hub that failed are not there any more.
                self.lost = u16::MAX;
            }
            HubEvent::Connected { port } => *self.port(port) = Port::Waiting(0),
            HubEvent::Enabled { port, speed } => {
                if let Port::Reset(tries) = *self.port(port) {
                    *self.port(port) = Port::Enabled(tries, speed);
                }
            }
            HubEvent::NotEnabled { port } => {
                if let Port::Reset(tries) = *self.port(port) {
                    self.failed(port, tries);
                    self.lost |= 1 << port;
                }
            }
            HubEvent::Disconnected { port } => {
                *self.port(port) = Port::Empty;
                self.lost |= 1 << port;
            }
            HubEvent::OverCurrent { port } => log!(P, "hub, port {port}: too much current"),
            HubEvent::Failed => {
                log!(P, "hub: failed");
                return Next::End;
            }
        }
        Next::On
    }

    fn forget(&mut self, _: Nanos) {
        *self = Ports::new();
    }
}

impl<P: Platform> Offered<P, Ports> {
    /// Makes the requests of a hub that works to the driver.
    pub fn steer<L: Lanes<P::Registers, P::Memory>>(
        &mut self,
        driver: &mut Controller<P::Registers, P::Memory, L>,
        device: DeviceId,
        turn: &mut Turn,
    ) {
        let Some(class) = &mut self.class else { return };
        let kind = &mut self.kind;
        for port in 1..PORTS as u8 {
            if kind.lost >> port & 1 != 0 {
                // Most have none.
                let _ = driver.detach_child(device, port);
                release(turn, device, port);
            }
            if kind.off >> port & 1 != 0 {
                class.disable(port);
            }
        }
        (kind.lost, kind.off) = (0, 0);
        if let Known::Plan(plan) = kind.known {
            match driver.set_hub(device, plan) {
                Ok(()) => kind.known = Known::Told,
                Err(Refused::Busy) => {}
                Err(refused) => {
                    log!(P, "hub: refused: {refused:?}");
                    self.stage = ClassStage::Failed;
                    return;
                }
            }
        }
        if kind.known == Known::Yes {
            kind.attach::<P, L>(driver, device, turn);
            kind.begin(class, device, turn);
        }
    }

    /// Notes that the driver did what it was asked for here.
    pub fn settled(&mut self) {
        if self.kind.known == Known::Told {
            self.kind.known = Known::Yes;
        }
    }

    /// Takes in the fate of the device at a port.
    pub fn child(&mut self, port: u8, child: Child) {
        if let (Port::Attached(tries), Child::Failed) = (*self.kind.port(port), child) {
            self.kind.failed(port, tries);
        }
    }
}
