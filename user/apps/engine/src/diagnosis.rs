//! The diagnostic process: it works for a while, then looks where it may not and ends by a fault.
//!
//! On purpose: nobody else notices, and the supervisor restarts it as often as the description
//! says.

#![no_std]
#![no_main]

use diapason_engine::Engine;
use diapason_rt::{Arguments, Nanos, entry, log, thread, time};

entry!(main);

const PERIOD: Nanos = Nanos::from_millis(20);
const WORK: Nanos = Nanos::from_millis(2);

fn main(Arguments([after_ms, ..]): Arguments) {
    let Ok(engine) = Engine::attach() else { return };
    let start = time::now();
    let end = start + Nanos::from_millis(after_ms);
    let mut jobs = thread::periodic(start, PERIOD, PERIOD);
    while time::now() < end {
        time::burn(WORK);
        jobs.wait();
    }
    let crank = engine.crank().read();
    log!("engine at {} rpm; looking into the kernel", crank.speed);
    // SAFETY: not safe, and meant not to be: this is the kernel's memory.
    let stolen = unsafe { core::ptr::read_volatile(0x20_0000 as *const u64) };
    log!("saw {stolen:#x}");
}
