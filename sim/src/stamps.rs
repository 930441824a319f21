//! The clock of a modelled 82574L and its stamps, as silicon has them.
//!
//! SYSTIM advances by one value of TIMINCA every so many ticks of a crystal of 25 MHz, which is not
//! the crystal of the host's clock. Its upper half is not held while the lower one is read. Each
//! direction has room for one stamp: a frame that comes before it was read gets none.

use diapason_abi::Nanos;
use diapason_devices::faulty::OwnClock;
use diapason_ether::adapter::register::{
    RXCFGL, RXSTMPH, RXSTMPL, SYSTIMH, SYSTIML, TIMINCA, TSYNCRXCTL, TSYNCTXCTL, TXSTMPH, TXSTMPL,
};

const CRYSTAL_NS: u64 = 40;
const VALID: u32 = 1;
const TYPE: u32 = 7 << 1;
const ON: u32 = 1 << 4;
/// Types of frames that are stamped: all, and event messages of version 2.
const ALL: u32 = 4 << 1;
const EVENTS: u32 = 5 << 1;
const EVENT_MAX: u8 = 7;
/// The place of the type of a frame, and of the type of a message in it.
const ETHERTYPE: usize = 12;
const MESSAGE: usize = 14;

/// A stamp that waits until it is read.
#[derive(Clone, Copy, Debug, Default)]
struct Stamp {
    control: u32,
    value: u64,
}

impl Stamp {
    /// Takes a stamp if there is none. Returns whether it did.
    fn take(&mut self, value: u64) -> bool {
        let takes = self.control & (ON | VALID) == ON;
        if takes {
            (self.control, self.value) = (self.control | VALID, value);
        }
        takes
    }

    /// Reads the upper half, which makes room for the next stamp.
    fn done(&mut self) -> u32 {
        self.control &= !VALID;
        (self.value >> 32) as u32
    }

    fn set(&mut self, control: u32) {
        self.control = control & (ON | TYPE) | self.control & VALID;
    }
}

/// The clock and the stamps of an adapter.
#[derive(Clone, Debug, Default)]
pub(crate) struct CardStamps {
    crystal: OwnClock,
    timinca: u32,
    config: u32,
    /// SYSTIM at some tick of the crystal.
    base: (u64, u64),
    received: Stamp,
    sent: Stamp,
}

impl CardStamps {
    /// Returns a clock that stands still, with a crystal that sees the host's time so.
    pub fn new(crystal: OwnClock) -> CardStamps {
        CardStamps { crystal, ..CardStamps::default() }
    }

    /// Stops the clock and forgets stamps.
    pub fn reset(&mut self) {
        *self = CardStamps::new(std::mem::take(&mut self.crystal));
    }

    fn ticks(&self, now: Nanos) -> u64 {
        self.crystal.own(now).0 / CRYSTAL_NS
    }

    fn count(&self, now: Nanos) -> u64 {
        let period = u64::from(self.timinca >> 24);
        let (ticks, count) = self.base;
        let passed = self.ticks(now).saturating_sub(ticks).checked_div(period).unwrap_or(0);
        count.wrapping_add(passed.wrapping_mul(u64::from(self.timinca & 0xff_ffff)))
    }

    fn rebase(&mut self, now: Nanos, count: u64) {
        self.base = (self.ticks(now), count);
    }

    /// Reads a register of the clock or the stamps; `None` if it is none of these.
    pub fn read(&mut self, now: Nanos, register: usize) -> Option<u32> {
        Some(match register {
            SYSTIML => self.count(now) as u32,
            SYSTIMH => (self.count(now) >> 32) as u32,
            TIMINCA => self.timinca,
            RXCFGL => self.config,
            TSYNCRXCTL => self.received.control,
            TSYNCTXCTL => self.sent.control,
            RXSTMPL => self.received.value as u32,
            TXSTMPL => self.sent.value as u32,
            RXSTMPH => self.received.done(),
            TXSTMPH => self.sent.done(),
            _ => return None,
        })
    }

    /// Writes a register of the clock or the stamps. Returns whether it is one of these.
    pub fn write(&mut self, now: Nanos, register: usize, value: u32) -> bool {
        let count = self.count(now);
        match register {
            SYSTIML => self.rebase(now, count >> 32 << 32 | u64::from(value)),
            SYSTIMH => self.rebase(now, count & u64::from(u32::MAX) | u64::from(value) << 32),
            TIMINCA => {
                self.rebase(now, count);
                self.timinca = value;
            }
            RXCFGL => self.config = value,
            TSYNCRXCTL => self.received.set(value),
            TSYNCTXCTL => self.sent.set(value),
            RXSTMPL | RXSTMPH | TXSTMPL | TXSTMPH => {}
            _ => return false,
        }
        true
    }

    /// A frame that the driver wants stamped passed the plug.
    pub fn sends(&mut self, at: Nanos) {
        let count = self.count(at);
        self.sent.take(count);
    }

    /// A received frame passed the plug. Returns whether it got a stamp.
    pub fn receives(&mut self, at: Nanos, frame: &[u8]) -> bool {
        let count = self.count(at);
        let own = match self.received.control & TYPE {
            ALL => true,
            EVENTS => self.is_event(frame),
            _ => false,
        };
        own && self.received.take(count)
    }

    fn is_event(&self, frame: &[u8]) -> bool {
        let kind = frame.get(ETHERTYPE..).and_then(<[u8]>::first_chunk);
        let kind = kind.map(|kind| u16::from_be_bytes(*kind));
        let is_event = frame.get(MESSAGE).is_some_and(|kind| kind & 0xf <= EVENT_MAX);
        is_event && kind == Some(self.config as u16)
    }
}
