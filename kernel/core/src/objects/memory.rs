//! Frames in chains, shared segments and devices.

use crate::ids::{DeviceTag, EventId, FrameId, FrameTag, SegmentTag};
use crate::pool::{Id, Pool, Pooled};
use diapason_abi::Nanos;
use diapason_abi::archive::{DeviceRecord, Location, NONE};

/// A frame of the pool: which, and the next in its owner's chain.
pub struct Frame {
    next: FrameId,
}

impl Pooled for Frame {
    type Tag = FrameTag;
}

impl Frame {
    pub const UNLINKED: Frame = Frame { next: Id::NONE };
}

/// Frames in order of their being added.
#[derive(Clone, Copy, Debug)]
pub struct Chain {
    first: FrameId,
    last: FrameId,
    pub count: u32,
}

impl Chain {
    pub const EMPTY: Chain = Chain { first: Id::NONE, last: Id::NONE, count: 0 };

    pub(crate) fn push(&mut self, frames: &mut Pool<'_, Frame>, frame: FrameId) {
        frames[frame].next = self.first;
        if self.count == 0 {
            self.last = frame;
        }
        self.first = frame;
        self.count += 1;
    }

    pub(crate) fn pop(&mut self, frames: &Pool<'_, Frame>) -> Option<FrameId> {
        let frame = self.first;
        if self.count == 0 {
            return None;
        }
        self.first = frames[frame].next;
        self.count -= 1;
        Some(frame)
    }

    /// Everything in `other` moves here.
    pub(crate) fn append(&mut self, frames: &mut Pool<'_, Frame>, other: &mut Chain) {
        if other.count > 0 {
            frames[other.last].next = self.first;
            if self.count == 0 {
                self.last = other.last;
            }
            self.first = other.first;
            self.count += other.count;
            *other = Chain::EMPTY;
        }
    }

    /// All frames of the pool but the first `kept`.
    #[must_use]
    pub fn of_all(frames: &mut Pool<'_, Frame>, kept: u16) -> Chain {
        let mut chain = Chain::EMPTY;
        for frame in frames.ids().skip(kept.into()) {
            chain.push(frames, frame);
        }
        chain
    }

    /// Walks it, for the invariants.
    pub fn visit(&self, frames: &Pool<'_, Frame>, mut visit: impl FnMut(FrameId)) {
        let mut frame = self.first;
        for _ in 0..self.count {
            visit(frame);
            frame = frames[frame].next;
        }
    }
}

/// A declared segment and its state.
pub struct Segment {
    pub(crate) key: u64,
    pub(crate) allowed: u64,
    pub pages: u32,
    /// Processes that have it attached.
    pub attached: u64,
    pub(crate) frames: Chain,
    /// The first of the frames that a segment for devices always owns, contiguous. A device
    /// may still write there after the process that started it has ended, so nobody else ever gets
    /// them. A segment in common has no frames: this only says that it is for devices.
    pub(crate) dma: FrameId,
    /// Other cores show it, too: its memory is the machine's affair, and there from boot on.
    pub(crate) common: bool,
}

impl Pooled for Segment {
    type Tag = SegmentTag;
}

impl Segment {
    /// Nobody may have it.
    pub const EMPTY: Segment = Segment {
        key: 0,
        allowed: 0,
        pages: 0,
        attached: 0,
        frames: Chain::EMPTY,
        dma: Id::NONE,
        common: false,
    };

    /// Returns whether its pages must be prepared before it can be shown.
    pub(crate) fn lacks_pages(&self) -> bool {
        !self.common && self.frames.count < self.pages
    }
}

/// A declared device and its state.
pub struct Device {
    pub(crate) record: DeviceRecord,
    /// The machine does not have it.
    pub(crate) absent: bool,
    /// Raised by its interrupt.
    pub(crate) event: EventId,
    /// Processes that have its registers mapped.
    pub(crate) mapped: u64,
    /// The device's interrupts so far, the last one, and the shortest time between two.
    pub(crate) interrupts: u64,
    pub(crate) last: Nanos,
    pub(crate) gap: Nanos,
    /// The time at which the next interrupt may come, if the device has an interval.
    pub(crate) next: Nanos,
    /// One came too soon: no other gets through before `next`.
    pub(crate) held: bool,
}

impl Pooled for Device {
    type Tag = DeviceTag;
}

impl Device {
    /// Nobody may use it.
    pub const EMPTY: Device = Device {
        record: DeviceRecord {
            key: 0,
            allowed: 0,
            location: Location::Address(0),
            pages: 0,
            irq: NONE,
            level: false,
            interval: 0,
        },
        absent: false,
        event: Id::NONE,
        mapped: 0,
        interrupts: 0,
        last: Nanos::ZERO,
        gap: Nanos::FOREVER,
        next: Nanos::ZERO,
        held: false,
    };

    /// Until when its line is held; for ever if it is not, so that nobody waits for that.
    pub(crate) fn held_until(&self) -> Nanos {
        if self.held { self.next } else { Nanos::FOREVER }
    }

    /// Takes one interrupt that comes at `now`, or came up to `late` before. Returns whether it
    /// comes too soon. Such an interrupt takes the place of the next one, so that no more than one
    /// for each interval and this one come.
    pub(crate) fn comes_too_soon(&mut self, now: Nanos, late: Nanos) -> bool {
        let interval = Nanos(self.record.interval);
        if interval == Nanos::ZERO {
            return false;
        }
        // The kernel may have been busy when the one before came.
        let soon = now + late < self.next;
        self.next = self.next.max(now) + interval;
        soon
    }
}
