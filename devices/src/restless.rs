//! A hub into which devices are plugged and pulled again and again, on a schedule.

use crate::device::{Answer, Handshake, Stall, UsbDevice};
use crate::hub::HubModel;
use diapason_abi::Nanos;
use diapason_usb::{Setup, Speed};

/// Makes the device with this number; those that do not fit into the hub are not plugged in.
pub type Make = Box<dyn FnMut(u64) -> Box<dyn UsbDevice>>;

/// When the devices of all ports come and go.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Rhythm {
    /// The first time they come.
    pub from: Nanos,
    /// Time that they stay.
    pub stay: Nanos,
    /// Time that they are away.
    pub away: Nanos,
    /// Number of times that they come.
    pub times: u64,
}

/// The hub, its ports all in one rhythm. Each time the devices are new ones.
pub struct Restless {
    hub: HubModel,
    ports: u8,
    make: Make,
    rhythm: Rhythm,
    next: Nanos,
    there: bool,
    made: u64,
}

impl Restless {
    /// Returns a hub of USB 2 with `ports` ports.
    #[must_use]
    pub fn new(ports: u8, rhythm: Rhythm, make: Make) -> Restless {
        let next = if rhythm.times == 0 { Nanos::FOREVER } else { rhythm.from };
        Restless {
            hub: HubModel::new(false, ports),
            ports,
            make,
            rhythm,
            next,
            there: false,
            made: 0,
        }
    }

    /// Devices that were plugged in so far.
    #[must_use]
    pub fn made(&self) -> u64 {
        self.made
    }

    fn beat(&mut self, now: Nanos) {
        self.there = !self.there;
        for port in 1..=self.ports {
            if self.there {
                // A device that is given back did not fit.
                let _ = self.hub.plug(now, port, (self.make)(self.made));
                self.made += 1;
            } else {
                self.hub.unplug(now, port);
            }
        }
        let over = self.made >= self.rhythm.times.saturating_mul(self.ports.into());
        self.next = match self.there {
            true => now + self.rhythm.stay,
            false if over => Nanos::FOREVER,
            false => now + self.rhythm.away,
        };
    }
}

impl UsbDevice for Restless {
    fn speed(&self) -> Speed {
        self.hub.speed()
    }

    fn reset(&mut self, now: Nanos) {
        self.hub.reset(now);
    }

    fn control(&mut self, now: Nanos, setup: Setup, data: &[u8]) -> Result<Vec<u8>, Stall> {
        self.advance(now);
        self.hub.control(now, setup, data)
    }

    fn receive(&mut self, now: Nanos, endpoint: u8, packet: &[u8]) -> Handshake {
        self.hub.receive(now, endpoint, packet)
    }

    fn send(&mut self, now: Nanos, endpoint: u8, packet: &mut [u8]) -> Answer {
        self.advance(now);
        self.hub.send(now, endpoint, packet)
    }

    fn next_change(&self) -> Nanos {
        self.hub.next_change().min(self.next)
    }

    fn advance(&mut self, now: Nanos) {
        while self.next <= now {
            let at = self.next;
            self.hub.advance(at);
            self.beat(at);
        }
        self.hub.advance(now);
    }

    fn child(&mut self, port: u8) -> Option<&mut dyn UsbDevice> {
        self.hub.child(port)
    }
}
