//! Watches whether frames come as the plan assumes: those of everybody at the adapter, and those
//! for each socket.

use crate::books::{ADAPTER, Ledger};
use diapason_abi::Nanos;
use diapason_contract::ethernet::{WATCH_SETTING, WatchTerms};
use diapason_ether::FrameCounts;
use diapason_pipe::meter::Meter;
use diapason_pipe::size::Bucket;
use diapason_rt::{Errno, settings};

/// The frames of the adapter, or of one socket.
pub(crate) struct Watch {
    ledger: Ledger,
    /// The contract, if a bill relies on one.
    meter: Option<Meter>,
    /// Frames that the meter has seen.
    seen: u64,
    peak: u32,
}

impl Watch {
    /// Returns the watch over the adapter.
    ///
    /// # Errors
    /// `Busy` if there is one already.
    pub fn of_adapter() -> Result<Watch, Errno> {
        Watch::open(ADAPTER, None)
    }

    /// Returns the watch over the socket of this number, whose listener has this number.
    ///
    /// # Errors
    /// `Busy` if there is one already.
    pub fn of_socket(listener: u8, number: u8) -> Result<Watch, Errno> {
        Watch::open(ADAPTER + 1 + usize::from(listener), Some(number))
    }

    fn open(place: usize, socket: Option<u8>) -> Result<Watch, Errno> {
        let told = settings::read();
        let terms = WatchTerms::all(told.get(WATCH_SETTING)).find(|terms| terms.socket == socket);
        let meter = terms.map(|terms| {
            let WatchTerms { burst, messages, per_ns, jitter_ns, .. } = terms;
            Meter::new(Bucket { burst, messages, per: Nanos(per_ns), jitter: Nanos(jitter_ns) })
        });
        Ok(Watch { ledger: Ledger::open(place)?, meter, seen: 0, peak: 0 })
    }

    /// Takes in what was counted up to `now`, if that has changed. `waiting` frames wait.
    pub fn note(&mut self, now: Nanos, counts: &FrameCounts, waiting: u32) {
        let came = counts.offered - core::mem::replace(&mut self.seen, counts.offered);
        if came > 0 {
            let outside = self.meter.as_mut().map_or(0, |meter| {
                meter.admit_all(now, came);
                meter.outside()
            });
            self.peak = self.peak.max(waiting);
            self.ledger.publish(counts, outside, self.peak);
        }
    }
}
