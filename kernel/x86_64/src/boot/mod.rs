//! From the loader to the first decision.

mod acpi;
mod apic;
mod build;
mod calibrate;
mod cores;
mod devices;
mod handed;
mod iommu;
mod loader;
mod memory;
mod pci;
mod remap;
mod screen;
mod spaces;
mod tables;

use crate::apic::LocalApic;
use crate::console::{self, announce};
use crate::fatal::leave;
use crate::machine::OBSERVING;
use crate::{cpu, handover};
use acpi::Acpi;
use core::arch::global_asm;
use cores::Others;
use diapason_abi::archive::{Refusal, VERSION};
use diapason_abi::record::{Protection, Record, exit};
use handed::Handed;
use memory::BootMemory;

global_asm!(include_str!("boot.s"));

type Table = [u64; 512];

// From `boot.s` and the linker script.
unsafe extern "C" {
    static KERNEL_PML4: Table;
    static KERNEL_PDPT: Table;
    static mut KERNEL_PDS: [Table; 4];
    static mut KERNEL_PT: Table;
    static KERNEL_STACK_GUARD: u8;
    static __boot_start: u8;
    static __boot_rodata: u8;
    static __kernel_end: u8;
    static __screen_text: u8;
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
}

/// The processor says by this bit of CPUID that it has the register that says which leaks and locks
/// it has.
const TELLS: u32 = 1 << 29;
const CAPABILITIES: u32 = 0x10a;

/// Memory above this is not used: device registers may lie there.
const MEMORY_END: u64 = 3 << 30;

#[unsafe(no_mangle)]
extern "C" fn kernel_main(address: u64, magic: u32) -> ! {
    open_console();
    let handed = Handed::read(address, magic);
    screen::open(&handed);
    say_boot();
    let features = protect();
    let bytes = handed.module();
    if bytes.is_empty() {
        refuse(Refusal::Truncated);
    }
    let mut memory = find_memory(&handed);
    let acpi = Acpi::read(handed.rsdp);
    let others = match Others::invite(&handed, bytes, &mut memory) {
        Ok(others) => others,
        Err(refusal) => refuse(refusal),
    };
    pci::quieten(&acpi);
    let [processors, io_apics] = [acpi.madt.processors, acpi.madt.io_apics].map(u64::from);
    announce(Record::Acpi, &[acpi.rsdp, processors, io_apics, acpi.hpet]);
    // SAFETY: once, at boot.
    unsafe { tables::load() };
    let mut timer = LocalApic::enable();
    let (clock, counter_khz, timer_khz) = match calibrate::calibrate(&acpi, &mut timer) {
        Ok(measured) => measured,
        Err(refusal) => refuse(refusal),
    };
    timer.open_timer(features >> Protection::TscDeadline as u64 & 1 == 1);
    announce(Record::Clock, &[counter_khz, timer_khz, u64::from(timer.deadline_mode)]);
    let built = others
        .start(&acpi, clock, &timer)
        .and_then(|()| build::build(bytes, &mut memory, clock, timer, &acpi));
    match built {
        Ok(observed) => {
            if OBSERVING && observed {
                tables::observe_calls();
            }
            crate::screen::running();
            handover::begin()
        }
        Err(refusal) => refuse(refusal),
    }
}

/// Nothing can be done with this archive, or on this machine.
#[inline(never)]
fn refuse(refusal: Refusal) -> ! {
    announce(Record::ArchiveRefused, &[refusal as u64]);
    leave(exit::NO_ARCHIVE)
}

/// 115200 baud, 8 bits, first-in first-out buffer on, no interrupts. A port is there if it keeps
/// what is written to its scratch register.
fn open_console() {
    const SCRATCH: u16 = 7;
    let settings = [(1, 0), (3, 0x80), (0, 1), (1, 0), (3, 3), (2, 7), (4, 3), (SCRATCH, 0x5a)];
    // SAFETY: these are the serial port's registers on every PC, or nothing is there. Boot runs
    // alone, and the reference to the console ends here.
    unsafe {
        for (register, value) in settings {
            cpu::out8(console::PORT + register, value);
        }
        console::console().mute = cpu::in8(console::PORT + SCRATCH) != 0x5a;
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

/// Switches on every protection the processor has; returns what it has.
fn protect() -> u64 {
    let [_, _, basic, basic_edx] = cpu::identify(1);
    let [_, extended, more, told] = cpu::identify(7);
    let tells = told & TELLS != 0;
    let [_, _, _, amd] = cpu::identify(0x8000_0001);
    if amd >> 20 & 1 == 0 {
        refuse(Refusal::NoExecute);
    }
    let [_, _, _, power] = cpu::identify(0x8000_0007);
    let found = [
        (Protection::NoExecute, 1, 0),
        (Protection::Smep, extended >> 7 & 1, 1 << 20),
        (Protection::Smap, extended >> 20 & 1, 1 << 21),
        (Protection::Umip, more >> 2 & 1, 1 << 11),
        (Protection::MachineCheck, basic_edx >> 7 & 1, 1 << 6),
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
    // An emulator's counter is its virtual time, and no emulator calls that invariant.
    let steady = features >> Protection::InvariantTsc as u64 & 1 == 1 || basic >> 31 == 1;
    if features >> Protection::Smap as u64 & 1 == 0 {
        without_smap();
    }
    // SAFETY: once, at boot; each bit's feature was found, and so was the register. Writing CR4
    // drops all translations.
    let leaks = unsafe {
        spaces::protect_kernel();
        cpu::set_cr4(cr4);
        cpu::load_address_space(&raw const KERNEL_PML4 as u64);
        if tells { cpu::read_msr(CAPABILITIES) } else { 0 }
    };
    announce(Record::Cpu, &[features, enabled]);
    announce(Record::Speculation, &[tells.into(), leaks]);
    if !steady {
        refuse(Refusal::CounterVaries);
    }
    if basic_edx >> 9 & 1 == 0 {
        refuse(Refusal::Apic);
    }
    features
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

/// The largest stretch of memory that holds neither the archive nor the kernel.
fn find_memory(handed: &Handed) -> BootMemory {
    let [archive, length] = handed.archive;
    let (mut usable, mut best) = (0, (0, 0));
    for (start, end) in handed.memory() {
        usable += end - start;
        let (start, end) = (start.max(spaces::kernel_end()), end.min(MEMORY_END));
        for (from, to) in [(start, end.min(archive)), (start.max(archive + length), end)] {
            if to > from && to - from > best.1 - best.0 {
                best = (from, to);
            }
        }
    }
    let memory = BootMemory::new(best.0, best.1);
    let (first, free) = memory.remaining();
    announce(Record::Memory, &[usable, first, free]);
    memory
}
