//! An adapter's end of a wire: it sends one frame after the other.

use crate::ethernet::{Arrival, EthernetWire};
use diapason_abi::Nanos;

/// The end of a wire at an adapter, be that a model or one that an emulator has.
#[derive(Debug)]
pub struct EthernetPlug {
    pub(crate) wire: EthernetWire,
    place: usize,
    /// When the wire is free for the next frame.
    free: Nanos,
}

impl EthernetPlug {
    /// Returns the end of this wire.
    #[must_use]
    pub fn new(wire: EthernetWire) -> EthernetPlug {
        EthernetPlug { place: wire.plug_in(), wire, free: Nanos::ZERO }
    }

    /// Sends a frame at `now`, or once the frames before it are sent. Returns when it begins and
    /// when its last bit leaves.
    pub fn send(&mut self, now: Nanos, frame: &[u8]) -> [Nanos; 2] {
        let begin = self.free.max(now);
        let end = begin + self.wire.frame(frame.len());
        self.free = end + self.wire.gap();
        self.wire.carry(self.place, end, frame);
        [begin, end]
    }

    /// Returns the next frame that comes until `now`, and when its last bit is there.
    pub fn receive(&mut self, now: Nanos) -> Option<(Nanos, Vec<u8>)> {
        self.take(now).map(|arrival| (arrival.at, arrival.frame))
    }

    pub(crate) fn take(&self, now: Nanos) -> Option<Arrival> {
        self.wire.take(self.place, now)
    }

    /// Puts a frame of a stranger, which begins at `begin`, on the way to this end.
    pub(crate) fn hear(&self, begin: Nanos, frame: &[u8], damaged: bool) {
        self.wire.enter(self.place, begin, frame, damaged);
    }

    /// Returns when something happens next that may concern this end.
    pub(crate) fn next(&self) -> Nanos {
        self.wire.next(self.place)
    }

    /// Forgets the frame that is being sent.
    pub(crate) fn reset(&mut self) {
        self.free = Nanos::ZERO;
    }
}
