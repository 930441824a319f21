//! From the archive to a kernel ready for its first decision: pools, tables, programs.

use super::acpi::Acpi;
use super::memory::BootMemory;
use super::{devices, iommu, loader, spaces, tables};
use crate::apic::{IoApic, LocalApic};
use crate::clock::Clock;
use crate::console::{announce, console};
use crate::iommu::UNITS_MAX;
use crate::machine::{Counts, Metal, NOBODY, Observe, Place};
use crate::percpu::{BOOT_CPU, BOOT_SHELL};
use crate::recorder::Recorder;
use crate::seat::{CORES, await_opening, hall, seat};
use crate::shell::Shell;
use crate::table::Table;
use crate::tables::DEVICES_MAX;
use crate::watch::Paths;
use diapason_abi::archive::{Archive, NONE, Refusal, SegmentRecord, flags};
use diapason_abi::record::Record;
use diapason_abi::recorder::ENTRY_BYTES;
use diapason_abi::served::Facility;
use diapason_abi::{Nanos, PAGE, layout, results};
use diapason_core::{
    Cause, Condition, Device, Event, Frame, Kernel, Mailbox, Message, Pools, Process, SERVED,
    Segment, Semaphore, Sizes, Thread, Vcpu,
};

// The first contents of the pools. They have names so that the linker script can tell them from the
// constants that stay.
static EMPTY_PROCESS: Process = Process::EMPTY;
static EMPTY_THREAD: Thread = Thread::EMPTY;
static EMPTY_SEMAPHORE: Semaphore = Semaphore::EMPTY;
static EMPTY_CONDITION: Condition = Condition::EMPTY;
static EMPTY_MAILBOX: Mailbox = Mailbox::EMPTY;
static EMPTY_MESSAGE: Message = Message::EMPTY;
static EMPTY_EVENT: Event = Event::EMPTY;
static EMPTY_SEGMENT: Segment = Segment::EMPTY;
static EMPTY_DEVICE: Device = Device::EMPTY;
static EMPTY_FRAME: Frame = Frame::UNLINKED;

static EMPTY_VCPU: Vcpu = Vcpu::EMPTY;

/// Makes the shell; returns whether the run is observed.
#[inline(never)]
pub fn build(
    bytes: &'static [u8],
    memory: &mut BootMemory,
    clock: Clock,
    timer: LocalApic,
    acpi: &Acpi,
) -> Result<bool, Refusal> {
    let archive = Archive::parse(bytes)?;
    // Nobody would be there to share it.
    let alone = |segment: SegmentRecord| segment.common && segment.key != results::KEY;
    if hall().is_none() && archive.segments().any(alone) {
        return Err(Refusal::Table);
    }
    let sizes = Sizes::of(&archive).ok_or(Refusal::Table)?;
    let h = archive.header;
    if Observe::asked(h.flags).is_refused() {
        return Err(Refusal::Observed);
    }
    if !sizes.are_served() {
        return Err(Refusal::Unserved);
    }
    let clock = clock.slower(if CORES { flags::slower(h.flags) } else { 0 });
    tell(&archive, &sizes);
    let mut metal = metal(&archive, memory, acpi, &sizes);
    let absent =
        devices::set_up(&archive, memory, &mut metal, acpi, &timer).ok_or(Refusal::Memory)?;
    let refused = load_programs(&archive, memory, &mut metal, &clock)?;
    let pools = pools(&sizes, memory);
    metal.pool = memory.cut(sizes.frames as u64 * PAGE as u64).ok_or(Refusal::Memory)?;
    if SERVED.has(Facility::Devices) {
        let walls = iommu::confine(acpi, &archive, memory, &mut metal, timer.id());
        let walls = walls.ok_or(Refusal::Memory)?;
        await_opening();
        if let Some(walls) = walls {
            iommu::heed(walls, acpi, &archive, &mut metal);
        }
    } else {
        await_opening();
    }
    let observed = metal.observe.any();
    // SAFETY: once, at boot; from here on only `percpu::shell` names it.
    unsafe {
        BOOT_CPU.shell = (&raw mut BOOT_SHELL).cast();
        BOOT_CPU.shell.write(Shell {
            kernel: Kernel::new(pools, &archive, refused),
            metal,
            clock,
            timer,
            armed: Nanos::FOREVER,
            horizon: Nanos(h.horizon),
            has_devices: h.devices > 0,
            paths: Paths::NONE,
            noted: Cause::Boot,
        });
        (*BOOT_CPU.shell).kernel.lack_devices(absent);
    }
    Ok(observed)
}

/// Says what the archive has.
#[inline(never)]
fn tell(archive: &Archive<'_>, sizes: &Sizes) {
    let h = archive.header;
    let objects = [sizes.semaphores as u64, sizes.conditions as u64, sizes.mailboxes as u64];
    let [semaphores, conditions, mailboxes] = objects;
    let (segments, devices) = (u64::from(h.segments), u64::from(h.devices));
    let words = [u64::from(h.processes), semaphores, conditions, mailboxes, segments, devices];
    announce(Record::Archive, &words);
    // SAFETY: boot runs alone, and the reference ends here.
    unsafe { console() }.share_among(h.processes.into());
}

/// The hardware as the core sees it, before any program is loaded.
#[inline(never)]
fn metal(archive: &Archive<'_>, memory: &mut BootMemory, acpi: &Acpi, sizes: &Sizes) -> Metal {
    let h = archive.header;
    let observe = Observe::asked(h.flags);
    let entries = if observe.record() { h.recorder_bytes as usize / ENTRY_BYTES } else { 0 };
    // SAFETY: these are numbers and addresses, of which all zeros are values.
    let (spaces, programs, contexts, places, segments, devices, commands, entries) = unsafe {
        (
            memory.array(sizes.processes, None),
            memory.array(sizes.processes, None),
            memory.array(sizes.threads, None),
            memory.array(sizes.threads, None),
            memory.array(sizes.segments, None),
            memory.array(sizes.devices, None),
            memory.array(sizes.devices, None),
            memory.array(entries, None),
        )
    };
    Metal {
        spaces: Table::new(spaces),
        programs: Table::new(programs),
        contexts: Table::new(contexts),
        places: Table::new(places),
        segment_tables: Table::new(segments),
        device_tables: Table::new(devices),
        commands: Table::new(commands),
        pool: 0,
        vectors: [NONE; DEVICES_MAX],
        lines: [NONE; DEVICES_MAX],
        masks: [core::ptr::null_mut(); DEVICES_MAX],
        units: [0; UNITS_MAX],
        io_apic: IoApic::open(acpi.madt.io_apic, acpi.madt.first_line, seat().core == 0),
        current: NOBODY,
        caller: tables::caller(),
        counts: Counts::default(),
        longest: 0,
        observe,
        recorder: Recorder::new(entries),
        supervisor_died: false,
    }
}

/// Loads every program; returns which were refused, one bit each.
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
        let mut root = 0;
        match loader::load(archive, &record, index, info_table, memory) {
            Ok(loaded) => {
                root = loaded.space.root as u32;
                metal.spaces[index as usize] = loaded.space;
                metal.programs[index as usize] = loaded.program;
            }
            Err(reason) => {
                refused |= 1 << index;
                announce(Record::Refused, &[u64::from(index), reason as u64]);
            }
        }
        for slot in 0..record.threads {
            metal.places[first_thread] = Place { process: index, slot, root };
            first_thread += 1;
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
    spaces::set_read_only(table, 0, page);
    Some(table)
}

/// Memory for the core's pools.
#[inline(never)]
fn pools(sizes: &Sizes, memory: &mut BootMemory) -> Pools<'static> {
    // SAFETY: the objects are numbers and links by number.
    unsafe {
        Pools {
            processes: memory.array(sizes.processes, Some(&EMPTY_PROCESS)),
            threads: memory.array(sizes.threads, Some(&EMPTY_THREAD)),
            semaphores: memory.array(sizes.semaphores, Some(&EMPTY_SEMAPHORE)),
            conditions: memory.array(sizes.conditions, Some(&EMPTY_CONDITION)),
            mailboxes: memory.array(sizes.mailboxes, Some(&EMPTY_MAILBOX)),
            messages: memory.array(sizes.messages, Some(&EMPTY_MESSAGE)),
            events: memory.array(sizes.events, Some(&EMPTY_EVENT)),
            segments: memory.array(sizes.segments, Some(&EMPTY_SEGMENT)),
            devices: memory.array(sizes.devices, Some(&EMPTY_DEVICE)),
            frames: memory.array(sizes.frames, Some(&EMPTY_FRAME)),
            vcpus: memory.array(sizes.vcpus, Some(&EMPTY_VCPU)),
        }
    }
}
