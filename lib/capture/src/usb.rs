//! A USB transfer's beginning or end, as Linux's usbmon shows it (the 64-byte header).

use alloc::vec::Vec;
use diapason_abi::Nanos;

/// Kinds of transfers; the numbers of usbmon are not those of USB.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum TransferKind {
    /// Guaranteed time, no retries.
    Isochronous = 0,
    Interrupt = 1,
    Control = 2,
    Bulk = 3,
}

/// How a transfer ended; Linux's error numbers say it in the file.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum TransferStatus {
    /// Well, perhaps with less data than asked for.
    Success = 0,
    /// The endpoint is halted.
    Stall = -32,
    /// No answer, or a damaged one.
    Error = -71,
    /// More data than asked for.
    Overflow = -75,
    Cancelled = -104,
    /// The transfer's time had gone by.
    Missed = -18,
    /// The transfer made no sense.
    Invalid = -22,
}

/// The step of a transfer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum TransferStep {
    Submitted,
    Completed(TransferStatus),
}

/// The beginning or the end of a transfer.
#[derive(Clone, Copy, Debug)]
pub struct UsbmonEvent<'a> {
    pub time: Nanos,
    /// The number of the transfer, equal for its beginning and its end.
    pub id: u64,
    pub kind: TransferKind,
    /// The endpoint's address; the highest bit is set if data goes to the host.
    pub endpoint: u8,
    pub device: u8,
    pub bus: u16,
    pub step: TransferStep,
    /// The request of a control transfer.
    pub setup: Option<[u8; 8]>,
    /// Bytes asked for, or moved.
    pub length: u32,
    /// The bytes that are known with this event: at the beginning those for the device, at the end
    /// those from it.
    pub data: &'a [u8],
}

/// Bytes of the header.
const HEADER: usize = 64;
/// The highest bit of an endpoint's address.
const IN: u8 = 0x80;
/// Linux's number for a transfer that goes on.
const IN_PROGRESS: i32 = -115;
/// Linux's flag of transfers to the host.
const FLAG_IN: u32 = 0x0200;
/// Marks a field as absent.
const ABSENT: u8 = b'-';

impl UsbmonEvent<'_> {
    fn is_in(&self) -> bool {
        self.endpoint & IN != 0
    }

    fn status(&self) -> i32 {
        match self.step {
            TransferStep::Submitted => IN_PROGRESS,
            TransferStep::Completed(status) => status as i32,
        }
    }

    /// Returns why there are no data, as a letter; 0 if there are, or if there could be.
    fn data_flag(&self) -> u8 {
        match (self.data.is_empty(), self.step, self.is_in()) {
            (true, TransferStep::Submitted, true) => b'<',
            (true, TransferStep::Completed(_), false) => b'>',
            _ => 0,
        }
    }

    /// Returns the descriptor of the one packet of an isochronous transfer.
    fn packet_descriptor(&self) -> Option<[u8; 16]> {
        (self.kind == TransferKind::Isochronous).then(|| {
            let mut bytes = [0; 16];
            let status = if self.step == TransferStep::Submitted { 0 } else { self.status() };
            bytes[0..4].copy_from_slice(&status.to_le_bytes());
            bytes[8..12].copy_from_slice(&self.length.to_le_bytes());
            bytes
        })
    }

    /// Returns the packet of a file of [`crate::pcap::LinkType::Usb`].
    #[must_use]
    pub fn bytes(&self) -> Vec<u8> {
        let descriptor = self.packet_descriptor();
        let descriptor = descriptor.as_ref().map_or(&[][..], |bytes| &bytes[..]);
        let mut bytes = Vec::with_capacity(HEADER + descriptor.len() + self.data.len());
        self.put_head(&mut bytes, (descriptor.len() + self.data.len()) as u32);
        self.put_tail(&mut bytes, (descriptor.len() / 16) as u32);
        bytes.extend(descriptor);
        bytes.extend(self.data);
        bytes
    }

    /// The first 40 bytes: which transfer, when, how long.
    fn put_head(&self, bytes: &mut Vec<u8>, kept: u32) {
        let setup = self.setup.filter(|_| self.step == TransferStep::Submitted);
        bytes.extend(self.id.to_le_bytes());
        bytes.push(if self.step == TransferStep::Submitted { b'S' } else { b'C' });
        bytes.extend([self.kind as u8, self.endpoint, self.device]);
        bytes.extend(self.bus.to_le_bytes());
        bytes.push(if setup.is_some() { 0 } else { ABSENT });
        bytes.push(self.data_flag());
        bytes.extend((self.time.0 / 1_000_000_000).to_le_bytes());
        bytes.extend(((self.time.0 % 1_000_000_000 / 1_000) as u32).to_le_bytes());
        bytes.extend(self.status().to_le_bytes());
        bytes.extend(self.length.to_le_bytes());
        bytes.extend(kept.to_le_bytes());
    }

    /// The other 24: the request or the packets, interval and first frame (unknown), flags.
    fn put_tail(&self, bytes: &mut Vec<u8>, packets: u32) {
        let setup = self.setup.filter(|_| self.step == TransferStep::Submitted);
        let failed = matches!(
            self.step, TransferStep::Completed(status) if status != TransferStatus::Success
        );
        let mut counts = [0; 8];
        counts[0..4].copy_from_slice(&(packets * u32::from(failed)).to_le_bytes());
        counts[4..8].copy_from_slice(&packets.to_le_bytes());
        bytes.extend(setup.unwrap_or(counts));
        bytes.extend([0; 8]);
        bytes.extend(if self.is_in() { FLAG_IN } else { 0 }.to_le_bytes());
        bytes.extend(packets.to_le_bytes());
    }
}
