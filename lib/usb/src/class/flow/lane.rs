//! One direction of an endpoint pair: transfers with shared memory, each of which is kept until it
//! is done.

use super::Pipe;
use crate::class::{Request, TransferFault};

/// Transfers that wait or are pending.
pub const ROOM: usize = 128;

/// A piece of shared memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(in crate::class) struct Span {
    pub place: u32,
    pub length: u32,
}

/// Transfers in their order; what a fault kept is asked for again.
#[derive(Clone, Copy, Debug)]
pub(in crate::class) struct Lane {
    pub(in crate::class) pipe: Pipe,
    spans: [Span; ROOM],
    first: usize,
    length: usize,
    depth: usize,
}

impl Lane {
    /// Returns an empty lane with at most `depth` transfers pending at once.
    pub(in crate::class) fn new(endpoint: u8, depth: usize) -> Lane {
        let pipe = Pipe::new(endpoint);
        Lane { pipe, spans: [Span::default(); ROOM], first: 0, length: 0, depth }
    }

    /// Returns how many more there is room for.
    pub(in crate::class) fn room(&self) -> usize {
        ROOM - self.length
    }

    /// One more; false if there is no room for it.
    pub(in crate::class) fn push(&mut self, span: Span) -> bool {
        let room = self.length < ROOM;
        if room {
            self.spans[(self.first + self.length) % ROOM] = span;
            self.length += 1;
        }
        room
    }

    /// The next to be asked for. A lane that needs no transfer is left alone.
    pub(in crate::class) fn request(&mut self) -> Option<Request<'static>> {
        if let Some(recovery) = self.pipe.recovery() {
            return Some(recovery);
        }
        let pending = self.pipe.pending();
        if !self.pipe.is_good() || pending >= self.length.min(self.depth) {
            return None;
        }
        self.pipe.start();
        let Span { place, length } = self.spans[(self.first + pending) % ROOM];
        Some(Request::Shared { endpoint: self.pipe.endpoint(), place, length: length as usize })
    }

    /// A transfer ended: how many bytes it moved, if it did what it should.
    pub(in crate::class) fn end(
        &mut self,
        result: Result<usize, TransferFault>,
    ) -> Option<(Span, u32)> {
        let moved = result.unwrap_or(0);
        self.pipe.end(result.map(|_| &[][..]))?;
        let span = self.take()?;
        Some((span, (moved as u32).min(span.length)))
    }

    /// Returns the first, which is no longer wanted. None may be pending, or it has just ended.
    pub(in crate::class) fn take(&mut self) -> Option<Span> {
        let span = *self.spans.get(self.first).filter(|_| self.length > 0)?;
        self.first = (self.first + 1) % ROOM;
        self.length -= 1;
        Some(span)
    }
}
