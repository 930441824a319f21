//! The receiving task: in each period it processes what the bottom half has seen since.
//!
//! Arguments: its period in us, work for each interrupt in us.

#![no_std]
#![no_main]

use core::sync::atomic::Ordering::Relaxed;
use diapason_rt::thread::periodic;
use diapason_rt::{Arguments, Nanos, entry, log, time};
use diapason_spin::Progress;

entry!(main);

fn main(Arguments([period_us, work_us, ..]): Arguments) {
    let progress = match Progress::attach() {
        Ok(progress) => progress,
        Err(errno) => return log!("nothing to receive: {errno:?}"),
    };
    let period = Nanos::from_micros(period_us);
    let mut jobs = periodic(time::now(), period, period);
    let mut processed = 0;
    loop {
        let seen = progress.interrupts.load(Relaxed);
        time::burn(Nanos::from_micros(work_us * (seen - processed)));
        processed = seen;
        progress.processed.store(processed, Relaxed);
        jobs.wait();
    }
}
