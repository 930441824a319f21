//! What the other host sees of a debug capability: a super-speed device with a bulk pair.
//!
//! Target and partner belong to two controllers and meet in a [`Link`]. Neither calls the other:
//! what one side does is noted, with its time, and the other side looks at it.

use diapason_abi::Nanos;
use diapason_devices::{Answer, Device, Handshake, Stall};
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

/// Something the target has to look at.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Happening {
    Reset,
    Configured(bool),
    /// A packet of the OUT ring is through.
    Taken,
    Cleared(usize),
    Unplugged,
}

/// What both sides know.
#[derive(Debug, Default)]
pub(crate) struct Link {
    /// The target answers.
    pub enabled: bool,
    pub configured: bool,
    pub halted: [bool; 2],
    /// Packets of the OUT ring that the host may fetch.
    pub out: VecDeque<Vec<u8>>,
    /// Packets of the IN ring that came.
    pub received: VecDeque<Vec<u8>>,
    /// So many more may come.
    pub room: usize,
    pub happened: VecDeque<Happening>,
    /// The target has to look at this time.
    pub dirty: Option<Nanos>,
    /// The host has to look at this time.
    pub changed: Option<Nanos>,
    /// Language table, manufacturer, product, serial number.
    pub strings: [Vec<u8>; 4],
    pub vendor: u16,
    pub product: u16,
    pub revision: u16,
    pub protocol: u8,
    pub burst: u8,
}

impl Link {
    fn tell(&mut self, now: Nanos, happening: Happening) {
        self.happened.push_back(happening);
        self.dirty = Some(now);
    }

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

/// The device at the other end of the cable. Dropped, it is unplugged.
pub(crate) struct Partner(pub Rc<RefCell<Link>>);

impl Drop for Partner {
    fn drop(&mut self) {
        self.0.borrow_mut().tell(Nanos::ZERO, Happening::Unplugged);
    }
}

impl Device for Partner {
    fn speed(&self) -> Speed {
        Speed::Super
    }

    fn reset(&mut self, now: Nanos) {
        let mut link = self.0.borrow_mut();
        link.configured = false;
        link.tell(now, Happening::Reset);
    }

    fn control(&mut self, now: Nanos, setup: Setup, _: &[u8]) -> Result<Vec<u8>, Stall> {
        let mut link = self.0.borrow_mut();
        if !link.enabled || setup.kind & 0x60 != 0 {
            return Err(Stall);
        }
        match setup.request {
            request::GET_DESCRIPTOR => {
                let [index, kind] = setup.value.to_le_bytes();
                link.descriptor(kind, index).ok_or(Stall)
            }
            request::GET_CONFIGURATION => Ok(vec![u8::from(link.configured)]),
            request::GET_STATUS => Ok(vec![u8::from(setup.kind & 0x1f == 0), 0]),
            request::SET_CONFIGURATION if setup.value <= 1 => {
                link.configured = setup.value == 1;
                link.tell(now, Happening::Configured(setup.value == 1));
                Ok(Vec::new())
            }
            request::CLEAR_FEATURE if setup.kind == 2 => {
                let ring = if setup.index == 0x81 { OUT } else { IN };
                link.halted[ring] = false;
                link.tell(now, Happening::Cleared(ring));
                Ok(Vec::new())
            }
            request::CLEAR_FEATURE | request::SET_FEATURE | SET_SELECT | SET_ISOCH_DELAY => {
                Ok(Vec::new())
            }
            _ => Err(Stall),
        }
    }

    fn receive(&mut self, now: Nanos, endpoint: u8, packet: &[u8]) -> Handshake {
        let mut link = self.0.borrow_mut();
        match () {
            () if !link.enabled => Handshake::Error,
            () if !link.configured || endpoint != 1 || link.halted[IN] => Handshake::Stall,
            () if link.room == 0 => Handshake::Nak,
            () => {
                link.room -= 1;
                link.received.push_back(packet.to_vec());
                link.dirty = Some(now);
                Handshake::Ack
            }
        }
    }

    fn send(&mut self, now: Nanos, endpoint: u8, packet: &mut [u8]) -> Answer {
        let mut link = self.0.borrow_mut();
        match () {
            () if !link.enabled => return Answer::Error,
            () if !link.configured || endpoint != 0x81 || link.halted[OUT] => return Answer::Stall,
            () => {}
        }
        let Some(bytes) = link.out.pop_front() else { return Answer::Nak };
        link.tell(now, Happening::Taken);
        let length = bytes.len().min(packet.len());
        packet[..length].copy_from_slice(&bytes[..length]);
        Answer::Data(bytes.len())
    }

    fn next_change(&self) -> Nanos {
        self.0.borrow().changed.unwrap_or(Nanos::FOREVER)
    }

    fn advance(&mut self, now: Nanos) {
        let mut link = self.0.borrow_mut();
        if link.changed.is_some_and(|at| at <= now) {
            link.changed = None;
        }
    }
}
