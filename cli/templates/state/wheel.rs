//! Samples a wheel every 5 ms, and writes its speed for everybody to read.

#![no_std]
#![no_main]
#![forbid(unsafe_code)]

#[path = "../generated/states.rs"]
mod states;

use diapason_rt::{Arguments, Nanos, entry, sys, thread, time};
use logic::Wheel;
use states::speed;

entry!(main);

const PERIOD: Nanos = Nanos::from_millis(5);

fn main(_: Arguments) {
    let mut speed = speed::writer().unwrap_or_else(|_| sys::fail(1));
    let mut wheel = Wheel::default();
    let mut jobs = thread::periodic(time::now(), PERIOD, PERIOD);
    loop {
        let (turns, per_minute) = time::work("wheel.sample", || wheel.sample());
        speed.write(speed::Value { time_ns: time::now().0, turns, per_minute });
        jobs.wait();
    }
}
