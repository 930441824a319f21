//! The diagnostic process: it looks where it may not and ends by a fault, on purpose.

#![no_std]
#![no_main]

use diapason_rt::{Arguments, Nanos, entry, log, thread, time};

entry!(main);

fn main(Arguments([after_ms, ..]): Arguments) {
    let first = time::now();
    let period = Nanos::from_millis(20);
    let mut jobs = thread::periodic(first, period, period);
    let end = first + Nanos::from_millis(after_ms);
    while time::now() < end {
        time::burn(Nanos::from_micros(100));
        jobs.wait();
    }
    log!("diagnosis: looking at the sensor's memory");
    // SAFETY: not safe, and meant not to be: this address belongs to another process.
    let stolen = unsafe { core::ptr::read_volatile(0x1_0000_0000 as *const u64) };
    log!("diagnosis: saw {stolen:#x}");
}
