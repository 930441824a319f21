//! From the loader to the first decision.

use crate::acpi::Acpi;
use crate::apic::{IoApic, LocalApic};
use crate::clock::{self, Clock};
use crate::console::{announce, console};
use crate::context::Context;
use crate::cpu;
use crate::fatal::leave;
use crate::frames::BootMemory;
use crate::loader;
use crate::machine::{Counts, Metal, Place, Program};
use crate::paging::{self, Space};
use crate::percpu::{BOOT_CPU, BOOT_SHELL, shell};
use crate::recorder::Recorder;
use crate::shell::{Observe, Shell};
use crate::tables::{self, DEVICES_MAX};
use core::arch::global_asm;
use diapason_abi::archive::{Archive, NONE, Refusal, VERSION, flags};
use diapason_abi::record::{Protection, Record, exit};
use diapason_abi::recorder::{ENTRY_BYTES, ENTRY_WORDS};
use diapason_abi::{Nanos, PAGE, layout};
use diapason_core::{
    Alarm, Cause, Condition, Device, Event, Frame, Kernel, Mailbox, Message, Pools, Process,
    Segment, Semaphore, Sizes, Thread,
};

global_asm!(include_str!("boot.s"));

unsafe extern "C" {
    static __text_start: u8;
    static __text_end: u8;
    static __rodata_start: u8;
    static __rodata_end: u8;
    static __data_start: u8;
    static __data_end: u8;
    static __bss_start: u8;
    static __bss_end: u8;
    static __patches_start: u64;
    static __patches_end: u64;
    fn resume_from_boot(context: usize) -> !;
}

/// What a PVH loader passes: version 1 of the interface.
#[repr(C)]
struct StartInfo {
    magic: u32,
    version: u32,
    flags: u32,
    modules: u32,
    module_list: u64,
    command_line: u64,
    rsdp: u64,
    memory_map: u64,
    memory_entries: u32,
}

#[repr(C)]
struct MemoryEntry {
    address: u64,
    size: u64,
    kind: u32,
    reserved: u32,
}

const START_MAGIC: u32 = 0x336e_c578;
const RAM: u32 = 1;
/// Memory above this is not used: device registers may lie there.
const MEMORY_END: u64 = 3 << 30;

#[unsafe(no_mangle)]
extern "C" fn kernel_main(info: &'static StartInfo) -> ! {
    // SAFETY: boot runs alone; the reference ends here.
    unsafe { console() }.open();
    say_boot();
    let features = protect();
    if info.magic != START_MAGIC || info.modules == 0 {
        announce(Record::ArchiveRefused, &[Refusal::Truncated as u64]);
        leave(exit::NO_ARCHIVE);
    }
    let (bytes, mut memory) = find_memory(info);
    let acpi = Acpi::read(info.rsdp);
    announce(Record::Acpi, &[acpi.rsdp, acpi.processors, acpi.io_apics, acpi.hpet]);
    // SAFETY: once, at boot.
    unsafe { tables::load() };
    let mut timer = LocalApic::enable();
    let (clock, counter_khz, timer_khz) = clock::calibrate(acpi.hpet, &mut timer);
    timer.open_timer(features >> Protection::TscDeadline as u64 & 1 == 1);
    announce(Record::Clock, &[counter_khz, timer_khz, u64::from(timer.deadline_mode)]);
    match build(bytes, &mut memory, clock, timer, &acpi) {
        Ok(()) => run(),
        Err(refusal) => {
            announce(Record::ArchiveRefused, &[refusal as u64]);
            leave(exit::NO_ARCHIVE)
        }
    }
}

fn span(start: &'static u8, end: &'static u8) -> u64 {
    core::ptr::from_ref(end) as u64 - core::ptr::from_ref(start) as u64
}

fn say_boot() {
    // SAFETY: the linker's symbols; only their addresses are used.
    let sizes = unsafe {
        [
            span(&__text_start, &__text_end),
            span(&__rodata_start, &__rodata_end),
            span(&__data_start, &__data_end),
            span(&__bss_start, &__bss_end),
        ]
    };
    announce(Record::Boot, &[u64::from(VERSION), sizes[0], sizes[1], sizes[2], sizes[3]]);
}

/// Switch on every protection the processor has; returns what it has.
fn protect() -> u64 {
    let [_, _, basic, _] = cpu::identify(1);
    let [_, extended, more, _] = cpu::identify(7);
    let [_, _, _, amd] = cpu::identify(0x8000_0001);
    let [_, _, _, power] = cpu::identify(0x8000_0007);
    let found = [
        (Protection::NoExecute, amd >> 20 & 1, 0),
        (Protection::Smep, extended >> 7 & 1, 1 << 20),
        (Protection::Smap, extended >> 20 & 1, 1 << 21),
        (Protection::Umip, more >> 2 & 1, 1 << 11),
        (Protection::GlobalPages, 1, 0),
        (Protection::TscDeadline, basic >> 24 & 1, 0),
        (Protection::InvariantTsc, power >> 8 & 1, 0),
    ];
    let (mut features, mut cr4) = (0u64, 0u64);
    for (protection, present, bit) in found {
        features |= u64::from(present) << protection as u64;
        cr4 |= u64::from(present) * bit;
    }
    // All of them are used where they exist, but for the stability of the counter, which is only
    // a property.
    let enabled = features & !(1 << Protection::InvariantTsc as u64);
    if features >> Protection::Smap as u64 & 1 == 0 {
        without_smap();
    }
    // SAFETY: once, at boot; each bit's feature was found. Writing CR4 drops all translations.
    unsafe {
        paging::protect_kernel();
        cpu::set_cr4(cr4);
        cpu::load_address_space(boot_root());
    }
    announce(Record::Cpu, &[features, enabled]);
    features
}

fn boot_root() -> u64 {
    unsafe extern "C" {
        static KERNEL_PML4: u8;
    }
    &raw const KERNEL_PML4 as u64
}

/// The processor does not know the instructions that open user memory: make them do nothing.
fn without_smap() {
    // SAFETY: the code is still writable; each place holds three bytes of such an instruction.
    unsafe {
        let mut at = &raw const __patches_start;
        while at < &raw const __patches_end {
            (*at as *mut [u8; 3]).write([0x0f, 0x1f, 0x00]);
            at = at.add(1);
        }
    }
}

/// The archive, and the largest stretch of memory that holds neither it nor the kernel.
fn find_memory(info: &StartInfo) -> (&'static [u8], BootMemory) {
    // SAFETY: the loader's structures, below 4 GiB and mapped; copied from before anything is
    // written to free memory.
    let (entries, module) = unsafe {
        let entries = core::slice::from_raw_parts(
            info.memory_map as *const MemoryEntry,
            info.memory_entries as usize,
        );
        (entries, *(info.module_list as *const [u64; 2]))
    };
    let [archive, length] = module;
    let (mut usable, mut best) = (0, (0, 0));
    for entry in entries.iter().filter(|e| e.kind == RAM) {
        usable += entry.size;
        let start = entry.address.max(paging::kernel_end());
        let end = (entry.address + entry.size).min(MEMORY_END);
        for (from, to) in [(start, end.min(archive)), (start.max(archive + length), end)] {
            if to > from && to - from > best.1 - best.0 {
                best = (from, to);
            }
        }
    }
    let memory = BootMemory::new(best.0, best.1);
    let (first, free) = memory.remaining();
    announce(Record::Memory, &[usable, first, free]);
    // SAFETY: the module the loader placed; never written.
    let bytes = unsafe { core::slice::from_raw_parts(archive as *const u8, length as usize) };
    (bytes, memory)
}

#[inline(never)]
fn build(
    bytes: &'static [u8],
    memory: &mut BootMemory,
    clock: Clock,
    timer: LocalApic,
    acpi: &Acpi,
) -> Result<(), Refusal> {
    let archive = Archive::parse(bytes)?;
    let sizes = Sizes::of(&archive).ok_or(Refusal::Table)?;
    let h = archive.header;
    let objects = [sizes.semaphores as u64, sizes.conditions as u64, sizes.mailboxes as u64];
    let [semaphores, conditions, mailboxes] = objects;
    let tables = [u64::from(h.segments), u64::from(h.devices)];
    announce(
        Record::Archive,
        &[u64::from(h.processes), semaphores, conditions, mailboxes, tables[0], tables[1]],
    );
    let mut metal = metal(&archive, memory, acpi, &sizes).ok_or(Refusal::Memory)?;
    shared_tables(&archive, memory, &mut metal).ok_or(Refusal::Memory)?;
    let refused = load_programs(&archive, memory, &mut metal, &clock)?;
    let pools = pools(&sizes, memory).ok_or(Refusal::Memory)?;
    let kernel = Kernel::new(pools, &archive, refused);
    metal.pool = memory.cut(sizes.frames as u64 * PAGE as u64).ok_or(Refusal::Memory)?;
    let shell = Shell {
        kernel,
        metal,
        clock,
        timer,
        armed: Nanos::FOREVER,
        horizon: Nanos(h.horizon),
        has_devices: h.devices > 0,
        longest_cause: 0,
    };
    let place = (&raw mut BOOT_SHELL).cast::<Shell>();
    // SAFETY: once, at boot; from here on only `percpu::shell` names it.
    unsafe {
        place.write(shell);
        BOOT_CPU.shell = place;
    }
    Ok(())
}

#[inline(never)]
fn metal(
    archive: &Archive<'_>,
    memory: &mut BootMemory,
    acpi: &Acpi,
    sizes: &Sizes,
) -> Option<Metal> {
    let h = archive.header;
    let (record, watch) = (h.flags & flags::RECORD != 0, h.flags & flags::WATCH != 0);
    let entries = if record { h.recorder_bytes as usize / ENTRY_BYTES } else { 0 };
    Some(Metal {
        spaces: memory.slice(sizes.processes, || Space::NONE)?,
        programs: memory.slice(sizes.processes, Program::default)?,
        contexts: memory.slice(sizes.threads, || Context::EMPTY)?,
        places: memory.slice(sizes.threads, Place::default)?,
        segment_tables: memory.slice(sizes.segments, || 0)?,
        device_tables: memory.slice(sizes.devices, || 0)?,
        pool: 0,
        vectors: [NONE; DEVICES_MAX],
        lines: [NONE; DEVICES_MAX],
        io_apic: IoApic::open(acpi.io_apic, acpi.first_line),
        current: NONE,
        counts: Counts::default(),
        longest: 0,
        observe: Observe { any: record || watch, record, watch },
        recorder: Recorder::new(memory.slice(entries, || [0; ENTRY_WORDS])?),
        supervisor_died: false,
    })
}

/// Level-1 tables of segments and devices, and a vector for each device that interrupts.
fn shared_tables(archive: &Archive<'_>, memory: &mut BootMemory, metal: &mut Metal) -> Option<()> {
    for table in metal.segment_tables.iter_mut() {
        *table = memory.page()?;
    }
    let mut vectors = 0;
    for (index, device) in archive.devices().enumerate() {
        let table = memory.page()?;
        metal.device_tables[index] = table;
        for page in 0..device.pages {
            paging::set_device(table, page, device.address + u64::from(page) * PAGE as u64);
        }
        if device.irq != NONE && vectors < DEVICES_MAX {
            metal.vectors[vectors] = index as u16;
            metal.lines[vectors] = device.irq;
            vectors += 1;
        }
    }
    Some(())
}

/// Load every program; returns which were refused, one bit each.
#[inline(never)]
fn load_programs(
    archive: &Archive<'_>,
    memory: &mut BootMemory,
    metal: &mut Metal,
    clock: &Clock,
) -> Result<u64, Refusal> {
    let info_table = info_page(memory, clock, archive.header.horizon).ok_or(Refusal::Memory)?;
    let (mut refused, mut first_thread) = (0, 0);
    for index in 0..archive.header.processes {
        let record = archive.process(index);
        for slot in 0..record.threads {
            metal.places[first_thread] = Place { process: index, slot };
            first_thread += 1;
        }
        match loader::load(archive, &record, index, info_table, memory) {
            Ok(loaded) => {
                metal.spaces[index as usize] = loaded.space;
                metal.programs[index as usize] = loaded.program;
            }
            Err(reason) => {
                refused |= 1 << index;
                announce(Record::Refused, &[u64::from(index), reason as u64]);
            }
        }
    }
    Ok(refused)
}

/// The page every process may read, in a table every process shows.
fn info_page(memory: &mut BootMemory, clock: &Clock, horizon: u64) -> Option<u64> {
    let (table, page) = (memory.page()?, memory.page()?);
    let words = page as *mut u64;
    // SAFETY: a fresh page.
    unsafe {
        words.add(layout::info::CLOCK_MULTIPLIER).write(clock.multiplier);
        words.add(layout::info::CLOCK_BASE).write(clock.base);
        words.add(layout::info::HORIZON).write(horizon);
    }
    paging::set_read_only(table, 0, page);
    Some(table)
}

/// Memory for the core's pools.
fn pools(sizes: &Sizes, memory: &mut BootMemory) -> Option<Pools<'static>> {
    let alarms = sizes.threads + sizes.events;
    Some(Pools {
        processes: memory.slice(sizes.processes, || Process::EMPTY)?,
        threads: memory.slice(sizes.threads, || Thread::EMPTY)?,
        semaphores: memory.slice(sizes.semaphores, || Semaphore::EMPTY)?,
        conditions: memory.slice(sizes.conditions, || Condition::EMPTY)?,
        mailboxes: memory.slice(sizes.mailboxes, || Mailbox::EMPTY)?,
        messages: memory.slice(sizes.messages, || Message::EMPTY)?,
        events: memory.slice(sizes.events, || Event::EMPTY)?,
        segments: memory.slice(sizes.segments, || Segment::EMPTY)?,
        devices: memory.slice(sizes.devices, || Device::EMPTY)?,
        frames: memory.slice(sizes.frames, || Frame::UNLINKED)?,
        alarms: memory.slice(alarms, || Alarm::UNUSED)?,
        places: memory.slice(alarms, || 0)?,
    })
}

fn run() -> ! {
    // SAFETY: `build` made the shell, and gs names the core's state.
    let shell = unsafe { shell() };
    if shell.metal.observe.any {
        tables::observe_calls();
    }
    let next = shell.enter(Cause::Boot);
    // SAFETY: a context of a thread the core chose, or none.
    unsafe { resume_from_boot(next) }
}
