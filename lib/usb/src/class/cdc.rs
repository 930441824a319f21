//! The descriptors that communication devices (CDC) share: how their interfaces belong together,
//! and the notifications that they send.

use super::TransferFault;
use super::flow::Inlet;
use crate::class::Request;
use crate::context::EndpointKind;
use crate::descriptor::{Configuration, EndpointDescriptor, Interface, Raw};
use crate::setup::descriptor_type::CLASS_INTERFACE;

/// Requests of the class to an interface.
pub(super) const TO_INTERFACE: u8 = 0x21;
/// Class of the interface that carries the data.
const DATA_CLASS: u8 = 10;
/// Descriptor of a class that names the interfaces that belong together.
const UNION: u8 = 6;
/// Bytes of a notification before its data, and most bytes of one that means something here.
const HEAD: usize = 8;
const MOST: usize = 16;
/// How a notification begins.
const FROM_INTERFACE: u8 = 0xa1;

/// Returns the descriptor of this kind in a control interface.
pub(super) fn functional<'a>(control: &Interface<'a>, kind: u8) -> Option<Raw<'a>> {
    control.extras().find(|raw| (raw.kind(), raw.byte(2)) == (CLASS_INTERFACE, kind))
}

/// Returns the setting with both bulk endpoints of the data interface that belongs to a control
/// interface: the one its union names, or the next.
pub(super) fn data_of<'a>(
    all: &Configuration<'a>,
    control: &Interface<'a>,
) -> Option<Interface<'a>> {
    let union = functional(control, UNION);
    let number = union.map_or(control.number.wrapping_add(1), |raw| raw.byte(4));
    all.interfaces().find(|i| {
        i.number == number
            && i.class[0] == DATA_CLASS
            && i.endpoint(EndpointKind::BulkIn).is_some()
            && i.endpoint(EndpointKind::BulkOut).is_some()
    })
}

/// A notification that a device sent.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Notice<'a> {
    pub kind: u8,
    pub value: u16,
    pub data: &'a [u8],
}

/// Listens to notifications; small packets cut them.
#[derive(Clone, Copy, Debug)]
pub(super) struct Notices {
    inlet: Inlet,
    bytes: [u8; MOST],
    length: usize,
}

impl Notices {
    /// Returns the notices of a device, before the first.
    pub fn new(endpoint: EndpointDescriptor) -> Notices {
        let inlet = Inlet::new(endpoint.address, endpoint.packet.into(), 1);
        Notices { inlet, bytes: [0; MOST], length: 0 }
    }

    /// Returns the address of the endpoint for notices.
    pub fn endpoint(&self) -> u8 {
        self.inlet.pipe.endpoint()
    }

    /// Returns the transfer that is to be queued next, if any.
    pub fn request(&mut self) -> Option<Request<'static>> {
        self.inlet.request()
    }

    /// A transfer ended; the notification that is whole with it.
    pub fn end(&mut self, result: Result<&[u8], TransferFault>) -> Option<Notice<'_>> {
        let before = core::mem::take(&mut self.length);
        let part = self.inlet.pipe.end(result)?;
        let count = part.len().min(MOST - before);
        let length = before + count;
        self.bytes[before..length].copy_from_slice(&part[..count]);
        let (head, data) = self.bytes[..length].split_at_checked(HEAD).unwrap_or_default();
        let whole = match *head {
            [from, kind, v0, v1, _, _, l0, l1] => {
                let data = data.get(..usize::from(u16::from_le_bytes([l0, l1])));
                let value = u16::from_le_bytes([v0, v1]);
                data.map(|data| (from, Notice { kind, value, data }))
            }
            _ => None,
        };
        if whole.is_none() && part.len() == self.inlet.length() && length < MOST {
            // It goes on in the next packet.
            self.length = length;
        }
        whole.filter(|(from, _)| *from == FROM_INTERFACE).map(|(_, notice)| notice)
    }
}
