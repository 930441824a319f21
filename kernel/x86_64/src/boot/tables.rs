//! The processor's tables: segments, interrupt gates, system call registers.

use crate::cpu;
use crate::percpu::{BOOT_CPU, PerCpu, TSS_BYTES};
use crate::tables::{STRAY, VECTORS};
use core::arch::asm;

const STUB_BYTES: u64 = 8;
const GATES: usize = 256;
/// Where the processor enters for a system call (LSTAR).
const ENTRY_MSR: u32 = 0xc000_0082;

unsafe extern "C" {
    static trap_stubs: u8;
    static trap_stray: u8;
    static fatal_nmi: u8;
    static fatal_double_fault: u8;
    static fatal_machine_check: u8;
    fn syscall_entry();
    fn observed_syscall_entry();
    static IST_STACKS: u8;
    static KERNEL_STACK_TOP: u8;
}

static mut GDT: [u64; 8] = [
    0,
    0x00af_9b00_0000_ffff, // 0x08 kernel code
    0x00cf_9300_0000_ffff, // 0x10 kernel data
    0x00cf_7b00_0000_ffff, // 0x18 not there: sysret counts from it, and reads no descriptor
    0x00cf_f300_0000_ffff, // 0x20 user data
    0x00af_fb00_0000_ffff, // 0x28 user code
    0,                     // 0x30 task state
    0,
];

#[derive(Clone, Copy)]
#[repr(C)]
struct Gate {
    low: u64,
    high: u64,
}

static mut IDT: [Gate; GATES] = [Gate { low: 0, high: 0 }; GATES];

#[repr(C, packed)]
struct Pointer {
    limit: u16,
    base: u64,
}

#[inline(never)]
fn gate(target: u64, stack: u64) -> Gate {
    let low =
        (target & 0xffff) | 0x08 << 16 | stack << 32 | 0x8e << 40 | (target >> 16 & 0xffff) << 48;
    Gate { low, high: target >> 32 }
}

/// Loads all tables of the boot core.
///
/// # Safety
/// Called once, at boot, with interrupts off.
pub unsafe fn load() {
    // SAFETY: nothing else runs yet; the statics are ours, and the values are those the processor's
    // manual asks for.
    unsafe {
        let cpu = &raw mut BOOT_CPU;
        (*cpu).kernel_rsp = &raw const KERNEL_STACK_TOP as u64;
        let stacks = &raw const IST_STACKS as u64;
        (*cpu).tss.ist = [stacks + 4096, stacks + 2 * 4096, stacks + 3 * 4096, 0, 0, 0, 0];
        load_segments(cpu);
        load_gates();
        cpu::write_msr(0xc000_0101, cpu as u64);
        cpu::write_msr(0xc000_0102, 0);
        // STAR, LSTAR, and the flags cleared on entry: IF, DF, TF, IOPL, NT, AC.
        cpu::write_msr(0xc000_0081, 0x1b << 48 | 0x08 << 32);
        cpu::write_msr(ENTRY_MSR, syscall_entry as *const () as u64);
        cpu::write_msr(0xc000_0084, 0x4_7700);
        // Entries of 32-bit code, of which there is none, lead nowhere: CSTAR, and where SYSENTER
        // finds code segment, stack and entry. Without a segment it faults.
        for register in [0xc000_0083, 0x174, 0x175, 0x176] {
            cpu::write_msr(register, 0);
        }
    }
}

/// Returns where `entry.s` keeps the caller's instruction pointer during a system call: the second
/// word that it pushes onto the empty kernel stack.
pub fn caller() -> *const u64 {
    (&raw const KERNEL_STACK_TOP).cast::<u64>().wrapping_sub(2)
}

/// From now on every system call is observed: calls that nobody observes need not ask.
pub fn observe_calls() {
    // SAFETY: the entry keeps the same contract as the one it replaces.
    unsafe { cpu::write_msr(ENTRY_MSR, observed_syscall_entry as *const () as u64) }
}

/// # Safety
/// As for [`load`].
unsafe fn load_segments(cpu: *mut PerCpu) {
    // SAFETY: as for `load`. The code segment loaded is the one that runs already.
    unsafe {
        let tss = &raw const (*cpu).tss as u64;
        let gdt = &raw mut GDT;
        (*gdt)[6] = (TSS_BYTES as u64 - 1)
            | (tss & 0xff_ffff) << 16
            | 0x89 << 40
            | (tss >> 24 & 0xff) << 56;
        (*gdt)[7] = tss >> 32;
        let pointer = Pointer { limit: 8 * 8 - 1, base: gdt as u64 };
        asm!("lgdt [{}]", "ltr {:x}", in(reg) &raw const pointer, in(reg) 0x30u64);
    }
}

/// # Safety
/// As for [`load`].
unsafe fn load_gates() {
    // SAFETY: as for `load`.
    unsafe {
        let idt = &raw mut IDT;
        let stubs = &raw const trap_stubs as u64;
        for vector in 0..VECTORS {
            (*idt)[vector as usize] = gate(stubs + vector * STUB_BYTES, 0);
        }
        (*idt)[STRAY as usize] = gate(&raw const trap_stray as u64, 0);
        // A breakpoint is the one exception a program may raise by an instruction of its own.
        (*idt)[3].low |= 3 << 45;
        (*idt)[2] = gate(&raw const fatal_nmi as u64, 1);
        (*idt)[8] = gate(&raw const fatal_double_fault as u64, 2);
        (*idt)[18] = gate(&raw const fatal_machine_check as u64, 3);
        let pointer = Pointer { limit: (GATES * 16 - 1) as u16, base: idt as u64 };
        asm!("lidt [{}]", in(reg) &raw const pointer);
    }
}
