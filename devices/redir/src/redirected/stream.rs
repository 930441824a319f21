//! Streams that continue by themselves once the guest has started them: polling an interrupt
//! endpoint, and isochronous packets both ways, one per service interval.

use super::layout::Endpoint;
use super::transfer::Transfer;
use crate::protocol::{Data, PacketStatus, RedirPacket, TransferType};
use diapason_abi::Nanos;
use diapason_devices::UsbDevice;
use std::collections::VecDeque;

/// Isochronous packets to the device that may wait; QEMU has less than this under way.
const WAITING_MAX: usize = 1024;

/// A stream of one endpoint.
#[derive(Clone, Debug)]
pub(crate) struct Stream {
    endpoint: Endpoint,
    interval: Nanos,
    /// When the next interval begins.
    due: Nanos,
    /// Packets to the device, the next one first.
    waiting: VecDeque<Vec<u8>>,
    /// Number of the next packet to the guest.
    number: u64,
}

impl Stream {
    /// Returns a stream that begins with the next interval; `None` if the endpoint has no
    /// intervals.
    pub fn new(endpoint: Endpoint, now: Nanos) -> Option<Stream> {
        let interval = endpoint.interval()?;
        let due = Nanos(now.0.saturating_sub(now.0 % interval.0)) + interval;
        Some(Stream { endpoint, interval, due, waiting: VecDeque::new(), number: 0 })
    }

    /// Returns the endpoint that streams.
    pub fn endpoint(&self) -> Endpoint {
        self.endpoint
    }

    /// Returns when something is to be done.
    pub fn due(&self) -> Nanos {
        self.due
    }

    /// A packet for one of the next intervals. If there are too many the last is lost, as it would
    /// be on a wire that is behind.
    pub fn queue(&mut self, packet: Vec<u8>) {
        if self.waiting.len() < WAITING_MAX {
            self.waiting.push_back(packet);
        }
    }

    /// One service interval; what the guest gets from it.
    pub fn serve(
        &mut self,
        device: &mut (impl UsbDevice + ?Sized),
        now: Nanos,
    ) -> Option<RedirPacket> {
        self.due += self.interval;
        match self.endpoint.is.is_in() {
            true => self.fetch(device, now),
            false => {
                self.bring(device, now);
                None
            }
        }
    }

    fn fetch(&mut self, device: &mut (impl UsbDevice + ?Sized), now: Nanos) -> Option<RedirPacket> {
        let kind = self.endpoint.kind();
        let mut transfer = Transfer::new(0, kind, self.endpoint.bytes() as usize, Vec::new());
        let ended = transfer.go_on(device, now, self.endpoint);
        let isochronous = kind == TransferType::Isochronous;
        if ended.is_none() && transfer.bytes.is_empty() && !isochronous {
            return None;
        }
        let data = Data {
            endpoint: self.endpoint.is.address,
            status: ended.unwrap_or(PacketStatus::Success),
            length: transfer.bytes.len() as u32,
            stream: 0,
            bytes: transfer.bytes,
        };
        Some(if isochronous {
            RedirPacket::Isochronous(data)
        } else {
            RedirPacket::Interrupt(data)
        })
    }

    fn bring(&mut self, device: &mut (impl UsbDevice + ?Sized), now: Nanos) {
        let Some(bytes) = self.waiting.pop_front() else { return };
        let mut transfer = Transfer::new(0, self.endpoint.kind(), bytes.len(), bytes);
        // Isochronous: nobody asks whether it arrived.
        let _ = transfer.go_on(device, now, self.endpoint);
    }

    /// Returns the identifier of its next packet to the guest.
    pub fn next_number(&mut self) -> u64 {
        let number = self.number;
        self.number += 1;
        number
    }
}
