//! A program's thread as the simulator keeps it, and the switch to it and back.

use crate::glance::ThreadRegisters;
use core::arch::global_asm;
use core::mem::offset_of;
use diapason_core::ThreadStart;
use std::sync::atomic::{AtomicU8, Ordering::Relaxed};

/// ThreadRegisters of a thread that is not running natively.
#[repr(C)]
#[derive(Clone, Default)]
pub(crate) struct Context {
    pub rip: u64,
    pub rsp: u64,
    /// rbx, rbp, r12 to r15.
    preserved: [u64; 6],
    /// On the way out: rax, rdi, rsi, rdx, r10, r8. On the way in, rcx takes the place of r10.
    pub words: [u64; 6],
    trap: u64,
    mxcsr: u32,
    fcw: u32,
    /// The place of the message that it goes on with, if that is no memory of its own; else 0.
    pub undelivered: u64,
}

global_asm!(
    include_str!("context.s"),
    RIP = const offset_of!(Context, rip),
    RSP = const offset_of!(Context, rsp),
    RBX = const offset_of!(Context, preserved),
    WORDS = const offset_of!(Context, words),
    TRAP = const offset_of!(Context, trap),
    MXCSR = const offset_of!(Context, mxcsr),
    FCW = const offset_of!(Context, fcw),
    FLAGS = const FLAGS,
    ODD = const ODD,
);

unsafe extern "C" {
    fn dia_sim_resume(context: *mut Context);
    fn dia_sim_call();
    fn dia_sim_now();
    fn dia_sim_work();
    fn dia_sim_consume();
    fn dia_sim_step();
    fn dia_sim_give_up();
    fn dia_sim_read32();
    fn dia_sim_write32();
    fn dia_sim_read64();
    fn dia_sim_write64();
    fn dia_sim_leave();
    static dia_sim_running: *mut Context;
    static mut dia_sim_spare: u64;
}

/// Floating-point control words of a thread that has not run: everything masked, nearest.
const CLEAN: (u32, u32) = (0x1f80, 0x37f);
/// Processor flags of the host: none of a program's (single step, alignment checks) may survive.
pub(crate) const FLAGS: i64 = 0x202;
/// Flags that the code of the host never has: single step, direction, privilege, nesting, resume,
/// alignment checks, identification.
const ODD: i64 = 0x27_7500;
/// Number of the trap that a call stands for, and of the one that a signal stands for.
const CALL: u64 = 0;
const SIGNAL: u64 = 10;

/// Why a thread came back.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Trap {
    /// A system call: number and words.
    Call(u64, [u64; 5]),
    /// The thread asks what time it is.
    Now,
    /// The thread did the declared work with this key.
    Work(u64),
    /// The thread wants to use so many nanoseconds.
    Consume(u64),
    /// A point where somebody else may run.
    Step,
    /// The thread gives up, at this place.
    GiveUp(u64),
    /// A device register is read: its address and bytes.
    Read(u64, u8),
    /// A device register is written: its address, the value and bytes.
    Write(u64, u64, u8),
    /// The thread did what the processor, or the watchdog, does not allow; see `guard`.
    Signal,
}

impl Context {
    /// About to enter `entry` with this stack and these words in the first argument registers.
    pub fn start(&mut self, ThreadStart { entry, stack, arguments: [a, b, c, d, e] }: ThreadStart) {
        let (mxcsr, fcw) = CLEAN;
        *self = Context {
            rip: entry,
            rsp: stack,
            words: [0, a, b, c, d, e],
            mxcsr,
            fcw,
            ..Context::default()
        };
    }

    /// Sets the result of its call. Nothing else reaches it in registers.
    pub fn answer(&mut self, result: u64) {
        self.words = [result, 0, 0, 0, 0, 0];
    }

    /// Returns the registers that a debugger may see.
    pub fn registers(&self) -> ThreadRegisters {
        let Context { rip, rsp, preserved: [rbx, rbp, r12_to_r15 @ ..], .. } = *self;
        ThreadRegisters { rip, rsp, rbx, rbp, r12_to_r15 }
    }

    /// Runs it until it traps. It may consume time without a trap as long as some of `spare` is
    /// left; what it consumed so is returned, too.
    ///
    /// # Safety
    /// The context was started in a loaded program, whose memory is still mapped, and nobody else
    /// in this process runs programs now.
    pub unsafe fn resume(&mut self, spare: u64) -> (Trap, u64) {
        watch_system_calls(true);
        // SAFETY: the switch keeps what a function keeps and comes back through `dia_sim_leave`;
        // only this thread and what it switches to touch the word.
        let left = unsafe {
            (&raw mut dia_sim_spare).write(spare);
            dia_sim_resume(self);
            (&raw const dia_sim_spare).read()
        };
        watch_system_calls(false);
        (self.trap(), spare - left)
    }

    /// Returns why it came back.
    fn trap(&self) -> Trap {
        let [number, a, b, c, d, e] = self.words;
        match self.trap {
            CALL => Trap::Call(number, [a, b, c, d, e]),
            1 => Trap::Now,
            2 => Trap::Work(a),
            3 => Trap::Consume(a),
            4 => Trap::Step,
            5 => Trap::GiveUp(a),
            6 => Trap::Read(a, 4),
            7 => Trap::Write(a, b & 0xffff_ffff, 4),
            8 => Trap::Read(a, 8),
            9 => Trap::Write(a, b, 8),
            _ => Trap::Signal,
        }
    }
}

/// The host's kernel reads it at each system call of the thread that simulates: not zero, and it
/// stops there.
pub(crate) static WATCHED: AtomicU8 = AtomicU8::new(0);

/// From now on, system calls are a program's, or are not.
pub(crate) fn watch_system_calls(watched: bool) {
    WATCHED.store(u8::from(watched), Relaxed);
}

/// Returns whether a program's thread is running natively.
pub(crate) fn is_native() -> bool {
    // SAFETY: one aligned word, written by this thread's own switch.
    unsafe { !(&raw const dia_sim_running).read_volatile().is_null() }
}

/// From a signal handler: the thread comes back with [`Trap::Signal`] as soon as the processor
/// continues at the address returned.
///
/// # Safety
/// A program's thread is running natively.
pub(crate) unsafe fn interrupt() -> u64 {
    // SAFETY: the context of the running thread, which is not running while the handler is.
    unsafe { (*(&raw const dia_sim_running).read_volatile()).trap = SIGNAL };
    dia_sim_leave as *const () as u64
}

/// From a signal handler: the running thread made a system call by an instruction of its own. It
/// comes back with [`Trap::Call`], as it would from the stub.
///
/// # Safety
/// A program's thread is running natively, and these are its registers.
pub(crate) unsafe fn intercept(machine: &libc::mcontext_t) -> u64 {
    let register = |number: i32| machine.gregs[number as usize] as u64;
    let preserved =
        [libc::REG_RBX, libc::REG_RBP, libc::REG_R12, libc::REG_R13, libc::REG_R14, libc::REG_R15];
    let words =
        [libc::REG_RAX, libc::REG_RDI, libc::REG_RSI, libc::REG_RDX, libc::REG_R10, libc::REG_R8];
    // SAFETY: the context of the running thread; the kernel saved its floating-point state.
    unsafe {
        *(&raw const dia_sim_running).read_volatile() = Context {
            rip: register(libc::REG_RIP),
            rsp: register(libc::REG_RSP),
            preserved: preserved.map(register),
            words: words.map(register),
            trap: CALL,
            mxcsr: (*machine.fpregs).mxcsr,
            fcw: u32::from((*machine.fpregs).cwd),
            undelivered: 0,
        };
    }
    dia_sim_leave as *const () as u64
}

/// Returns where each stub of a program leads, in the order of its header.
pub(crate) fn entries() -> [u64; 10] {
    [
        dia_sim_call as *const () as u64,
        dia_sim_now as *const () as u64,
        dia_sim_work as *const () as u64,
        dia_sim_consume as *const () as u64,
        dia_sim_step as *const () as u64,
        dia_sim_give_up as *const () as u64,
        dia_sim_read32 as *const () as u64,
        dia_sim_write32 as *const () as u64,
        dia_sim_read64 as *const () as u64,
        dia_sim_write64 as *const () as u64,
    ]
}
