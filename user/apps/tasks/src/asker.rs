//! A periodic task that asks a server in the middle of each job. Arguments, in microseconds: phase,
//! period, work besides the service.

#![no_std]
#![no_main]

use diapason_abi::MESSAGE_BYTES;
use diapason_rt::server::AskedMailbox;
use diapason_rt::thread::periodic;
use diapason_rt::time::{self, burn};
use diapason_rt::{Arguments, Errno, Nanos, entry, log};

entry!(main);

/// When everything has started, on every machine.
const START: Nanos = Nanos::from_millis(100);
/// How long the task waits before it tries again whether somebody serves.
const AGAIN: Nanos = Nanos::from_millis(1);

fn main(Arguments([phase, period, work, _]): Arguments) {
    if let Err(errno) = run([phase, period, work].map(Nanos::from_micros)) {
        log!("the task failed: {errno:?}");
    }
}

fn run([phase, period, work]: [Nanos; 3]) -> Result<(), Errno> {
    let samples = AskedMailbox::open("samples")?;
    let mut buffer = [0; MESSAGE_BYTES];
    let first = Nanos(work.0 / 2);
    while let Err(Errno::Gone) = samples.ask_into(&mut buffer, 8, 0, Nanos::FOREVER) {
        time::sleep(AGAIN);
    }
    let mut jobs = periodic(START + phase, period, period);
    for job in 0u64.. {
        burn(first);
        buffer[..8].copy_from_slice(&job.to_le_bytes());
        samples.ask_into(&mut buffer, 8, 0, Nanos::FOREVER)?;
        if buffer[..8] != (!job).to_le_bytes() {
            log!("a wrong answer in job {job}");
        }
        burn(work - first);
        jobs.wait();
    }
    Ok(())
}
