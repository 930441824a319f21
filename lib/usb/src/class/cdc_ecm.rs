//! Network devices that carry whole Ethernet frames (CDC-ECM).
//!
//! A frame is a transfer: a packet that is not full ends it, so one of full packets is followed by
//! an empty one. Frames stay in memory that is shared with a client, and nobody copies them. The
//! device drops frames until the data interface has a setting with endpoints, and says its address
//! as a text of twelve hexadecimal digits.

use super::cdc::{Notice, Notices, TO_INTERFACE, data_of, functional};
use super::flow::{Errand, LANE_ROOM, Lane, Span};
use super::{Class, Completion, Landed, Request, TransferFault};
use crate::Setup;
use crate::context::EndpointKind;
use crate::descriptor::{Configuration, Interface, Text};
use crate::setup::descriptor_type::STRING;
use diapason_abi::Nanos;

/// Most bytes of a frame, without its checksum: 1500 behind the head.
pub const FRAME_MAX: u32 = 1514;
/// Bytes of a frame's head: two addresses and a type.
pub const FRAME_HEAD: u32 = 14;
/// Transfers of a direction that are pending at once.
pub const DEPTH: usize = 32;
/// Frames to the device that there is always room for: each may have an empty packet behind it.
pub const SENT_MAX: usize = LANE_ROOM / 2;
const CLASS: [u8; 2] = [2, 6];
/// Descriptor of the class that says which text is the address, and how long frames are.
const ETHERNET: u8 = 15;
const ETHERNET_BYTES: usize = 13;
/// The address as a text: two bytes, then twelve digits of two bytes.
const ADDRESS_TEXT: u16 = 2 + 24;
/// English, United States: the language every device with texts has.
const LANGUAGE: u16 = 0x0409;
const SET_PACKET_FILTER: u8 = 0x43;
/// The frames that the device lets through: its own, those for all, those for any group.
const FILTER: u16 = 1 << 2 | 1 << 3 | 1 << 1;
/// Notifications: there is a network, or none; how fast it is.
const CONNECTION: u8 = 0;
const SPEED: u8 = 0x2a;

/// An event of the network device.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum NetworkEvent {
    /// Frames flow from now on.
    Opened {
        address: [u8; 6],
    },
    /// The network is there, or not. A device need not say it.
    Connected(bool),
    Speed {
        down: u32,
        up: u32,
    },
    /// A frame came to this place.
    Came {
        /// As it was lent.
        place: u32,
        bytes: u32,
    },
    /// The received bytes were no frame; their memory is lent again.
    Damaged,
    /// The frame in this place is with the device.
    Sent {
        /// As it was given.
        place: u32,
    },
    /// The device cannot be set up, or its pipes do not work.
    Failed,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Step {
    Address,
    Setting,
    Filter,
    Open,
    Failed,
}

/// The driver of one network device.
#[derive(Clone, Debug)]
pub struct Ethernet {
    control: u8,
    /// The data interface, and its setting with endpoints.
    data: (u8, u8),
    /// Bytes of a packet in each direction.
    packets: (u32, u32),
    frame_most: u32,
    address: [u8; 6],
    step: Step,
    errand: Errand,
    notices: Option<Notices>,
    receive: Lane,
    /// Frames; a length of 0 is the empty packet behind the one before.
    send: Lane,
    /// The bytes that arrive now are the rest of something longer than any frame.
    spilling: bool,
}

impl Ethernet {
    /// Returns the class for the first Ethernet device of the configuration.
    #[must_use]
    pub fn find(configuration: &Configuration<'_>) -> Option<Ethernet> {
        let all = configuration.interfaces().filter(|i| i.class[..2] == CLASS);
        all.filter_map(|control| Ethernet::over(configuration, &control)).next()
    }

    fn over(configuration: &Configuration<'_>, control: &Interface<'_>) -> Option<Ethernet> {
        let data = data_of(configuration, control)?;
        let input = data.endpoint(EndpointKind::BulkIn)?;
        let output = data.endpoint(EndpointKind::BulkOut)?;
        let about = functional(control, ETHERNET)?;
        let (text, frame_most) = (about.byte(3), u32::from(about.half(8)));
        let sane = about.bytes.len() >= ETHERNET_BYTES && text > 0 && frame_most > FRAME_HEAD;
        let mut errand = Errand::new();
        errand.begin(Setup::get_descriptor(STRING, text, LANGUAGE, ADDRESS_TEXT), &[]);
        sane.then_some(Ethernet {
            control: control.number,
            data: (data.number, data.alternate),
            packets: (input.packet.max(1).into(), output.packet.max(1).into()),
            frame_most: frame_most.min(FRAME_MAX),
            address: [0; 6],
            step: Step::Address,
            errand,
            notices: control.endpoint(EndpointKind::InterruptIn).map(Notices::new),
            receive: Lane::new(input.address, DEPTH),
            send: Lane::new(output.address, DEPTH),
            spilling: false,
        })
    }

    /// Lends memory for a frame: whole packets, and more than the longest frame has. False if it is
    /// something else, or there is no room for more.
    pub fn lend(&mut self, place: u32, length: u32) -> bool {
        let fits = length > FRAME_MAX && length.is_multiple_of(self.packets.0);
        fits && self.receive.push(Span { place, length })
    }

    /// Gives a frame of `length` bytes; false if that is none, or there is no room for it.
    pub fn send(&mut self, place: u32, length: u32) -> bool {
        let sane = (FRAME_HEAD..=self.frame_most).contains(&length);
        // It and its empty packet.
        if !sane || self.send.room() < 2 {
            return false;
        }
        self.send.push(Span { place, length });
        if length.is_multiple_of(self.packets.1) {
            self.send.push(Span { place, length: 0 });
        }
        true
    }

    fn fail(&mut self, tell: &mut dyn FnMut(NetworkEvent)) {
        if self.step != Step::Failed {
            self.step = Step::Failed;
            tell(NetworkEvent::Failed);
        }
    }

    /// A step of the beginning is done: the next one. Some devices have no filter, and let
    /// everything through.
    fn answered(
        &mut self,
        result: Result<&[u8], TransferFault>,
        tell: &mut dyn FnMut(NetworkEvent),
    ) {
        match (self.step, result) {
            (Step::Address, Ok(bytes)) => match address(bytes) {
                Some(address) => {
                    (self.address, self.step) = (address, Step::Setting);
                    match self.data {
                        (_, 0) => self.set_filter(),
                        (interface, alternate) => self.errand.choose(interface, alternate),
                    }
                }
                None => self.fail(tell),
            },
            (Step::Setting, Ok(_)) => self.set_filter(),
            (Step::Filter, Ok(_) | Err(TransferFault::Stall)) => {
                self.step = Step::Open;
                tell(NetworkEvent::Opened { address: self.address });
            }
            (Step::Open | Step::Failed, _) => {}
            (_, Err(_)) => self.fail(tell),
        }
    }

    fn set_filter(&mut self) {
        self.step = Step::Filter;
        let setup = Setup {
            kind: TO_INTERFACE,
            request: SET_PACKET_FILTER,
            value: FILTER,
            index: self.control.into(),
            length: 0,
        };
        self.errand.begin(setup, &[]);
    }

    fn came(&mut self, span: Span, bytes: u32, tell: &mut dyn FnMut(NetworkEvent)) {
        let whole = bytes < span.length;
        let rest = core::mem::replace(&mut self.spilling, !whole);
        if whole && !rest && (FRAME_HEAD..=self.frame_most).contains(&bytes) {
            return tell(NetworkEvent::Came { place: span.place, bytes });
        }
        // There is room: it was in there.
        self.receive.push(span);
        if bytes > 0 {
            tell(NetworkEvent::Damaged);
        }
    }

    fn note(&mut self, tell: &mut dyn FnMut(NetworkEvent)) {
        if self.receive.pipe.is_dead() || self.send.pipe.is_dead() {
            self.fail(tell);
        }
    }
}

/// Returns the address that a text says; one of a group is nobody's.
fn address(text: &[u8]) -> Option<[u8; 6]> {
    let mut digits = Text::parse(text).ok()?.chars().map(|digit| digit.to_digit(16));
    let mut address = [0; 6];
    for byte in &mut address {
        let (high, low) = (digits.next()??, digits.next()??);
        *byte = (high << 4 | low) as u8;
    }
    let whole = digits.next().is_none();
    (whole && address[0] & 1 == 0).then_some(address)
}

/// Returns the meaning of a notification, if it has one here.
fn said(notice: &Notice<'_>) -> Option<NetworkEvent> {
    match (notice.kind, notice.data) {
        (CONNECTION, _) => Some(NetworkEvent::Connected(notice.value != 0)),
        (SPEED, &[d0, d1, d2, d3, u0, u1, u2, u3]) => Some(NetworkEvent::Speed {
            down: u32::from_le_bytes([d0, d1, d2, d3]),
            up: u32::from_le_bytes([u0, u1, u2, u3]),
        }),
        _ => None,
    }
}

impl Class for Ethernet {
    type Event<'a> = NetworkEvent;

    fn request(&mut self, now: Nanos) -> Option<Request<'_>> {
        if self.step == Step::Failed {
            return None;
        }
        if !self.errand.is_idle() {
            return self.errand.request(now);
        }
        if self.step != Step::Open {
            return None;
        }
        let notices = self.notices.as_mut().and_then(Notices::request);
        notices.or_else(|| self.receive.request()).or_else(|| match self.send.request() {
            Some(Request::Shared { endpoint, length: 0, .. }) => {
                Some(Request::Out { endpoint, data: &[] })
            }
            other => other,
        })
    }

    fn complete(&mut self, _: Nanos, done: Completion<'_>, tell: &mut dyn FnMut(NetworkEvent)) {
        let moved = done.result.map(<[u8]>::len);
        if done.endpoint == 0 {
            if let Some(result) = self.errand.end(done.result) {
                self.answered(result, tell);
            }
        } else if done.endpoint == self.send.pipe.endpoint() {
            // An empty packet went out, or the endpoint works again.
            self.send.end(moved);
        } else if done.endpoint == self.receive.pipe.endpoint() {
            self.receive.end(moved);
        } else if let Some(notices) = &mut self.notices
            && notices.endpoint() == done.endpoint
            && let Some(event) = notices.end(done.result).and_then(|notice| said(&notice))
        {
            tell(event);
        }
        // A network without notifications is still a network.
        self.note(tell);
    }

    fn landed(&mut self, _: Nanos, done: Landed<'_>, tell: &mut dyn FnMut(NetworkEvent)) {
        if done.endpoint == self.send.pipe.endpoint() {
            if let Some((Span { place, .. }, _)) = self.send.end(done.result) {
                tell(NetworkEvent::Sent { place });
            }
        } else if done.endpoint == self.receive.pipe.endpoint()
            && let Some((span, bytes)) = self.receive.end(done.result)
        {
            self.came(span, bytes, tell);
        }
        self.note(tell);
    }

    fn next_wake(&self) -> Nanos {
        self.errand.next_wake()
    }

    fn wake(&mut self, now: Nanos, _: &mut dyn FnMut(NetworkEvent)) {
        self.errand.wake(now);
    }
}
