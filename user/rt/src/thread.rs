//! Threads of this process, and periodic jobs.

use crate::sys::{self, call0, call1, call2, call3};
use diapason_abi::key::pack_name;
use diapason_abi::{CallNumber, Errno, Nanos, decode_result};

/// A thread that was started and not yet joined. Dropping it detaches the thread.
#[derive(Debug)]
pub struct JoinHandle(u64);

/// What a thread runs: a function, with the number it was started with. It never returns by
/// falling off its stack: [`spawn`] passes an entry that exits with what the function returns.
pub trait Body {
    /// The thread's work; what it returns is its exit code.
    fn run(argument: u64) -> u64;
}

extern "C" fn enter<B: Body>(argument: u64) -> ! {
    exit(B::run(argument))
}

/// Start `B::run(argument)` on a stack of its own. `priority` is at most that of the process.
///
/// # Errors
/// `Exhausted` if the process has no free thread.
pub fn spawn<B: Body>(name: &str, priority: u8, argument: u64) -> Result<JoinHandle, Errno> {
    let entry = enter::<B> as *const () as u64;
    let (call, priority) = (CallNumber::ThreadCreate as u64, u64::from(priority));
    // SAFETY: the entry is code of this program and takes any argument.
    decode_result(unsafe { sys::raw4(call, entry, argument, priority, pack_name(name)) })
        .map(JoinHandle)
}

/// Declares a unit type that is the [`Body`] of a thread: `body!(Pump = pump)` for a function
/// `fn pump(argument: u64) -> u64`.
#[macro_export]
macro_rules! body {
    ($name:ident = $function:path) => {
        struct $name;
        impl $crate::thread::Body for $name {
            fn run(argument: u64) -> u64 {
                $function(argument)
            }
        }
    };
}

impl JoinHandle {
    /// Wait for the thread's end; its exit code.
    ///
    /// # Errors
    /// `TimedOut` or `WouldBlock` at the deadline: the handle is gone with the call then, and the
    /// thread detached.
    pub fn join(self, deadline: Nanos) -> Result<u64, Errno> {
        let code = call2(CallNumber::ThreadJoin, self.0, deadline.0);
        if code.is_ok() {
            core::mem::forget(self);
        }
        code
    }

    /// The handle as the kernel knows it.
    #[must_use]
    pub fn raw(&self) -> u64 {
        self.0
    }
}

impl Drop for JoinHandle {
    fn drop(&mut self) {
        let _ = call1(CallNumber::ThreadDetach, self.0);
    }
}

/// End the calling thread.
pub fn exit(code: u64) -> ! {
    let _ = call1(CallNumber::ThreadExit, code);
    sys::fail(0)
}

/// Let the next thread of the same priority run.
#[inline(always)]
pub fn yield_now() {
    let _ = call0(CallNumber::Yield);
}

/// Periodic jobs of the calling thread. The kernel keeps the releases and counts misses.
#[derive(Debug)]
pub struct Jobs(());

/// Become a periodic task: returns at `first`, the release of the first job.
#[must_use]
pub fn periodic(first: Nanos, period: Nanos, deadline: Nanos) -> Jobs {
    let _ = call3(CallNumber::JobsStart, first.0, period.0, deadline.0);
    Jobs(())
}

impl Jobs {
    /// This job is done; returns at the release of the next. The number of releases that were
    /// passed over because this job was too late.
    pub fn wait(&mut self) -> u64 {
        call0(CallNumber::JobWait).unwrap_or(0)
    }
}
