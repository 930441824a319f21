//! From bytes to packets, however they are cut. Total: any bytes give packets or a refusal.

use super::fields::{Fields, Malformed};
use super::info::decode_endpoints;
use super::number as n;
use super::{
    AddressedPacket, CAPABILITIES_NEEDED, Connect, Data, HEADER, HEADER_HELLO, Interfaces,
    LENGTH_MAX, RedirPacket, VERSION_BYTES,
};
use diapason_usb::Setup;

/// Takes bytes, gives packets.
#[derive(Clone, Debug, Default)]
pub struct PacketDecoder {
    bytes: Vec<u8>,
    /// Where the bytes begin that are not yet decoded.
    start: usize,
    greeted: bool,
}

impl PacketDecoder {
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
    pub fn decode(&mut self) -> Result<Option<AddressedPacket>, Malformed> {
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
        Ok(Some(AddressedPacket { id, packet }))
    }
}

fn packet(kind: u32, mut f: Fields<'_>) -> Result<RedirPacket, Malformed> {
    Ok(match kind {
        n::HELLO => hello(&mut f)?,
        n::CONNECT => RedirPacket::Connect(Connect::decode(&mut f)?),
        n::DISCONNECT => RedirPacket::Disconnect,
        n::RESET => RedirPacket::Reset,
        n::INTERFACES => RedirPacket::Interfaces(Interfaces::decode(&mut f)?),
        n::ENDPOINTS => RedirPacket::Endpoints(decode_endpoints(&mut f)?),
        n::SET_CONFIGURATION => RedirPacket::SetConfiguration(f.byte()?),
        n::GET_CONFIGURATION => RedirPacket::GetConfiguration,
        n::CONFIGURATION_STATUS => RedirPacket::ConfigurationStatus(f.status()?, f.byte()?),
        n::SET_ALTERNATE => RedirPacket::SetAlternate(f.byte()?, f.byte()?),
        n::GET_ALTERNATE => RedirPacket::GetAlternate(f.byte()?),
        n::ALTERNATE_STATUS => RedirPacket::AlternateStatus(f.status()?, f.byte()?, f.byte()?),
        n::START_ISOCHRONOUS => RedirPacket::StartIsochronous(f.byte()?, f.byte()?, f.byte()?),
        n::STOP_ISOCHRONOUS => RedirPacket::StopIsochronous(f.byte()?),
        n::ISOCHRONOUS_STATUS => RedirPacket::IsochronousStatus(f.status()?, f.byte()?),
        n::START_INTERRUPT => RedirPacket::StartInterrupt(f.byte()?),
        n::STOP_INTERRUPT => RedirPacket::StopInterrupt(f.byte()?),
        n::INTERRUPT_STATUS => RedirPacket::InterruptStatus(f.status()?, f.byte()?),
        n::CANCEL => RedirPacket::Cancel,
        n::FILTER_REJECT => RedirPacket::FilterReject,
        n::FILTER => RedirPacket::Filter(f.left()),
        n::DISCONNECT_ACKNOWLEDGED => RedirPacket::DisconnectAcknowledged,
        n::CONTROL => control(&mut f)?,
        n::BULK => RedirPacket::Bulk(bulk(&mut f)?),
        n::ISOCHRONOUS => RedirPacket::Isochronous(periodic(&mut f)?),
        n::INTERRUPT => RedirPacket::Interrupt(periodic(&mut f)?),
        _ => return Err(Malformed::Kind(kind)),
    })
}

fn hello(f: &mut Fields<'_>) -> Result<RedirPacket, Malformed> {
    let _version: [u8; VERSION_BYTES] = f.bytes()?;
    let capabilities = f.word()?;
    if capabilities & CAPABILITIES_NEEDED != CAPABILITIES_NEEDED {
        return Err(Malformed::Capabilities(capabilities));
    }
    Ok(RedirPacket::Hello(capabilities))
}

fn control(f: &mut Fields<'_>) -> Result<RedirPacket, Malformed> {
    let (endpoint, request, kind) = (f.byte()?, f.byte()?, f.byte()?);
    let status = f.status()?;
    let (value, index, length) = (f.half()?, f.half()?, f.half()?);
    let setup = Setup { kind, request, value, index, length };
    Ok(RedirPacket::Control(endpoint, status, setup, f.rest(usize::from(length))?))
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
