//! The data that each core has of its own, found through gs.

use crate::context::{self, offsets};
use crate::shell::Shell;
use core::arch::global_asm;
use core::mem::{MaybeUninit, offset_of};

/// The task-state segment: where the processor finds stacks.
#[repr(C, packed(4))]
pub struct TaskState {
    reserved: u32,
    /// Stack for traps from ring 3: the end of the running thread's frame, which also says which
    /// thread runs.
    pub rsp0: u64,
    unused: [u64; 3],
    /// Stacks of their own for traps that may come anywhere.
    pub ist: [u64; 7],
    reserved2: [u64; 1],
    reserved3: u16,
    /// Beyond the segment: no port is open to ring 3.
    pub io_map: u16,
}

/// One core's state. `entry.s` knows the offsets of its fields.
#[repr(C, align(64))]
pub struct PerCpu {
    /// The empty kernel stack.
    pub kernel_rsp: u64,
    /// The caller's stack during a system call.
    pub user_rsp: u64,
    pub shell: *mut Shell,
    pub tss: TaskState,
}

/// Bytes of the task-state segment.
pub const TSS_BYTES: usize = size_of::<TaskState>();

impl PerCpu {
    const fn new() -> PerCpu {
        PerCpu {
            kernel_rsp: 0,
            user_rsp: 0,
            shell: core::ptr::null_mut(),
            tss: TaskState {
                reserved: 0,
                rsp0: 0,
                unused: [0; 3],
                ist: [0; 7],
                reserved2: [0],
                reserved3: 0,
                io_map: TSS_BYTES as u16,
            },
        }
    }
}

/// The boot core's state.
pub static mut BOOT_CPU: PerCpu = PerCpu::new();
/// The boot core's shell, initialized by `start`.
pub static mut BOOT_SHELL: MaybeUninit<Shell> = MaybeUninit::uninit();

/// The one reference to this core's shell, for as long as it lives.
pub struct HeldShell(&'static mut Shell);

/// Somebody has the reference. Only one core runs so far.
#[cfg(debug_assertions)]
static HELD: core::sync::atomic::AtomicBool = core::sync::atomic::AtomicBool::new(false);

/// This core's shell.
///
/// # Safety
/// In a kernel entry, after boot made the shell, and while no other [`HeldShell`] is alive: entries
/// never nest, and a handler drops its own before it calls the next.
#[inline(always)]
pub unsafe fn shell() -> HeldShell {
    #[cfg(debug_assertions)]
    assert!(!HELD.swap(true, core::sync::atomic::Ordering::Relaxed));
    let shell: *mut Shell;
    // SAFETY: gs names this core's PerCpu in every kernel entry, and the caller has no second
    // reference.
    unsafe {
        core::arch::asm!("mov {}, gs:[{offset}]", out(reg) shell,
            offset = const offset_of!(PerCpu, shell), options(nostack, pure, readonly));
        HeldShell(&mut *shell)
    }
}

#[cfg(debug_assertions)]
impl Drop for HeldShell {
    fn drop(&mut self) {
        HELD.store(false, core::sync::atomic::Ordering::Relaxed);
    }
}

impl core::ops::Deref for HeldShell {
    type Target = Shell;

    #[inline(always)]
    fn deref(&self) -> &Shell {
        self.0
    }
}

impl core::ops::DerefMut for HeldShell {
    #[inline(always)]
    fn deref_mut(&mut self) -> &mut Shell {
        self.0
    }
}

global_asm!(
    include_str!("entry.s"),
    USER_RSP = const offset_of!(PerCpu, user_rsp),
    KERNEL_RSP = const offset_of!(PerCpu, kernel_rsp),
    TSS_RSP0 = const offset_of!(PerCpu, tss) + offset_of!(TaskState, rsp0),
    FRAME_END = const context::FRAME_END,
    FX_BYTES = const context::FX_BYTES,
    FX = const offsets::FX,
    VECTORS = const offsets::VECTORS,
    PROCESS = const offsets::PROCESS,
    REGISTERS = const offsets::REGISTERS,
    RIP = const offsets::RIP,
    RFLAGS = const offsets::RFLAGS,
    RSP = const offsets::RSP,
    RAX = const offsets::RAX,
    RBX = const offsets::RBX,
    RBP = const offsets::RBP,
    R12 = const offsets::R12,
    R13 = const offsets::R13,
    R14 = const offsets::R14,
    R15 = const offsets::R15,
    ENTRY = const offsets::ENTRY,
    BY_CALL = const context::BY_CALL,
    USUAL_FCW = const context::USUAL_FCW,
    MXCSR = const offsets::MXCSR,
    FCW = const offsets::FCW,
    CALLS = const diapason_abi::CallNumber::ALL.len(),
    OBSERVING = const crate::machine::OBSERVING as u8,
    BELLS = const crate::tables::BELLS,
    STRAY = const crate::tables::STRAY,
    FIRST_INTERRUPT = const crate::tables::FIRST_INTERRUPT,
);
