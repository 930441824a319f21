//! From packets to bytes.

use super::info::encode_endpoints;
use super::number as n;
use super::{Data, Message, Packet, VERSION_BYTES};
use diapason_usb::Setup;

/// The version text of our hello.
const VERSION: &[u8] = b"diapason device server";

/// Appends a packet to `out`.
pub fn encode(message: &Message, out: &mut Vec<u8>) {
    let start = out.len();
    let is_hello = matches!(message.packet, Packet::Hello(_));
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
fn body_of(packet: &Packet, out: &mut Vec<u8>) -> u32 {
    match packet {
        Packet::Hello(capabilities) => {
            out.extend_from_slice(VERSION);
            out.extend(std::iter::repeat_n(0, VERSION_BYTES - VERSION.len()));
            put(out, &capabilities.to_le_bytes(), n::HELLO)
        }
        Packet::Connect(connect) => {
            connect.encode(out);
            n::CONNECT
        }
        Packet::Disconnect => n::DISCONNECT,
        Packet::Reset => n::RESET,
        Packet::Interfaces(interfaces) => {
            interfaces.encode(out);
            n::INTERFACES
        }
        Packet::Endpoints(endpoints) => {
            encode_endpoints(endpoints, out);
            n::ENDPOINTS
        }
        Packet::Cancel => n::CANCEL,
        Packet::FilterReject => n::FILTER_REJECT,
        Packet::Filter(rules) => put(out, rules, n::FILTER),
        Packet::DisconnectAcknowledged => n::DISCONNECT_ACKNOWLEDGED,
        Packet::Control(endpoint, status, setup, bytes) => {
            control(out, *endpoint, *status as u8, *setup);
            put(out, bytes, n::CONTROL)
        }
        Packet::Bulk(data) => {
            bulk(out, data);
            n::BULK
        }
        Packet::Isochronous(data) => periodic(out, data, n::ISOCHRONOUS),
        Packet::Interrupt(data) => periodic(out, data, n::INTERRUPT),
        _ => small(packet, out),
    }
}

/// The packets of a few bytes.
fn small(packet: &Packet, out: &mut Vec<u8>) -> u32 {
    match *packet {
        Packet::SetConfiguration(value) => put(out, &[value], n::SET_CONFIGURATION),
        Packet::ConfigurationStatus(s, value) => {
            put(out, &[s as u8, value], n::CONFIGURATION_STATUS)
        }
        Packet::SetAlternate(interface, setting) => {
            put(out, &[interface, setting], n::SET_ALTERNATE)
        }
        Packet::GetAlternate(interface) => put(out, &[interface], n::GET_ALTERNATE),
        Packet::AlternateStatus(s, interface, setting) => {
            put(out, &[s as u8, interface, setting], n::ALTERNATE_STATUS)
        }
        Packet::StartIsochronous(endpoint, packets, blocks) => {
            put(out, &[endpoint, packets, blocks], n::START_ISOCHRONOUS)
        }
        Packet::StopIsochronous(endpoint) => put(out, &[endpoint], n::STOP_ISOCHRONOUS),
        Packet::IsochronousStatus(s, endpoint) => {
            put(out, &[s as u8, endpoint], n::ISOCHRONOUS_STATUS)
        }
        Packet::StartInterrupt(endpoint) => put(out, &[endpoint], n::START_INTERRUPT),
        Packet::StopInterrupt(endpoint) => put(out, &[endpoint], n::STOP_INTERRUPT),
        Packet::InterruptStatus(s, endpoint) => put(out, &[s as u8, endpoint], n::INTERRUPT_STATUS),
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
