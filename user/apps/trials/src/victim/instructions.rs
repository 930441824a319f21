//! Instructions and flags that are not a program's to use.

use crate::Deed;
use core::arch::asm;
use diapason_abi::CallNumber;
use diapason_rt::{Nanos, time};

/// One instruction (or a few) that must end the process.
macro_rules! deed {
    ($name:literal: $($code:literal),+) => {
        ($name, || {
            // SAFETY: not safe, and meant not to be.
            unsafe { asm!($($code,)+ out("rax") _, clobber_abi("C")) }
        })
    };
}

const NULL: u64 = CallNumber::Null as u64;
const _: () = assert!(NULL == 0, "`xor eax, eax` below is this call");

/// In the order they are done.
pub const DEEDS: [Deed; 48] = [
    deed!("divide by zero": "xor ecx, ecx", "mov eax, 1", "cdq", "idiv ecx"),
    deed!("divide too large": "mov ecx, -1", "mov eax, 0x80000000", "cdq", "idiv ecx"),
    deed!("ud2": "ud2"),
    deed!("hlt": "hlt"),
    deed!("cli": "cli"),
    deed!("sti": "sti"),
    deed!("read cr0": "mov rax, cr0"),
    deed!("write cr3": "mov cr3, rax"),
    deed!("write cr4": "mov cr4, rax"),
    deed!("read dr7": "mov rax, dr7"),
    deed!("wrmsr": "mov ecx, 0xc0000082", "wrmsr"),
    deed!("rdmsr": "mov ecx, 0xc0000080", "rdmsr"),
    deed!("rdpmc": "xor ecx, ecx", "rdpmc"),
    deed!("in": "in al, 0x60"),
    deed!("out": "mov dx, 0xf4", "mov al, 0x20", "out dx, al"),
    deed!("lgdt": "lgdt [rsp]"),
    deed!("lidt": "lidt [rsp]"),
    deed!("ltr": "mov eax, 0x30", "ltr ax"),
    deed!("lldt": "xor eax, eax", "lldt ax"),
    deed!("lmsw": "lmsw ax"),
    deed!("clts": "clts"),
    deed!("invlpg": "invlpg [rsp]"),
    deed!("wbinvd": "wbinvd"),
    deed!("swapgs": "swapgs"),
    deed!("sysretq": "sysretq"),
    deed!("sysenter": "sysenter"),
    deed!("stac": "stac"),
    deed!("xgetbv": "xor ecx, ecx", "xgetbv"),
    deed!("int3": "int3"),
    deed!("int 0x80": "int 0x80"),
    deed!("int of the timer": "int 32"),
    deed!("int of a page fault": "int 14"),
    deed!("kernel data segment": "mov eax, 0x10", "mov ds, ax"),
    deed!("far jump to the kernel": "mov rax, 0x800001000", "push rax", "jmp fword ptr [rsp]"),
    deed!("far jump to 32 bits": "mov rax, 0x1b00001000", "push rax", "jmp fword ptr [rsp]"),
    deed!("far jump to 32 bits of Linux": "mov rax, 0x2300001000", "push rax",
          "jmp fword ptr [rsp]"),
    deed!("trap flag": "pushfq", "or dword ptr [rsp], 0x100", "popfq", "nop"),
    deed!("trap flag at a call": "xor eax, eax", "pushfq", "or dword ptr [rsp], 0x100", "popfq",
          "syscall", "nop"),
    ("x87 exception", || {
        let control = 0x37b_u16;
        // SAFETY: not safe, and meant not to be.
        unsafe { asm!("fldcw [{}]", "fld1", "fldz", "fdivp", "fwait", in(reg) &raw const control) }
    }),
    ("direction flag", direction_flag),
    ("nested task flag", nested_task_flag),
    ("alignment flag", alignment_flag),
    ("stack pointer into the kernel at a call", || stack_at_a_call(0x10_0000)),
    ("stack pointer nowhere at a call", || stack_at_a_call(0x8000_0000_0000)),
    ("stack pointer into the kernel at an interrupt", || stack_at_an_interrupt(0x10_0000)),
    ("stack pointer nowhere at an interrupt", || stack_at_an_interrupt(0x8000_0000_0000)),
    ("segment registers", segment_registers),
    ("sse exception", || {
        let control = 0x1d80_u32;
        let usual = 0x1f80_u32;
        // SAFETY: not safe, and meant not to be. Some machines do not raise it.
        unsafe {
            asm!("ldmxcsr [{c}]", "xorps xmm0, xmm0", "cvtsi2ss xmm1, {c:e}", "divss xmm1, xmm0",
                 "ldmxcsr [{u}]", c = in(reg) &raw const control, u = in(reg) &raw const usual,
                 out("xmm0") _, out("xmm1") _);
        }
    }),
];

/// Long enough for the neighbour to interrupt.
const SPIN: u64 = 1_500_000;

/// The kernel's string instructions must not run backwards: fresh memory is zeroed forwards.
fn direction_flag() {
    let address: u64;
    let call = CallNumber::MemAlloc as u64;
    // SAFETY: the direction is restored before anything else runs.
    unsafe {
        asm!("std", "syscall", "mov rcx, {spin}", "2: dec rcx", "jnz 2b", "cld",
             spin = const SPIN, inout("rax") call => address, inout("rdi") 1_u64 => _,
             out("rcx") _, out("r11") _, out("rsi") _, out("rdx") _, out("r8") _, out("r9") _,
             out("r10") _);
    }
    // SAFETY: a page of this process.
    let page = unsafe { core::slice::from_raw_parts(address as *const u64, 512) };
    assert!(page.iter().all(|word| *word == 0));
}

fn nested_task_flag() {
    // SAFETY: the flag is cleared again; nothing else looks at it.
    unsafe {
        asm!("pushfq", "or dword ptr [rsp], 0x4000", "popfq", "xor eax, eax", "syscall",
             "mov rcx, {spin}", "2: dec rcx", "jnz 2b",
             "pushfq", "and dword ptr [rsp], 0xffffbfff", "popfq", spin = const SPIN,
             out("rax") _, clobber_abi("C"));
    }
}

/// With alignment checks on: calls and interrupts must work, a misaligned access may end it.
fn alignment_flag() {
    let words = [0_u64; 2];
    // SAFETY: reads within the array; the flag is cleared again.
    unsafe {
        asm!("pushfq", "or dword ptr [rsp], 0x40000", "popfq", "xor eax, eax", "syscall",
             "mov rcx, {spin}", "2: dec rcx", "jnz 2b", "mov rax, [r13 + 1]",
             "pushfq", "and dword ptr [rsp], 0xfffbffff", "popfq", spin = const SPIN,
             in("r13") words.as_ptr(), out("rax") _, clobber_abi("C"));
    }
}

/// Once for a call that returns at once, once for one that waits.
fn stack_at_a_call(garbage: u64) {
    let until = time::now() + Nanos::from_micros(200);
    // SAFETY: the stack pointer is restored before anybody uses it.
    unsafe {
        asm!("mov r12, rsp", "mov rsp, {garbage}", "xor eax, eax", "syscall",
             "mov eax, {sleep}", "mov rdi, r13", "syscall", "mov rsp, r12",
             garbage = in(reg) garbage, sleep = const CallNumber::SleepUntil as u64,
             in("r13") until.0, out("rax") _, out("r12") _, clobber_abi("C"));
    }
}

fn stack_at_an_interrupt(garbage: u64) {
    // SAFETY: the stack pointer is restored before anybody uses it.
    unsafe {
        asm!("mov r12, rsp", "mov rsp, {garbage}", "2: dec rcx", "jnz 2b", "mov rsp, r12",
             garbage = in(reg) garbage, inout("rcx") SPIN => _, out("r12") _);
    }
}

/// Its own selectors may be loaded, even none; the kernel finds its data all the same.
fn segment_registers() {
    // SAFETY: nothing here uses the data segment registers.
    unsafe {
        asm!("mov eax, 0x23", "mov ds, ax", "mov es, ax", "mov fs, ax", "mov gs, ax",
             "xor eax, eax", "syscall", "mov rcx, {spin}", "2: dec rcx", "jnz 2b",
             "xor eax, eax", "mov ds, ax", "mov es, ax", "mov fs, ax", "mov gs, ax", "syscall",
             "mov rcx, {spin}", "3: dec rcx", "jnz 3b", spin = const SPIN, out("rax") _,
             clobber_abi("C"));
    }
}
