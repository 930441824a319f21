//! Devices that misbehave on command: any device, and a plan of what goes wrong when.
//!
//! A plan is explicit: rules for packets, with their endpoint, their time and how often, and lies
//! about descriptors ([`lies::catalogue`] has those that broke real drivers). Random values come
//! from the caller's seed.

mod drift;
pub mod lies;

use crate::device::{Answer, Handshake, Stall, UsbDevice};
use diapason_abi::Nanos;
use diapason_random::Random;
use diapason_usb::setup::{IN, request};
use diapason_usb::{Setup, Speed};
pub use drift::{Drifting, OwnClock};
pub use lies::{DescriptorChange, Lie};
use std::cell::Cell;
use std::rc::Rc;

/// A fault of a packet or a request.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PacketFault {
    /// Stalls; the device does not see the packet.
    Stall,
    /// Not now; the device does not see the packet. For requests it is a stall.
    Nak,
    /// Damaged on the way; the device does not see the packet. For requests it is a stall.
    Error,
    /// The device sends more than the buffer holds. Only packets to the host.
    Babble,
    /// An empty packet instead of what the device has. Only packets to the host.
    Empty,
    /// The packet is cut after so many bytes. Only packets to the host.
    Cut(usize),
    /// Inverts this many bits of the packet, unnoticed. Only for packets to the host.
    Garble(u32),
}

/// When a fault happens.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Rule {
    /// On this endpoint (0: control requests); `None`: on all but control requests.
    pub endpoint: Option<u8>,
    pub from: Nanos,
    /// Until then, which no longer belongs to it.
    pub until: Nanos,
    /// Once in so many times; 1: always.
    pub one_in: u32,
    pub fault: PacketFault,
}

impl Rule {
    /// Always, and everywhere but in control requests.
    #[must_use]
    pub const fn always(fault: PacketFault) -> Rule {
        Rule { endpoint: None, from: Nanos::ZERO, until: Nanos::FOREVER, one_in: 1, fault }
    }

    /// Limits the rule to one endpoint.
    #[must_use]
    pub const fn on(self, endpoint: u8) -> Rule {
        Rule { endpoint: Some(endpoint), ..self }
    }

    fn applies(&self, now: Nanos, endpoint: u8, random: &mut Random) -> bool {
        let here = self.endpoint.map_or(endpoint != 0, |own| own == endpoint);
        here && self.from <= now && now < self.until && random.one_in(self.one_in.into())
    }
}

/// A device with faults.
pub struct Faulty<D> {
    device: D,
    rules: Vec<Rule>,
    lies: Vec<Lie>,
    random: Random,
    /// The number of requests for each kind of descriptor since the device was plugged in.
    reads: Vec<(u8, u32)>,
    resets: u32,
    injected: u64,
    /// Whether the device has told a lie.
    lied: bool,
    /// Where all that happens to several devices is counted.
    tally: Option<Rc<FaultTally>>,
}

/// The faults of several devices together.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct FaultTally {
    /// Devices that told a lie about themselves, at least one.
    pub liars: Cell<u64>,
    pub lies: Cell<u64>,
    /// Packets and requests that went wrong.
    pub faults: Cell<u64>,
}

impl<D: UsbDevice> Faulty<D> {
    /// `device`, which does what it should until rules and lies are added.
    #[must_use]
    pub fn new(device: D, seed: u64) -> Faulty<D> {
        Faulty {
            device,
            rules: Vec::new(),
            lies: Vec::new(),
            random: Random::new(seed),
            reads: Vec::new(),
            resets: 0,
            injected: 0,
            lied: false,
            tally: None,
        }
    }

    /// With faults and lies counted there, too.
    #[must_use]
    pub fn counted(mut self, tally: Rc<FaultTally>) -> Faulty<D> {
        self.tally = Some(tally);
        self
    }

    /// With this rule; of several that apply the first counts.
    #[must_use]
    pub fn rule(mut self, rule: Rule) -> Faulty<D> {
        self.rules.push(rule);
        self
    }

    /// With this lie; several are told one after another.
    #[must_use]
    pub fn lie(mut self, lie: Lie) -> Faulty<D> {
        self.lies.push(lie);
        self
    }

    /// Returns the device behind the faults.
    #[must_use]
    pub fn device(&self) -> &D {
        &self.device
    }

    /// Returns the device behind the faults.
    #[must_use]
    pub fn device_mut(&mut self) -> &mut D {
        &mut self.device
    }

    /// Faults that happened and lies that were told.
    #[must_use]
    pub fn injected(&self) -> u64 {
        self.injected
    }

    fn fault(&mut self, now: Nanos, endpoint: u8) -> Option<PacketFault> {
        let random = &mut self.random;
        let rule = self.rules.iter().find(|rule| rule.applies(now, endpoint, random))?;
        self.injected += 1;
        if let Some(tally) = &self.tally {
            add_one(&tally.faults);
        }
        Some(rule.fault)
    }

    /// Returns how often this kind of descriptor was read before.
    fn count_read(&mut self, kind: u8) -> u32 {
        match self.reads.iter_mut().find(|(known, _)| *known == kind) {
            Some((_, count)) => {
                *count += 1;
                *count - 1
            }
            None => {
                self.reads.push((kind, 1));
                0
            }
        }
    }

    /// The device's descriptor, as the lies have it. The device is asked for all of it, so that a
    /// lie can be longer than what the host asked for first.
    fn descriptor(&mut self, now: Nanos, setup: Setup) -> Result<Vec<u8>, Stall> {
        let kind = (setup.value >> 8) as u8;
        let read = self.count_read(kind);
        let whole = Setup { length: u16::MAX, ..setup };
        let mut bytes = self.device.control(now, whole, &[])?;
        for lie in &self.lies {
            if lie.told(now, kind, read, self.resets) {
                lie.change.apply(&mut bytes, &mut self.random);
                self.injected += 1;
                if let Some(tally) = &self.tally {
                    add_one(&tally.lies);
                    if !std::mem::replace(&mut self.lied, true) {
                        add_one(&tally.liars);
                    }
                }
            }
        }
        bytes.truncate(setup.length.into());
        Ok(bytes)
    }
}

fn add_one(count: &Cell<u64>) {
    count.set(count.get() + 1);
}

impl<D: UsbDevice> UsbDevice for Faulty<D> {
    fn speed(&self) -> Speed {
        self.device.speed()
    }

    fn reset(&mut self, now: Nanos) {
        self.resets += 1;
        self.device.reset(now);
    }

    fn control(&mut self, now: Nanos, setup: Setup, data: &[u8]) -> Result<Vec<u8>, Stall> {
        if self.fault(now, 0).is_some() {
            return Err(Stall);
        }
        let kind = (setup.value >> 8) as u8;
        let lied_about = self.lies.iter().any(|lie| lie.about == kind);
        // Requests to interfaces and classes ask for descriptors in the same way.
        let asks = setup.request == request::GET_DESCRIPTOR && setup.kind & IN != 0;
        if asks && lied_about {
            return self.descriptor(now, setup);
        }
        self.device.control(now, setup, data)
    }

    fn receive(&mut self, now: Nanos, endpoint: u8, packet: &[u8]) -> Handshake {
        match self.fault(now, endpoint) {
            Some(PacketFault::Stall) => Handshake::Stall,
            Some(PacketFault::Nak) => Handshake::Nak,
            Some(PacketFault::Error) => Handshake::Error,
            _ => self.device.receive(now, endpoint, packet),
        }
    }

    fn send(&mut self, now: Nanos, endpoint: u8, packet: &mut [u8]) -> Answer {
        let fault = match self.fault(now, endpoint) {
            None => return self.device.send(now, endpoint, packet),
            Some(PacketFault::Stall) => return Answer::Stall,
            Some(PacketFault::Nak) => return Answer::Nak,
            Some(PacketFault::Error) => return Answer::Error,
            Some(PacketFault::Empty) => return Answer::Data(0),
            Some(PacketFault::Babble) => {
                packet.iter_mut().for_each(|byte| *byte = self.random.bits() as u8);
                return Answer::Data(packet.len() + 1);
            }
            Some(fault) => fault,
        };
        match (fault, self.device.send(now, endpoint, packet)) {
            (PacketFault::Cut(most), Answer::Data(length)) => Answer::Data(length.min(most)),
            (PacketFault::Garble(bits), Answer::Data(length)) => {
                let length = length.min(packet.len());
                for _ in 0..bits {
                    let at = self.random.index(length);
                    if let Some(byte) = packet.get_mut(at) {
                        *byte ^= 1 << self.random.below(8);
                    }
                }
                Answer::Data(length)
            }
            (_, answer) => answer,
        }
    }

    fn next_change(&self) -> Nanos {
        self.device.next_change()
    }

    fn advance(&mut self, now: Nanos) {
        self.device.advance(now);
    }

    fn is_there(&self) -> bool {
        self.device.is_there()
    }

    fn unplugged(&mut self, now: Nanos) {
        self.device.unplugged(now);
    }

    fn child(&mut self, port: u8) -> Option<&mut dyn UsbDevice> {
        self.device.child(port)
    }
}
