//! T2, the most urgent: waits for the event, then locks.

#![no_std]
#![no_main]

use diapason_rt::sync::{Mutex, Semaphore};
use diapason_rt::{Arguments, Errno, Hint, Nanos, entry, log, time};
use diapason_semaphores::{Case, Marks, PACE, RUNS, stamp};

entry!(main);

fn main(_: Arguments) {
    if let Err(errno) = serve() {
        log!("high failed: {errno:?}");
    }
}

fn serve() -> Result<(), Errno> {
    let marks = Marks::attach()?;
    let (event, mutex) = (Semaphore::open("event")?, Mutex::open("s")?);
    loop {
        let hint = if marks.case() == Case::Hinted { mutex.hint() } else { Hint::NONE };
        event.take_then(Nanos::FOREVER, hint)?;
        let called = stamp();
        if marks.case() == Case::Sleep {
            sleep(marks);
            continue;
        }
        let guard = mutex.lock()?;
        let held = stamp();
        drop(guard);
        marks.finish(called, held);
    }
}

/// Sleep until there are enough samples of waking and of going.
fn sleep(marks: &Marks) {
    while marks.wake.count() < RUNS || marks.block.count() < RUNS {
        let due = time::now() + PACE;
        marks.left.store(stamp(), core::sync::atomic::Ordering::Relaxed);
        time::sleep_until(due);
        let late = time::now() - due;
        marks.wake.push(late.0);
    }
}
