//! Memory given out at run time: heaps, shared segments, device registers.
//!
//! Frames come from one pool, filled at boot with as many as all quotas and segments together need.
//! Frames of one owner form a chain, so giving back a whole heap or segment is one splice.

use crate::event::EventId;
use crate::kernel::{Flow, Kernel, Refused, Step};
use crate::machine::Machine;
use crate::pool::{Id, Pool};
use crate::process::ProcessId;
use crate::walks::walk;
use diapason_abi::archive::{DeviceRecord, Location, NONE};
use diapason_abi::call::{PARTIAL, mapped};
use diapason_abi::{Errno, FaultCause, Nanos, PAGE, PAGES_PER_CALL, layout};
use diapason_costs::Round;

/// A frame of the pool: which, and the next in its owner's chain.
pub struct Frame {
    next: FrameId,
}

impl Frame {
    pub const UNLINKED: Frame = Frame { next: Id::NONE };
}

/// Names a frame by its place in the pool.
pub type FrameId = Id<Frame>;

/// Frames in order of their being added.
#[derive(Clone, Copy, Debug)]
pub struct Chain {
    first: FrameId,
    last: FrameId,
    pub count: u32,
}

impl Chain {
    pub const EMPTY: Chain = Chain { first: Id::NONE, last: Id::NONE, count: 0 };

    fn push(&mut self, frames: &mut Pool<'_, Frame>, frame: FrameId) {
        frames[frame].next = self.first;
        if self.count == 0 {
            self.last = frame;
        }
        self.first = frame;
        self.count += 1;
    }

    fn pop(&mut self, frames: &Pool<'_, Frame>) -> Option<FrameId> {
        let frame = self.first;
        if self.count == 0 {
            return None;
        }
        self.first = frames[frame].next;
        self.count -= 1;
        Some(frame)
    }

    /// Everything in `other` moves here.
    fn append(&mut self, frames: &mut Pool<'_, Frame>, other: &mut Chain) {
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
    /// Of a segment for devices: the first of the frames that are always its own, one behind the
    /// other. A device may still write there when the process that told it to has ended, so nobody
    /// else ever gets them.
    pub(crate) dma: FrameId,
    /// Other cores show it, too: its memory is the machine's affair, and there from boot on.
    pub(crate) common: bool,
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
    fn lacks_pages(&self) -> bool {
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
    /// Its interrupts so far, the last one, and the shortest time between two.
    pub(crate) interrupts: u64,
    pub(crate) last: Nanos,
    pub(crate) gap: Nanos,
    /// When the next one may come, if it has an interval.
    pub(crate) next: Nanos,
    /// One came too soon: no other gets through before `next`.
    pub(crate) held: bool,
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

    /// Takes one interrupt that comes at `now`, or came up to `longest` before. Returns whether it
    /// comes too soon. Such an interrupt takes the place of the next one, so that no more than one
    /// for each interval and this one come.
    pub(crate) fn comes_too_soon(&mut self, now: Nanos, longest: Nanos) -> bool {
        let interval = Nanos(self.record.interval);
        if interval == Nanos::ZERO {
            return false;
        }
        // The kernel may have been busy when the one before came.
        let soon = now + longest < self.next;
        self.next = self.next.max(now) + interval;
        soon
    }
}

impl Kernel<'_> {
    pub(crate) fn mem_alloc<M: Machine>(&mut self, m: &mut M, pages: u64) -> Step {
        if pages == 0 || pages > PAGES_PER_CALL as u64 {
            return Err(Refused::Misuse(FaultCause::BadArgument, pages));
        }
        self.quiet = true;
        let id = self.process;
        let process = &mut self.processes[id];
        let first = process.heap.count;
        if u64::from(first) + pages > u64::from(process.heap_max) {
            return Err(Refused::Misuse(FaultCause::Quota, pages));
        }
        for page in first..first + pages as u32 {
            // Never empty: every quota was reserved when the pool was sized.
            let free = self.free_frames.pop(&self.frames);
            let frame = free.ok_or(Refused::Errno(Errno::Exhausted))?;
            process.heap.push(&mut self.frames, frame);
            m.map_heap(id, page, frame);
        }
        let start = m.window(id) + layout::HEAP;
        Ok(Flow::Done(start + u64::from(first) * PAGE as u64))
    }

    /// The segment `key`, if the running process may use it.
    fn granted_segment(&self, key: u64) -> Result<Id<Segment>, Refused> {
        self.granted(&self.segments, key, |s| (s.key, s.allowed))
    }

    /// `ShmAttach(key)`: a few pages at a time until all are there, then visible.
    pub(crate) fn shm_attach<M: Machine>(&mut self, m: &mut M, key: u64) -> Step {
        let id = self.granted_segment(key)?;
        self.quiet = true;
        let segment = &mut self.segments[id];
        for _ in 0..PAGES_PER_CALL {
            if !segment.lacks_pages() {
                break;
            }
            let next = if segment.dma.is_some() {
                Some(Id::new(segment.dma.index() + segment.frames.count as u16))
            } else {
                self.free_frames.pop(&self.frames)
            };
            let frame = next.ok_or(Refused::Errno(Errno::Exhausted))?;
            m.map_segment(id.index(), segment.frames.count, frame);
            segment.frames.push(&mut self.frames, frame);
        }
        if segment.lacks_pages() {
            return Ok(Flow::Done(PARTIAL | u64::from(segment.frames.count)));
        }
        segment.attached |= self.grant;
        self.processes[self.process].segments |= 1 << id.index();
        m.attach_segment(self.process, id.index(), true);
        Ok(Flow::Done(m.window(self.process) + layout::segment_offset(id.index())))
    }

    pub(crate) fn shm_detach<M: Machine>(&mut self, m: &mut M, key: u64) -> Step {
        let id = self.granted_segment(key)?;
        if self.segments[id].attached & self.grant == 0 {
            return Err(Refused::Errno(Errno::Gone));
        }
        self.processes[self.process].segments &= !(1 << id.index());
        self.detach(m, self.process, id.index());
        Ok(Flow::Done(0))
    }

    /// A process no longer has a segment; the last one frees its memory, if that is this core's.
    fn detach<M: Machine>(&mut self, m: &mut M, process: ProcessId, index: u16) {
        m.attach_segment(process, index, false);
        let segment = &mut self.segments[Id::new(index)];
        segment.attached &= !(1 << process.index());
        if segment.attached == 0 && !segment.common {
            m.clear_segment(index, segment.pages);
            if segment.dma.is_some() {
                segment.frames = Chain::EMPTY;
            } else {
                self.free_frames.append(&mut self.frames, &mut segment.frames);
            }
        }
    }

    pub(crate) fn shm_bus<M: Machine>(&mut self, m: &mut M, key: u64) -> Step {
        let id = self.granted_segment(key)?;
        let segment = &self.segments[id];
        if segment.dma.is_none() {
            return Err(Refused::Misuse(FaultCause::BadGrant, key));
        }
        if segment.attached & self.grant == 0 {
            return Err(Refused::Errno(Errno::Gone));
        }
        Ok(Flow::Done(mapped(m.bus_address(id.index(), segment.dma), segment.pages)))
    }

    /// The device `key`, if the running process may use it and the machine has it.
    pub(crate) fn granted_device(&self, key: u64) -> Result<Id<Device>, Refused> {
        let id = self.granted(&self.devices, key, |d| (d.record.key, d.record.allowed))?;
        if self.devices[id].absent { Err(Refused::Errno(Errno::Absent)) } else { Ok(id) }
    }

    pub(crate) fn map_device<M: Machine>(&mut self, m: &mut M, key: u64) -> Step {
        let id = self.granted_device(key)?;
        let device = &mut self.devices[id];
        if device.mapped == 0 {
            m.set_bus_master(id.index(), true);
        }
        device.mapped |= self.grant;
        self.processes[self.process].devices |= 1 << id.index();
        m.attach_device(self.process, id.index(), true);
        let address = m.window(self.process) + layout::device_offset(id.index());
        Ok(Flow::Done(mapped(address, self.devices[id].record.pages)))
    }

    /// A process that has these segments ends.
    #[inline(always)]
    pub(crate) fn detach_all<M: Machine>(
        &mut self,
        m: &mut M,
        process: ProcessId,
        mut segments: u64,
    ) {
        while let Some(index) = segments.checked_ilog2() {
            segments &= !(1 << index);
            walk(Round::Hide, 1);
            self.detach(m, process, index as u16);
        }
    }

    /// A process that has mapped these devices ends.
    #[inline(never)]
    pub(crate) fn unmap_all<M: Machine>(
        &mut self,
        m: &mut M,
        process: ProcessId,
        mut devices: u64,
    ) {
        while let Some(index) = devices.checked_ilog2() {
            devices &= !(1 << index);
            walk(Round::Hide, 1);
            let device = &mut self.devices[Id::new(index as u16)];
            device.mapped &= !(1 << process.index());
            m.attach_device(process, index as u16, false);
            if device.mapped == 0 {
                m.set_bus_master(index as u16, false);
            }
        }
    }

    /// A process that has a heap ends.
    #[inline(never)]
    pub(crate) fn free_heap<M: Machine>(&mut self, m: &mut M, process: ProcessId) {
        let heap = &mut self.processes[process].heap;
        m.clear_heap(process, heap.count);
        self.free_frames.append(&mut self.frames, heap);
    }
}
