//! The TouCAN of Motorola: a CAN controller with sixteen message buffers, each of which sends or
//! receives. Of all buffers that wait to send, the one with the lowest identifier goes first.
//!
//! | file | what |
//! |---|---|
//! | here | its registers and message buffers, as the driver and the model see them |
//! | `controller` | what a driver does with the registers |
//! | `outbox` | which message is in which buffer, and which waits in memory |
//! | `refill` | which buffers interrupt, and whether the driver was in time |
//! | `listening` | the buffers that hear frames of other nodes |
//! | `waiting` | the queue in memory |
//! | `doubts` | messages that were overwritten, and may be on the wire |
//!
//! The module is big-endian and has 16-bit registers. A driver here reads and writes longwords,
//! which reach the module as two accesses, the half with the lower address first.

mod controller;
mod doubts;
mod listening;
mod outbox;
mod refill;
mod waiting;

pub use controller::{ToucanDriver, ToucanRegisters};
pub use listening::BufferedFrame;
pub use outbox::{BufferRefusal, BufferedOutbox, FrameSource, OutboxCounts, STREAMS, Through};

use crate::frame::{BYTES_MAX, CanFrame, extended, standard};
use crate::timing::{BitRate, BitTiming, TimingLimits};
use diapason_abi::Nanos;
use embedded_can::Id;

/// Message buffers of the module.
pub const BUFFERS: usize = 16;
/// Words of a message buffer.
pub const WORDS: usize = 8;
/// The clock of the module on the card that is modelled; descriptions know it, too.
pub const CLOCK_HZ: u32 = 16_000_000;
/// Bytes of the registers.
pub const REGISTERS: usize = 0x200;

/// The registers that are used, by their offset.
pub mod register {
    pub const MCR: usize = 0x80;
    pub const ICR: usize = 0x84;
    pub const CTRL01: usize = 0x86;
    pub const CTRL2: usize = 0x88;
    pub const TIMER: usize = 0x8a;
    /// Masks of all buffers but 14 and 15, of 14 and of 15: two words each.
    pub const RXG: usize = 0x90;
    pub const RX14: usize = 0x94;
    pub const RX15: usize = 0x98;
    pub const ESTAT: usize = 0xa0;
    pub const IMASK: usize = 0xa2;
    pub const IFLAG: usize = 0xa4;
    pub const COUNTERS: usize = 0xa6;
    /// The first message buffer.
    pub const BUFFER: usize = 0x100;
}

/// Bits of the module configuration register.
pub mod mcr {
    pub const STOP: u16 = 1 << 15;
    pub const FREEZE: u16 = 1 << 14;
    pub const HALT: u16 = 1 << 12;
    pub const NOT_READY: u16 = 1 << 11;
    pub const SOFT_RESET: u16 = 1 << 9;
    pub const FREEZE_ACK: u16 = 1 << 8;
    pub const SUPERVISOR: u16 = 1 << 7;
    pub const STOP_ACK: u16 = 1 << 4;
    /// Its value after a reset: the module stands still and waits for its set-up.
    pub const RESET: u16 = 0x5980;
}

/// Bits of the error and status register.
pub mod estat {
    /// A recessive bit was seen dominant.
    pub const BIT: u16 = 1 << 14;
    pub const ACK: u16 = 1 << 13;
    pub const CRC: u16 = 1 << 12;
    pub const FORM: u16 = 1 << 11;
    pub const STUFF: u16 = 1 << 10;
    pub const TX_WARNING: u16 = 1 << 9;
    pub const RX_WARNING: u16 = 1 << 8;
    pub const IDLE: u16 = 1 << 7;
    pub const SENDING: u16 = 1 << 6;
    pub const PASSIVE: u16 = 1 << 4;
    pub const BUS_OFF: u16 = 1 << 5;
    pub const BUS_OFF_FLAG: u16 = 1 << 2;
    pub const ERROR_FLAG: u16 = 1 << 1;
    /// The bits that reading them clears.
    pub const READ_ONCE: u16 = BIT | ACK | CRC | FORM | STUFF;
}

/// Bits of the control registers 0 (upper byte) and 1, as one word.
pub mod ctrl01 {
    pub const BUS_OFF_MASK: u16 = 1 << 15;
    pub const ERROR_MASK: u16 = 1 << 14;
    /// Receives nothing but what the module itself sends.
    pub const LOOP: u16 = 1 << 6;
    /// A frame in buffer 0 sets the timer to 0.
    pub const TIMER_SYNC: u16 = 1 << 5;
    /// The lowest number of a buffer goes first. The model has no such mode: the bit stays 0.
    pub const LOWEST_BUFFER: u16 = 1 << 4;
}

/// The codes of message buffers.
pub mod code {
    pub const INACTIVE: u8 = 0;
    pub const FULL: u8 = 2;
    pub const EMPTY: u8 = 4;
    pub const OVERRUN: u8 = 6;
    /// To send, and nothing to send.
    pub const IDLE: u8 = 8;
    /// A remote frame of its identifier makes it send.
    pub const ANSWER: u8 = 10;
    pub const SEND: u8 = 12;
    /// Sends once, then answers remote frames.
    pub const SEND_THEN_ANSWER: u8 = 14;
}

/// The limits of the timing registers.
pub const LIMITS: TimingLimits =
    TimingLimits { prescaler: (1, 256), before_sample: (2, 16), phase2: (2, 8), jump_max: 4 };

/// Returns the words of CTRL0 and CTRL1, and of PRESDIV and CTRL2, for a bit timing.
#[must_use]
pub fn timing_words(timing: &BitTiming) -> (u16, u16) {
    let of = |value: u32| (value.saturating_sub(1) & 0xff) as u16;
    let ctrl2 = (of(timing.jump) & 3) << 6 | (of(timing.phase1) & 7) << 3 | of(timing.phase2) & 7;
    (of(timing.propagation) & 7, of(timing.prescaler) << 8 | ctrl2)
}

/// Returns the bit timing in these words.
#[must_use]
pub fn timing_of(ctrl01: u16, ctrl2: u16) -> BitTiming {
    let part = |word: u16, at: u32, bits: u16| u32::from(word >> at & bits) + 1;
    BitTiming {
        prescaler: part(ctrl2, 8, 0xff),
        propagation: part(ctrl01, 0, 7),
        phase1: part(ctrl2, 3, 7),
        phase2: part(ctrl2, 0, 7),
        jump: part(ctrl2, 6, 3),
    }
}

const REMOTE: u16 = 1 << 4;
const EXTENDED: u16 = 1 << 3;

/// Returns when a frame of so many bits was over that began at `begun` of the timer: the timer said
/// `timer` just before `now`. The result is too late by up to two bits and the time between reading
/// the timer and `now`, and never too early.
#[must_use]
pub fn ended(rate: BitRate, (begun, timer): (u16, u16), bits: u32, now: Nanos) -> Nanos {
    // Both counts are rounded down.
    let since = u64::from(timer.wrapping_sub(begun)).saturating_sub(1);
    now - rate.time(since) + rate.time(bits.into())
}

/// Returns the two words of an identifier.
#[must_use]
pub fn id_words(id: Id, remote: bool) -> (u16, u16) {
    match id {
        Id::Standard(id) => (id.as_raw() << 5 | if remote { REMOTE } else { 0 }, 0),
        Id::Extended(id) => {
            let raw = id.as_raw();
            let high = (raw >> 18 << 5) as u16 | REMOTE | EXTENDED | (raw >> 15 & 7) as u16;
            (high, ((raw & 0x7fff) << 1) as u16 | u16::from(remote))
        }
    }
}

/// Returns the words of a message buffer with this code and this frame.
#[must_use]
pub fn pack(code: u8, frame: &CanFrame) -> [u16; WORDS] {
    let (high, low) = id_words(frame.id(), frame.is_remote());
    let control = u16::from(code) << 4 | u16::from(frame.code());
    let mut words = [control, high, low, 0, 0, 0, 0, 0];
    for (word, [first, second]) in words[3..].iter_mut().zip(frame.padded().as_chunks::<2>().0) {
        *word = u16::from_be_bytes([*first, *second]);
    }
    words
}

/// Returns the code of a message buffer.
#[must_use]
pub fn code_of(words: &[u16; WORDS]) -> u8 {
    (words[0] >> 4 & 15) as u8
}

/// Returns the frame in a message buffer.
#[must_use]
pub fn unpack(words: &[u16; WORDS]) -> Option<CanFrame> {
    let [control, high, low, data @ ..] = words;
    let (id, remote) = match high & EXTENDED {
        0 => (standard(u32::from(high >> 5)).ok()?, high & REMOTE != 0),
        _ => {
            let raw = u32::from(high >> 5) << 18 | u32::from(high & 7) << 15;
            (extended(raw | u32::from(low >> 1)).ok()?, low & 1 != 0)
        }
    };
    let length = (control & 15) as u8;
    if remote {
        return CanFrame::remote(id, length.into()).ok();
    }
    let mut bytes = [0; BYTES_MAX];
    for (pair, word) in bytes.as_chunks_mut::<2>().0.iter_mut().zip(data) {
        *pair = word.to_be_bytes();
    }
    let count = usize::from(length).min(BYTES_MAX);
    CanFrame::data(id, &bytes[..count]).ok()?.with_code(length).ok()
}
