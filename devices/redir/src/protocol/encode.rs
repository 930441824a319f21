//! From packets to bytes.

use super::info::encode_endpoints;
use super::number as n;
use super::{AddressedPacket, Data, RedirPacket, VERSION_BYTES};
use diapason_usb::Setup;

/// The version text of our hello.
const VERSION: &[u8] = b"diapason device server";

/// Appends a packet to `out`.
pub fn encode(message: &AddressedPacket, out: &mut Vec<u8>) {
    let start = out.len();
    let is_hello = matches!(message.packet, RedirPacket::Hello(_));
    out.extend_from_slice(&[0; 8]);
    if is_hello {
        // The identifier is short here, and nobody looks at it.
        out.extend_from_slice(&(message.id as u32).to_le_bytes());
    } else {
        out.extend_from_slice(&message.id.to_le_bytes());
    }
    let body = out.len();
    let kind = body_of(&message.packet, out);
    let length = (out.len() - body) as u32;
    out[start..start + 4].copy_from_slice(&kind.to_le_bytes());
    out[start + 4..start + 8].copy_from_slice(&length.to_le_bytes());
}

/// Appends what follows the header; the packet's number.
fn body_of(packet: &RedirPacket, out: &mut Vec<u8>) -> u32 {
    match packet {
        RedirPacket::Hello(capabilities) => {
            out.extend_from_slice(VERSION);
            out.extend(std::iter::repeat_n(0, VERSION_BYTES - VERSION.len()));
            put(out, &capabilities.to_le_bytes(), n::HELLO)
        }
        RedirPacket::Connect(connect) => {
            connect.encode(out);
            n::CONNECT
        }
        RedirPacket::Disconnect => n::DISCONNECT,
        RedirPacket::Reset => n::RESET,
        RedirPacket::Interfaces(interfaces) => {
            interfaces.encode(out);
            n::INTERFACES
        }
        RedirPacket::Endpoints(endpoints) => {
            encode_endpoints(endpoints, out);
            n::ENDPOINTS
        }
        RedirPacket::Cancel => n::CANCEL,
        RedirPacket::FilterReject => n::FILTER_REJECT,
        RedirPacket::Filter(rules) => put(out, rules, n::FILTER),
        RedirPacket::DisconnectAcknowledged => n::DISCONNECT_ACKNOWLEDGED,
        RedirPacket::Control(endpoint, status, setup, bytes) => {
            control(out, *endpoint, *status as u8, *setup);
            put(out, bytes, n::CONTROL)
        }
        RedirPacket::Bulk(data) => {
            bulk(out, data);
            n::BULK
        }
        RedirPacket::Isochronous(data) => periodic(out, data, n::ISOCHRONOUS),
        RedirPacket::Interrupt(data) => periodic(out, data, n::INTERRUPT),
        _ => small(packet, out),
    }
}

/// The packets of a few bytes.
fn small(packet: &RedirPacket, out: &mut Vec<u8>) -> u32 {
    match *packet {
        RedirPacket::SetConfiguration(value) => put(out, &[value], n::SET_CONFIGURATION),
        RedirPacket::ConfigurationStatus(s, value) => {
            put(out, &[s as u8, value], n::CONFIGURATION_STATUS)
        }
        RedirPacket::SetAlternate(interface, setting) => {
            put(out, &[interface, setting], n::SET_ALTERNATE)
        }
        RedirPacket::GetAlternate(interface) => put(out, &[interface], n::GET_ALTERNATE),
        RedirPacket::AlternateStatus(s, interface, setting) => {
            put(out, &[s as u8, interface, setting], n::ALTERNATE_STATUS)
        }
        RedirPacket::StartIsochronous(endpoint, packets, blocks) => {
            put(out, &[endpoint, packets, blocks], n::START_ISOCHRONOUS)
        }
        RedirPacket::StopIsochronous(endpoint) => put(out, &[endpoint], n::STOP_ISOCHRONOUS),
        RedirPacket::IsochronousStatus(s, endpoint) => {
            put(out, &[s as u8, endpoint], n::ISOCHRONOUS_STATUS)
        }
        RedirPacket::StartInterrupt(endpoint) => put(out, &[endpoint], n::START_INTERRUPT),
        RedirPacket::StopInterrupt(endpoint) => put(out, &[endpoint], n::STOP_INTERRUPT),
        RedirPacket::InterruptStatus(s, endpoint) => {
            put(out, &[s as u8, endpoint], n::INTERRUPT_STATUS)
        }
        _ => n::GET_CONFIGURATION,
    }
}

fn put(out: &mut Vec<u8>, bytes: &[u8], number: u32) -> u32 {
    out.extend_from_slice(bytes);
    number
}

fn control(out: &mut Vec<u8>, endpoint: u8, status: u8, setup: Setup) {
    out.extend_from_slice(&[endpoint, setup.request, setup.kind, status]);
    for half in [setup.value, setup.index, setup.length] {
        out.extend_from_slice(&half.to_le_bytes());
    }
}

fn bulk(out: &mut Vec<u8>, data: &Data) {
    let [l0, l1, l2, l3] = data.length.to_le_bytes();
    out.extend_from_slice(&[data.endpoint, data.status as u8, l0, l1]);
    out.extend_from_slice(&data.stream.to_le_bytes());
    out.extend_from_slice(&[l2, l3]);
    out.extend_from_slice(&data.bytes);
}

fn periodic(out: &mut Vec<u8>, data: &Data, number: u32) -> u32 {
    out.extend_from_slice(&[data.endpoint, data.status as u8]);
    out.extend_from_slice(&(data.length as u16).to_le_bytes());
    put(out, &data.bytes, number)
}
