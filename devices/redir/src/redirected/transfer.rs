//! One transfer of the guest's, packet by packet, as a host controller would do it.

use super::layout::Endpoint;
use crate::protocol::{PacketStatus, TransferType};
use diapason_abi::Nanos;
use diapason_devices::{Answer, Handshake, UsbDevice};

/// A transfer that is under way.
#[derive(Clone, Debug)]
pub(crate) struct Transfer {
    /// The id of the request.
    pub id: u64,
    /// The requested transfer type. The answer has the same type.
    pub kind: TransferType,
    /// To be repeated in the answer.
    pub stream: u32,
    /// Bytes to send, or received so far.
    pub bytes: Vec<u8>,
    /// Bytes wanted, or to be sent.
    pub length: usize,
    sent: usize,
    /// One before it failed.
    is_held: bool,
}

impl Transfer {
    /// Nothing has happened to it yet.
    pub fn new(id: u64, kind: TransferType, length: usize, bytes: Vec<u8>) -> Transfer {
        Transfer { id, kind, stream: 0, bytes, length, sent: 0, is_held: false }
    }

    /// Returns the transfer as if nothing had happened to it.
    pub fn without_data(&self) -> Transfer {
        Transfer { stream: self.stream, ..Transfer::new(self.id, self.kind, 0, Vec::new()) }
    }

    /// Bytes that the device took or gave.
    pub fn done(&self, to_host: bool) -> usize {
        if to_host { self.bytes.len() } else { self.sent }
    }

    /// A bulk transfer before it failed, so the guest's controller has halted the endpoint. It
    /// calls this one back and asks anew, and the device must not notice the first ask. Of a packet
    /// to an interrupt endpoint the guest was told already that it went well.
    pub fn hold(&mut self) {
        self.is_held = self.kind == TransferType::Bulk;
    }

    /// Goes on until it is done or the device has nothing to say; `None` is the latter, and that it
    /// is held.
    pub fn go_on(
        &mut self,
        device: &mut (impl UsbDevice + ?Sized),
        now: Nanos,
        endpoint: Endpoint,
    ) -> Option<PacketStatus> {
        if self.is_held {
            return None;
        }
        loop {
            let step = match endpoint.is.is_in() {
                true => self.fetch(device, now, endpoint),
                false => self.bring(device, now, endpoint),
            };
            match step {
                Step::More => {}
                Step::Wait => return None,
                Step::End(status) => return Some(status),
            }
        }
    }

    /// One packet to the host. A short one ends the transfer.
    fn fetch(
        &mut self,
        device: &mut (impl UsbDevice + ?Sized),
        now: Nanos,
        endpoint: Endpoint,
    ) -> Step {
        let (start, packet) = (self.bytes.len(), usize::from(endpoint.is.packet));
        let room = packet.min(self.length - start);
        self.bytes.resize(start + room, 0);
        let answer = device.send(now, endpoint.is.address, &mut self.bytes[start..]);
        let (kept, step) = match answer {
            Answer::Data(count) if count > room => (room, Step::End(PacketStatus::Babble)),
            Answer::Data(count) if count < packet || start + count == self.length => {
                (count, Step::End(PacketStatus::Success))
            }
            Answer::Data(count) => (count, Step::More),
            Answer::Nak => (0, Step::Wait),
            Answer::Stall => (0, Step::End(PacketStatus::Stall)),
            Answer::Error => (0, Step::End(PacketStatus::Error)),
        };
        self.bytes.truncate(start + kept);
        step
    }

    /// One packet to the device.
    fn bring(
        &mut self,
        device: &mut (impl UsbDevice + ?Sized),
        now: Nanos,
        endpoint: Endpoint,
    ) -> Step {
        let rest = &self.bytes[self.sent..];
        let packet = &rest[..rest.len().min(usize::from(endpoint.is.packet))];
        match device.receive(now, endpoint.is.address, packet) {
            Handshake::Ack => {
                self.sent += packet.len();
                if self.sent == self.bytes.len() {
                    Step::End(PacketStatus::Success)
                } else {
                    Step::More
                }
            }
            Handshake::Nak => Step::Wait,
            Handshake::Stall => Step::End(PacketStatus::Stall),
            Handshake::Error => Step::End(PacketStatus::Error),
        }
    }
}

/// The result of one packet.
enum Step {
    More,
    Wait,
    End(PacketStatus),
}
