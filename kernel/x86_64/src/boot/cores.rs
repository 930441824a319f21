//! The other cores of the machine: each gets a kernel of its own, and a part of the memory.
//!
//! A kernel's statics lie behind `__data_start`. Another core has a copy of these pages, and tables
//! that show it the copy at the same addresses. Everything else is mapped one to one on every
//! core. The copy begins as the first core's statics began, so a core boots as the first one does,
//! but for what it is told: [`Errand`].
//!
//! Cores are started one after another, and none decides before all are ready. So boot needs no
//! lock either.

use super::acpi::Acpi;
use super::handed::Handed;
use super::memory::BootMemory;
use super::{
    __bss_start, __data_start, __kernel_end, KERNEL_PDPT, KERNEL_PDS, KERNEL_PML4, KERNEL_PT,
    build, refuse, spaces, tables,
};
use crate::apic::{LocalApic, send_command};
use crate::clock::Clock;
use crate::console::console;
use crate::machine::OBSERVING;
use crate::paging::bits::{NO_EXECUTE, PRESENT, WRITE};
use crate::paging::{ADDRESS, LARGE_PAGE};
use crate::seat::{ALIVE, CORES, Hall, READY, SEAT, Seat, hall, own};
use crate::{cpu, handover};
use core::hint::spin_loop;
use core::mem::MaybeUninit;
use core::sync::atomic::Ordering;
use diapason_abi::archive::{ARCHIVE_ALIGN, CORES_MAX, MAGIC, Refusal};
use diapason_abi::{Nanos, PAGE};

// From `boot.s`.
unsafe extern "C" {
    static core_entry: u8;
    static core_entry_end: u8;
    static core_root: u32;
}

/// Where an archive says how long it is.
const LENGTH_AT: usize = 16;

/// Where another core begins, in real mode, has to be below this.
const LOW_END: u64 = 0x9_f000;

/// How long a core may take until it says that it is alive, and until its kernel is ready. The
/// latter loads programs.
const ALIVE_WITHIN: Nanos = Nanos::from_millis(10_000);
const READY_WITHIN: Nanos = Nanos::from_millis(60_000);

/// The things that another core is told.
struct Errand {
    archive: &'static [u8],
    memory: BootMemory,
    acpi: Acpi,
    clock: Clock,
    deadline_mode: bool,
    cr4: u64,
    mute: bool,
}

static mut ERRAND: MaybeUninit<Errand> = MaybeUninit::uninit();

/// Returns the archives that lie one behind the other.
fn archives(bytes: &'static [u8]) -> impl Iterator<Item = &'static [u8]> {
    let mut rest = bytes;
    core::iter::from_fn(move || {
        let (magic, length) = (rest.first_chunk::<8>()?, rest.get(LENGTH_AT..)?.first_chunk()?);
        let own = rest;
        let length = u32::from_le_bytes(*length) as usize;
        let next = length.next_multiple_of(ARCHIVE_ALIGN).max(ARCHIVE_ALIGN);
        rest = rest.get(next..).unwrap_or_default();
        (*magic == MAGIC.to_le_bytes()).then_some(own)
    })
}

/// The cores that are to be started.
pub struct Others {
    bytes: &'static [u8],
    /// The page in which they begin.
    low: u64,
    /// Where the memory of the second one begins, and how much each of them has.
    memory: u64,
    share: u64,
    count: usize,
}

impl Others {
    /// Makes a hall for the cores that the archives are for, and divides the memory. Call it before
    /// memory is cut: what the loader handed over may lie there.
    ///
    /// # Errors
    /// The machine lacks something, or the kernel is for one core.
    pub fn invite(
        handed: &Handed,
        bytes: &'static [u8],
        memory: &mut BootMemory,
    ) -> Result<Others, Refusal> {
        let count = archives(bytes).count();
        let mut others = Others { bytes, low: 0, memory: 0, share: 0, count };
        if count < 2 {
            return Ok(others);
        }
        if !CORES || count > CORES_MAX {
            return Err(Refusal::Unserved);
        }
        others.low = low_page(handed).ok_or(Refusal::Memory)?;
        let hall = memory.cut(size_of::<Hall>() as u64).ok_or(Refusal::Memory)?;
        let (first, left) = memory.remaining();
        let end = memory.end();
        others.share = left / count as u64 / PAGE as u64 * PAGE as u64;
        others.memory = first + others.share;
        *memory = BootMemory::new(first, others.memory);
        // SAFETY: fresh memory of that size, all zeros, which is a hall. Only this core runs.
        unsafe {
            let hall = &*(hall as *const Hall);
            hall.end.store(end, Ordering::Relaxed);
            SEAT = Seat { core: 0, cores: count as u8, hall: Some(hall) };
        }
        Ok(others)
    }

    /// Starts the others, one after another, and waits until each is ready.
    ///
    /// # Errors
    /// There are too few processors, or one does not start or has another time.
    pub fn start(self, acpi: &Acpi, clock: Clock, timer: &LocalApic) -> Result<(), Refusal> {
        let Some(hall) = hall() else { return Ok(()) };
        hall.members[0].apic.store(timer.id(), Ordering::Relaxed);
        let mut others = acpi.madt.ids().filter(|id| u32::from(*id) != timer.id());
        // SAFETY: the console is this core's, and the reference ends here.
        let mute = unsafe { console() }.mute;
        for (core, archive) in archives(self.bytes).enumerate().skip(1) {
            let id = u32::from(others.next().ok_or(Refusal::Processors)?);
            let from = self.memory + (core as u64 - 1) * self.share;
            let errand = Errand {
                archive,
                memory: BootMemory::new(from, from + self.share),
                acpi: *acpi,
                clock,
                deadline_mode: timer.deadline_mode,
                cr4: cpu::cr4(),
                mute,
            };
            let member = &hall.members[core & (CORES_MAX - 1)];
            member.apic.store(id, Ordering::Relaxed);
            self.put(core as u8, errand)?;
            let before = cpu::counter();
            let is = |state| move || member.state.load(Ordering::Acquire) >= state;
            begin(id, self.low, clock, is(ALIVE)).ok_or(Refusal::Processors)?;
            // A counter of its own that is ahead or behind is no clock for two cores.
            let between = before..=cpu::counter();
            if !between.contains(&member.counter.load(Ordering::Relaxed)) {
                return Err(Refusal::CounterVaries);
            }
            wait(clock, READY_WITHIN, is(READY)).ok_or(Refusal::Processors)?;
        }
        Ok(())
    }

    /// Makes the statics and tables of a core, and puts its first instructions where it begins.
    fn put(&self, core: u8, mut errand: Errand) -> Result<(), Refusal> {
        // SAFETY: fresh memory for the pages behind `__data_start`; the first core's statics are
        // ours, and of those in `.data` every value is one to boot with. The page below 1 MiB is
        // free memory, and long enough.
        unsafe {
            let start = &raw const __data_start as u64;
            let bytes = &raw const __kernel_end as u64 - start;
            let copy = errand.memory.cut(bytes).ok_or(Refusal::Memory)?;
            let data = &raw const __bss_start as u64 - start;
            core::ptr::copy_nonoverlapping(start as *const u8, copy as *mut u8, data as usize);
            let of = |address: u64| address - start + copy;
            let root = of(&raw const KERNEL_PML4 as u64);
            fill_tables(root, of);
            let seat = Seat { core, cores: self.count as u8, hall: hall() };
            (of(&raw const SEAT as u64) as *mut Seat).write(seat);
            (of(&raw const ERRAND as u64) as *mut Errand).write(errand);
            let entry = &raw const core_entry;
            let length = (&raw const core_entry_end).offset_from_unsigned(entry);
            core::ptr::copy_nonoverlapping(entry, self.low as *mut u8, length);
            let root_at = (&raw const core_root).cast::<u8>().offset_from_unsigned(entry);
            ((self.low + root_at as u64) as *mut u32).write_unaligned(root as u32);
        }
        Ok(())
    }
}

/// Fills the tables of another core: those of the first, but that its statics are its own. Until it
/// runs in its kernel, the lowest large page may be executed.
///
/// # Safety
/// `of` says where the other core's copy of a static is, and nobody uses these copies.
unsafe fn fill_tables(root: u64, of: impl Fn(u64) -> u64) {
    // SAFETY: as the caller says; the tables are as large as those of the first core.
    unsafe {
        let upper = of(&raw const KERNEL_PDPT as u64);
        let directory = of(&raw const KERNEL_PDS as u64);
        let table = of(&raw const KERNEL_PT as u64);
        *(root as *mut u64) = upper | KERNEL_PML4[0] & !ADDRESS;
        for (i, entry) in KERNEL_PDPT.iter().enumerate().take(4) {
            *(upper as *mut u64).add(i) = (directory + (i * PAGE) as u64) | entry & !ADDRESS;
        }
        let own = (&raw const __data_start as u64 / LARGE_PAGE) as usize;
        let from = (&raw const KERNEL_PDS).cast::<u64>();
        for i in 0..4 * 512 {
            let entry = *from.add(i);
            *(directory as *mut u64).add(i) = match i {
                0 => entry & !NO_EXECUTE,
                _ if i == own => table | PRESENT | WRITE,
                _ => entry,
            };
        }
        let (start, end) = (&raw const __data_start as u64, &raw const __kernel_end as u64);
        for i in 0..512 {
            let page = own as u64 * LARGE_PAGE + (i * PAGE) as u64;
            let entry = *(&raw const KERNEL_PT).cast::<u64>().add(i);
            let is_own = (start..end).contains(&page) && entry & PRESENT != 0;
            *(table as *mut u64).add(i) = if is_own { of(page) | entry & !ADDRESS } else { entry };
        }
    }
}

/// Wakes a processor, which begins in this page.
fn begin(id: u32, page: u64, clock: Clock, alive: impl Fn() -> bool) -> Option<()> {
    const INIT: u32 = 0x4500;
    const START: u32 = 0x4600;
    send_command(id, INIT);
    wait(clock, Nanos::from_millis(10), || false);
    send_command(id, START | (page >> 12) as u32);
    // A processor may miss the first, and does not mind the second.
    if wait(clock, Nanos::from_micros(500), &alive).is_none() {
        send_command(id, START | (page >> 12) as u32);
    }
    wait(clock, ALIVE_WITHIN, alive)
}

/// Waits until something is so, or for that long.
#[inline(never)]
fn wait(clock: Clock, long: Nanos, is_so: impl Fn() -> bool) -> Option<()> {
    let end = clock.now() + long;
    while clock.now() < end {
        if is_so() {
            return Some(());
        }
        spin_loop();
    }
    None
}

/// Returns a page of free memory in which a processor can begin.
fn low_page(handed: &Handed) -> Option<u64> {
    let [archive, length] = handed.archive;
    let page = PAGE as u64;
    handed.memory().find_map(|(start, end)| {
        let at = (end.min(LOW_END) & !(page - 1)).checked_sub(page)?;
        let is_free = at + page <= archive || at >= archive + length;
        (at >= start.max(page) && is_free).then_some(at)
    })
}

/// Another core begins here, on a stack of its own.
#[unsafe(no_mangle)]
extern "C" fn core_main() -> ! {
    // SAFETY: the first core wrote it before it started this one, and nobody reads it again.
    let errand = unsafe { (&raw const ERRAND).cast::<Errand>().read() };
    let Errand { archive, mut memory, acpi, clock, deadline_mode, cr4, mute } = errand;
    // SAFETY: once, at boot. The processor is as the first one, whose bits of CR4 these are.
    unsafe {
        console().mute = mute;
        cpu::set_cr4(cr4);
        spaces::forbid_low_code();
        tables::load();
    }
    let mut timer = LocalApic::enable();
    timer.open_timer(deadline_mode);
    if let Some(member) = own() {
        member.counter.store(cpu::counter(), Ordering::Relaxed);
        member.state.store(ALIVE, Ordering::Release);
    }
    match build::build(archive, &mut memory, clock, timer, &acpi) {
        Ok(observed) => {
            if OBSERVING && observed {
                tables::observe_calls();
            }
            handover::begin()
        }
        Err(refusal) => refuse(refusal),
    }
}
