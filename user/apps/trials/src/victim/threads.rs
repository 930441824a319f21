//! Stacks that overflow, threads that start nowhere, and threads that do wrong instead of `main`.

use crate::Deed;
use core::hint::black_box;
use diapason_abi::{CallNumber, layout};
use diapason_rt::start::window;
use diapason_rt::sys::raw4;
use diapason_rt::{Nanos, body, thread, time};

/// In the order they are done.
pub const DEEDS: [Deed; 8] = [
    ("stack overflow", || {
        black_box(deeper(1));
    }),
    ("stack overflow of thread 1", || in_thread::<Deeper>()),
    ("jump of thread 1", || in_thread::<Jumper>()),
    ("thread 1 begins at null", || begin(0)),
    ("thread 1 begins in the kernel", || begin(0x10_0000)),
    ("thread 1 begins nowhere", || begin(0x8000_0000_0000)),
    ("thread 1 begins in the neighbour", || begin(layout::base(0))),
    ("thread 1 begins in data", || begin(window() + layout::HEAP)),
];

body!(Deeper = deeper);
body!(Jumper = jumper);

/// Calls itself without an end, and without the compiler seeing it.
fn deeper(n: u64) -> u64 {
    let frame = black_box([n; 64]);
    if black_box(n) == 0 { 0 } else { deeper(n + 1) + frame[(n % 64) as usize] }
}

fn jumper(_: u64) -> u64 {
    // SAFETY: not safe, and meant not to be.
    let nowhere: fn() -> u64 = unsafe { core::mem::transmute(0x8000_0000_0000_u64) };
    black_box(nowhere)()
}

fn in_thread<B: thread::Body>() {
    let _thread = thread::spawn::<B>("wrong", 5, 1);
    time::sleep(Nanos::from_millis(5));
}

fn begin(entry: u64) {
    // SAFETY: not safe, and meant not to be.
    unsafe { raw4::<{ CallNumber::ThreadCreate as u8 }>(entry, 0, 5, 0) };
    time::sleep(Nanos::from_millis(5));
}
