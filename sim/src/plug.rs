//! An adapter's end of a wire: it sends one frame after the other.

use crate::ethernet::{Arrival, EthernetWire};
use diapason_abi::Nanos;
use std::cell::RefCell;
use std::rc::Rc;

/// A frame that passed an end of a wire, and when its last bit did.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PassedFrame {
    pub at: Nanos,
    pub bytes: Vec<u8>,
}

/// A handle on the frames that pass an end of a wire, both ways; clones are the same. Damaged
/// frames are not among them: adapters hand none on.
#[derive(Clone, Debug, Default)]
pub struct FrameTap(Rc<RefCell<Option<Vec<PassedFrame>>>>);

impl FrameTap {
    /// Keeps frames from now on.
    pub fn record(&self) {
        self.0.borrow_mut().get_or_insert_default();
    }

    /// Returns the frames since the last call, in no order. A frame that is sent is there as soon
    /// as it begins.
    #[must_use]
    pub fn take(&self) -> Vec<PassedFrame> {
        self.0.borrow_mut().as_mut().map(std::mem::take).unwrap_or_default()
    }

    fn pass(&self, at: Nanos, frame: &[u8]) {
        if let Some(kept) = &mut *self.0.borrow_mut() {
            kept.push(PassedFrame { at, bytes: frame.to_vec() });
        }
    }
}

/// The end of a wire at an adapter, be that a model or one that an emulator has.
#[derive(Debug)]
pub struct EthernetPlug {
    pub(crate) wire: EthernetWire,
    place: usize,
    /// When the wire is free for the next frame.
    free: Nanos,
    tap: FrameTap,
}

impl EthernetPlug {
    /// Returns the end of this wire.
    #[must_use]
    pub fn new(wire: EthernetWire) -> EthernetPlug {
        let tap = FrameTap::default();
        EthernetPlug { place: wire.plug_in(), wire, free: Nanos::ZERO, tap }
    }

    /// Returns a handle on the frames that pass this end.
    #[must_use]
    pub fn tap(&self) -> FrameTap {
        self.tap.clone()
    }

    /// Sends a frame at `now`, or once the frames before it are sent. Returns when it begins and
    /// when its last bit leaves.
    pub fn send(&mut self, now: Nanos, frame: &[u8]) -> [Nanos; 2] {
        let begin = self.free.max(now);
        let end = begin + self.wire.frame(frame.len());
        self.free = end + self.wire.gap();
        self.wire.carry(self.place, end, frame);
        self.tap.pass(end, frame);
        [begin, end]
    }

    /// Returns the next frame that comes until `now`, and when its last bit is there.
    pub fn receive(&mut self, now: Nanos) -> Option<(Nanos, Vec<u8>)> {
        self.take(now).map(|arrival| (arrival.at, arrival.frame))
    }

    pub(crate) fn take(&self, now: Nanos) -> Option<Arrival> {
        let arrival = self.wire.take(self.place, now)?;
        if !arrival.damaged {
            self.tap.pass(arrival.at, &arrival.frame);
        }
        Some(arrival)
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
