//! Gates and credit that a thread keeps for an adapter without any: a software shaper.
//!
//! The thread is late. `guard` bounds how late: the time from the instant at which it has something
//! to do until a frame is with the adapter, and the time from its look at the clock until then. So
//! each frame is sent by [`Egress`] as one that is longer by `guard`. The frame then ends in its
//! window, and the adapter has sent it before the thread chooses the next one. The next look may be
//! late by another guard, so credit pays for two.

use crate::wire::{CHECKSUM, SHORTEST};
use crate::{
    CLASSES, CreditSpan, Egress, EgressStep, GAP, GateList, GateRefusal, LinkRate, PREAMBLE,
    Shaping, TrafficFlow,
};

/// The queues of an adapter, and the gates by which a thread empties them. Times that it is given
/// must never go back while a frame is on the wire.
#[derive(Clone, Debug)]
pub struct PacedEgress<T> {
    egress: Egress<T>,
    rate: LinkRate,
    guard_ns: u64,
}

impl<T> PacedEgress<T> {
    /// Returns the idle queues of an adapter. Each has room for so many frames without asking for
    /// more memory.
    ///
    /// # Errors
    /// Those of [`Egress::new`].
    pub fn new(
        gates: GateList,
        rate: LinkRate,
        shaping: [Shaping; CLASSES],
        (guard_ns, room): (u64, usize),
    ) -> Result<PacedEgress<T>, GateRefusal> {
        let egress = Egress::new(gates, rate, shaping)?.with_guard(guard_ns).with_room(room);
        Ok(PacedEgress { egress, rate, guard_ns })
    }

    /// Queues a frame of so many bytes, from its addresses to the end of its payload.
    ///
    /// # Errors
    /// If no window of the class is as long as the frame and the guard: it would never be sent.
    pub fn push(
        &mut self,
        now_ns: u64,
        class: usize,
        bytes: usize,
        item: T,
    ) -> Result<(), GateRefusal> {
        let wire_ns = frame_ns(self.rate, bytes).saturating_add(self.guard_ns);
        self.egress.push(now_ns, class, wire_ns, item)
    }

    /// Returns what the thread does now. A frame that it sends is on the wire at most the guard
    /// later, and `end_ns` is the time from which the adapter has none.
    pub fn step(&mut self, now_ns: u64) -> EgressStep<T> {
        self.egress.step(now_ns)
    }

    /// Ends the frame that was sent, as [`Egress::ends`] does.
    pub fn ends(&mut self) {
        self.egress.ends();
    }

    /// Takes all frames out of the queues.
    pub fn drain(&mut self) -> impl Iterator<Item = T> {
        self.egress.drain()
    }

    /// Returns between which limits the credit of each class was so far.
    #[must_use]
    pub fn credits(&self) -> [CreditSpan; CLASSES] {
        self.egress.credits()
    }

    /// Returns how many frames of a class wait.
    #[must_use]
    pub fn waiting(&self, class: usize) -> usize {
        self.egress.waiting(class)
    }
}

/// Returns the time for which a frame of so many bytes, from its addresses to the end of its
/// payload, occupies a link.
#[must_use]
pub fn frame_ns(rate: LinkRate, bytes: usize) -> u64 {
    rate.time_ns(PREAMBLE + (bytes as u64 + CHECKSUM).max(SHORTEST) + GAP)
}

/// Returns the length of a frame in the model of a port whose gates a late thread keeps. The thread
/// may choose the frame one guard late, and keeps the port for another.
#[must_use]
pub const fn paced_ns(wire_ns: u64, guard_ns: u64) -> u64 {
    wire_ns.saturating_add(guard_ns.saturating_mul(2))
}

impl TrafficFlow {
    /// Returns the flow in the model of a port whose gates a late thread keeps. Its frames are
    /// longer. They go before a lower frame that could have begun a guard before they come, if the
    /// thread looks only then: so they count as if they came earlier by a guard.
    #[must_use]
    pub const fn paced(self, guard_ns: u64) -> TrafficFlow {
        let wire_ns = paced_ns(self.wire_ns, guard_ns);
        let jitter_ns = self.jitter_ns.saturating_add(guard_ns);
        TrafficFlow { wire_ns, jitter_ns, ..self }
    }
}
