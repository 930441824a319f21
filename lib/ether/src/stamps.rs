//! Stamps of the 82574L: when a frame passed the plug by the adapter's clock, and what the host's
//! clock said then.
//!
//! The adapter counts on a crystal of its own. A driver reads that count between two looks at the
//! host's clock ([`ClockPair`]), so it knows a stamp by the host's clock up to an error that it
//! computes. The adapter stamps one received frame of gPTP, marks its descriptor, and stamps no
//! other until the stamp was read. The same holds of frames that are sent.

use crate::adapter::register::{
    RAH, RAL, RXCFGL, RXSTMPH, RXSTMPL, SYSTIMH, SYSTIML, TIMINCA, TSYNCRXCTL, TSYNCTXCTL, TXSTMPH,
    TXSTMPL,
};
use crate::adapter::{ADDRESS, AdapterRegisters, RAH_VALID};
use diapason_abi::Nanos;

/// The adapter's clock counts nanoseconds, and advances by so many at once.
pub const TICK_NS: u64 = 40;
/// The clock advances with each tick of its crystal, which has 25 MHz.
const EACH_TICK: u32 = 1 << 24;
const ON: u32 = 1 << 4;
/// Event messages of PTP version 2, whose type is below 8.
const EVENTS: u32 = 5 << 1;
const VALID: u32 = 1;
/// The type of frames with gPTP.
const ETHERTYPE: u32 = 0x88f7;
/// Two reads of the clock in a row that are further apart are no reads: silicon is known to return
/// wrong bits at times.
const SANE_NS: u64 = 131_072;
const READS_MAX: usize = 10;
/// A stamp that is older than this has nothing to do with a frame that was just taken.
const AGE_MAX: u64 = 1_000_000_000;

/// Starts the adapter's clock and its stamps, and lets frames to `group` in. Stamps that are there
/// from before are dropped.
pub fn start(registers: &impl AdapterRegisters, group: [u8; 6]) {
    let [a, b, c, d, e, f] = group;
    registers.write(RAL + ADDRESS, u32::from_le_bytes([a, b, c, d]));
    registers.write(RAH + ADDRESS, u32::from_le_bytes([e, f, 0, 0]) | RAH_VALID);
    registers.write(TIMINCA, EACH_TICK | TICK_NS as u32);
    registers.write(RXCFGL, ETHERTYPE);
    registers.write(TSYNCRXCTL, ON | EVENTS);
    registers.write(TSYNCTXCTL, ON);
    let _ = (registers.read(RXSTMPH), registers.read(TXSTMPH));
}

/// The adapter's count, read between two looks at the host's clock.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ClockPair {
    pub before: Nanos,
    pub adapter: u64,
    pub after: Nanos,
}

impl ClockPair {
    /// Reads both clocks. `None` if the adapter returns no two reads that agree.
    pub fn read(registers: &impl AdapterRegisters, now: impl Fn() -> Nanos) -> Option<ClockPair> {
        let mut last = count(registers);
        for _ in 0..READS_MAX {
            let before = now();
            let adapter = count(registers);
            let after = now();
            let passed = adapter.wrapping_sub(last);
            if passed.is_multiple_of(TICK_NS) && passed < SANE_NS {
                return Some(ClockPair { before, adapter, after });
            }
            last = adapter;
        }
        None
    }

    /// Returns whether both clocks advanced alike since an earlier pair, as far as `apart_ppm` and
    /// the reads allow. An adapter without a clock returns the same count for ever.
    #[must_use]
    pub fn runs_since(&self, earlier: &ClockPair, apart_ppm: u32) -> bool {
        let times = self.before.0.checked_sub(earlier.after.0);
        let counts = self.adapter.checked_sub(earlier.adapter);
        let (Some(least), Some(counted)) = (times, counts) else { return false };
        let most = self.after.0.saturating_sub(earlier.before.0);
        let gained = most.saturating_mul(apart_ppm.into()).div_ceil(1_000_000) + TICK_NS;
        counted > TICK_NS
            && counted.saturating_add(gained) >= least
            && counted <= most.saturating_add(gained)
    }

    /// Returns what the host's clock said at a stamp, and how far that may be off. The rates of the
    /// two clocks differ by at most `apart_ppm`. `None` for a stamp that cannot be of a frame that
    /// the driver was just told of.
    #[must_use]
    pub fn host(&self, stamp: u64, apart_ppm: u32) -> Option<(Nanos, Nanos)> {
        let age = self.adapter.checked_sub(stamp).filter(|age| *age <= AGE_MAX)?;
        let took = self.after.0.checked_sub(self.before.0)?;
        let at = (self.before.0 + took / 2).checked_sub(age)?;
        Some((Nanos(at), stamp_error(Nanos(took), Nanos(age), apart_ppm)))
    }
}

/// Returns how far a stamp by the host's clock may be off, if reading both clocks took `took` and
/// the stamp was `age` old.
///
/// The count was read somewhere within `took`, so half of that. Both counts stood for up to a tick,
/// and their difference is off by less than one. While the stamp aged, one clock gained on the
/// other.
#[must_use]
pub const fn stamp_error(took: Nanos, age: Nanos, apart_ppm: u32) -> Nanos {
    let gained = (age.0 + TICK_NS).saturating_mul(apart_ppm as u64).div_ceil(1_000_000);
    Nanos(took.0.div_ceil(2) + TICK_NS + 1 + gained)
}

/// Returns the adapter's count. Its halves are two registers, and the lower one may have wrapped
/// round between them.
fn count(registers: &impl AdapterRegisters) -> u64 {
    let low = registers.read(SYSTIML);
    let high = registers.read(SYSTIMH);
    let again = registers.read(SYSTIML);
    let (low, high) = if again < low { (again, registers.read(SYSTIMH)) } else { (low, high) };
    u64::from(high) << 32 | u64::from(low)
}

/// Takes the stamp of the last frame that was sent with
/// [`crate::adapter::FrameSender::send_stamped`]; `None` while the adapter has none.
pub fn sent(registers: &impl AdapterRegisters) -> Option<u64> {
    stamp(registers, [TSYNCTXCTL, TXSTMPL, TXSTMPH])
}

fn stamp(registers: &impl AdapterRegisters, [control, low, high]: [usize; 3]) -> Option<u64> {
    if registers.read(control) & VALID == 0 {
        return None;
    }
    let low = registers.read(low);
    // This read lets the adapter stamp the next frame.
    Some(u64::from(registers.read(high)) << 32 | u64::from(low))
}

/// The stamps of received frames.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct ReceiveStamps {
    /// A stamp was there after the last round, and no frame of it had come.
    waits: bool,
    /// Stamps of frames that never came: the adapter had no buffer for them.
    orphans: u64,
}

impl ReceiveStamps {
    /// Takes the stamp of a frame that the driver took and the adapter marked as stamped.
    pub fn take(&mut self, registers: &impl AdapterRegisters) -> Option<u64> {
        self.waits = false;
        stamp(registers, [TSYNCRXCTL, RXSTMPL, RXSTMPH])
    }

    /// Ends a round, in which all frames were taken that were there when it began. A stamp whose
    /// frame did not come until the second round is dropped, so that it locks out no others.
    /// Rounds are further apart than the adapter takes to write a frame.
    pub fn round(&mut self, registers: &impl AdapterRegisters) {
        if registers.read(TSYNCRXCTL) & VALID == 0 {
            self.waits = false;
        } else if core::mem::replace(&mut self.waits, true) {
            let _ = self.take(registers);
            self.orphans += 1;
        }
    }

    /// Returns how many stamps were of frames that never came.
    #[must_use]
    pub const fn orphans(&self) -> u64 {
        self.orphans
    }
}
