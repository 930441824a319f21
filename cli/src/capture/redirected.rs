//! Transfers as the devices behind QEMU are asked and answer. A polled interrupt endpoint and an
//! isochronous one go on by themselves: their packets are ends without beginnings.

use diapason_capture::usb::{TransferKind, TransferStatus, TransferStep, UsbmonEvent};
use diapason_redir::protocol::{AddressedPacket, Data, PacketStatus, RedirPacket};
use diapason_redir::{PacketDirection, Spoken};
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
    kind: TransferKind,
    endpoint: u8,
    setup: Option<Setup>,
    status: PacketStatus,
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
    pub fn hear(&mut self, spoken: &Spoken, tell: impl FnOnce(&UsbmonEvent<'_>)) {
        let AddressedPacket { id, packet } = &spoken.message;
        let asks = spoken.way == PacketDirection::FromGuest;
        let short;
        let part = match packet {
            RedirPacket::Control(endpoint, status, setup, bytes) => {
                control(*endpoint, *setup, *status, bytes)
            }
            RedirPacket::Bulk(data) => carried(TransferKind::Bulk, data),
            RedirPacket::Interrupt(data) => carried(TransferKind::Interrupt, data),
            RedirPacket::Isochronous(data) => carried(TransferKind::Isochronous, data),
            RedirPacket::ConfigurationStatus(status, value)
            | RedirPacket::AlternateStatus(status, _, value) => {
                let Some(setup) = self.requests.remove(id) else { return };
                short = [*value];
                let answered = setup.is_in() && *status == PacketStatus::Success;
                control(0, setup, *status, if answered { &short } else { &[] })
            }
            other => {
                let Some(setup) = of_request(other) else { return };
                self.requests.insert(*id, setup);
                control(0, setup, PacketStatus::Success, &[])
            }
        };
        let status = TransferStep::Completed(status(part.status));
        let given = (part.endpoint & IN != 0) != asks;
        tell(&UsbmonEvent {
            time: spoken.time,
            id: *id,
            kind: part.kind,
            endpoint: part.endpoint,
            device: self.device,
            bus: BUS,
            step: if asks { TransferStep::Submitted } else { status },
            setup: part.setup.map(Setup::encode),
            length: part.length,
            data: if given { part.data } else { &[] },
        });
    }
}

/// Returns the requests that have messages of their own.
fn of_request(packet: &RedirPacket) -> Option<Setup> {
    let get = |kind, request, index| Setup { kind, request, index, length: 1, ..Setup::default() };
    match packet {
        RedirPacket::SetConfiguration(value) => Some(Setup::set_configuration(*value)),
        RedirPacket::GetConfiguration => Some(get(IN, request::GET_CONFIGURATION, 0)),
        RedirPacket::SetAlternate(interface, setting) => {
            Some(Setup::set_interface(*interface, *setting))
        }
        RedirPacket::GetAlternate(interface) => {
            Some(get(IN | 1, request::GET_INTERFACE, u16::from(*interface)))
        }
        _ => None,
    }
}

/// Returns a control transfer: an answer's length is that of its data.
fn control(endpoint: u8, setup: Setup, status: PacketStatus, data: &[u8]) -> Part<'_> {
    let input = setup.is_in() && setup.length > 0;
    let endpoint = endpoint & !IN | if input { IN } else { 0 };
    let length = if data.is_empty() { u32::from(setup.length) } else { data.len() as u32 };
    Part { kind: TransferKind::Control, endpoint, setup: Some(setup), status, length, data }
}

fn carried(kind: TransferKind, data: &Data) -> Part<'_> {
    let Data { endpoint, status, length, .. } = *data;
    Part { kind, endpoint, setup: None, status, length, data: &data.bytes }
}

fn status(status: PacketStatus) -> TransferStatus {
    match status {
        PacketStatus::Success => TransferStatus::Success,
        PacketStatus::Cancelled => TransferStatus::Cancelled,
        PacketStatus::Invalid => TransferStatus::Invalid,
        PacketStatus::Stall => TransferStatus::Stall,
        PacketStatus::Babble => TransferStatus::Overflow,
        PacketStatus::Error | PacketStatus::Timeout => TransferStatus::Error,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use diapason_abi::Nanos;

    /// Returns the bytes of the event of a message.
    fn heard(
        redirection: &mut Redirection,
        way: PacketDirection,
        id: u64,
        packet: RedirPacket,
    ) -> Vec<u8> {
        let spoken = Spoken { time: Nanos(5), way, message: AddressedPacket { id, packet } };
        let mut bytes = Vec::new();
        redirection.hear(&spoken, |event| bytes = event.bytes());
        bytes
    }

    fn data(endpoint: u8, length: u32, bytes: &[u8]) -> Data {
        Data { endpoint, status: PacketStatus::Success, length, stream: 0, bytes: bytes.into() }
    }

    #[test]
    fn requests_with_messages_of_their_own_are_requests() {
        let mut redirection = Redirection::new(3);
        let asked = heard(
            &mut redirection,
            PacketDirection::FromGuest,
            9,
            RedirPacket::SetConfiguration(1),
        );
        assert_eq!((asked[8], asked[10], asked[11]), (b'S', 0, 3));
        assert_eq!(asked[40..48], [0, 9, 1, 0, 0, 0, 0, 0]);
        let status = RedirPacket::ConfigurationStatus(PacketStatus::Stall, 1);
        let told = heard(&mut redirection, PacketDirection::ToGuest, 9, status.clone());
        assert_eq!((told[8], &told[28..32]), (b'C', &(-32i32).to_le_bytes()[..]));
        assert!(
            heard(&mut redirection, PacketDirection::ToGuest, 9, status).is_empty(),
            "answered once"
        );
        heard(&mut redirection, PacketDirection::FromGuest, 4, RedirPacket::GetConfiguration);
        let status = RedirPacket::ConfigurationStatus(PacketStatus::Success, 7);
        let told = heard(&mut redirection, PacketDirection::ToGuest, 4, status);
        assert_eq!((told[10], &told[64..]), (0x80, &[7][..]));
    }

    #[test]
    fn data_are_in_the_event_that_brings_them() {
        let mut redirection = Redirection::new(1);
        let out = RedirPacket::Bulk(data(2, 3, &[1, 2, 3]));
        assert_eq!(heard(&mut redirection, PacketDirection::FromGuest, 1, out)[64..], [1, 2, 3]);
        let taken = RedirPacket::Bulk(data(2, 3, &[]));
        assert_eq!(heard(&mut redirection, PacketDirection::ToGuest, 1, taken).len(), 64);
        let wanted = heard(
            &mut redirection,
            PacketDirection::FromGuest,
            2,
            RedirPacket::Bulk(data(0x82, 512, &[])),
        );
        assert_eq!((wanted.len(), &wanted[32..36]), (64, &512u32.to_le_bytes()[..]));
        let given = RedirPacket::Bulk(data(0x82, 1, &[8]));
        assert_eq!(heard(&mut redirection, PacketDirection::ToGuest, 2, given)[64..], [8]);
        assert!(
            heard(&mut redirection, PacketDirection::FromGuest, 3, RedirPacket::Reset).is_empty()
        );
    }
}
