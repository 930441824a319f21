//! The effects the core asks for, on real hardware.

use crate::apic::{IoApic, set_message};
use crate::console::{Console, console};
use crate::context::Context;
use crate::cpu;
use crate::iommu::UNITS_MAX;
use crate::paging::{self, Space};
use crate::pci;
use crate::recorder::Recorder;
use crate::seat::CORES;
use crate::table::Table;
use crate::tables::DEVICES_MAX;
use diapason_abi::archive::{DeviceRecord, flags};
use diapason_abi::call::Counter;
use diapason_abi::record::Record;
use diapason_abi::{PAGE, PROCESSES_MAX, layout};
use diapason_core::{BadAddress, FrameId, Machine, ProcessId, ThreadId, ThreadStart, UserMemory};

/// The state that a program starts with.
#[derive(Clone, Copy, Default)]
pub struct Program {
    pub entry: u64,
    pub arguments: [u64; 4],
}

/// Counts of what instruction counts hide.
#[derive(Clone, Copy, Default)]
pub struct Counts {
    pub cr3: u64,
    /// Writes of model-specific registers.
    pub msr: u64,
    pub mmio: u64,
}

/// A thread's process and slot, fixed by the description.
#[derive(Clone, Copy, Default)]
pub struct Place {
    pub process: u16,
    pub slot: u16,
    /// The top of the process's address space. It is below the windows, as all of the kernel's
    /// memory is.
    pub root: u32,
}

/// No process. Where its window would be is no memory, so nothing is copied there.
pub const NOBODY: u16 = 0x7ffe;
const _: () = assert!(NOBODY as usize > PROCESSES_MAX);

/// This kernel can keep the flight record and time its paths. A kernel that cannot contains nothing
/// of either.
pub const OBSERVING: bool = cfg!(feature = "observing");

/// The observations that a run asked for.
#[derive(Clone, Copy)]
pub struct Observe {
    any: bool,
    record: bool,
    watch: bool,
}

impl Observe {
    /// Returns what these flags of an archive ask for.
    pub fn asked(asked: u32) -> Observe {
        let (record, watch) = (asked & flags::RECORD != 0, asked & flags::WATCH != 0);
        Observe { any: record || watch, record, watch }
    }

    /// Returns whether there is any that this kernel cannot make.
    pub fn is_refused(self) -> bool {
        self.any && !OBSERVING
    }

    /// Returns whether there is any.
    #[inline(always)]
    pub fn any(self) -> bool {
        OBSERVING && self.any
    }

    /// Returns whether the flight record is kept.
    #[inline(always)]
    pub fn record(self) -> bool {
        OBSERVING && self.record
    }

    /// Returns whether paths are timed.
    #[inline(always)]
    pub fn watch(self) -> bool {
        OBSERVING && self.watch
    }
}

/// The hardware as the core sees it.
pub struct Metal {
    pub spaces: Table<Space>,
    pub programs: Table<Program>,
    pub contexts: Table<Context>,
    pub places: Table<Place>,
    /// Level-1 tables of the declared segments and devices.
    pub segment_tables: Table<u64>,
    pub device_tables: Table<u64>,
    /// The command register of each device that is a PCI function.
    pub commands: Table<*mut u16>,
    /// First frame of the pool.
    pub pool: u64,
    /// The interrupting devices: which description entry has which vector.
    pub vectors: [u16; DEVICES_MAX],
    pub lines: [u16; DEVICES_MAX],
    /// Where those that send messages are masked; null: they have a line.
    pub masks: [*mut u32; DEVICES_MAX],
    /// The registers of each IOMMU that is on; 0: no other.
    pub units: [u64; UNITS_MAX],
    pub io_apic: IoApic,
    /// The process whose window is visible.
    pub current: u16,
    /// Where the caller's instruction pointer is during a system call.
    pub caller: *const u64,
    pub counts: Counts,
    pub longest: u64,
    pub observe: Observe,
    pub recorder: Recorder,
    pub supervisor_died: bool,
}

impl Metal {
    /// The address of a frame of the pool.
    fn frame(&self, frame: FrameId) -> u64 {
        self.pool + u64::from(frame.index()) * PAGE as u64
    }

    #[inline(never)]
    fn zeroed(&self, frame: FrameId) -> u64 {
        let address = self.frame(frame);
        // SAFETY: the core hands out each frame of the pool once; it is mapped one to one.
        unsafe { cpu::clear_page(address) };
        address
    }

    /// Returns whether this range is in the visible window, where the kernel copies. Windows begin
    /// at multiples of 4 GiB. An empty range counts as visible.
    #[inline(always)]
    fn visible(&self, address: u64, length: u64) -> bool {
        let ours = address >> 32 == u64::from(self.current) + 1;
        if !ours {
            return length == 0;
        }
        length <= layout::COPYABLE && (address & 0xffff_ffff) <= layout::COPYABLE - length
    }

    /// Copies between visible user memory and the kernel, or within the former.
    #[inline(always)]
    fn copy(&self, to: u64, from: u64, length: u64) -> Result<(), BadAddress> {
        let failed: u32;
        // SAFETY: the callers checked that the user side lies in the window; what is not mapped
        // there, or not writable, stops the copy with a page fault, which it reports. Called by
        // hand because it keeps more registers than a function must.
        unsafe {
            core::arch::asm!("call copy_user", inout("rdi") to => _, inout("rsi") from => _,
                inout("rdx") length => _, out("rax") failed, out("rcx") _);
        }
        if failed == 0 { Ok(()) } else { Err(BadAddress) }
    }

    /// A message for the process that is visible now; false if it has no memory there. Not an
    /// access of the core's, so the recording has no place for it.
    #[inline(always)]
    pub fn deliver(&self, address: u64, message: &[u8]) -> bool {
        let length = message.len() as u64;
        self.visible(address, length) && self.copy(address, message.as_ptr() as u64, length).is_ok()
    }

    /// Makes the memory of a thread's process visible. Returns the context of the thread.
    #[inline(always)]
    pub fn enter_space(&mut self, process: u16, thread: u16) -> &mut Context {
        let context = &mut self.contexts[thread as usize];
        if process != self.current {
            self.current = process;
            self.counts.cr3 += 1;
            // SAFETY: every space of a started process maps the kernel.
            unsafe { cpu::load_address_space(context.root.into()) }
        }
        context
    }

    /// Shows a whole table in a process's window; 0 hides the one that is there.
    fn attach(&mut self, process: ProcessId, offset: u64, table: u64) {
        self.space(process).show(offset, table);
        if table == 0 {
            self.forget(process);
        }
    }

    /// Something disappeared from a process. If it is visible, cached translations are forgotten
    /// before anybody runs: to run a thread of it is to make it visible anew.
    fn forget(&mut self, process: ProcessId) {
        if process.index() == self.current {
            self.current = NOBODY;
        }
    }

    fn space(&self, process: ProcessId) -> Space {
        self.spaces[process.index() as usize]
    }

    #[inline(always)]
    fn say(what: impl FnOnce(&mut Console)) {
        // SAFETY: within a kernel entry; the reference ends with the statement.
        what(unsafe { console() });
    }

    /// An access of user memory that failed.
    #[cold]
    #[inline(never)]
    fn refused(&mut self) -> Result<(), BadAddress> {
        self.keep(None);
        Err(BadAddress)
    }

    #[cold]
    #[inline(never)]
    fn keep(&mut self, bytes: Option<&[u8]>) {
        if self.observe.record() {
            self.recorder.bytes(bytes);
        }
    }
}

/// Memory for the frequent calls: a run that is observed does not come by them, so nothing is kept
/// for its recording.
pub struct Unobserved<'a>(pub &'a Metal);

impl UserMemory for Unobserved<'_> {
    #[inline(always)]
    fn copy_in(&mut self, address: u64, to: &mut [u8]) -> Result<(), BadAddress> {
        let length = to.len() as u64;
        let visible = self.0.visible(address, length);
        if visible { self.0.copy(to.as_mut_ptr() as u64, address, length) } else { Err(BadAddress) }
    }

    #[inline(always)]
    fn copy_out(&mut self, address: u64, from: &[u8]) -> Result<(), BadAddress> {
        if self.0.deliver(address, from) { Ok(()) } else { Err(BadAddress) }
    }

    fn copy_user(&mut self, to: u64, from: u64, length: u64) -> Result<(), BadAddress> {
        let visible = self.0.visible(to, length) && self.0.visible(from, length);
        if visible { self.0.copy(to, from, length) } else { Err(BadAddress) }
    }
}

impl UserMemory for Metal {
    #[inline(never)]
    fn copy_in(&mut self, address: u64, to: &mut [u8]) -> Result<(), BadAddress> {
        let length = to.len() as u64;
        if !self.visible(address, length)
            || self.copy(to.as_mut_ptr() as u64, address, length).is_err()
        {
            return self.refused();
        }
        if self.observe.any() {
            self.keep(Some(to));
        }
        Ok(())
    }

    #[inline(never)]
    fn copy_out(&mut self, address: u64, from: &[u8]) -> Result<(), BadAddress> {
        let length = from.len() as u64;
        if !self.visible(address, length)
            || self.copy(address, from.as_ptr() as u64, length).is_err()
        {
            return self.refused();
        }
        Ok(())
    }

    #[inline(never)]
    fn copy_user(&mut self, to: u64, from: u64, length: u64) -> Result<(), BadAddress> {
        let visible = self.visible(to, length) && self.visible(from, length);
        if visible && self.copy(to, from, length).is_ok() { Ok(()) } else { self.refused() }
    }
}

impl Machine for Metal {
    fn instruction(&self) -> u64 {
        // SAFETY: `entry.s` keeps it there in a system call, and nobody asks at another time.
        unsafe { *self.caller }
    }

    fn start_thread(&mut self, thread: ThreadId, entry: Option<(u64, u64)>) {
        let place = self.places[thread.index() as usize];
        let Program { entry: first, arguments } = self.programs[place.process as usize];
        let window = layout::base(place.process);
        let start = ThreadStart::of(window, place.slot, (first, arguments), entry);
        self.contexts[thread.index() as usize].start(place, start);
    }

    fn show_process(&mut self, process: ProcessId, visible: bool) {
        self.space(process).show_window(process.index(), visible);
        self.forget(process);
    }

    fn map_heap(&mut self, process: ProcessId, page: u32, frame: FrameId) {
        let frame = self.zeroed(frame);
        self.space(process).show_heap(page, frame);
    }

    fn clear_heap(&mut self, process: ProcessId, pages: u32) {
        self.space(process).hide_heap(pages);
        self.forget(process);
    }

    fn map_segment(&mut self, segment: u16, page: u32, frame: FrameId) {
        let frame = self.zeroed(frame);
        paging::set_shared(self.segment_tables[segment as usize], page, frame);
    }

    fn clear_segment(&mut self, _segment: u16, _pages: u32) {
        // Nobody shows its table any more, and every entry is set before somebody does again.
    }

    fn attach_segment(&mut self, process: ProcessId, segment: u16, visible: bool) {
        let offset = layout::SEGMENTS + u64::from(segment) * layout::SLOT;
        let table = if visible { self.segment_tables[segment as usize] } else { 0 };
        self.attach(process, offset, table);
    }

    fn attach_device(&mut self, process: ProcessId, device: u16, visible: bool) {
        let offset = layout::DEVICES + u64::from(device) * layout::SLOT;
        let table = if visible { self.device_tables[device as usize] } else { 0 };
        self.attach(process, offset, table);
    }

    fn set_bus_master(&mut self, device: u16, enabled: bool) {
        let command = self.commands[device as usize];
        if command.is_null() {
            return;
        }
        self.counts.mmio += 2;
        pci::set_bus_master(command, enabled);
    }

    fn bus_address(&mut self, segment: u16, _first: FrameId) -> u64 {
        // Devices see memory as the kernel does: an IOMMU changes no address.
        paging::shared(self.segment_tables[segment as usize])
    }

    fn set_irq(&mut self, device: &DeviceRecord, enabled: bool) {
        if let Some(vector) = self.lines.iter().position(|line| *line == device.irq) {
            self.counts.mmio += 2;
            match self.masks[vector] {
                mask if mask.is_null() => {
                    self.io_apic.set(device.irq, vector, device.level, enabled);
                }
                mask => set_message(mask, enabled),
            }
        } else if CORES {
            self.let_ring(device, enabled);
        }
    }

    fn ring(&mut self, core: u16, number: u16) {
        if CORES {
            self.ring_core(core, number);
        }
    }

    fn log(&mut self, process: ProcessId, text: &[u8]) {
        Self::say(|console| console.line(process.index(), text));
    }

    fn emit(&mut self, record: Record, words: &[u64]) {
        Self::say(|console| console.record(record, words));
    }

    fn counter(&mut self, which: u64) -> u64 {
        const CR3: u64 = Counter::Cr3 as u64;
        const MSR: u64 = Counter::Msr as u64;
        const MMIO: u64 = Counter::Mmio as u64;
        const LONGEST: u64 = Counter::LongestPath as u64;
        match which {
            CR3 => self.counts.cr3,
            MSR => self.counts.msr,
            MMIO => self.counts.mmio,
            LONGEST => self.longest,
            _ => 0,
        }
    }

    fn supervisor_died(&mut self, _process: ProcessId) {
        self.supervisor_died = true;
    }
}
