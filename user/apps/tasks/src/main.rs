//! A periodic task made to measure. Arguments, in microseconds: phase, period, work, and how much
//! of the work is done under the mutex `shared`.

#![no_std]
#![no_main]

use diapason_rt::sync::Mutex;
use diapason_rt::thread::periodic;
use diapason_rt::time::burn;
use diapason_rt::{Arguments, Errno, Nanos, entry, log};

entry!(main);

/// When everything has started, on every machine.
const START: Nanos = Nanos::from_millis(100);

fn main(Arguments(words): Arguments) {
    if let Err(errno) = run(words.map(Nanos::from_micros)) {
        log!("the task failed: {errno:?}");
    }
}

fn run([phase, period, work, section]: [Nanos; 4]) -> Result<(), Errno> {
    let shared = if section > Nanos::ZERO { Some(Mutex::open("shared")?) } else { None };
    let mut jobs = periodic(START + phase, period, period);
    loop {
        burn(work - section);
        if let Some(shared) = &shared {
            let guard = shared.lock()?;
            burn(section);
            drop(guard);
        }
        jobs.wait();
    }
}
