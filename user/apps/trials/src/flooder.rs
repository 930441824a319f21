//! Writes to the console without end, or faults: what it says must not hide what others did.
//!
//! Argument: 0 to write; otherwise the time of its fault, in microseconds.

#![no_std]
#![no_main]

use diapason_rt::{Arguments, Nanos, entry, log, time};

entry!(main);

fn main(Arguments([fault_us, ..]): Arguments) {
    if fault_us != 0 {
        time::sleep_until(Nanos::from_micros(fault_us));
        panic!("as described");
    }
    let mut line = 0_u64;
    loop {
        line += 1;
        log!("line {line} of a flood that nobody reads, and that fills whatever room there is");
    }
}
