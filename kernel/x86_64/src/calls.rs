//! System calls: from the number to the handler.
//!
//! Each frequent call has handlers of its own. The first tries what changes nothing about who runs,
//! with the words still in their registers; the second what makes another thread run without a
//! decision. The rest goes, like all other calls, to one handler for everything. Handlers are
//! ordinary functions with the same arguments, so reaching one is a jump. A quick handler clears r9
//! and r10 itself if it uses them, because most use neither (`cargo xtask tidy` looks); `entry.s`
//! clears the other registers.

use crate::machine::OBSERVING;
use crate::percpu::shell;
use crate::shell::{Exit, Shell};
use crate::watch::VECTORS_FROM;
use diapason_abi::CallNumber;
use diapason_abi::call::NO_HINT;
use diapason_core::{Arguments, Longer, SERVED};

macro_rules! handlers {
    ($(
        $(#[$doc:meta])*
        $handler:ident: $call:ident of $words:literal, $way:ident $(clearing $r:tt)*,
            else $next:ident;
    )*) => {
        $(
            $(#[$doc])*
            #[inline(never)]
            extern "C" fn $handler(a: u64, b: u64, c: u64, d: u64, e: u64, _: u64) -> Exit {
                let words = only::<$words>([a, b, c, d, e]);
                // SAFETY: in an entry; the reference ends with the statement.
                let done = unsafe { shell() }.$way(CallNumber::$call, words);
                match done {
                    Ok(exit) => {
                        $(
                            // SAFETY: clears a register that a function may clobber.
                            unsafe {
                                core::arch::asm!(concat!("xor ", $r, "d, ", $r, "d"), out($r) _,
                                    options(nomem, nostack));
                            }
                        )*
                        exit
                    }
                    Err(Longer::Way) => {
                        let [a, b, c, d, e] = words;
                        $next(a, b, c, d, e, CallNumber::$call as u64)
                    }
                    // SAFETY: as above.
                    Err(Longer::BadAddress(address)) => unsafe { shell() }.bad_address(address),
                    // SAFETY: as above.
                    Err(Longer::Over) => unsafe { shell() }.over(),
                    Err(Longer::Stays(value)) => Shell::stays(value),
                }
            }
        )*
    };
}

/// The first words of a call; the others it does not have, and nobody needs to keep.
#[inline(always)]
fn only<const N: usize>(words: Arguments) -> Arguments {
    let [a, b, c, d, e] = words;
    let word = |at, word| if at < N { word } else { 0 };
    [word(0, a), word(1, b), word(2, c), word(3, d), word(4, e)]
}

handlers! {
    quick_null: Null of 0, quick, else any_call;
    short_yield: Yield of 0, shortcut, else quick_yield;
    quick_yield: Yield of 0, quick clearing "r9", else any_call;
    /// `SemLock` of what is free.
    quick_lock: SemLock of 3, quick, else short_lock;
    /// `SemLock` of what is not.
    short_lock: SemLock of 3, shortcut, else any_call;
    /// `SemUnlock` that nobody waited for.
    quick_unlock: SemUnlock of 1, quick, else short_unlock;
    /// `SemUnlock` that somebody waited for.
    short_unlock: SemUnlock of 1, shortcut, else any_call;
    /// `SemTryLock` of what is free.
    quick_try: SemTryLock of 1, quick clearing "r9", else any_call;
    /// `EventWait` for what has occurred.
    quick_wait: EventWait of 3, quick clearing "r9", else any_call;
    quick_signal: CvSignal of 2, quick, else short_signal;
    /// `CvSignal` to somebody who waits.
    short_signal: CvSignal of 2, shortcut, else any_call;
    /// `MboxSend` that nobody waits for.
    quick_send: MboxSend of 5, quick clearing "r9" clearing "r10", else short_send;
    /// `MboxSend` to somebody who waits.
    short_send: MboxSend of 5, shortcut, else any_call;
    /// `MboxReceive` of what is there.
    quick_receive: MboxReceive of 4, quick clearing "r9" clearing "r10", else short_receive;
    /// `MboxReceive` of what will come.
    short_receive: MboxReceive of 4, shortcut, else any_call;
    /// `Log` of a line whose memory is there.
    log: Log of 2, log, else any_call;
    short_call: MboxCall of 5, shortcut, else any_call;
}

/// `ProcCreate` that is followed by `MboxReceive`.
extern "C" fn start(a: u64, b: u64, c: u64, d: u64, _: u64, _: u64) -> Exit {
    // SAFETY: in an entry; the reference ends with the statement.
    let started = b != 0 && unsafe { shell() }.start(a);
    if started {
        return short_receive(b, c, d, NO_HINT, 0, CallNumber::MboxReceive as u64);
    }
    any_call(a, b, c, d, 0, CallNumber::ProcCreate as u64)
}

/// Calls there are: numbers below this have a handler.
const CALLS: usize = CallNumber::ALL.len();

unsafe extern "C" {
    /// `entry.s`: to [`any_call`], with the number where a function expects it.
    safe fn long_call(a: u64, b: u64, c: u64, d: u64, e: u64, number: u64) -> Exit;
}

/// The first handlers of frequent calls. Those with a call of their own know its number; the number
/// they are given is none.
const FREQUENT: [(CallNumber, Handler); 12] = [
    (CallNumber::Null, quick_null),
    (CallNumber::Yield, short_yield),
    (CallNumber::SemLock, quick_lock),
    (CallNumber::SemUnlock, quick_unlock),
    (CallNumber::CvSignal, quick_signal),
    (CallNumber::MboxSend, quick_send),
    (CallNumber::MboxReceive, quick_receive),
    (CallNumber::MboxCall, short_call),
    (CallNumber::SemTryLock, quick_try),
    (CallNumber::EventWait, quick_wait),
    (CallNumber::ProcCreate, start),
    (CallNumber::Log, log),
];

/// The first handler of each call, for `entry.s`. A call that this kernel does not serve takes the
/// long way, where it is refused.
#[unsafe(no_mangle)]
static CALL_HANDLERS: [Handler; CALLS] = {
    let mut handlers = [long_call as Handler; CALLS];
    let mut at = 0;
    while at < FREQUENT.len() {
        let (call, handler) = FREQUENT[at];
        if SERVED.has_call(call) {
            handlers[call as usize] = handler;
        }
        at += 1;
    }
    handlers
};

type Handler = extern "C" fn(u64, u64, u64, u64, u64, u64) -> Exit;

/// Any call, the long way.
#[unsafe(no_mangle)]
#[inline(never)]
extern "C" fn any_call(a: u64, b: u64, c: u64, d: u64, e: u64, number: u64) -> Exit {
    // SAFETY: in an entry; the reference ends with the statement.
    unsafe { shell() }.any_call(number, [a, b, c, d, e])
}

/// From `entry.s`, in a run that is observed: timed and recorded.
#[unsafe(no_mangle)]
extern "C" fn on_observed_syscall(a: u64, b: u64, c: u64, d: u64, e: u64, number: u64) -> Exit {
    // SAFETY: in an entry; the reference ends with the statement.
    let start = unsafe { shell() }.watch_start();
    let words = [a, b, c, d, e];
    // SAFETY: as above.
    let done = if OBSERVING { unsafe { shell() }.observed_call(number, words) } else { None };
    let exit = done.unwrap_or_else(|| any_call(a, b, c, d, e, number));
    // No call has such a number, but a program can try it.
    let cause = number.min(VECTORS_FROM - 1);
    // SAFETY: as above.
    unsafe { shell() }.watch_end(start, cause, exit.next == 0);
    exit
}
