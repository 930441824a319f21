//! The host's view of a debug capability: a SuperSpeed device with a bulk pair.
//!
//! Target and partner belong to two controllers, and share nothing but messages under way, each
//! with the time at which it arrives. So one host may be simulated ahead of the other by the
//! cable's delay, and both see the same.
//!
//! Resets and configurations are the partner's doing. It counts them, and what belongs to an
//! earlier count is void wherever it arrives.

use super::leads::CableEnd;
use diapason_abi::Nanos;
use diapason_devices::{Answer, Handshake, Stall, UsbDevice};
use diapason_usb::setup::{descriptor_type, request};
use diapason_usb::{Setup, Speed};
use std::cell::RefCell;
use std::collections::VecDeque;
use std::rc::Rc;

/// The rings as the target names them: it sends on OUT and receives on IN.
pub(crate) const OUT: usize = 0;
pub(crate) const IN: usize = 1;

/// Requests beyond those every device does, which the hardware takes without effect.
const SET_SELECT: u8 = 0x30;
const SET_ISOCH_DELAY: u8 = 0x31;
/// Bytes of a packet.
pub(crate) const PACKET: usize = 1024;

/// An action of the host that the target has to look at.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Happening {
    /// With the new count.
    Reset(u64),
    /// The host's first question since the reset with this count, over one of several cables.
    Asked(u64),
    /// With the new count.
    Configured(u64, bool),
    /// A packet of the OUT ring is through.
    Taken(u64),
    /// A packet for the IN ring.
    Packet(u64, Vec<u8>),
    Cleared(usize),
    Unplugged,
}

/// News from the target to the host.
#[derive(Clone, Debug)]
pub(crate) enum News {
    /// The target answers as this device, or does not answer.
    Face(Option<Rc<Face>>),
    /// A packet of the OUT ring.
    Packet(u64, Vec<u8>),
    /// Packets that may still come.
    Room(u64, usize),
    /// The pending transfer is void.
    Void(u64),
    /// The target halted this ring.
    Halted(usize),
}

/// A cable: what is under way on it, with the time of its arrival.
#[derive(Debug, Default)]
pub(crate) struct Cable {
    delay: Nanos,
    /// The capability has other cables.
    pub has_rivals: bool,
    to_host: VecDeque<(Nanos, News)>,
    to_target: VecDeque<(Nanos, Happening)>,
}

impl Cable {
    /// Sends news to the host, which get there after the delay of the cable.
    pub fn tell_host(&mut self, now: Nanos, news: News) {
        self.to_host.push_back((now + self.delay, news));
    }

    fn tell_target(&mut self, now: Nanos, happening: Happening) {
        self.to_target.push_back((now + self.delay, happening));
    }

    /// Returns when the target has to look.
    pub fn next_happening(&self) -> Nanos {
        self.to_target.front().map_or(Nanos::FOREVER, |(at, _)| *at)
    }

    /// Returns the host's next action, as far as the target can know by now.
    pub fn take_happening(&mut self, now: Nanos) -> Option<Happening> {
        self.to_target.pop_front_if(|(at, _)| *at <= now).map(|(_, happening)| happening)
    }
}

/// The identity of the device.
#[derive(Clone, Debug, Default)]
pub(crate) struct Face {
    /// Language table, manufacturer, product, serial number.
    pub strings: [Vec<u8>; 4],
    pub vendor: u16,
    pub product: u16,
    pub revision: u16,
    pub protocol: u8,
    pub burst: u8,
}

impl Face {
    fn device_descriptor(&self) -> Vec<u8> {
        let mut bytes = vec![18, descriptor_type::DEVICE, 0, 3, 0, 0, 0, 9];
        for word in [self.vendor, self.product, self.revision] {
            bytes.extend(word.to_le_bytes());
        }
        bytes.extend([1, 2, 3, 1]);
        bytes
    }

    fn configuration(&self) -> Vec<u8> {
        let mut bytes = vec![9, descriptor_type::CONFIGURATION, 44, 0, 1, 1, 0, 0xc0, 0];
        let class = [0xdc, 2, self.protocol];
        bytes.extend([9, descriptor_type::INTERFACE, 0, 0, 2]);
        bytes.extend(class);
        bytes.push(0);
        for address in [0x81, 0x01] {
            bytes.extend([7, descriptor_type::ENDPOINT, address, 2, 0, 4, 0]);
            bytes.extend([6, descriptor_type::SUPERSPEED_COMPANION, self.burst, 0, 0, 0]);
        }
        bytes
    }

    fn descriptor(&self, kind: u8, index: u8) -> Option<Vec<u8>> {
        match kind {
            descriptor_type::DEVICE => Some(self.device_descriptor()),
            descriptor_type::CONFIGURATION => Some(self.configuration()),
            descriptor_type::BOS => Some(BOS.to_vec()),
            descriptor_type::STRING => {
                self.strings.get(usize::from(index)).filter(|text| !text.is_empty()).cloned()
            }
            _ => None,
        }
    }
}

/// USB 2 extension without link power management, then super speed only.
const BOS: [u8; 22] =
    [5, descriptor_type::BOS, 22, 0, 2, 7, 16, 2, 0, 0, 0, 0, 10, 16, 3, 0, 8, 0, 3, 0, 0, 0];

/// The device at the other end of the cable. Dropped, it is unplugged, as of its last call.
pub(crate) struct Partner {
    cable: Rc<RefCell<Cable>>,
    /// Where the cable ends.
    end: CableEnd,
    /// The host has asked something since the last reset.
    asked: bool,
    /// The identity that it answers with, if it answers.
    face: Option<Rc<Face>>,
    configured: bool,
    halted: [bool; 2],
    /// Packets of the OUT ring that the host may fetch.
    out: VecDeque<Vec<u8>>,
    /// Bytes that may still go to the IN ring.
    room: usize,
    /// Resets and configurations so far.
    count: u64,
    seen: Nanos,
}

impl Partner {
    /// Returns the end of a cable that takes `delay`, to a target that answers as `face`.
    pub fn new(
        cable: &Rc<RefCell<Cable>>,
        delay: Nanos,
        end: CableEnd,
        face: Option<Rc<Face>>,
    ) -> Partner {
        cable.borrow_mut().delay = delay;
        Partner {
            cable: Rc::clone(cable),
            end,
            asked: false,
            face,
            configured: false,
            halted: [false; 2],
            out: VecDeque::new(),
            room: 0,
            count: 0,
            seen: Nanos::ZERO,
        }
    }

    fn tell(&self, now: Nanos, happening: Happening) {
        self.cable.borrow_mut().tell_target(now, happening);
    }

    fn next_news(&self, now: Nanos) -> Option<News> {
        let news = self.cable.borrow_mut().to_host.pop_front_if(|(at, _)| *at <= now);
        news.map(|(_, news)| news)
    }

    fn heed(&mut self, news: News) {
        match news {
            News::Face(face) => {
                self.configured &= face.is_some();
                self.face = face;
                if self.face.is_none() {
                    self.asked = false;
                    self.end.host_uses(false);
                }
            }
            News::Packet(count, packet) if count == self.count => self.out.push_back(packet),
            News::Room(count, packets) if count == self.count => self.room += packets,
            News::Void(count) if count == self.count => self.forget(),
            News::Packet(..) | News::Room(..) | News::Void(_) => {}
            News::Halted(ring) => {
                self.halted[ring] = true;
                if ring == OUT { self.out.clear() } else { self.room = 0 }
            }
        }
    }

    /// Nothing is under way.
    fn forget(&mut self) {
        self.halted = [false; 2];
        self.out.clear();
        self.room = 0;
    }

    fn clear_halt(&mut self, now: Nanos, ring: usize) {
        self.halted[ring] = false;
        self.tell(now, Happening::Cleared(ring));
    }

    fn configure(&mut self, now: Nanos, on: bool) {
        if on && self.configured {
            // It stays as it is, but for halts.
            return [OUT, IN].into_iter().for_each(|ring| self.clear_halt(now, ring));
        }
        self.count += 1;
        self.configured = on;
        self.forget();
        self.tell(now, Happening::Configured(self.count, on));
    }
}

impl Drop for Partner {
    fn drop(&mut self) {
        self.tell(self.seen, Happening::Unplugged);
    }
}

impl UsbDevice for Partner {
    fn speed(&self) -> Speed {
        Speed::Super
    }

    fn reset(&mut self, now: Nanos) {
        self.advance(now);
        self.count += 1;
        self.configured = false;
        self.asked = false;
        self.forget();
        self.tell(now, Happening::Reset(self.count));
    }

    fn control(&mut self, now: Nanos, setup: Setup, _: &[u8]) -> Result<Vec<u8>, Stall> {
        self.advance(now);
        let face = self.face.clone().filter(|_| setup.kind & 0x60 == 0).ok_or(Stall)?;
        if self.cable.borrow().has_rivals && !std::mem::replace(&mut self.asked, true) {
            self.end.host_uses(true);
            self.tell(now, Happening::Asked(self.count));
        }
        match setup.request {
            request::GET_DESCRIPTOR => {
                let [index, kind] = setup.value.to_le_bytes();
                face.descriptor(kind, index).ok_or(Stall)
            }
            request::GET_CONFIGURATION => Ok(vec![u8::from(self.configured)]),
            request::GET_STATUS => Ok(vec![u8::from(setup.kind & 0x1f == 0), 0]),
            request::SET_CONFIGURATION if setup.value <= 1 => {
                self.configure(now, setup.value == 1);
                Ok(Vec::new())
            }
            request::CLEAR_FEATURE if setup.kind == 2 => {
                self.clear_halt(now, if setup.index == 0x81 { OUT } else { IN });
                Ok(Vec::new())
            }
            request::CLEAR_FEATURE | request::SET_FEATURE | SET_SELECT | SET_ISOCH_DELAY => {
                Ok(Vec::new())
            }
            _ => Err(Stall),
        }
    }

    fn receive(&mut self, now: Nanos, endpoint: u8, packet: &[u8]) -> Handshake {
        self.advance(now);
        match () {
            () if self.face.is_none() => Handshake::Error,
            () if !self.configured || endpoint != 1 || self.halted[IN] => Handshake::Stall,
            () if self.room == 0 => Handshake::Nak,
            () => {
                self.room -= 1;
                self.tell(now, Happening::Packet(self.count, packet.to_vec()));
                Handshake::Ack
            }
        }
    }

    fn send(&mut self, now: Nanos, endpoint: u8, packet: &mut [u8]) -> Answer {
        self.advance(now);
        match () {
            () if self.face.is_none() => return Answer::Error,
            () if !self.configured || endpoint != 0x81 || self.halted[OUT] => return Answer::Stall,
            () => {}
        }
        let Some(bytes) = self.out.pop_front() else { return Answer::Nak };
        self.tell(now, Happening::Taken(self.count));
        Answer::packet(packet, &bytes)
    }

    fn is_there(&self) -> bool {
        self.face.is_some() && !self.end.is_lent()
    }

    fn unplugged(&mut self, now: Nanos) {
        self.advance(now);
        (self.configured, self.asked) = (false, false);
        self.forget();
        self.end.host_uses(false);
        self.tell(now, Happening::Unplugged);
    }

    fn next_change(&self) -> Nanos {
        self.cable.borrow().to_host.front().map_or(Nanos::FOREVER, |(at, _)| *at)
    }

    fn advance(&mut self, now: Nanos) {
        self.seen = self.seen.max(now);
        while let Some(news) = self.next_news(now) {
            self.heed(news);
        }
    }
}
