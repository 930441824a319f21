//! The mixed traffic scheduler [EMERALDS 1998, chapter 7]: identifiers of 11 bits with deadlines.
//!
//! ```text
//! high-speed      0 | region of the deadline: 5 | code: 5     earliest deadline first, then code
//! low-speed       1 0 | priority: 9                           deadline-monotonic
//! non-real-time   1 1 | number: 9                             below all others
//! ```
//! There the bus is drawn as a wired OR; here 0 is dominant, as on the wire, so its bits are
//! inverted and the smaller number wins. Codes and priorities are ranks: 0 is the most urgent.
//!
//! Deadlines are *start-by* times (deadline less the frame) on synchronised clocks, counted in
//! regions from the start of the epoch. Its region `(ℓ + D_max) / 2^m` need not divide the
//! epoch ℓ; then the order of two waiting messages changes when the epoch does. Here an epoch is a
//! whole number of regions, so that regions are the same for all time and the order is one order.

mod choice;
mod clock;
pub mod life;
mod node;
mod promise;
mod renewal;
mod terms;

pub use clock::BusClock;
pub use node::{NodeDuty, NodeTime, Oscillator};
pub use promise::{
    HighSpeed, MtsSet, NoPromise, Queued, Renewing, Tightest, UPDATE_BITS, Unmet, high_speed,
    low_speed, tightest,
};
pub use renewal::{Duty, RENEW_FROM_BITS, RENEW_UNTIL_BITS, Renewal, beacon_id, longest_renewal};
pub use terms::{TIME_BYTES, TimeBase, TimeFrame, TimeRefusal, TimeTerms};

use crate::filter::Filter;
use crate::frame::{BYTES_MAX, CanFrame, FrameRefusal};
use core::fmt;
use diapason_abi::Nanos;
use embedded_can::StandardId;

/// Regions that five bits tell apart.
pub const REGIONS: u64 = 32;
pub const HIGH_SPEED: u16 = 32;
pub const LOW_SPEED: u16 = 512;
/// Different non-real-time messages. CAN forbids identifiers that begin with seven recessive bits
/// ([EMERALDS 1998] says six, and counts 480): 16 of 512 are lost.
pub const NON_REAL_TIME: u16 = 496;
/// The last numbers of those are of the frames with which nodes end an epoch if nobody else does.
pub const BEACONS: u16 = 64;

/// The three kinds of identifiers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IdentifierClass {
    HighSpeed {
        /// Region of its start-by time, from the start of the epoch.
        region: u8,
        /// The message's rank among those of one region, and its name for receivers.
        code: u8,
    },
    LowSpeed {
        priority: u16,
    },
    NonRealTime {
        number: u16,
    },
}

/// Why there is no such identifier: the caller's mistake.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MtsRefusal {
    /// A code, priority or number beyond what the class holds.
    TooMany {
        given: u16,
        /// How many the class holds, counted from 0.
        holds: u16,
    },
    /// A start-by time beyond the last region.
    TooFar {
        /// From the start of the epoch.
        distance: Nanos,
        /// The first distance that does not fit.
        end: Nanos,
    },
    /// No epoch, or no deadlines, or times beyond an hour.
    NoEpoch,
}

impl fmt::Display for MtsRefusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            MtsRefusal::TooMany { given, holds } => {
                write!(f, "number {given}: this class of messages holds {holds}, counted from 0")
            }
            MtsRefusal::TooFar { distance, end } => {
                let (distance, end) = (distance.0, end.0);
                write!(f, "to be started {distance} ns after the epoch began: the identifier ")?;
                write!(f, "reaches less than {end} ns; make it low-speed, or epochs longer")
            }
            MtsRefusal::NoEpoch => {
                write!(f, "epochs and deadlines are longer than 0 and at most an hour")
            }
        }
    }
}

fn within(given: u16, holds: u16) -> Result<u16, MtsRefusal> {
    if given < holds { Ok(given) } else { Err(MtsRefusal::TooMany { given, holds }) }
}

fn id(raw: u16) -> StandardId {
    StandardId::new(raw).unwrap_or(StandardId::MAX)
}

/// Returns the identifier of the low-speed message of rank `priority`.
///
/// # Errors
/// More than the class holds.
pub fn low_speed_id(priority: u16) -> Result<StandardId, MtsRefusal> {
    within(priority, LOW_SPEED).map(|priority| id(0x400 | priority))
}

/// Returns the identifier of the non-real-time message `number`.
///
/// # Errors
/// More than the class holds.
pub fn non_real_time_id(number: u16) -> Result<StandardId, MtsRefusal> {
    within(number, NON_REAL_TIME).map(|number| id(0x600 | number))
}

/// Returns the filter that passes the high-speed message of this code, whatever its deadline.
#[must_use]
pub const fn code_filter(code: u8) -> Filter {
    Filter { extended: false, code: code as u32, mask: 0x41f }
}

/// Returns the class of `id`, or `None` if CAN forbids it.
#[must_use]
pub fn classify(id: StandardId) -> Option<IdentifierClass> {
    let raw = id.as_raw();
    match raw >> 9 {
        0 | 1 => {
            Some(IdentifierClass::HighSpeed { region: (raw >> 5) as u8, code: (raw & 0x1f) as u8 })
        }
        2 => Some(IdentifierClass::LowSpeed { priority: raw & 0x1ff }),
        _ if raw & 0x1ff < NON_REAL_TIME => {
            Some(IdentifierClass::NonRealTime { number: raw & 0x1ff })
        }
        _ => None,
    }
}

/// Time cut into epochs, and epochs into regions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Epochs {
    region: Nanos,
    per_epoch: u64,
}

impl Epochs {
    /// Epochs of about `epoch`. `reach` is the longest time from the queueing of a high-speed
    /// message to its start-by time, and the longest delay of an identifier update, together.
    ///
    /// # Errors
    /// Zero, or beyond an hour.
    pub fn new(epoch: Nanos, reach: Nanos) -> Result<Epochs, MtsRefusal> {
        let sensible = Nanos(1)..=Nanos::from_secs(3_600);
        if !sensible.contains(&epoch) || !sensible.contains(&reach) {
            return Err(MtsRefusal::NoEpoch);
        }
        let per_epoch = (REGIONS * epoch.0 / (epoch.0 + reach.0)).clamp(1, REGIONS - 1);
        // The last instant of an epoch plus the reach must be in the last region.
        let region = Nanos(reach.0 / (REGIONS - per_epoch) + 1);
        Ok(Epochs { region, per_epoch })
    }

    /// Length of a region: deadlines closer than this may not be told apart.
    #[must_use]
    pub fn region(&self) -> Nanos {
        self.region
    }

    /// Length of an epoch.
    #[must_use]
    pub fn epoch(&self) -> Nanos {
        Nanos(self.region.0 * self.per_epoch)
    }

    /// Start of the epoch of `now`.
    #[must_use]
    pub fn start(&self, now: Nanos) -> Nanos {
        Nanos(now.0 - now.0 % self.epoch().0)
    }

    /// The identifier of high-speed message `code` to be started by `start_by`, in the epoch that
    /// began at `epoch`. One that is late already is of the first region.
    ///
    /// # Errors
    /// A code too large, or a time too far.
    pub fn id(&self, code: u16, start_by: Nanos, epoch: Nanos) -> Result<StandardId, MtsRefusal> {
        let code = within(code, HIGH_SPEED)?;
        let distance = start_by - epoch;
        let region = distance.0 / self.region.0;
        if region >= REGIONS {
            return Err(MtsRefusal::TooFar { distance, end: Nanos(self.region.0 * REGIONS) });
        }
        Ok(id((region as u16) << 5 | code))
    }
}

/// Returns the frame that tells all nodes to renew their identifiers (§7.3.5): its data length code
/// is one more than that of its message. Eight bytes stay eight.
///
/// # Errors
/// The frame carries such a code already, or is a remote frame.
pub fn signal_update(frame: &CanFrame) -> Result<CanFrame, FrameRefusal> {
    let len = frame.bytes().len();
    if frame.is_remote() || usize::from(frame.code()) != len {
        return Err(FrameRefusal::CodeAndData { code: frame.code(), bytes: len });
    }
    if len == BYTES_MAX {
        return frame.with_code(BYTES_MAX as u8 + 1);
    }
    let mut bytes = [0; BYTES_MAX];
    bytes[..len].copy_from_slice(frame.bytes());
    CanFrame::data(frame.id(), &bytes[..=len])
}

/// Returns whether `frame`, of a message of `len` bytes, tells to renew identifiers, and the frame
/// without that.
#[must_use]
pub fn read_update(frame: &CanFrame, len: usize) -> (bool, CanFrame) {
    let signals = !frame.is_remote() && usize::from(frame.code()) == len + 1;
    let meant = frame.bytes().get(..len).and_then(|data| CanFrame::data(frame.id(), data).ok());
    match meant {
        Some(meant) if signals => (true, meant),
        _ => (false, *frame),
    }
}
