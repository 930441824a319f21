//! Reads the newest speed every 20 ms, and says once a second what it would do about it.

#![no_std]
#![no_main]
#![forbid(unsafe_code)]

#[path = "../generated/states.rs"]
mod states;

use diapason_rt::{Arguments, Nanos, entry, log, sys, thread, time};
use logic::throttle;
use states::speed;

entry!(main);

const PERIOD: Nanos = Nanos::from_millis(20);
/// Jobs in a second.
const JOBS: u64 = 50;

fn main(_: Arguments) {
    let mut speed = speed::reader().unwrap_or_else(|_| sys::fail(1));
    let mut jobs = thread::periodic(time::now(), PERIOD, PERIOD);
    for job in 1_u64.. {
        // An overtaken read has no value: the job before has done what there is to do.
        if let Ok(value) = speed.read()
            && job.is_multiple_of(JOBS)
        {
            let percent = throttle(value.per_minute);
            log!("{} turns a minute, throttle {percent} %", value.per_minute);
        }
        jobs.wait();
    }
}
