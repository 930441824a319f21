//! An actuator: a device of a vendor's own class that takes packets at an interrupt endpoint and at
//! a bulk endpoint, and notes what came and when.

use crate::descriptors::Descriptors;
use crate::device::{Answer, Handshake, Stall, UsbDevice};
use crate::instrument::descriptors;
use crate::standard::{EndpointStatus, Standard};
use diapason_abi::Nanos;
use diapason_usb::{Setup, Speed};
use std::sync::{Arc, Mutex};

/// The interrupt endpoint, and the bytes of its packets. The host serves it once a millisecond.
pub const INTERRUPT: (u8, usize) = (0x01, 64);
/// The bulk endpoint, and the bytes of its packets.
pub const BULK: (u8, usize) = (0x02, 512);

/// Packets that are noted.
const NOTED: usize = 100_000;

/// A packet that came.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TakenPacket {
    pub time: Nanos,
    pub endpoint: u8,
    pub bytes: Vec<u8>,
}

/// The packets that came, for whoever looks at the device from the outside.
#[derive(Clone, Debug, Default)]
pub struct Noted(Arc<Mutex<Vec<TakenPacket>>>);

impl Noted {
    /// Returns the packets that came since the last call.
    #[must_use]
    pub fn take(&self) -> Vec<TakenPacket> {
        self.0.lock().map(|mut all| std::mem::take(&mut *all)).unwrap_or_default()
    }

    fn push(&self, packet: TakenPacket) {
        if let Ok(mut all) = self.0.lock()
            && all.len() < NOTED
        {
            all.push(packet);
        }
    }
}

/// The way in which an actuator treats packets.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum ActuatorManner {
    #[default]
    Takes,
    /// After so many packets it says "not now" for ever.
    Refuses(u32),
    /// Each packet after so many halts its endpoint.
    Stalls(u32),
}

/// A model of an actuator. It says "not now" for some time before it takes a packet.
#[derive(Clone, Debug)]
pub struct Actuator {
    standard: Standard,
    takes: Nanos,
    manner: ActuatorManner,
    noted: Noted,
    count: u32,
    /// The endpoint whose packet it makes room for, and when there is room.
    room: Option<(u8, Nanos)>,
    change: Nanos,
}

impl Default for Actuator {
    /// Returns an actuator that takes each packet at once.
    fn default() -> Actuator {
        Actuator::taking(Nanos::ZERO)
    }
}

impl Actuator {
    /// Returns an actuator that has room for a packet so long after it was offered.
    #[must_use]
    pub fn taking(takes: Nanos) -> Actuator {
        Actuator::of(descriptors((0x0003, "Actuator"), &[[INTERRUPT, BULK]]), takes)
    }

    /// Returns it as a part of the device with these descriptors.
    pub(crate) fn of(descriptors: Descriptors, takes: Nanos) -> Actuator {
        Actuator {
            standard: Standard::new(descriptors),
            takes,
            manner: ActuatorManner::Takes,
            noted: Noted::default(),
            count: 0,
            room: None,
            change: Nanos::FOREVER,
        }
    }

    /// Returns it with this manner.
    #[must_use]
    pub fn with(self, manner: ActuatorManner) -> Actuator {
        Actuator { manner, ..self }
    }

    /// Returns what it notes.
    #[must_use]
    pub fn noted(&self) -> Noted {
        self.noted.clone()
    }

    fn take(&mut self, now: Nanos, endpoint: u8, packet: &[u8]) -> Handshake {
        match self.manner {
            ActuatorManner::Refuses(after) if self.count >= after => return Handshake::Nak,
            ActuatorManner::Stalls(after) if self.count >= after => {
                self.standard.halt(endpoint);
                return Handshake::Stall;
            }
            _ => {}
        }
        let room = self.room.filter(|(own, _)| *own == endpoint);
        let (_, at) = room.unwrap_or((endpoint, now + self.takes));
        if now < at {
            (self.room, self.change) = (Some((endpoint, at)), at);
            return Handshake::Nak;
        }
        self.room = None;
        self.count += 1;
        self.noted.push(TakenPacket { time: now, endpoint, bytes: packet.to_vec() });
        Handshake::Ack
    }
}

impl UsbDevice for Actuator {
    fn speed(&self) -> Speed {
        Speed::High
    }

    fn reset(&mut self, _: Nanos) {
        self.standard.reset();
        (self.room, self.change) = (None, Nanos::FOREVER);
    }

    fn control(&mut self, _: Nanos, setup: Setup, _: &[u8]) -> Result<Vec<u8>, Stall> {
        self.standard.control(setup).unwrap_or(Err(Stall))
    }

    fn receive(&mut self, now: Nanos, endpoint: u8, packet: &[u8]) -> Handshake {
        let ends = [INTERRUPT, BULK];
        let own = ends.iter().find(|(address, _)| *address == endpoint);
        match (self.standard.endpoint(endpoint), own) {
            (EndpointStatus::Ready, Some((_, most))) if packet.len() <= *most => {
                self.take(now, endpoint, packet)
            }
            (EndpointStatus::Halted, _) => Handshake::Stall,
            _ => Handshake::Error,
        }
    }

    fn send(&mut self, _: Nanos, _: u8, _: &mut [u8]) -> Answer {
        Answer::Error
    }

    fn next_change(&self) -> Nanos {
        self.change
    }

    fn advance(&mut self, now: Nanos) {
        if self.change <= now {
            self.change = Nanos::FOREVER;
        }
    }
}
