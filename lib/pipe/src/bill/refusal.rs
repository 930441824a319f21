//! Why a pipe has no bill.

use super::item::{Time, What};
use super::rate::Rate;
use super::steps::Overload;
use core::fmt;
use diapason_abi::Nanos;

/// Why there is no bound.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum BillRefusal {
    /// The traffic has no such channel.
    NoChannel {
        /// The one asked for.
        own: usize,
        /// The number of channels in the traffic.
        channels: usize,
    },
    /// Nothing can be transferred: no request is queued, or one carries no message.
    NoTransfers,
    /// Nothing limits what arrives.
    NoContract,
    /// A stage gets less than it needs in the long run. In millionths: for a stage on a
    /// processor, of its time; for transfers and the device, messages per second.
    TooSlow {
        what: What,
        /// The needed amount, rounded up.
        wanted: u64,
        /// The supplied amount, rounded down.
        given: u64,
    },
    /// Rounds of requests, or batches of the user, become longer without end, although no stage is
    /// too slow alone.
    Endless {
        what: What,
        /// The value reached when the search was given up.
        beyond: Nanos,
    },
    /// More transfers may be open than the driver can have: to the device, or from an endpoint
    /// that the bus asks at its own pace.
    TooFewQueued {
        /// Transfers that it can have open.
        queued: u64,
        /// Transfers that may be open.
        needed: u64,
    },
    /// The device can hold fewer messages than may wait in it.
    DeviceBuffer {
        /// The room of the buffer.
        holds: u64,
        /// The amount that may wait.
        needed: u64,
    },
}

impl BillRefusal {
    pub(super) fn of(what: What, overload: Overload) -> BillRefusal {
        let Some(wanted) = overload.wanted else { return BillRefusal::NoContract };
        let (wanted, given) = match what {
            What::Request | What::Bus | What::Drain => {
                (per_second(wanted).within(1), per_second(overload.given).within(1))
            }
            _ => {
                let (wanted, given) = (wanted.millionths_up(), overload.given.millionths_down());
                (u128::from(wanted), u128::from(given))
            }
        };
        let narrow = |rate| u64::try_from(rate).unwrap_or(u64::MAX);
        BillRefusal::TooSlow { what, wanted: narrow(wanted), given: narrow(given) }
    }
}

/// Returns a rate per nanosecond as a rate per second.
fn per_second(rate: Rate) -> Rate {
    rate.times(1_000_000_000)
}

impl fmt::Display for BillRefusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            BillRefusal::NoChannel { own, channels } => {
                write!(f, "there is no channel {own}, only {channels}")
            }
            BillRefusal::NoTransfers => {
                write!(f, "nothing can be transferred: queue a request, of at least one message")
            }
            BillRefusal::NoContract => {
                write!(f, "no contract limits the arrivals: give each channel one")
            }
            BillRefusal::TooSlow { what, wanted, given } => {
                let name = what.name();
                match what {
                    What::Request | What::Bus | What::Drain => {
                        write!(
                            f,
                            "{name}: {wanted} messages a second, but at most {given} are possible"
                        )
                    }
                    _ => {
                        let (wanted, given) = (Percent(wanted), Percent(given));
                        write!(f, "{name}: needs {wanted} of the processor and has {given}")
                    }
                }
            }
            BillRefusal::Endless { what, beyond } => {
                write!(f, "{}: no bound below {} was found", what.name(), Time(beyond))
            }
            BillRefusal::TooFewQueued { queued, needed } => {
                write!(f, "{needed} transfers may be open, but there can be only {queued}")
            }
            BillRefusal::DeviceBuffer { holds, needed } => {
                write!(f, "{needed} messages may wait in the device, which holds {holds}")
            }
        }
    }
}

/// Millionths, written as a percentage.
struct Percent(u64);

impl fmt::Display for Percent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{:04} %", self.0 / 10_000, self.0 % 10_000)
    }
}
