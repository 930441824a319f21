//! A device that does what the test says.

use diapason_abi::Nanos;
use diapason_devices::{Answer, Handshake, Stall, UsbDevice};
use diapason_usb::{Setup, Speed};
use std::cell::RefCell;
use std::collections::{BTreeMap, VecDeque};
use std::rc::Rc;

/// The state that the test sees and sets.
pub struct Gadget {
    pub speed: Speed,
    /// Packets for each IN endpoint; longer ones than asked babble.
    pub packets: BTreeMap<u8, VecDeque<Vec<u8>>>,
    /// IN endpoints that always have a full packet.
    pub endless: Vec<u8>,
    /// The answer of an OUT endpoint, if not "taken".
    pub says: BTreeMap<u8, Handshake>,
    /// The answers of an IN endpoint, before its packets.
    pub answers: BTreeMap<u8, VecDeque<Answer>>,
    pub received: Vec<(Nanos, u8, Vec<u8>)>,
    pub requests: Vec<(Setup, Vec<u8>)>,
    /// Answer to every request.
    pub reply: Result<Vec<u8>, Stall>,
    pub resets: u32,
    pub next: Nanos,
    pub advanced: Vec<Nanos>,
    pub asked: Vec<(Nanos, u8)>,
}

/// The device, kept by the test and plugged in at the same time.
#[derive(Clone)]
pub struct Shared(pub Rc<RefCell<Gadget>>);

impl Shared {
    pub fn new(speed: Speed) -> Shared {
        Shared(Rc::new(RefCell::new(Gadget {
            speed,
            packets: BTreeMap::new(),
            endless: Vec::new(),
            says: BTreeMap::new(),
            answers: BTreeMap::new(),
            received: Vec::new(),
            requests: Vec::new(),
            reply: Ok(Vec::new()),
            resets: 0,
            next: Nanos::FOREVER,
            advanced: Vec::new(),
            asked: Vec::new(),
        })))
    }

    pub fn boxed(&self) -> Box<dyn UsbDevice> {
        Box::new(self.clone())
    }

    pub fn give(&self, endpoint: u8, bytes: &[u8]) {
        self.0.borrow_mut().packets.entry(endpoint).or_default().push_back(bytes.to_vec());
    }
}

impl UsbDevice for Shared {
    fn speed(&self) -> Speed {
        self.0.borrow().speed
    }

    fn reset(&mut self, _: Nanos) {
        self.0.borrow_mut().resets += 1;
    }

    fn control(&mut self, _: Nanos, setup: Setup, data: &[u8]) -> Result<Vec<u8>, Stall> {
        let mut gadget = self.0.borrow_mut();
        gadget.requests.push((setup, data.to_vec()));
        gadget.reply.clone()
    }

    fn receive(&mut self, now: Nanos, endpoint: u8, packet: &[u8]) -> Handshake {
        let mut gadget = self.0.borrow_mut();
        let says = gadget.says.get(&endpoint).copied().unwrap_or(Handshake::Ack);
        if says == Handshake::Ack {
            gadget.received.push((now, endpoint, packet.to_vec()));
        }
        says
    }

    fn send(&mut self, now: Nanos, endpoint: u8, packet: &mut [u8]) -> Answer {
        let mut gadget = self.0.borrow_mut();
        gadget.asked.push((now, endpoint));
        if let Some(answer) = gadget.answers.get_mut(&endpoint).and_then(VecDeque::pop_front) {
            return answer;
        }
        if gadget.endless.contains(&endpoint) {
            packet.fill(0x5a);
            return Answer::Data(packet.len());
        }
        match gadget.packets.get_mut(&endpoint).and_then(VecDeque::pop_front) {
            Some(bytes) => {
                let length = bytes.len().min(packet.len());
                packet[..length].copy_from_slice(&bytes[..length]);
                Answer::Data(bytes.len())
            }
            None => Answer::Nak,
        }
    }

    fn next_change(&self) -> Nanos {
        self.0.borrow().next
    }

    fn advance(&mut self, now: Nanos) {
        let mut gadget = self.0.borrow_mut();
        gadget.advanced.push(now);
        if gadget.next <= now {
            gadget.next = Nanos::FOREVER;
        }
    }
}
