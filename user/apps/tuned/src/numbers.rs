//! The messages of a pipe: every sender numbers its messages, so missing ones show.

use core::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use diapason_rt::{log, time};
use diapason_tpipe::{Phase, TimedFrame, TunedFunction};

/// Most identifiers that are told apart.
const SENDERS: usize = 16;
/// No identifier: those of CAN have 29 bits.
const NOBODY: u32 = u32::MAX;

/// Checks the numbers of the messages of one pipe.
pub(crate) struct Numbers {
    ids: [AtomicU32; SENDERS],
    next: [AtomicU64; SENDERS],
    /// Numbers that were passed over.
    missing: AtomicU64,
    /// Numbers that came again or late, identifiers without room.
    strange: AtomicU64,
}

impl Numbers {
    /// Returns counts of nothing.
    pub const fn new() -> Numbers {
        Numbers {
            ids: [const { AtomicU32::new(NOBODY) }; SENDERS],
            next: [const { AtomicU64::new(0) }; SENDERS],
            missing: AtomicU64::new(0),
            strange: AtomicU64::new(0),
        }
    }

    /// Missing and strange ones so far.
    pub fn faults(&self) -> (u64, u64) {
        (self.missing.load(Ordering::Relaxed), self.strange.load(Ordering::Relaxed))
    }

    fn check(&self, id: u32, number: u64) {
        let known =
            |place: &usize| [id, NOBODY].contains(&self.ids[*place].load(Ordering::Relaxed));
        let Some(place) = (0..SENDERS).find(known) else {
            self.strange.fetch_add(1, Ordering::Relaxed);
            return;
        };
        let first = self.ids[place].swap(id, Ordering::Relaxed) == NOBODY;
        let next = self.next[place].swap(number + 1, Ordering::Relaxed);
        // The pipe was opened while the channel was talking: its first number may be any.
        let (missing, strange) = match number.checked_sub(next) {
            _ if first => (0, 0),
            Some(missing) => (missing, 0),
            None => (0, 1),
        };
        self.missing.fetch_add(missing, Ordering::Relaxed);
        self.strange.fetch_add(strange, Ordering::Relaxed);
    }
}

impl TunedFunction for Numbers {
    fn message(&self, message: &TimedFrame) {
        time::work("tuned.message", || {
            let arrival = &message.arrival;
            self.check(arrival.id, u64::from_le_bytes(arrival.data));
        });
    }

    fn news(&self, phase: Phase) {
        log!("the channel is {phase:?}");
    }
}
