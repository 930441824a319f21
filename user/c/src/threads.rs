//! Threads, periodic jobs and virtual CPUs.

use crate::words::{CText, INVALID, Place, call, error, status, store};
use core::ffi::c_void;
use core::mem::transmute;
use core::sync::atomic::{AtomicUsize, Ordering};
use diapason_abi::call::NO_HINT;
use diapason_abi::key::pack_name;
use diapason_abi::layout::THREADS_PER_PROCESS_MAX;
use diapason_abi::{CallNumber, Errno, Nanos};
use diapason_rt::thread;
use diapason_rt::vcpu::Vcpu;

/// The body of a thread, as C has it.
type Body = extern "C" fn(*mut c_void) -> u64;

/// A thread that is created and has not begun: the kernel passes one word to it, which names this.
struct Start {
    /// The address of its body, [`FREE`], or [`TAKEN`] while it is filled in.
    body: AtomicUsize,
    argument: AtomicUsize,
}

const FREE: usize = 0;
const TAKEN: usize = 1;

/// As many as a process may have threads.
static STARTS: [Start; THREADS_PER_PROCESS_MAX as usize] =
    [const { Start { body: AtomicUsize::new(FREE), argument: AtomicUsize::new(0) } };
        THREADS_PER_PROCESS_MAX as usize];

/// The first function of every thread: it takes its start, which is free from then on.
extern "C" fn enter(index: u64) -> ! {
    let Some(start) = STARTS.get(index as usize) else { thread::exit(0) };
    let argument = start.argument.load(Ordering::Acquire) as *mut c_void;
    let body = start.body.swap(FREE, Ordering::AcqRel);
    // SAFETY: `dia_thread_start` stored the address of a function of this type, once for each
    // thread, before the thread was created.
    let body = unsafe { transmute::<usize, Body>(body) };
    thread::exit(body(argument))
}

/// Starts a thread on a VCPU, or on that of the process if `vcpu` is 0.
#[unsafe(no_mangle)]
extern "C" fn dia_thread_start(
    thread: Place<'_, u64>,
    vcpu: u64,
    text: CText,
    priority: u32,
    body: Option<Body>,
    argument: *mut c_void,
) -> i32 {
    let Some(name) = text.name() else { return INVALID };
    let (Some(body), true) = (body, thread.is_some()) else { return INVALID };
    let free = |start: &Start| {
        let taken = start.body.compare_exchange(FREE, TAKEN, Ordering::AcqRel, Ordering::Relaxed);
        taken.is_ok()
    };
    let Some(index) = STARTS.iter().position(free) else { return error(Errno::Exhausted) };
    let Some(start) = STARTS.get(index) else { return error(Errno::Exhausted) };
    start.argument.store(argument as usize, Ordering::Relaxed);
    start.body.store(body as usize, Ordering::Release);
    let (entry, name) = (enter as *const () as u64, pack_name(name));
    let words = [entry, index as u64, priority.into(), name, vcpu];
    let created = call::<{ CallNumber::ThreadCreate as u8 }, _>(words);
    if created.is_err() {
        start.body.store(FREE, Ordering::Release);
    }
    store(thread, created)
}

#[unsafe(no_mangle)]
extern "C" fn dia_thread_join(thread: u64, deadline: u64, code: Place<'_, u64>) -> i32 {
    let joined = call::<{ CallNumber::ThreadJoin as u8 }, _>([thread, deadline, NO_HINT]);
    if code.is_none() { status(joined) } else { store(code, joined) }
}

#[unsafe(no_mangle)]
extern "C" fn dia_thread_detach(thread: u64) -> i32 {
    status(call::<{ CallNumber::ThreadDetach as u8 }, _>([thread]))
}

#[unsafe(no_mangle)]
extern "C" fn dia_yield() {
    thread::yield_now();
}

#[unsafe(no_mangle)]
extern "C" fn dia_jobs_start(first: u64, period: u64, deadline: u64) -> i32 {
    status(call::<{ CallNumber::JobsStart as u8 }, _>([first, period, deadline, NO_HINT]))
}

/// Ends the job and waits for the next release; returns the releases that were passed over.
#[unsafe(no_mangle)]
extern "C" fn dia_job_wait() -> u64 {
    call::<{ CallNumber::JobWait as u8 }, _>([NO_HINT]).unwrap_or(0)
}

#[unsafe(no_mangle)]
extern "C" fn dia_vcpu_open(text: CText, vcpu: Place<'_, u64>) -> i32 {
    let Some(name) = text.name() else { return INVALID };
    store(vcpu, Vcpu::open(name).map(Vcpu::raw))
}

#[unsafe(no_mangle)]
extern "C" fn dia_vcpu_create(
    budget: u64,
    period: u64,
    background: bool,
    vcpu: Place<'_, u64>,
) -> i32 {
    store(vcpu, Vcpu::create(Nanos(budget), Nanos(period), background).map(Vcpu::raw))
}

#[unsafe(no_mangle)]
extern "C" fn dia_vcpu_set(vcpu: u64, budget: u64, period: u64) -> i32 {
    status(call::<{ CallNumber::VcpuSet as u8 }, _>([vcpu, budget, period]))
}

#[unsafe(no_mangle)]
extern "C" fn dia_vcpu_delete(vcpu: u64) -> i32 {
    status(call::<{ CallNumber::VcpuDelete as u8 }, _>([vcpu]))
}

#[unsafe(no_mangle)]
extern "C" fn dia_vcpu_fit(period: u64, budget: Place<'_, u64>) -> i32 {
    store(budget, Vcpu::fit(Nanos(period)).map(|budget| budget.0))
}
