//! Sending: a stream of bytes, or messages.

use super::Pipe;
use crate::class::{Request, TransferFault};

/// Sends from a buffer of `N` bytes; what a fault kept is sent again.
#[derive(Clone, Copy, Debug)]
pub(in crate::class) struct Outlet<const N: usize> {
    pub(in crate::class) pipe: Pipe,
    packet: usize,
    bytes: [u8; N],
    length: usize,
    sending: usize,
    /// The last packet was full, so the other side does not know that it was the last.
    open: bool,
}

impl<const N: usize> Outlet<N> {
    pub(in crate::class) const fn new(endpoint: u8, packet: u16) -> Outlet<N> {
        let packet = if packet == 0 { 1 } else { packet as usize };
        let pipe = Pipe::new(endpoint);
        Outlet { pipe, packet, bytes: [0; N], length: 0, sending: 0, open: false }
    }

    /// Takes as many bytes as there is room for.
    pub(in crate::class) fn write(&mut self, bytes: &[u8]) -> usize {
        let count = bytes.len().min(N - self.length);
        self.bytes[self.length..self.length + count].copy_from_slice(&bytes[..count]);
        self.length += count;
        count
    }

    pub(in crate::class) fn request(&mut self) -> Option<Request<'_>> {
        if let Some(recovery) = self.pipe.recovery() {
            return Some(recovery);
        }
        let nothing = self.length == 0 && !self.open;
        if nothing || !self.pipe.is_good() || self.pipe.pending() > 0 {
            return None;
        }
        self.pipe.start();
        self.sending = self.length;
        Some(Request::Out { endpoint: self.pipe.endpoint(), data: &self.bytes[..self.length] })
    }

    /// True if bytes went out, or the packet that says there are no more.
    pub(in crate::class) fn complete(&mut self, result: Result<&[u8], TransferFault>) -> bool {
        let Some(moved) = self.pipe.end(result) else { return false };
        let count = moved.len().min(self.sending).min(self.length);
        if count == 0 && self.sending > 0 {
            self.pipe.fail();
            return false;
        }
        self.bytes.copy_within(count..self.length, 0);
        self.length -= count;
        self.open = count > 0 && count % self.packet == 0 && self.length == 0;
        true
    }
}

/// Sends messages, each as a transfer of its own, several at once: room for `ROOM` of `BYTES`
/// bytes.
#[derive(Clone, Copy, Debug)]
pub(in crate::class) struct Messages<const ROOM: usize, const BYTES: usize> {
    pub(in crate::class) pipe: Pipe,
    bytes: [[u8; BYTES]; ROOM],
    lengths: [usize; ROOM],
    first: usize,
    length: usize,
    depth: usize,
}

impl<const ROOM: usize, const BYTES: usize> Messages<ROOM, BYTES> {
    /// Returns an empty queue with at most `depth` transfers pending at once.
    pub(in crate::class) const fn new(endpoint: u8, depth: usize) -> Messages<ROOM, BYTES> {
        let (bytes, lengths) = ([[0; BYTES]; ROOM], [0; ROOM]);
        Messages { pipe: Pipe::new(endpoint), bytes, lengths, first: 0, length: 0, depth }
    }

    /// Returns how many more there is room for.
    pub(in crate::class) const fn room(&self) -> usize {
        ROOM - self.length
    }

    /// Queues a message made of these parts; false if there is no room for it.
    pub(in crate::class) fn push(&mut self, parts: &[&[u8]]) -> bool {
        let total: usize = parts.iter().map(|part| part.len()).sum();
        if self.length == ROOM || total > BYTES {
            return false;
        }
        let place = (self.first + self.length) % ROOM;
        let mut at = 0;
        for part in parts {
            self.bytes[place][at..at + part.len()].copy_from_slice(part);
            at += part.len();
        }
        self.lengths[place] = total;
        self.length += 1;
        true
    }

    pub(in crate::class) fn request(&mut self) -> Option<Request<'_>> {
        if let Some(recovery) = self.pipe.recovery() {
            return Some(recovery);
        }
        let sent = self.pipe.pending();
        if !self.pipe.is_good() || sent >= self.length.min(self.depth) {
            return None;
        }
        self.pipe.start();
        let place = (self.first + sent) % ROOM;
        let data = &self.bytes[place][..self.lengths[place]];
        Some(Request::Out { endpoint: self.pipe.endpoint(), data })
    }

    /// A transfer ended; true if its message went out. One that did not stays the first and is sent
    /// again.
    pub(in crate::class) fn complete(&mut self, result: Result<&[u8], TransferFault>) -> bool {
        let sent = self.pipe.end(result).is_some() && self.length > 0;
        if sent {
            self.first = (self.first + 1) % ROOM;
            self.length -= 1;
        }
        sent
    }
}
