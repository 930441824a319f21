//! Tx, between the two: the event comes while it runs.

#![no_std]
#![no_main]

use diapason_rt::sync::Semaphore;
use diapason_rt::{Arguments, Errno, Nanos, entry, log};
use diapason_semaphores::Marks;

entry!(main);

fn main(_: Arguments) {
    if let Err(errno) = serve() {
        log!("middle failed: {errno:?}");
    }
}

fn serve() -> Result<(), Errno> {
    let marks = Marks::attach()?;
    let (event, turn) = (Semaphore::open("event")?, Semaphore::open("turn")?);
    loop {
        turn.take(Nanos::FOREVER)?;
        marks.begin();
        event.give()?;
    }
}
