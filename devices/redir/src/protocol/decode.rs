//! From bytes to packets, however they are cut. Total: any bytes give packets or a refusal.

use super::fields::{Fields, Malformed};
use super::info::decode_endpoints;
use super::number as n;
use super::{
    CAPABILITIES_NEEDED, Connect, Data, HEADER, HEADER_HELLO, Interfaces, LENGTH_MAX, Message,
    Packet, VERSION_BYTES,
};
use diapason_usb::Setup;

/// Takes bytes, gives packets.
#[derive(Clone, Debug, Default)]
pub struct Decoder {
    bytes: Vec<u8>,
    /// Where the bytes begin that are not yet decoded.
    start: usize,
    greeted: bool,
}

impl Decoder {
    /// More bytes have come.
    pub fn push(&mut self, bytes: &[u8]) {
        self.bytes.drain(..self.start);
        self.start = 0;
        self.bytes.extend_from_slice(bytes);
    }

    /// Returns whether the beginning of a packet is there and not the whole packet.
    #[must_use]
    pub fn is_partial(&self) -> bool {
        self.start < self.bytes.len()
    }

    /// The next whole packet.
    ///
    /// # Errors
    /// If the bytes make none; there is no way to go on after that.
    pub fn decode(&mut self) -> Result<Option<Message>, Malformed> {
        let rest = self.bytes.get(self.start..).unwrap_or_default();
        let header = if self.greeted { HEADER } else { HEADER_HELLO };
        let Some((head, body)) = rest.split_at_checked(header) else { return Ok(None) };
        let mut head = Fields::new(head, 0);
        let (kind, length) = (head.word()?, head.word()?);
        if (kind == n::HELLO) == self.greeted {
            return Err(Malformed::Hello);
        }
        if length as usize > LENGTH_MAX {
            return Err(Malformed::Length(length));
        }
        let Some(body) = body.get(..length as usize) else { return Ok(None) };
        let id = if self.greeted { head.long()? } else { u64::from(head.word()?) };
        let packet = packet(kind, Fields::new(body, kind))?;
        self.greeted = true;
        self.start += header + length as usize;
        Ok(Some(Message { id, packet }))
    }
}

fn packet(kind: u32, mut f: Fields<'_>) -> Result<Packet, Malformed> {
    Ok(match kind {
        n::HELLO => hello(&mut f)?,
        n::CONNECT => Packet::Connect(Connect::decode(&mut f)?),
        n::DISCONNECT => Packet::Disconnect,
        n::RESET => Packet::Reset,
        n::INTERFACES => Packet::Interfaces(Interfaces::decode(&mut f)?),
        n::ENDPOINTS => Packet::Endpoints(decode_endpoints(&mut f)?),
        n::SET_CONFIGURATION => Packet::SetConfiguration(f.byte()?),
        n::GET_CONFIGURATION => Packet::GetConfiguration,
        n::CONFIGURATION_STATUS => Packet::ConfigurationStatus(f.status()?, f.byte()?),
        n::SET_ALTERNATE => Packet::SetAlternate(f.byte()?, f.byte()?),
        n::GET_ALTERNATE => Packet::GetAlternate(f.byte()?),
        n::ALTERNATE_STATUS => Packet::AlternateStatus(f.status()?, f.byte()?, f.byte()?),
        n::START_ISOCHRONOUS => Packet::StartIsochronous(f.byte()?, f.byte()?, f.byte()?),
        n::STOP_ISOCHRONOUS => Packet::StopIsochronous(f.byte()?),
        n::ISOCHRONOUS_STATUS => Packet::IsochronousStatus(f.status()?, f.byte()?),
        n::START_INTERRUPT => Packet::StartInterrupt(f.byte()?),
        n::STOP_INTERRUPT => Packet::StopInterrupt(f.byte()?),
        n::INTERRUPT_STATUS => Packet::InterruptStatus(f.status()?, f.byte()?),
        n::CANCEL => Packet::Cancel,
        n::FILTER_REJECT => Packet::FilterReject,
        n::FILTER => Packet::Filter(f.left()),
        n::DISCONNECT_ACKNOWLEDGED => Packet::DisconnectAcknowledged,
        n::CONTROL => control(&mut f)?,
        n::BULK => Packet::Bulk(bulk(&mut f)?),
        n::ISOCHRONOUS => Packet::Isochronous(periodic(&mut f)?),
        n::INTERRUPT => Packet::Interrupt(periodic(&mut f)?),
        _ => return Err(Malformed::Kind(kind)),
    })
}

fn hello(f: &mut Fields<'_>) -> Result<Packet, Malformed> {
    let _version: [u8; VERSION_BYTES] = f.bytes()?;
    let capabilities = f.word()?;
    if capabilities & CAPABILITIES_NEEDED != CAPABILITIES_NEEDED {
        return Err(Malformed::Capabilities(capabilities));
    }
    Ok(Packet::Hello(capabilities))
}

fn control(f: &mut Fields<'_>) -> Result<Packet, Malformed> {
    let (endpoint, request, kind) = (f.byte()?, f.byte()?, f.byte()?);
    let status = f.status()?;
    let (value, index, length) = (f.half()?, f.half()?, f.half()?);
    let setup = Setup { kind, request, value, index, length };
    Ok(Packet::Control(endpoint, status, setup, f.rest(usize::from(length))?))
}

fn bulk(f: &mut Fields<'_>) -> Result<Data, Malformed> {
    let (endpoint, status, low) = (f.byte()?, f.status()?, f.half()?);
    let (stream, high) = (f.word()?, f.half()?);
    let length = u32::from(high) << 16 | u32::from(low);
    if length as usize > LENGTH_MAX {
        return Err(Malformed::Length(length));
    }
    Ok(Data { endpoint, status, length, stream, bytes: f.rest(length as usize)? })
}

fn periodic(f: &mut Fields<'_>) -> Result<Data, Malformed> {
    let (endpoint, status, length) = (f.byte()?, f.status()?, u32::from(f.half()?));
    Ok(Data { endpoint, status, length, stream: 0, bytes: f.rest(length as usize)? })
}
