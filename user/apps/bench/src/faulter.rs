//! The process that faults, again and again. Its argument is the pause before each fault in us.

#![no_std]
#![no_main]

use diapason_bench::{Pace, probes, stamp};
use diapason_rt::{Arguments, entry, sys};

entry!(main);

fn main(Arguments([pause, ..]): Arguments) {
    let now = stamp();
    let Ok(p) = probes() else { return };
    if p.fault_to_supervisor_round_trip.begun() {
        p.fault_to_supervisor_round_trip.finish(now);
    }
    Pace::of(pause).pause();
    p.fault_to_supervisor.note();
    p.fault_to_supervisor_round_trip.note();
    p.fault_to_supervisor.still_before();
    p.fault_to_supervisor_round_trip.still_before();
    // SAFETY: ends the process, which is what is measured.
    unsafe { core::arch::asm!("ud2") }
    sys::fail(0)
}
