//! Transfers as the devices behind QEMU are asked and answer. A polled interrupt endpoint and an
//! isochronous one go on by themselves: their packets are ends without beginnings.

use diapason_capture::usb::{Event, Kind, Status, Step};
use diapason_redir::protocol::{Data, Message, Packet, Status as Told};
use diapason_redir::{Spoken, Way};
use diapason_usb::Setup;
use diapason_usb::setup::{IN, request};
use std::collections::BTreeMap;

/// QEMU's controller has one bus.
const BUS: u16 = 1;

/// The messages to and from one device.
#[derive(Debug)]
pub struct Redirection {
    device: u8,
    /// Requests under way that have messages of their own, by identifier.
    requests: BTreeMap<u64, Setup>,
}

/// A transfer without what all events have.
struct Part<'a> {
    kind: Kind,
    endpoint: u8,
    setup: Option<Setup>,
    status: Told,
    length: u32,
    data: &'a [u8],
}

impl Redirection {
    /// Returns the device with this address.
    #[must_use]
    pub fn new(device: u8) -> Redirection {
        Redirection { device, requests: BTreeMap::new() }
    }

    /// Tells `tell` what a message says about a transfer, if it does.
    pub fn hear(&mut self, spoken: &Spoken, tell: impl FnOnce(&Event<'_>)) {
        let Message { id, packet } = &spoken.message;
        let asks = spoken.way == Way::FromGuest;
        let short;
        let part = match packet {
            Packet::Control(endpoint, status, setup, bytes) => {
                control(*endpoint, *setup, *status, bytes)
            }
            Packet::Bulk(data) => carried(Kind::Bulk, data),
            Packet::Interrupt(data) => carried(Kind::Interrupt, data),
            Packet::Isochronous(data) => carried(Kind::Isochronous, data),
            Packet::ConfigurationStatus(status, value)
            | Packet::AlternateStatus(status, _, value) => {
                let Some(setup) = self.requests.remove(id) else { return };
                short = [*value];
                let answered = setup.is_in() && *status == Told::Success;
                control(0, setup, *status, if answered { &short } else { &[] })
            }
            other => {
                let Some(setup) = of_request(other) else { return };
                self.requests.insert(*id, setup);
                control(0, setup, Told::Success, &[])
            }
        };
        let status = Step::Completed(status(part.status));
        let given = (part.endpoint & IN != 0) != asks;
        tell(&Event {
            time: spoken.time,
            id: *id,
            kind: part.kind,
            endpoint: part.endpoint,
            device: self.device,
            bus: BUS,
            step: if asks { Step::Submitted } else { status },
            setup: part.setup.map(Setup::encode),
            length: part.length,
            data: if given { part.data } else { &[] },
        });
    }
}

/// Returns the requests that have messages of their own.
fn of_request(packet: &Packet) -> Option<Setup> {
    let get = |kind, request, index| Setup { kind, request, index, length: 1, ..Setup::default() };
    match packet {
        Packet::SetConfiguration(value) => Some(Setup::set_configuration(*value)),
        Packet::GetConfiguration => Some(get(IN, request::GET_CONFIGURATION, 0)),
        Packet::SetAlternate(interface, setting) => {
            Some(Setup::set_interface(*interface, *setting))
        }
        Packet::GetAlternate(interface) => {
            Some(get(IN | 1, request::GET_INTERFACE, u16::from(*interface)))
        }
        _ => None,
    }
}

/// Returns a control transfer: an answer's length is that of its data.
fn control(endpoint: u8, setup: Setup, status: Told, data: &[u8]) -> Part<'_> {
    let input = setup.is_in() && setup.length > 0;
    let endpoint = endpoint & !IN | if input { IN } else { 0 };
    let length = if data.is_empty() { u32::from(setup.length) } else { data.len() as u32 };
    Part { kind: Kind::Control, endpoint, setup: Some(setup), status, length, data }
}

fn carried(kind: Kind, data: &Data) -> Part<'_> {
    let Data { endpoint, status, length, .. } = *data;
    Part { kind, endpoint, setup: None, status, length, data: &data.bytes }
}

fn status(status: Told) -> Status {
    match status {
        Told::Success => Status::Success,
        Told::Cancelled => Status::Cancelled,
        Told::Invalid => Status::Invalid,
        Told::Stall => Status::Stall,
        Told::Babble => Status::Overflow,
        Told::Error | Told::Timeout => Status::Error,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use diapason_abi::Nanos;

    /// Returns the bytes of the event of a message.
    fn heard(redirection: &mut Redirection, way: Way, id: u64, packet: Packet) -> Vec<u8> {
        let spoken = Spoken { time: Nanos(5), way, message: Message { id, packet } };
        let mut bytes = Vec::new();
        redirection.hear(&spoken, |event| bytes = event.bytes());
        bytes
    }

    fn data(endpoint: u8, length: u32, bytes: &[u8]) -> Data {
        Data { endpoint, status: Told::Success, length, stream: 0, bytes: bytes.into() }
    }

    #[test]
    fn requests_with_messages_of_their_own_are_requests() {
        let mut redirection = Redirection::new(3);
        let asked = heard(&mut redirection, Way::FromGuest, 9, Packet::SetConfiguration(1));
        assert_eq!((asked[8], asked[10], asked[11]), (b'S', 0, 3));
        assert_eq!(asked[40..48], [0, 9, 1, 0, 0, 0, 0, 0]);
        let status = Packet::ConfigurationStatus(Told::Stall, 1);
        let told = heard(&mut redirection, Way::ToGuest, 9, status.clone());
        assert_eq!((told[8], &told[28..32]), (b'C', &(-32i32).to_le_bytes()[..]));
        assert!(heard(&mut redirection, Way::ToGuest, 9, status).is_empty(), "answered once");
        heard(&mut redirection, Way::FromGuest, 4, Packet::GetConfiguration);
        let status = Packet::ConfigurationStatus(Told::Success, 7);
        let told = heard(&mut redirection, Way::ToGuest, 4, status);
        assert_eq!((told[10], &told[64..]), (0x80, &[7][..]));
    }

    #[test]
    fn data_are_in_the_event_that_brings_them() {
        let mut redirection = Redirection::new(1);
        let out = Packet::Bulk(data(2, 3, &[1, 2, 3]));
        assert_eq!(heard(&mut redirection, Way::FromGuest, 1, out)[64..], [1, 2, 3]);
        let taken = Packet::Bulk(data(2, 3, &[]));
        assert_eq!(heard(&mut redirection, Way::ToGuest, 1, taken).len(), 64);
        let wanted = heard(&mut redirection, Way::FromGuest, 2, Packet::Bulk(data(0x82, 512, &[])));
        assert_eq!((wanted.len(), &wanted[32..36]), (64, &512u32.to_le_bytes()[..]));
        let given = Packet::Bulk(data(0x82, 1, &[8]));
        assert_eq!(heard(&mut redirection, Way::ToGuest, 2, given)[64..], [8]);
        assert!(heard(&mut redirection, Way::FromGuest, 3, Packet::Reset).is_empty());
    }
}
