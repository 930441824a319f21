//! The effects the kernel core asks for, on windows of host memory.

use crate::bus::{self, Bus, Segments};
use crate::context::Context;
use crate::function::Note;
use crate::memory::{Commons, Rights, Shared, Window};
use crate::program::{self, Program};
use crate::region::Region;
use crate::{Said, StartError};
use diapason_abi::archive::{Archive, DeviceRecord};
use diapason_abi::record::{Record, shown};
use diapason_abi::{Nanos, PAGE, layout};
use diapason_core::{BadAddress, FrameId, Machine, ProcessId, ThreadId, ThreadStart, UserMemory};

/// Words of a fault's record before the address concerned and that of the instruction.
const FAULT_ADDRESSES: usize = 4;

/// A thread's process and slot, fixed by the description.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Place {
    pub process: u16,
    pub slot: u16,
}

/// The machine under the kernel of one host.
pub(crate) struct Simulated {
    /// The region of the host's windows.
    pub region: Region,
    /// By process; a refused program has none.
    programs: Vec<Option<Program>>,
    pub segments: Vec<(Shared, u64)>,
    pub bus: Bus,
    pub contexts: Vec<Context>,
    pub places: Vec<Place>,
    /// Processor time each thread has still to use before it goes on natively.
    pub owed: Vec<Nanos>,
    /// The process whose memory is visible.
    pub current: u16,
    isolate: bool,
    /// The place at which the running thread made its call.
    pub instruction: u64,
    /// The output since the last call.
    pub said: Vec<Said>,
    pub switches: u64,
    pub accesses: u64,
    pub supervisor_died: bool,
    /// Processes whose windows are hidden, one bit each.
    pub hidden: u64,
    /// Doorbells rung that are answered on another core: which core, which of them.
    pub rung: Vec<(u16, u16)>,
}

impl Simulated {
    /// Loads every program of `archive`. Also returns which were refused, one bit each.
    pub fn load(
        archive: &Archive<'_>,
        mut bus: Bus,
        region: Region,
        commons: &mut Commons,
    ) -> Result<(Simulated, u64), StartError> {
        let (mut programs, mut places, mut said) = (Vec::new(), Vec::new(), Vec::new());
        let mut refused = 0;
        for (index, record) in (0u16..).zip(archive.processes()) {
            places.extend((0..record.threads).map(|slot| Place { process: index, slot }));
            let loaded = program::load(archive, &record, region.window(index));
            if let Err(reason) = loaded {
                refused |= 1 << index;
                let words = vec![u64::from(index), reason as u64];
                said.push(Said::Record(Record::Refused, words));
            }
            programs.push(loaded.ok());
        }
        // Memory in common is there from boot on, and nobody takes it away.
        let common = (0u16..).zip(archive.segments()).filter(|(_, it)| it.common && it.dma);
        common.for_each(|(segment, _)| bus.note_segment(segment, true));
        let segments: std::io::Result<_> =
            archive.segments().map(|segment| commons.segment(&segment)).collect();
        let machine = Simulated {
            region,
            programs,
            segments: segments.map_err(StartError::Memory)?,
            bus,
            contexts: vec![Context::default(); places.len()],
            owed: vec![Nanos::ZERO; places.len()],
            places,
            current: u16::MAX,
            isolate: false,
            instruction: 0,
            said,
            switches: 0,
            accesses: 0,
            supervisor_died: false,
            hidden: 0,
            rung: Vec::new(),
        };
        Ok((machine, refused))
    }

    /// Makes a process's memory visible to the kernel.
    pub fn enter_space(&mut self, process: u16) {
        if process == self.current {
            return;
        }
        self.switches += 1;
        let before = std::mem::replace(&mut self.current, process);
        if self.isolate {
            if let Some(window) = self.window_of(before) {
                window.seal();
            }
            if let Some(window) = self.window_of(process) {
                window.unseal();
            }
        }
    }

    /// Another host's turn: what is visible here is out of reach, if processes are kept apart.
    pub fn rest(&mut self) {
        if self.isolate
            && let Some(window) = self.window_of(self.current)
        {
            window.seal();
        }
    }

    /// This host's turn again.
    pub fn resume(&mut self) {
        if self.isolate
            && let Some(window) = self.window_of(self.current)
        {
            window.unseal();
        }
    }

    /// From now on a process's memory can be touched only while it runs.
    pub fn isolate(&mut self) {
        self.isolate = true;
        self.programs.iter_mut().flatten().for_each(|program| program.window.seal());
    }

    fn window_of(&mut self, process: u16) -> Option<&mut Window> {
        self.programs.get_mut(usize::from(process))?.as_mut().map(|program| &mut program.window)
    }

    fn range(&self, address: u64, length: u64, write: bool) -> Result<*mut u8, BadAddress> {
        let program = self.programs.get(usize::from(self.current)).and_then(Option::as_ref);
        range_of(program, address, length, write)
    }

    /// Copies memory of any program. Returns false if the program may not read all of it. Processes
    /// must not be kept from each other's memory.
    pub fn peek(&self, address: u64, to: &mut [u8]) -> bool {
        let mut programs = self.programs.iter().map(Option::as_ref);
        !self.isolate && programs.any(|program| copy_from(program, address, to).is_ok())
    }

    /// Returns a sum over all memory that is not of this process: windows of others, and segments
    /// that it does not show.
    pub fn sum_beside(&self, process: u16) -> u64 {
        let own = self.programs.get(usize::from(process)).and_then(Option::as_ref);
        let shows = |slot: u64| {
            own.is_some_and(|own| own.window.has(layout::SEGMENTS + slot * layout::SLOT))
        };
        let others = (0u16..).zip(&self.programs).filter(|(index, _)| *index != process);
        let windows = others.filter_map(|(_, program)| Some(program.as_ref()?.window.sum()));
        let segments = (0u64..).zip(&self.segments).filter(|(slot, _)| !shows(*slot));
        let segments = segments.map(|(_, (shared, _))| shared.sum());
        windows.chain(segments).fold(0, |all, sum| all.rotate_left(7) ^ sum)
    }

    /// The running thread reads a device's register, if it has one there.
    pub fn read_register(&mut self, address: u64, bytes: u8, now: Nanos) -> Option<u64> {
        self.accesses += 1;
        self.bus.read(self.current, self.region.home(address), bytes, now)
    }

    /// The running thread writes a device's register, if it has one there.
    pub fn write_register(&mut self, address: u64, value: (u64, u8), now: Nanos) -> Option<()> {
        self.accesses += 1;
        let address = self.region.home(address);
        self.bus.write(self.current, address, value, now, &mut Segments(&mut self.segments))
    }

    /// Devices do what they do by themselves up to `now`.
    pub fn advance_devices(&mut self, now: Nanos) {
        self.bus.advance(now, &mut Segments(&mut self.segments));
        let notes = self.bus.notes.drain(..).map(|note| match note {
            Note::Fault(words) => Said::Fault(now, words),
            Note::Other(text) => Said::Note(now, text),
        });
        self.said.extend(notes);
        let strays = self.bus.take_strays().into_iter();
        self.said.extend(strays.map(|stray| Said::Stray(now, stray)));
    }

    /// A message for the process that is visible; false if it has no memory there.
    pub fn deliver(&mut self, address: u64, message: &[u8]) -> bool {
        self.copy_out(address, message).is_ok()
    }
}

/// Returns the memory of a program at `address`, if it may read (or write) all of it.
fn range_of(
    program: Option<&Program>,
    address: u64,
    length: u64,
    write: bool,
) -> Result<*mut u8, BadAddress> {
    if length == 0 {
        return Ok(std::ptr::dangling_mut());
    }
    let range = program.and_then(|program| program.window.range(address, length, write));
    range.map(|start| start.as_ptr()).ok_or(BadAddress)
}

fn copy_from(program: Option<&Program>, address: u64, to: &mut [u8]) -> Result<(), BadAddress> {
    let from = range_of(program, address, to.len() as u64, false)?;
    // SAFETY: the program may read all of the range, and does not run now.
    unsafe { std::ptr::copy(from, to.as_mut_ptr(), to.len()) };
    Ok(())
}

impl UserMemory for Simulated {
    fn copy_in(&mut self, address: u64, to: &mut [u8]) -> Result<(), BadAddress> {
        let program = self.programs.get(usize::from(self.current)).and_then(Option::as_ref);
        copy_from(program, address, to)
    }

    fn copy_out(&mut self, address: u64, from: &[u8]) -> Result<(), BadAddress> {
        let to = self.range(address, from.len() as u64, true)?;
        // SAFETY: the program may write all of the range, and does not run now.
        unsafe { std::ptr::copy(from.as_ptr(), to, from.len()) };
        Ok(())
    }

    fn copy_user(&mut self, to: u64, from: u64, length: u64) -> Result<(), BadAddress> {
        let (to, from) = (self.range(to, length, true)?, self.range(from, length, false)?);
        // SAFETY: as above, both.
        unsafe { std::ptr::copy(from, to, length as usize) };
        Ok(())
    }
}

impl Machine for Simulated {
    fn window(&self, process: ProcessId) -> u64 {
        self.region.window(process.index())
    }

    fn instruction(&self) -> u64 {
        self.instruction
    }

    fn start_thread(&mut self, thread: ThreadId, entry: Option<(u64, u64)>) {
        let index = usize::from(thread.index());
        let Place { process, slot } = self.places[index];
        let Some(program) = &self.programs[usize::from(process)] else { return };
        let window = self.region.window(process);
        let start = ThreadStart::of(window, slot, (program.entry, program.arguments), entry);
        self.contexts[index].start(start);
        self.owed[index] = Nanos::ZERO;
    }

    fn show_process(&mut self, process: ProcessId, visible: bool) {
        let bit = 1u64 << process.index();
        self.hidden = if visible { self.hidden & !bit } else { self.hidden | bit };
        // Its threads never end what they had begun.
        for (owed, place) in self.owed.iter_mut().zip(&self.places) {
            if place.process == process.index() {
                *owed = Nanos::ZERO;
            }
        }
    }

    fn map_heap(&mut self, process: ProcessId, page: u32, _frame: FrameId) {
        if let Some(window) = self.window_of(process.index()) {
            window.protect(layout::HEAP + u64::from(page) * PAGE as u64, 1, Rights::Write);
        }
    }

    fn clear_heap(&mut self, process: ProcessId, pages: u32) {
        if let Some(window) = self.window_of(process.index()) {
            window.clear(layout::HEAP, u64::from(pages));
        }
    }

    fn map_segment(&mut self, segment: u16, page: u32, _frame: FrameId) {
        self.bus.note_segment(segment, true);
        let (shared, _) = &mut self.segments[usize::from(segment)];
        let start = page as usize * PAGE;
        shared.bytes()[start..start + PAGE].fill(0);
    }

    fn clear_segment(&mut self, segment: u16, _pages: u32) {
        self.bus.note_segment(segment, false);
        // Nobody shows it any more, and every page is cleared before somebody does again.
    }

    fn attach_segment(&mut self, process: ProcessId, segment: u16, visible: bool) {
        let offset = layout::SEGMENTS + u64::from(segment) * layout::SLOT;
        let (shared, pages) = &self.segments[usize::from(segment)];
        let program = self.programs[usize::from(process.index())].as_mut();
        if let Some(Program { window, .. }) = program {
            if visible { window.show(offset, shared, *pages) } else { window.hide(offset, *pages) }
        }
    }

    fn attach_device(&mut self, process: ProcessId, device: u16, visible: bool) {
        self.bus.attach(process.index(), device, visible);
    }

    fn set_bus_master(&mut self, device: u16, enabled: bool) {
        self.bus.set_master(device, enabled);
    }

    fn bus_address(&mut self, segment: u16, _first: FrameId) -> u64 {
        bus::address_of(segment)
    }

    fn set_irq(&mut self, device: &DeviceRecord, enabled: bool) {
        self.bus.set_irq(device, enabled);
    }

    fn ring(&mut self, core: u16, number: u16) {
        self.rung.push((core, number));
    }

    fn log(&mut self, process: ProcessId, text: &[u8]) {
        let text = text.iter().map(|byte| char::from(shown(*byte))).collect();
        self.said.push(Said::Log(process.index(), text));
    }

    fn emit(&mut self, record: Record, words: &[u64]) {
        let mut words = words.to_vec();
        if record == Record::Fault {
            let addresses = words.iter_mut().skip(FAULT_ADDRESSES);
            addresses.for_each(|word| *word = self.region.home(*word));
        }
        self.said.push(Said::Record(record, words));
    }

    fn counter(&mut self, _which: u64) -> u64 {
        0
    }

    fn supervisor_died(&mut self, _process: ProcessId) {
        self.supervisor_died = true;
    }
}
