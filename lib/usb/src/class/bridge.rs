//! A cable between two computers that is a device to both (PL27A1 and its relatives): frames, each
//! a bulk transfer of its own.
//!
//! The device keeps no order of its own and has no end-to-end check, so each frame has a head:
//!
//! | bytes | |
//! |---|---|
//! | 0–3 | sequence number, from 0 at the start |
//! | 4–5 | bytes of payload |
//! | 6–7 | 1 in the first frame after a start, else 0 |
//! | 8–11 | CRC-32C of the eight bytes before and the payload |
//!
//! All numbers are little-endian. A frame that would end with a full packet gets one byte more, as
//! the device takes a short packet for its end.

use super::flow::{Errand, Inlet, Messages};
use super::{Class, Completion, Request};
use crate::Setup;
use crate::context::EndpointKind;
use crate::descriptor::Configuration;
use diapason_abi::Nanos;

/// Most bytes of payload: an Ethernet frame with its tags.
pub const PAYLOAD_MAX: usize = 1536;
/// Frames that wait to be sent, and how many are pending at once.
pub const FRAMES: usize = 16;
const DEPTH: usize = 8;
const HEAD: usize = 12;
/// A frame with its padding.
const FRAME_MAX: usize = HEAD + PAYLOAD_MAX + 1;
/// Bytes of a transfer from the device: whole packets at every speed.
const TRANSFER: usize = 2048;
/// The other side has so long to take a frame before it counts as gone.
pub const PEER_TIME: Nanos = Nanos::from_millis(100);
/// Vendor request that sets features, and what a start sets: suspend, reset of both pipes, and that
/// somebody is here.
const SET_FEATURES: Setup = Setup { kind: 0x40, request: 3, value: 0x99, index: 0, length: 0 };

/// What it tells.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Event<'a> {
    /// A frame came, whole.
    Frame(&'a [u8]),
    /// So many frames are missing before the next one.
    Lost(u32),
    /// The other side began anew; what it had sent before may be lost.
    PeerStarted,
    /// The other side takes nothing; so many frames are dropped.
    PeerGone(u32),
    /// The other side is there again.
    PeerBack,
    /// The pipes do not work.
    Failed,
}

/// Transfers that were no frames.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Counts {
    /// Shorter than they say, or longer.
    pub malformed: u64,
    /// With another checksum.
    pub damaged: u64,
}

/// A frame is too long, or too many wait.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Refused {
    /// More than [`PAYLOAD_MAX`] bytes.
    TooLong,
    /// Wait until some were sent.
    Busy,
}

/// The driver of one end.
#[derive(Clone, Debug)]
pub struct Bridge {
    errand: Errand,
    failed: bool,
    inlet: Inlet,
    frames: Messages<FRAMES, FRAME_MAX>,
    packet: usize,
    sequence: u32,
    /// Nothing was sent yet.
    silent: bool,
    /// The sequence number that comes next; `None` before the first.
    expected: Option<u32>,
    counts: Counts,
    /// Until when something must be taken; `FOREVER` if nothing is pending.
    patience: Nanos,
    gone: Gone,
}

/// What is known of the other side.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Gone {
    No,
    /// To be cancelled.
    Cancel,
    /// Its frames are being cancelled.
    Cancelling,
    Yes,
}

impl Bridge {
    /// For the first setting with a bulk pair.
    #[must_use]
    pub fn find(configuration: &Configuration<'_>) -> Option<Bridge> {
        configuration.interfaces().filter(|i| i.alternate == 0).find_map(|interface| {
            let input = interface.endpoint(EndpointKind::BulkIn)?;
            let output = interface.endpoint(EndpointKind::BulkOut)?;
            let mut errand = Errand::new();
            errand.begin(SET_FEATURES, &[]);
            Some(Bridge {
                errand,
                failed: false,
                inlet: Inlet::new(input.address, TRANSFER, DEPTH),
                frames: Messages::new(output.address, DEPTH),
                packet: output.packet.max(1).into(),
                sequence: 0,
                silent: true,
                expected: None,
                counts: Counts::default(),
                patience: Nanos::FOREVER,
                gone: Gone::No,
            })
        })
    }

    /// What was no frame so far.
    #[must_use]
    pub const fn counts(&self) -> Counts {
        self.counts
    }

    /// Queues a frame.
    ///
    /// # Errors
    /// It is too long, or there is no room: nothing was queued.
    pub fn send(&mut self, payload: &[u8]) -> Result<(), Refused> {
        if payload.len() > PAYLOAD_MAX {
            return Err(Refused::TooLong);
        }
        if self.frames.room() == 0 || matches!(self.gone, Gone::Cancel | Gone::Cancelling) {
            return Err(Refused::Busy);
        }
        let head = head(self.sequence, self.silent, payload);
        self.silent = false;
        let pad = (HEAD + payload.len()).is_multiple_of(self.packet);
        self.frames.push(&[&head, payload, &[0][..usize::from(pad)]]);
        self.sequence = self.sequence.wrapping_add(1);
        Ok(())
    }

    /// What came in one transfer.
    fn take(&mut self, bytes: &[u8], tell: &mut dyn FnMut(Event<'_>)) {
        let Some((head, rest)) = bytes.split_first_chunk::<HEAD>() else {
            self.counts.malformed += u64::from(!bytes.is_empty());
            return;
        };
        let [s0, s1, s2, s3, l0, l1, f0, f1, ..] = *head;
        let length = usize::from(u16::from_le_bytes([l0, l1]));
        let padded = rest.len() == length + 1;
        let Some(payload) = rest.get(..length).filter(|_| padded || rest.len() == length) else {
            self.counts.malformed += 1;
            return;
        };
        if head[8..] != crc(&[&head[..8], payload]).to_le_bytes() {
            self.counts.damaged += 1;
            return;
        }
        let first = u16::from_le_bytes([f0, f1]) == 1;
        self.sequenced(u32::from_le_bytes([s0, s1, s2, s3]), first, tell);
        tell(Event::Frame(payload));
    }

    /// Is anything missing before the frame with this number?
    fn sequenced(&mut self, number: u32, first: bool, tell: &mut dyn FnMut(Event<'_>)) {
        let expected = self.expected.replace(number.wrapping_add(1));
        let Some(expected) = expected else {
            return;
        };
        match number.wrapping_sub(expected) {
            _ if first => tell(Event::PeerStarted),
            0 => {}
            gap if gap < 1 << 31 => tell(Event::Lost(gap)),
            _ => tell(Event::PeerStarted),
        }
    }

    /// Something went to or came from the other side.
    fn alive(&mut self, tell: &mut dyn FnMut(Event<'_>)) {
        if core::mem::replace(&mut self.gone, Gone::No) == Gone::Yes {
            tell(Event::PeerBack);
        }
    }

    fn sent(&mut self, now: Nanos, done: Completion<'_>, tell: &mut dyn FnMut(Event<'_>)) {
        let sent = self.frames.complete(done.result);
        let idle = self.frames.pipe.pending() == 0;
        self.patience = if idle { Nanos::FOREVER } else { now + PEER_TIME };
        if idle && matches!(self.gone, Gone::Cancel | Gone::Cancelling) {
            self.gone = Gone::Yes;
            let dropped = self.frames.clear() as u32;
            tell(Event::PeerGone(dropped));
        } else if sent && self.gone == Gone::Yes {
            self.alive(tell);
        }
    }
}

impl Class for Bridge {
    type Event<'a> = Event<'a>;

    fn request(&mut self, now: Nanos) -> Option<Request<'_>> {
        if self.failed {
            return None;
        }
        if !self.errand.is_idle() {
            return self.errand.request(now);
        }
        if let Some(request) = self.inlet.request() {
            return Some(request);
        }
        match self.gone {
            Gone::Cancel => {
                self.gone = Gone::Cancelling;
                return Some(Request::Cancel { endpoint: self.frames.pipe.endpoint() });
            }
            Gone::Cancelling => return None,
            Gone::No | Gone::Yes => {}
        }
        let request = self.frames.request();
        if request.is_some() && self.patience == Nanos::FOREVER {
            self.patience = now + PEER_TIME;
        }
        request
    }

    fn complete(&mut self, now: Nanos, done: Completion<'_>, tell: &mut dyn FnMut(Event<'_>)) {
        if done.endpoint == 0 {
            // Some units refuse the request and work all the same.
            let _ = self.errand.end(done.result);
        } else if done.endpoint == self.frames.pipe.endpoint() {
            self.sent(now, done, tell);
        } else if done.endpoint == self.inlet.pipe.endpoint()
            && let Some(bytes) = self.inlet.pipe.end(done.result)
        {
            if self.gone == Gone::Yes {
                self.alive(tell);
            }
            self.take(bytes, tell);
        }
        let dead = self.inlet.pipe.is_dead() || self.frames.pipe.is_dead();
        if dead && !self.failed {
            (self.failed, self.patience) = (true, Nanos::FOREVER);
            tell(Event::Failed);
        }
    }

    fn next_wake(&self) -> Nanos {
        self.errand.next_wake().min(self.patience)
    }

    fn wake(&mut self, now: Nanos, _: &mut dyn FnMut(Event<'_>)) {
        self.errand.wake(now);
        if now >= self.patience && self.patience < Nanos::FOREVER {
            self.patience = Nanos::FOREVER;
            self.gone = Gone::Cancel;
        }
    }
}

fn head(sequence: u32, first: bool, payload: &[u8]) -> [u8; HEAD] {
    let mut head = [0; HEAD];
    head[..4].copy_from_slice(&sequence.to_le_bytes());
    head[4..6].copy_from_slice(&(payload.len() as u16).to_le_bytes());
    head[6] = first.into();
    let crc = crc(&[&head[..8], payload]);
    head[8..].copy_from_slice(&crc.to_le_bytes());
    head
}

/// CRC-32C (Castagnoli), four bits at a time.
fn crc(parts: &[&[u8]]) -> u32 {
    const TABLE: [u32; 16] = table();
    let nibble = |crc: u32, bits: u8| crc >> 4 ^ TABLE[((crc ^ u32::from(bits)) & 0xf) as usize];
    let bytes = parts.iter().copied().flatten();
    !bytes.fold(u32::MAX, |crc, byte| nibble(nibble(crc, *byte), *byte >> 4))
}

const fn table() -> [u32; 16] {
    let mut table = [0; 16];
    let mut index = 0;
    while index < 16 {
        let (mut value, mut bit) = (index as u32, 0);
        while bit < 4 {
            value = if value & 1 != 0 { value >> 1 ^ 0x82f6_3b78 } else { value >> 1 };
            bit += 1;
        }
        table[index] = value;
        index += 1;
    }
    table
}

#[cfg(test)]
mod tests {
    use super::crc;

    /// The check value of the catalogue, and two of RFC 3720.
    #[test]
    fn checksums_are_castagnolis() {
        assert_eq!(crc(&[b"123456789"]), 0xe306_9283);
        assert_eq!(crc(&[b"1234", b"56789"]), 0xe306_9283);
        assert_eq!(crc(&[&[0; 32]]), 0x8a91_36aa);
        assert_eq!(crc(&[&[0xff; 32]]), 0x62a8_ab43);
    }
}
