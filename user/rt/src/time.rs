//! Time: reading the clock, sleeping, using processor time.

use crate::hint::Hint;
use crate::sys::call2;
use core::arch::asm;
use diapason_abi::{CallNumber, Key, Nanos};

/// Returns the nanoseconds since boot.
#[must_use]
#[inline(always)]
pub fn now() -> Nanos {
    let now;
    // SAFETY: the stub reads the counter and the information page.
    unsafe { asm!("call __dia_now", out("rax") now, clobber_abi("C")) }
    Nanos(now)
}

/// Blocks the thread until `time`.
pub fn sleep_until(time: Nanos) {
    sleep_until_then(time, Hint::NONE);
}

/// Does what [`sleep_until`] does. The thread locks `hint` next.
pub fn sleep_until_then(time: Nanos, hint: Hint) {
    let _ = call2::<{ CallNumber::SleepUntil as u8 }>(time.0, hint.raw());
}

/// Blocks the thread for `span`.
pub fn sleep(span: Nanos) {
    sleep_then(span, Hint::NONE);
}

/// Does what [`sleep`] does. The thread locks `hint` next.
pub fn sleep_then(span: Nanos, hint: Hint) {
    sleep_until_then(now() + span, hint);
}

/// Uses processor time: synthetic work, one instruction per nanosecond.
#[inline(always)]
pub fn burn(span: Nanos) {
    // SAFETY: the stub counts.
    unsafe { asm!("call __dia_consume", inout("rdi") span.0 => _, clobber_abi("C")) }
}

/// Declares that what follows is work the description knows by name. Real machines do the work by
/// doing it; the simulator charges the time the description gives.
#[inline(always)]
pub fn work<R>(name: &str, body: impl FnOnce() -> R) -> R {
    work_of(Key::new(name), body)
}

/// Declares work by the key of its name, as [`work`] does. To make a key of a name that the
/// compiler does not know takes hundreds of instructions, so it is made once.
#[inline(always)]
pub fn work_of<R>(key: Key, body: impl FnOnce() -> R) -> R {
    let result = body();
    // SAFETY: the stub does nothing on the metal.
    unsafe { asm!("call __dia_work", in("rdi") key.0, clobber_abi("C")) }
    result
}

/// Preemption points inside state messages: nothing on the metal, a choice for the simulator.
pub struct SimulatorStep;

impl diapason_state::Step for SimulatorStep {
    #[inline(always)]
    fn step() {
        // SAFETY: the stub does nothing on the metal.
        unsafe { asm!("call __dia_step", clobber_abi("C")) }
    }
}
