//! Faults of programs: what the processor refuses while a program's code runs natively becomes a
//! fault of that program, not of the simulator.
//!
//! Signal handlers on a stack of their own look whether a program was running. If so they note what
//! happened and go on at the switch back; if not, the fault is the simulator's, and it dies of it.
//! System calls by a program's own instruction never reach the host's kernel: they are calls of
//! ours.

use crate::context;
use core::arch::global_asm;
use diapason_abi::FaultCause;
use std::mem::MaybeUninit;
use std::sync::Once;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// The processor's report of a trap.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Report {
    /// `None`: it ran for too long without a trap.
    pub vector: Option<u64>,
    pub error: u64,
    pub address: u64,
    pub instruction: u64,
}

static VECTOR: AtomicU64 = AtomicU64::new(0);
static ERROR: AtomicU64 = AtomicU64::new(0);
static ADDRESS: AtomicU64 = AtomicU64::new(0);
static INSTRUCTION: AtomicU64 = AtomicU64::new(0);
/// Times a thread was resumed, and what that was at the watchdog's last look.
static RESUMED: AtomicU64 = AtomicU64::new(0);
static SEEN: AtomicU64 = AtomicU64::new(0);

const SYSCALL: [u8; 2] = [0x0f, 0x05];
/// `VECTOR` of a forbidden instruction.
const PROTECTION: u64 = 13;
/// `VECTOR` of a program that ran for too long.
const ENDLESS: u64 = u64::MAX;
/// Processor time between two looks of the watchdog. A thread that is seen twice without a trap in
/// between is ended: nothing a correct program does natively takes that long.
const LOOK: libc::timeval = libc::timeval { tv_sec: 2, tv_usec: 0 };
const STACK_BYTES: usize = 64 * 1024;
/// The signals by which the host reports what a program may not do.
const FAULTS: [i32; 5] = [libc::SIGSEGV, libc::SIGBUS, libc::SIGILL, libc::SIGFPE, libc::SIGTRAP];

/// Returns the report about the thread that came back with `Trap::Signal`.
pub(crate) fn report() -> Report {
    let vector = VECTOR.load(Relaxed);
    Report {
        vector: (vector != ENDLESS).then_some(vector),
        error: ERROR.load(Relaxed),
        address: ADDRESS.load(Relaxed),
        instruction: INSTRUCTION.load(Relaxed),
    }
}

/// A thread is about to be resumed.
pub(crate) fn note_resumption() {
    // Only the thread that simulates writes it.
    RESUMED.store(RESUMED.load(Relaxed) + 1, Relaxed);
}

/// The cause and the address of a fault, as the kernel's shell on the metal names them. A program
/// that ran for too long used the processor as it may not.
pub(crate) fn cause(report: Report, is_stack_guard: impl Fn(u64) -> bool) -> (FaultCause, u64) {
    let Report { vector, error, address, .. } = report;
    let vector = vector.unwrap_or(PROTECTION);
    FaultCause::of_trap(vector, error, || address, is_stack_guard)
}

/// Catch faults and endless loops of programs from now on.
pub(crate) fn install() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        // SAFETY: handlers that touch atomics and the interrupted context only.
        unsafe {
            for signal in FAULTS {
                handle(signal, dia_sim_on_fault);
            }
            handle(libc::SIGSYS, dia_sim_on_system_call);
            handle(libc::SIGVTALRM, dia_sim_on_look);
            let every = libc::itimerval { it_interval: LOOK, it_value: LOOK };
            libc::setitimer(libc::ITIMER_VIRTUAL, &raw const every, std::ptr::null_mut());
        }
    });
    // A thread of the host that runs programs needs a stack for its handlers.
    thread_local! {
        static STACK: Box<[u8]> = signal_stack();
    }
    STACK.with(|_| {});
}

/// The abilities that the host must have.
const NEEDED: &str = "Linux 5.11 or later on a processor with FSGSBASE";

/// System calls of this thread can be watched while this lives. It has the signals that the thread
/// took before.
pub(crate) struct Watch(libc::sigset_t);

impl Watch {
    /// Begins to watch the system calls of this thread. Fails if the host lacks the means.
    pub fn begin() -> std::io::Result<Watch> {
        const FSGSBASE: u64 = 1 << 1;
        // SAFETY: reads a number.
        let able = unsafe { libc::getauxval(libc::AT_HWCAP2) } & FSGSBASE != 0;
        let (watches, before) = watch(None);
        // This thread takes its signals again if it cannot be watched.
        let watch = Watch(before);
        if able && watches {
            return Ok(watch);
        }
        Err(std::io::Error::other(format!("the simulator needs {NEEDED}")))
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        watch(Some(&self.0));
    }
}

/// Watches system calls of this thread from now on, or no longer, and takes the signals that it
/// took before. Returns whether that is possible, and the signals that the thread left to others.
///
/// While it is watched, other threads have the signals from outside. The way back from a handler is
/// a system call, and it would be taken for one of the program that was interrupted.
fn watch(before: Option<&libc::sigset_t>) -> (bool, libc::sigset_t) {
    const DISPATCH: i32 = 59;
    let on = before.is_none();
    let selector = if on { context::WATCHED.as_ptr() } else { std::ptr::null_mut() };
    let (mut outside, mut old) = (MaybeUninit::uninit(), MaybeUninit::uninit());
    // SAFETY: the byte is a static, and zero: nothing is stopped yet. The calls fill in the sets
    // that they get.
    unsafe {
        let watches = libc::prctl(DISPATCH, usize::from(on), 0usize, 0usize, selector) == 0;
        libc::sigfillset(outside.as_mut_ptr());
        for signal in FAULTS.into_iter().chain([libc::SIGSYS, libc::SIGVTALRM]) {
            libc::sigdelset(outside.as_mut_ptr(), signal);
        }
        let left = before.map_or(outside.as_ptr(), std::ptr::from_ref);
        libc::pthread_sigmask(libc::SIG_SETMASK, left, old.as_mut_ptr());
        (watches, old.assume_init())
    }
}

fn signal_stack() -> Box<[u8]> {
    let mut memory = vec![0u8; STACK_BYTES].into_boxed_slice();
    let stack =
        libc::stack_t { ss_sp: memory.as_mut_ptr().cast(), ss_flags: 0, ss_size: STACK_BYTES };
    // SAFETY: the memory lives as long as the thread.
    unsafe { libc::sigaltstack(&raw const stack, std::ptr::null_mut()) };
    memory
}

// A handler begins with the flags of what it interrupted. A program's alignment checks must not
// reach the code of the host.
macro_rules! handlers {
    ($($entry:ident => $handler:path;)*) => {
        global_asm!(
            $(
                concat!(".globl ", stringify!($entry)),
                concat!(stringify!($entry), ":"),
                "push {flags}",
                "popfq",
                concat!("jmp {", stringify!($entry), "}"),
            )*
            flags = const context::FLAGS,
            $($entry = sym $handler,)*
        );
        unsafe extern "C" {
            $(fn $entry(signal: i32, info: *mut libc::siginfo_t, machine: *mut libc::c_void);)*
        }
    };
}

handlers! {
    dia_sim_on_fault => on_fault;
    dia_sim_on_system_call => on_system_call;
    dia_sim_on_look => on_look;
}

type Handler = unsafe extern "C" fn(i32, *mut libc::siginfo_t, *mut libc::c_void);

/// # Safety
/// The handler is safe to run at any instruction.
unsafe fn handle(signal: i32, handler: Handler) {
    // SAFETY: all zeros is a value of this type; the call reads it.
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        action.sa_sigaction = handler as *const () as usize;
        action.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK;
        libc::sigaction(signal, &raw const action, std::ptr::null_mut());
    }
}

extern "C" fn on_fault(signal: i32, info: *mut libc::siginfo_t, machine: *mut libc::c_void) {
    if !context::is_native() {
        // The simulator's own fault: as if nobody caught it.
        // SAFETY: restores the default action; the instruction is repeated and ends the process.
        unsafe { libc::signal(signal, libc::SIG_DFL) };
        return;
    }
    // SAFETY: the kernel hands over a context of this type, and what was interrupted is a program.
    unsafe {
        let registers = &mut (*machine.cast::<libc::ucontext_t>()).uc_mcontext.gregs;
        if is_64_bit(registers) {
            VECTOR.store(registers[libc::REG_TRAPNO as usize] as u64, Relaxed);
            ERROR.store(registers[libc::REG_ERR as usize] as u64, Relaxed);
            ADDRESS.store((*info).si_addr() as u64, Relaxed);
        } else {
            forbid();
        }
        leave(registers);
    }
}

extern "C" fn on_system_call(_: i32, _: *mut libc::siginfo_t, machine: *mut libc::c_void) {
    context::watch_system_calls(false);
    // SAFETY: the kernel hands over a context of this type; only a program is stopped at its calls,
    // and the instruction it made one with is memory it can read.
    unsafe {
        let machine = &mut (*machine.cast::<libc::ucontext_t>()).uc_mcontext;
        let after = machine.gregs[libc::REG_RIP as usize] as *const [u8; 2];
        // After `sysenter` the instruction pointer does not say where the call was made.
        if is_64_bit(&machine.gregs) && *after.sub(1) == SYSCALL {
            machine.gregs[libc::REG_RIP as usize] = context::intercept(machine) as libc::greg_t;
            machine.gregs[libc::REG_EFL as usize] = context::FLAGS;
        } else {
            // Another way into the host's kernel: on the metal, a forbidden instruction.
            forbid();
            leave(&mut machine.gregs);
        }
    }
}

extern "C" fn on_look(_signal: i32, _info: *mut libc::siginfo_t, machine: *mut libc::c_void) {
    let resumed = RESUMED.load(Relaxed);
    let same = SEEN.swap(resumed, Relaxed) == resumed;
    // The way back from here is a system call, too.
    context::watch_system_calls(false);
    if !same || !context::is_native() {
        return;
    }
    VECTOR.store(ENDLESS, Relaxed);
    // SAFETY: as above.
    unsafe { leave(&mut (*machine.cast::<libc::ucontext_t>()).uc_mcontext.gregs) }
}

/// The selectors of code and stack, and their places in the saved word of selectors.
const SELECTORS: u64 = 0xffff_0000_0000_ffff;
/// The host's own selectors of 64-bit code and of a stack, in these places.
const HOST_SELECTORS: u64 = 0x002b_0000_0000_0033;

/// Returns whether the processor executed 64-bit code. A far jump and `sysenter` leave it.
fn is_64_bit(registers: &[libc::greg_t; 23]) -> bool {
    (registers[libc::REG_CSGSFS as usize] as u64 ^ HOST_SELECTORS) & 0xffff == 0
}

/// The program left 64-bit code, or called the host's kernel, where the metal forbids the
/// instruction.
fn forbid() {
    VECTOR.store(PROTECTION, Relaxed);
    ERROR.store(0, Relaxed);
    ADDRESS.store(0, Relaxed);
}

/// # Safety
/// The registers are those of a program's thread.
unsafe fn leave(registers: &mut [libc::greg_t; 23]) {
    context::watch_system_calls(false);
    // Outside 64-bit code, the pointer tells where the host's kernel put the program.
    let known = is_64_bit(registers);
    let instruction = if known { registers[libc::REG_RIP as usize] as u64 } else { 0 };
    INSTRUCTION.store(instruction, Relaxed);
    let selectors = &mut registers[libc::REG_CSGSFS as usize];
    *selectors = (*selectors as u64 & !SELECTORS | HOST_SELECTORS) as libc::greg_t;
    registers[libc::REG_EFL as usize] = context::FLAGS;
    // SAFETY: the caller vouches for the thread.
    registers[libc::REG_RIP as usize] = unsafe { context::interrupt() } as libc::greg_t;
}
