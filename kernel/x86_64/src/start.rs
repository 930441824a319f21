//! From the loader to the first decision.

use crate::acpi::Acpi;
use crate::apic::{IoApic, LocalApic};
use crate::clock::{self, Clock};
use crate::console::{announce, console};
use crate::cpu;
use crate::fatal::leave;
use crate::frames::BootMemory;
use crate::machine::{Counts, Metal, Place, Program};
use crate::paging::{self, Space};
use crate::percpu::{BOOT_CPU, BOOT_SHELL};
use crate::recorder::Recorder;
use crate::shell::{Observe, Shell};
use crate::tables::{self, DEVICES_MAX};
use crate::loader;
use core::arch::global_asm;
use diapason_abi::archive::{Archive, NONE, Refusal, VERSION, flags};
use diapason_abi::record::{Protection, Record, exit};
use diapason_abi::recorder::ENTRY_BYTES;
use diapason_abi::{Nanos, PAGE, PROCESSES_MAX, layout};
use diapason_core::config::fill;
use diapason_core::{Cause, Kernel, Pools, Sizes};

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
        Ok(shell) => run(shell),
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

fn build(
    bytes: &'static [u8],
    memory: &mut BootMemory,
    clock: Clock,
    timer: LocalApic,
    acpi: &Acpi,
) -> Result<&'static mut Shell, Refusal> {
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
    let refused = load_programs(&archive, memory, &mut metal, &clock)?;
    let kernel = kernel(&archive, &sizes, refused, memory).ok_or(Refusal::Memory)?;
    metal.pool = memory.cut(sizes.frames as u64 * PAGE as u64).ok_or(Refusal::Memory)?;
    let shell = Shell {
        kernel,
        metal,
        clock,
        timer,
        armed: Nanos::FOREVER,
        horizon: Nanos(h.horizon),
        has_devices: h.devices > 0,
        entries: 0,
        longest_cause: 0,
    };
    // SAFETY: once, at boot; from here on only `percpu::shell` names it.
    unsafe {
        let place = &raw mut BOOT_SHELL;
        (*place).write(shell);
        let shell = (*place).as_mut_ptr();
        (*(&raw mut BOOT_CPU)).shell = shell;
        Ok(&mut *shell)
    }
}

fn metal(
    archive: &Archive<'_>,
    memory: &mut BootMemory,
    acpi: &Acpi,
    sizes: &Sizes,
) -> Option<Metal> {
    let record = archive.header.flags & flags::RECORD != 0;
    let watch = archive.header.flags & flags::WATCH != 0;
    let entries = if record { archive.header.recorder_bytes as usize / ENTRY_BYTES } else { 0 };
    let contexts = memory.cut((sizes.threads * size_of::<crate::context::Context>()) as u64)?;
    // SAFETY: zeroed memory of that size, aligned to a page; all zeros is a context.
    let contexts =
        unsafe { core::slice::from_raw_parts_mut(contexts as *mut _, sizes.threads) };
    let places = fill::threads(archive).map(|t| Place { process: t.process.index(), slot: t.slot });
    let mut metal = Metal {
        spaces: [Space::NONE; PROCESSES_MAX],
        programs: [Program { entry: 0, arguments: [0; 4] }; PROCESSES_MAX],
        contexts,
        places: memory.pool(places, sizes.threads)?,
        segment_tables: [0; layout::SLOTS_MAX as usize],
        device_tables: [0; layout::SLOTS_MAX as usize],
        pool: 0,
        vectors: [NONE; DEVICES_MAX],
        lines: [NONE; DEVICES_MAX],
        io_apic: IoApic::open(acpi.io_apic, acpi.first_line),
        current: NONE,
        counts: Counts::default(),
        longest: 0,
        observe: Observe { any: record || watch, record, watch },
        recorder: Recorder::new(memory.pool((0..entries).map(|_| [0; 10]), entries)?),
        supervisor_died: false,
    };
    shared_tables(archive, memory, &mut metal)?;
    Some(metal)
}

fn shared_tables(archive: &Archive<'_>, memory: &mut BootMemory, metal: &mut Metal) -> Option<()> {
    for (index, _) in archive.segments().enumerate() {
        metal.segment_tables[index] = memory.page()?;
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
fn load_programs(
    archive: &Archive<'_>,
    memory: &mut BootMemory,
    metal: &mut Metal,
    clock: &Clock,
) -> Result<u64, Refusal> {
    let info_table = info_page(memory, clock, archive.header.horizon).ok_or(Refusal::Memory)?;
    let mut refused = 0;
    for (index, record) in archive.processes().enumerate() {
        match loader::load(archive, &record, index as u16, info_table, memory) {
            Ok(loaded) => {
                metal.spaces[index] = loaded.space;
                metal.programs[index] = loaded.program;
            }
            Err(reason) => {
                refused |= 1 << index;
                announce(Record::Refused, &[index as u64, reason as u64]);
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

fn kernel(
    archive: &Archive<'_>,
    sizes: &Sizes,
    refused: u64,
    memory: &mut BootMemory,
) -> Option<Kernel<'static>> {
    let alarms = sizes.threads + sizes.events;
    Some(Kernel::new(Pools {
        processes: memory.pool(fill::processes(archive, refused), sizes.processes)?,
        threads: memory.pool(fill::threads(archive), sizes.threads)?,
        semaphores: memory.pool(fill::semaphores(archive), sizes.semaphores)?,
        conditions: memory.pool(fill::conditions(archive), sizes.conditions)?,
        mailboxes: memory.pool(fill::mailboxes(archive), sizes.mailboxes)?,
        messages: memory.pool(fill::messages(sizes), sizes.messages)?,
        events: memory.pool(fill::events(archive), sizes.events)?,
        segments: memory.pool(fill::segments(archive), sizes.segments)?,
        devices: memory.pool(fill::devices(archive), sizes.devices)?,
        frames: memory.pool(fill::frames(sizes), sizes.frames)?,
        alarms: memory.pool(fill::alarms(sizes), alarms)?,
        places: memory.pool((0..alarms).map(|_| 0), alarms)?,
    }))
}

fn run(shell: &'static mut Shell) -> ! {
    // SAFETY: gs base so far names the core's state; the first entry needs it for the timer only.
    let next = shell.enter(Cause::Boot);
    // SAFETY: a context of a thread the core chose, or none.
    unsafe { resume_from_boot(next) }
}
