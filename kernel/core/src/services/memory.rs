//! Memory given out at run time: heaps, shared segments, device registers.
//!
//! Frames come from one pool, filled at boot with as many as all quotas and segments together need.
//! Frames of one owner form a chain, so giving back a whole heap or segment is one splice.

use crate::ids::{DeviceId, ProcessId, SegmentId};
use crate::kernel::{Flow, Kernel, Refused, Step};
use crate::machine::Machine;
use crate::objects::memory::Chain;
use crate::pool::Id;
use diapason_abi::call::{PARTIAL, mapped};
use diapason_abi::{Errno, FaultCause, PAGE, PAGES_PER_CALL, layout};

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
        Ok(Flow::Same(start + u64::from(first) * PAGE as u64))
    }

    /// The segment `key`, if the running process may use it.
    fn granted_segment(&self, key: u64) -> Result<SegmentId, Refused> {
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
            return Ok(Flow::Same(PARTIAL | u64::from(segment.frames.count)));
        }
        segment.attached |= self.grant;
        self.processes[self.process].segments |= 1 << id.index();
        m.attach_segment(self.process, id.index(), true);
        Ok(Flow::Same(m.window(self.process) + layout::segment_offset(id.index())))
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
    pub(crate) fn detach<M: Machine>(&mut self, m: &mut M, process: ProcessId, index: u16) {
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
        Ok(Flow::Same(mapped(m.bus_address(id.index(), segment.dma), segment.pages)))
    }

    /// The device `key`, if the running process may use it and the machine has it.
    pub(crate) fn granted_device(&self, key: u64) -> Result<DeviceId, Refused> {
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
        Ok(Flow::Same(mapped(address, self.devices[id].record.pages)))
    }

    /// A process no longer has the registers of a device.
    pub(crate) fn unmap<M: Machine>(&mut self, m: &mut M, process: ProcessId, index: u16) {
        let device = &mut self.devices[Id::new(index)];
        device.mapped &= !(1 << process.index());
        m.attach_device(process, index, false);
        if device.mapped == 0 {
            m.set_bus_master(index, false);
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
