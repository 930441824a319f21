//! Keeps the processor busy until `disk-check` gives the semaphore `disk.checked`.
//!
//! A disk of QEMU's works in the time of the host. The clock of an idle guest jumps ahead
//! meanwhile, by as much as the host is busy. The clock of a guest that works does not.

#![no_std]
#![no_main]
#![forbid(unsafe_code)]

use diapason_rt::sync::Semaphore;
use diapason_rt::{Arguments, Errno, Nanos, entry, log, time};

entry!(main);

/// Time between two looks at the semaphore.
const LOOK: Nanos = Nanos::from_millis(1);

fn main(_: Arguments) {
    if let Err(errno) = until_checked() {
        log!("awake: {errno:?}");
    }
}

fn until_checked() -> Result<(), Errno> {
    let checked = Semaphore::open("disk.checked")?;
    while checked.take(Nanos::ZERO) == Err(Errno::WouldBlock) {
        time::burn(LOOK);
    }
    Ok(())
}
