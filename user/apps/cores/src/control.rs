//! The controller: in every millisecond it works, publishes what it did, and now and then rings.

#![no_std]
#![no_main]

use diapason_cores::{Board, PERIOD, READY, RINGS_EVERY, Sample};
use diapason_rt::event::Doorbell;
use diapason_rt::thread::periodic;
use diapason_rt::{Arguments, Errno, Nanos, entry, log, time};

entry!(main);

const WORK: Nanos = Nanos::from_micros(200);

fn main(_: Arguments) {
    if let Err(errno) = control() {
        log!("the controller failed: {errno:?}");
    }
}

fn control() -> Result<(), Errno> {
    let mut writer = Board::attach()?.writer();
    let ready = Doorbell::new(READY);
    let mut jobs = periodic(time::now() + PERIOD, PERIOD, PERIOD);
    for job in 1.. {
        jobs.wait();
        time::burn(WORK);
        writer.write(Sample::new(job, time::now()));
        if job.is_multiple_of(RINGS_EVERY) {
            ready.ring()?;
        }
    }
    Ok(())
}
