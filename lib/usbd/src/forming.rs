//! The part of this host in the order in which a network of hosts forms (Algorithm 4): it waits for
//! its debug targets, enumerates, and then lets its own debug capability be enabled.

use crate::platform::{Platform, log, report};
use crate::server::UsbServer;
use crate::told::ServerSettings;
use alloc::vec::Vec;
use diapason_abi::Nanos;
use diapason_contract::settings::{Awaited, FormingOrder};
use diapason_pipe::measured::{Measurement, NetworkReport, NetworkStep};
use diapason_topology::{Deed, Formation, Sensed};
use diapason_usb::xhci::ControllerState;

/// From one look at the ports to the next: a plug that moves twice makes one interrupt only.
const LOOK: Nanos = Nanos::from_millis(5);
/// A link trains and a plug comes to rest within this time after the ports were released.
const SETTLE: Nanos = Nanos::from_millis(100);
/// A target that is missing for so long is told.
const PATIENCE: Nanos = Nanos::from_secs(3);

/// How far the host is.
pub(crate) struct Forming {
    formation: Formation,
    awaits: Vec<Awaited>,
    /// The root ports of its links and the connectors of its devices, if it enumerates at these
    /// only.
    own: Option<(Vec<u8>, Vec<u8>)>,
    /// The host has begun to enumerate.
    began: bool,
    /// The driver is learning to know everything that is plugged in.
    enumerates: bool,
    /// The host knows nothing for sure before this time.
    settled_at: Nanos,
    /// The debug capability may be enabled from now on, and nobody was told.
    enables: bool,
    /// The time at which the host looks again.
    pub next_look: Nanos,
}

impl Forming {
    /// Returns the beginning of a host with this part.
    pub fn new(order: FormingOrder, told: &ServerSettings, now: Nanos) -> Forming {
        let awaits: Vec<Awaited> =
            order.awaits.into_iter().flatten().filter(|it| it.waits).collect();
        let numbers = (0..awaits.len()).collect();
        let formation = Formation::of(numbers, (order.enables, order.leads), PATIENCE, now);
        // Its own capability may come up at a port of which the description says nothing. Another
        // host's, which comes up there, too, is not for it.
        let named = order.enables && !told.links.contains(&0);
        let connectors = || told.expected.iter().map(|it| it.connector).collect();
        let own = named.then(|| (told.links.clone(), connectors()));
        let (began, enumerates, enables) = (false, false, false);
        let (settled_at, next_look) = (Nanos::ZERO, now + LOOK);
        Forming { formation, awaits, own, began, enumerates, settled_at, enables, next_look }
    }
}

fn tell<P: Platform>(now: Nanos, step: NetworkStep, port: u8, peer: u64) {
    report::<P>(now, Measurement::Network(NetworkReport { step, port, peer }));
}

impl<P: Platform> UsbServer<P> {
    /// Takes the next steps on the way into the network, if there is one.
    pub(crate) fn form(&mut self, now: Nanos) {
        let Some(mut forming) = self.forming.take() else { return };
        self.step(&mut forming, now);
        self.forming = Some(forming);
    }

    fn step(&mut self, forming: &mut Forming, now: Nanos) {
        if !matches!(self.driver.state(), ControllerState::Running) {
            forming.next_look = now + LOOK;
            return;
        }
        loop {
            if forming.enumerates {
                if now < forming.settled_at
                    || self.driver.is_enumerating()
                    || !self.unserved.is_empty()
                {
                    break;
                }
                forming.enumerates = false;
                tell::<P>(now, NetworkStep::Enumerated, 0, 0);
            }
            let seen: Vec<Sensed> = forming.awaits.iter().map(|it| self.sense(it.port)).collect();
            match forming.formation.next(now, |number| seen[number]) {
                Some(Deed::Enable) => forming.enables = true,
                Some(Deed::Enumerate) if !core::mem::replace(&mut forming.began, true) => {
                    self.enumerate(forming.own.as_ref());
                    tell::<P>(now, NetworkStep::Enumerate, 0, 0);
                    (forming.enumerates, forming.settled_at) = (true, now + SETTLE);
                }
                Some(Deed::Late(number)) => {
                    let port = forming.awaits[number].port;
                    log!(P, "port {port}: no debug target for {} s", PATIENCE.0 / 1_000_000_000);
                    tell::<P>(now, NetworkStep::Late, port, 0);
                }
                // The driver enumerates anything that comes to a released port later.
                Some(Deed::Enumerate) | None => break,
            }
        }
        let seen: Vec<Sensed> = forming.awaits.iter().map(|it| self.sense(it.port)).collect();
        let formed = !forming.enumerates && forming.formation.is_formed(|number| seen[number]);
        forming.next_look = if formed { Nanos::FOREVER } else { now + LOOK };
    }

    /// Releases its own ports, or all.
    fn enumerate(&mut self, own: Option<&(Vec<u8>, Vec<u8>)>) {
        let connectors: Vec<u8> = (0..=u8::MAX).map(|port| self.driver.connector(port)).collect();
        self.driver.release(|port| {
            own.is_none_or(|(ports, behind)| {
                ports.contains(&port) || behind.contains(&connectors[usize::from(port)])
            })
        });
    }

    fn sense(&mut self, port: u8) -> Sensed {
        let here = |seat: &crate::server::Seat| seat.place.port == port && !seat.gone;
        if self.seats.iter().any(here) {
            Sensed::Linked
        } else if self.driver.senses(port) {
            Sensed::Attached
        } else {
            Sensed::Absent
        }
    }

    /// Returns, once, that the debug capability may be enabled.
    pub fn take_enable(&mut self) -> bool {
        self.forming.as_mut().is_some_and(|forming| core::mem::take(&mut forming.enables))
    }

    /// Reports a debug target that belongs elsewhere, by the key of its serial number.
    pub(crate) fn found_stranger(&self, port: u8, serial: u64, now: Nanos) {
        tell::<P>(now, NetworkStep::Stranger, port, serial);
    }
}
