//! System calls: from the number to the handler.
//!
//! Each frequent call has a handler of its own, which tries the core's short path with the words
//! still in their registers, and only then takes the long one. All others share one handler. The
//! handlers are ordinary functions with the same arguments, so reaching one is a jump.

use crate::percpu::shell;
use crate::shell::Exit;
use crate::watch::VECTORS_FROM;
use diapason_abi::CallNumber;

macro_rules! handlers {
    ($($call:ident: $quick:ident, $slow:ident;)*) => {
        $(
            #[inline(never)]
            extern "C" fn $quick(a: u64, b: u64, c: u64, d: u64, e: u64, number: u64) -> Exit {
                // SAFETY: once per entry; the reference is gone before the long path takes its own.
                let shell = unsafe { shell() };
                match shell.quick(CallNumber::$call, [a, b, c, d, e]) {
                    Some(exit) => exit,
                    None => $slow(a, b, c, d, e, number),
                }
            }

            #[inline(never)]
            extern "C" fn $slow(a: u64, b: u64, c: u64, d: u64, e: u64, _: u64) -> Exit {
                // SAFETY: once per entry: the short path's reference is gone.
                let shell = unsafe { shell() };
                shell.call(CallNumber::$call, [a, b, c, d, e])
            }
        )*

        /// The handler of each call.
        static HANDLERS: [Handler; CallNumber::ALL.len()] = {
            let mut handlers = [any_call as Handler; CallNumber::ALL.len()];
            $(handlers[CallNumber::$call as usize] = $quick as Handler;)*
            handlers
        };
    };
}

type Handler = extern "C" fn(u64, u64, u64, u64, u64, u64) -> Exit;

/// From `entry.s`.
#[unsafe(no_mangle)]
extern "C" fn on_syscall(a: u64, b: u64, c: u64, d: u64, e: u64, number: u64) -> Exit {
    match HANDLERS.get(number as usize) {
        Some(handler) => handler(a, b, c, d, e, number),
        None => any_call(a, b, c, d, e, number),
    }
}

handlers! {
    Null: quick_null, slow_null;
    Yield: quick_yield, slow_yield;
    SemLock: quick_lock, slow_lock;
    SemUnlock: quick_unlock, slow_unlock;
    CvSignal: quick_signal, slow_signal;
    MboxSend: quick_send, slow_send;
    MboxReceive: quick_receive, slow_receive;
    MboxCall: quick_call, slow_call;
}

/// Every other call.
#[inline(never)]
extern "C" fn any_call(a: u64, b: u64, c: u64, d: u64, e: u64, number: u64) -> Exit {
    // SAFETY: once per entry.
    unsafe { shell() }.any_call(number, [a, b, c, d, e])
}

/// From `entry.s`, in a run that is observed: timed and recorded.
#[unsafe(no_mangle)]
extern "C" fn on_observed_syscall(a: u64, b: u64, c: u64, d: u64, e: u64, number: u64) -> Exit {
    // SAFETY: once per entry.
    let shell = unsafe { shell() };
    let start = shell.watch_start();
    let exit = shell.any_call(number, [a, b, c, d, e]);
    // No call has such a number, but a program can try it.
    shell.watch_end(start, number.min(VECTORS_FROM - 1), exit.next == 0);
    exit
}
