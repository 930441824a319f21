//! The logger: woken by the doorbell of another core, it reads what the controller there published.

#![no_std]
#![no_main]

use diapason_cores::{Board, READY, RINGS_EVERY};
use diapason_rt::event::Event;
use diapason_rt::{Arguments, Errno, Nanos, entry, log, time};

entry!(main);

/// Rings between two lines.
const LINES_EVERY: u64 = 20;

fn main(_: Arguments) {
    if let Err(errno) = run() {
        log!("the logger failed: {errno:?}");
    }
}

fn run() -> Result<(), Errno> {
    let reader = Board::attach()?.reader();
    let ready = Event::interrupt(READY)?;
    let (mut rings, mut broken, mut longest, mut last) = (0, 0, Nanos::ZERO, 0);
    loop {
        rings += ready.wait(Nanos::FOREVER)?;
        let sample = reader.read();
        // The job that rang, or one that came after it.
        let expected = sample.job >= last && sample.job >= rings * RINGS_EVERY;
        broken += u64::from(!sample.is_whole() || !expected);
        last = sample.job;
        longest = longest.max(time::now() - Nanos(sample.time));
        if rings.is_multiple_of(LINES_EVERY) {
            log!("CORES {rings} {} {broken} {}", sample.job, longest.0);
        }
    }
}
