//! What is kept of a thread that does not run.

use core::mem::offset_of;

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
    /// It left by a system call: only what a function preserves was kept.
    pub in_call: u32,
    mxcsr: u32,
    fcw: u32,
}

/// Where the stored registers begin.
pub const REGISTERS: usize = offset_of!(Context, r15);
/// Where the processor's frame ends.
pub const FRAME_END: usize = offset_of!(Context, in_call);

const _: () = assert!(REGISTERS == 512 && FRAME_END == 688 && FRAME_END % 16 == 0);

/// User code and data selectors, with the privilege of ring 3.
const USER_CODE: u64 = 0x2b;
const USER_DATA: u64 = 0x23;
/// Interrupts on, and the bit that is always one.
const USER_FLAGS: u64 = 0x202;
const DEFAULT_MXCSR: u32 = 0x1f80;
const DEFAULT_FCW: u16 = 0x37f;

impl Context {
    /// Of a thread that has not started.
    // SAFETY: integers and arrays of them; all zeros is a value of each.
    pub const EMPTY: Context = unsafe { core::mem::zeroed() };

    /// A thread about to execute its first instruction, with every register it is not given clear.
    pub fn start(&mut self, entry: u64, stack: u64, arguments: [u64; 5]) {
        self.fx = [0; 512];
        self.fx[..2].copy_from_slice(&DEFAULT_FCW.to_le_bytes());
        self.fx[24..28].copy_from_slice(&DEFAULT_MXCSR.to_le_bytes());
        let [rdi, rsi, rdx, rcx, r8] = arguments;
        (self.rdi, self.rsi, self.rdx, self.rcx, self.r8) = (rdi, rsi, rdx, rcx, r8);
        (self.r9, self.r10, self.r11, self.rax) = (0, 0, 0, 0);
        (self.rbx, self.rbp) = (0, 0);
        (self.r12, self.r13, self.r14, self.r15) = (0, 0, 0, 0);
        (self.rip, self.cs, self.rflags) = (entry, USER_CODE, USER_FLAGS);
        (self.rsp, self.ss) = (stack, USER_DATA);
        self.in_call = 0;
    }
}

/// Offsets `entry.s` uses.
pub mod offsets {
    use super::{Context, offset_of};
    pub const RIP: usize = offset_of!(Context, rip);
    pub const RFLAGS: usize = offset_of!(Context, rflags);
    pub const RSP: usize = offset_of!(Context, rsp);
    pub const RAX: usize = offset_of!(Context, rax);
    pub const RBX: usize = offset_of!(Context, rbx);
    pub const RBP: usize = offset_of!(Context, rbp);
    pub const R12: usize = offset_of!(Context, r12);
    pub const R13: usize = offset_of!(Context, r13);
    pub const R14: usize = offset_of!(Context, r14);
    pub const R15: usize = offset_of!(Context, r15);
    pub const IN_CALL: usize = offset_of!(Context, in_call);
    pub const MXCSR: usize = offset_of!(Context, mxcsr);
    pub const FCW: usize = offset_of!(Context, fcw);
}
