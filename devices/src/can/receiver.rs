//! A node that receives: its program reads one frame in each turn of its loop.
//!
//! Its controller has two buffers. A frame of eight bytes takes 222 to 266 us at 500 kbit/s. Where
//! a turn of the loop takes longer, the receiver must hold the sender back, and CAN has one means
//! for that: while both buffers are full it asks for overload frames. The standard allows two of
//! them, 60 us, between two frames. This receiver asks for up to four.
//!
//! It says how far it is with frames of its own: [`RECEIPT_ID`], the frames it has read, and how
//! many numbers did not follow the one before.

use diapason_abi::Nanos;
use diapason_can::bus::{NodeId, NodeSetup, PortError};
use diapason_can::frame::standard;
use diapason_can::wire::OVERLOADS;
use diapason_can::{AnyFrame, Bus, CanFrame};
use diapason_random::Random;

/// The identifier of its receipts: more urgent than what it receives, which never ends.
pub const RECEIPT_ID: u32 = 0x00e;

/// A receipt after so many frames, and when nothing came for so long.
const FRAMES: u32 = 4_096;
const PAUSE: Nanos = Nanos::from_millis(5);
/// Buffers of its controller.
const BUFFERS: usize = 2;

/// Returns the settings of its controller.
pub(super) fn setup() -> NodeSetup {
    NodeSetup { inbox: BUFFERS, overloads: OVERLOADS, fd: true, ..NodeSetup::default() }
}

/// The program of such a node.
pub(super) struct Receiver {
    pub node: NodeId,
    turn: (Nanos, Nanos),
    random: Random,
    /// The time at which the program looks into its controller.
    look_at: Nanos,
    /// The program found nothing when it looked last: it reads as soon as something comes.
    idle: bool,
    /// The number that must come.
    expected: u64,
    /// Frames read, those that were wrong, and frames read at the last receipt.
    read: u32,
    wrong: u32,
    told: u32,
}

impl Receiver {
    /// Returns a receiver that has read nothing.
    pub fn new(node: NodeId, turn: (Nanos, Nanos), seed: u64) -> Receiver {
        let random = Random::new(seed);
        let (look_at, idle) = (Nanos::FOREVER, true);
        Receiver { node, turn, random, look_at, idle, expected: 0, read: 0, wrong: 0, told: 0 }
    }

    /// Returns when it does something.
    pub fn next(&self) -> Nanos {
        self.look_at
    }

    /// Something came at `time`.
    pub fn wake(&mut self, time: Nanos) {
        if self.idle {
            (self.idle, self.look_at) = (false, time);
        }
    }

    /// A turn of its loop.
    pub fn act(&mut self, bus: &mut Bus) {
        let now = self.look_at;
        let received = bus.port(now, self.node).receive_any();
        match received {
            Ok(frame) => {
                self.check(&frame);
                let turn = self.random.between(self.turn.0.0, self.turn.1.0);
                self.look_at = now + Nanos(turn);
                if self.read - self.told >= FRAMES {
                    self.tell(bus, now);
                }
            }
            // Frames were lost: their numbers will be missed. It looks again at once.
            Err(nb::Error::Other(PortError::Overrun)) => {}
            Err(_) if self.idle => {
                self.tell(bus, now);
                self.look_at = Nanos::FOREVER;
            }
            Err(_) => {
                let silent = self.read == self.told;
                (self.idle, self.look_at) =
                    (true, if silent { Nanos::FOREVER } else { now + PAUSE });
            }
        }
    }

    /// Checks the number of a frame. A frame with more bytes has its number in them again and
    /// again.
    fn check(&mut self, frame: &AnyFrame) {
        let number = frame.bytes().first_chunk().map_or(u64::MAX, |it| u64::from_le_bytes(*it));
        let whole = frame.bytes().chunks(8).all(|part| number.to_le_bytes().starts_with(part));
        self.wrong += u32::from(number != self.expected || !whole);
        self.expected = number.wrapping_add(1);
        self.read += 1;
    }

    fn tell(&mut self, bus: &mut Bus, now: Nanos) {
        let ([a, b, c, d], [e, f, g, h]) = (self.read.to_le_bytes(), self.wrong.to_le_bytes());
        let receipt = standard(RECEIPT_ID).ok();
        let receipt = receipt.and_then(|id| CanFrame::data(id, &[a, b, c, d, e, f, g, h]).ok());
        // A full queue has older receipts: the next one says what this one would have.
        if let Some(receipt) = receipt
            && bus.send(now, self.node, receipt).is_ok()
        {
            self.told = self.read;
        }
    }
}
