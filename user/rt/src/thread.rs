//! Threads of this process, and periodic jobs.

use crate::hint::Hint;
use crate::sys::{self, call0, call1, call3, call4};
use crate::vcpu::Vcpu;
use core::marker::PhantomData;
use diapason_abi::call::PARTIAL;
use diapason_abi::key::pack_name;
use diapason_abi::{CallNumber, Errno, Nanos, decode_result};

/// A thread that was started and not yet joined. Dropping it detaches the thread.
#[derive(Debug)]
pub struct JoinHandle(u64);

/// The body of a thread: a function, with the number it was started with. It never returns by
/// falling off its stack: [`spawn`] passes an entry that exits with what the function returns.
pub trait Body {
    /// Does the thread's work; what it returns is the thread's exit code.
    fn run(argument: u64) -> u64;
}

extern "C" fn enter<B: Body>(argument: u64) -> ! {
    exit(B::run(argument))
}

/// Starts `B::run(argument)` on a stack of its own. `priority` is at most that of the process.
///
/// # Errors
/// `Exhausted` if the process has no free thread.
pub fn spawn<B: Body>(name: &str, priority: u8, argument: u64) -> Result<JoinHandle, Errno> {
    spawn_on::<B>(Vcpu::DEFAULT, name, priority, argument)
}

/// Starts a thread like [`spawn`], on a VCPU of the process's choice.
///
/// # Errors
/// As of [`spawn`], and `Gone` if the VCPU was deleted.
pub fn spawn_on<B: Body>(
    vcpu: Vcpu,
    name: &str,
    priority: u8,
    argument: u64,
) -> Result<JoinHandle, Errno> {
    let entry = enter::<B> as *const () as u64;
    let priority = u64::from(priority);
    let name = pack_name(name);
    // SAFETY: the entry is code of this program and takes any argument.
    decode_result(unsafe {
        sys::raw5::<{ CallNumber::ThreadCreate as u8 }>(entry, argument, priority, name, vcpu.raw())
    })
    .map(JoinHandle)
}

/// A thread's work on something that lives as long as the process.
pub trait Task: Sync + 'static {
    /// Does the thread's work; what it returns is the thread's exit code.
    fn run(&'static self) -> u64;
}

/// The thread behind a task; its argument is where the task is.
struct Running<T>(PhantomData<T>);

impl<T: Task> Body for Running<T> {
    fn run(task: u64) -> u64 {
        // SAFETY: `start` made it from a reference that lives as long, to what may be shared.
        unsafe { &*(task as *const T) }.run()
    }
}

/// Starts `task` on a thread of its own, as [`spawn_on`] does.
///
/// # Errors
/// As of [`spawn_on`].
pub fn start<T: Task>(
    vcpu: Vcpu,
    name: &str,
    priority: u8,
    task: &'static T,
) -> Result<JoinHandle, Errno> {
    spawn_on::<Running<T>>(vcpu, name, priority, core::ptr::from_ref(task) as u64)
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
    /// Waits for the thread's end; its exit code.
    ///
    /// # Errors
    /// `TimedOut` or `WouldBlock` at the deadline: the handle is gone with the call then, and the
    /// thread detached.
    pub fn join(self, deadline: Nanos) -> Result<u64, Errno> {
        self.join_then(deadline, Hint::NONE)
    }

    /// Does what [`JoinHandle::join`] does. The thread locks `hint` next.
    ///
    /// # Errors
    /// As for [`JoinHandle::join`].
    pub fn join_then(self, deadline: Nanos, hint: Hint) -> Result<u64, Errno> {
        let code = call3::<{ CallNumber::ThreadJoin as u8 }>(self.0, deadline.0, hint.raw());
        if code.is_ok() {
            core::mem::forget(self);
        }
        code
    }

    /// Returns the handle as the kernel knows it.
    #[must_use]
    pub fn raw(&self) -> u64 {
        self.0
    }
}

impl Drop for JoinHandle {
    fn drop(&mut self) {
        let _ = call1::<{ CallNumber::ThreadDetach as u8 }>(self.0);
    }
}

/// Ends the calling thread.
pub fn exit(code: u64) -> ! {
    // A thread that holds very many mutexes lets some go in each call.
    while call1::<{ CallNumber::ThreadExit as u8 }>(code) == Ok(PARTIAL) {}
    sys::fail(0)
}

/// Lets the next thread of the same priority run.
#[inline(always)]
pub fn yield_now() {
    let _ = call0::<{ CallNumber::Yield as u8 }>();
}

/// Periodic jobs of the calling thread. The kernel keeps the releases and counts misses.
#[derive(Debug)]
pub struct Jobs(());

/// Makes the thread a periodic task. Returns at `first`, the release of the first job.
#[must_use]
pub fn periodic(first: Nanos, period: Nanos, deadline: Nanos) -> Jobs {
    periodic_then(first, period, deadline, Hint::NONE)
}

/// Does what [`periodic`] does. The thread locks `hint` next.
#[must_use]
pub fn periodic_then(first: Nanos, period: Nanos, deadline: Nanos, hint: Hint) -> Jobs {
    let _ = call4::<{ CallNumber::JobsStart as u8 }>(first.0, period.0, deadline.0, hint.raw());
    Jobs(())
}

impl Jobs {
    /// Ends this job, and returns at the release of the next. The number of releases that were
    /// passed over because this job was too late.
    pub fn wait(&mut self) -> u64 {
        self.wait_then(Hint::NONE)
    }

    /// Does what [`Jobs::wait`] does. The thread locks `hint` next.
    pub fn wait_then(&mut self, hint: Hint) -> u64 {
        call1::<{ CallNumber::JobWait as u8 }>(hint.raw()).unwrap_or(0)
    }
}
