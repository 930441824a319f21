//! Says hello once a second, from a job that is released every 10 ms.

#![no_std]
#![no_main]
#![forbid(unsafe_code)]

use diapason_rt::{Arguments, Nanos, entry, log, thread, time};
use logic::Beat;

entry!(main);

/// A job is released so often, and is done before the next one.
const PERIOD: Nanos = Nanos::from_millis(10);

fn main(_: Arguments) {
    let mut beat = Beat::default();
    let mut jobs = thread::periodic(time::now(), PERIOD, PERIOD);
    loop {
        // The simulator takes the time of this from `[[work]]`; a real machine takes what it takes.
        let second = time::work("hello.job", || beat.next());
        if let Some(second) = second {
            log!("hello, second {second}");
        }
        jobs.wait();
    }
}
