//! The runtime for programs in C: the functions that `include/*.h` declare.
//!
//! Numbers and handles go to the kernel as they are: a handle that was never given out ends the
//! process there. A pointer is used only if it is not null; a null pointer where none is allowed is
//! answered with `INVALID`. A test compares the headers with these functions and numbers.

#![no_std]

mod can;
mod channel;
mod claim;
mod inlet;
mod memory;
mod objects;
mod program;
mod sensor;
mod socket;
mod state;
mod threads;
mod tuned;
mod usb;
mod words;

use core::sync::atomic::Ordering::Relaxed;
use diapason_rt::{Arguments, entry, heap, thread};
use program::ARGUMENTS;

entry!(begin);
// `diapason-canlib` wants an allocator. No page of it is taken.
heap!(4 * 1024);

/// Starts the program's `main` and exits its thread with what it returns. The process ends with its
/// last thread.
fn begin(Arguments(arguments): Arguments) {
    // SAFETY: a C program defines it; the linker refuses one that does not.
    unsafe extern "C" {
        safe fn main() -> i32;
    }
    for (place, argument) in ARGUMENTS.iter().zip(arguments) {
        place.store(argument, Relaxed);
    }
    thread::exit(main() as u64)
}
