//! The saved state of a thread that does not run.

use crate::machine::Place;
use core::mem::offset_of;
use diapason_core::ThreadStart;

/// A thread's registers. The processor and `entry.s` fill it; its address never changes.
#[repr(C, align(64))]
pub struct Context {
    /// `fxsave` image of an interrupted thread.
    fx: [u8; 512],
    pub r15: u64,
    pub r14: u64,
    pub r13: u64,
    pub r12: u64,
    pub rbp: u64,
    pub rbx: u64,
    pub r11: u64,
    pub r10: u64,
    pub r9: u64,
    pub r8: u64,
    pub rax: u64,
    pub rcx: u64,
    pub rdx: u64,
    pub rsi: u64,
    pub rdi: u64,
    /// Why it was interrupted.
    pub vector: u64,
    pub error: u64,
    pub rip: u64,
    pub cs: u64,
    pub rflags: u64,
    pub rsp: u64,
    pub ss: u64,
    /// The way in which the thread left: 0 by an interrupt, else [`BY_CALL`] or [`STARTING`].
    entry: u32,
    mxcsr: u32,
    fcw: u16,
    /// By its number in the description.
    process: u16,
    /// The top of the process's address space. Here a switch finds it in a line that it reads
    /// anyway.
    pub root: u32,
}

/// Where an `fxsave` image has the vector registers.
const VECTORS_AT: usize = 160;

/// Bytes before the stored registers.
pub const FX_BYTES: usize = offset_of!(Context, r15);
/// Where the processor's frame ends.
pub const FRAME_END: usize = offset_of!(Context, entry);

const _: () = assert!(FX_BYTES == 512 && FRAME_END == 688 && FRAME_END.is_multiple_of(16));

/// The thread left by a system call: only what a function preserves was kept.
pub const BY_CALL: u32 = 1;
/// The thread has not run yet: its floating-point state is the clean one.
const STARTING: u32 = 2;
/// The x87 unit reports no exception, counts with full precision and rounds to nearest: what the
/// processor itself begins with.
pub const USUAL_FCW: u16 = 0x37f;
/// Vector arithmetic begins with no exception reported, and rounds to nearest.
const USUAL_MXCSR: u32 = 0x1f80;

/// User code and data selectors, with the privilege of ring 3.
const USER_CODE: u64 = 0x2b;
const USER_DATA: u64 = 0x23;
/// Interrupts on, and the bit that is always one.
const USER_FLAGS: u64 = 0x202;

impl Context {
    /// Returns its name for `entry.s`: the end of the processor's frame, where the processor finds
    /// a stack when the thread is interrupted.
    #[inline(always)]
    pub fn place(&self) -> usize {
        core::ptr::from_ref(self) as usize + FRAME_END
    }

    /// The thread of this place is about to execute its first instruction, with every register it
    /// is not given clear.
    pub fn start(&mut self, place: Place, start: ThreadStart) {
        let ThreadStart { entry, stack, arguments } = start;
        let [rdi, rsi, rdx, rcx, r8] = arguments;
        (self.rdi, self.rsi, self.rdx, self.rcx, self.r8) = (rdi, rsi, rdx, rcx, r8);
        (self.r9, self.r10, self.r11, self.rax) = (0, 0, 0, 0);
        (self.rbx, self.rbp) = (0, 0);
        (self.r12, self.r13, self.r14, self.r15) = (0, 0, 0, 0);
        (self.rip, self.cs, self.rflags) = (entry, USER_CODE, USER_FLAGS);
        (self.rsp, self.ss) = (stack, USER_DATA);
        (self.entry, self.mxcsr, self.fcw) = (STARTING, USUAL_MXCSR, USUAL_FCW);
        (self.process, self.root) = (place.process, place.root);
    }
}

/// Offsets `entry.s` uses, from a context's [`Context::place`].
pub mod offsets {
    use super::{Context, FRAME_END, VECTORS_AT, offset_of};

    const fn of(offset: usize) -> isize {
        offset as isize - FRAME_END as isize
    }

    pub const RIP: isize = of(offset_of!(Context, rip));
    pub const RFLAGS: isize = of(offset_of!(Context, rflags));
    pub const RSP: isize = of(offset_of!(Context, rsp));
    pub const RAX: isize = of(offset_of!(Context, rax));
    pub const RBX: isize = of(offset_of!(Context, rbx));
    pub const RBP: isize = of(offset_of!(Context, rbp));
    pub const R12: isize = of(offset_of!(Context, r12));
    pub const R13: isize = of(offset_of!(Context, r13));
    pub const R14: isize = of(offset_of!(Context, r14));
    pub const R15: isize = of(offset_of!(Context, r15));
    pub const ENTRY: isize = of(offset_of!(Context, entry));
    pub const MXCSR: isize = of(offset_of!(Context, mxcsr));
    pub const FCW: isize = of(offset_of!(Context, fcw));
    pub const PROCESS: isize = of(offset_of!(Context, process));
    pub const FX: isize = of(offset_of!(Context, fx));
    pub const VECTORS: isize = of(offset_of!(Context, fx) + VECTORS_AT);
    pub const REGISTERS: isize = of(offset_of!(Context, r15));
}
