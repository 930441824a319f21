//! Reads how far everybody is, at intervals that are whole periods of the tasks, and says so.
//!
//! Once `UNITS`, then the unit of each task in ns; and at each look `PROGRESS ns interrupts
//! processed`, then the count of each task. Argument: interval in us.

#![no_std]
#![no_main]

use core::sync::atomic::Ordering::Relaxed;
use diapason_rt::{Arguments, Nanos, entry, log, time};
use diapason_spin::Progress;

entry!(main);

/// By then the others have started and measured their units.
const SETTLED: Nanos = Nanos::from_millis(70);
/// Places of those that count.
const PLACES: [usize; 5] = [0, 1, 2, 3, 4];

fn main(Arguments([interval_us, ..]): Arguments) {
    let progress = match Progress::attach() {
        Ok(progress) => progress,
        Err(errno) => return log!("nothing to watch: {errno:?}"),
    };
    let mut next = time::now() + SETTLED;
    time::sleep_until(next);
    let [a, b, c, d, e] = PLACES.map(|task| progress.of(task).1);
    log!("UNITS {a} {b} {c} {d} {e}");
    loop {
        time::sleep_until(next);
        let now = time::now();
        let counts = PLACES.map(|task| progress.of(task).0);
        let (seen, done) = (progress.interrupts.load(Relaxed), progress.processed.load(Relaxed));
        let [a, b, c, d, e] = counts;
        log!("PROGRESS {} {seen} {done} {a} {b} {c} {d} {e}", now.0);
        next += Nanos::from_micros(interval_us);
    }
}
