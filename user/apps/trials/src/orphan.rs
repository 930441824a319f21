//! A controller whose driver ends while it runs: what it writes into memory from then on.
//!
//! Argument 0 makes this the driver: it starts the controller and gives up after 5 s of the
//! system's time. Argument 1 makes it the witness, which has the same memory and counts what the
//! controller says in it, in the driver's lifetime and after it.

#![no_std]
#![no_main]

use diapason_rt::memory::DmaSegment;
use diapason_rt::{Arguments, Errno, Nanos, entry, log, time};
use diapason_trials::controller::{ENTRIES, ENTRY, EVENTS, RINGS, SAY_WRAPS, XhciParts};

entry!(main);

/// When the driver gives up, and when the witness looks.
const END: Nanos = Nanos::from_millis(5_000);
const LOOKS: [Nanos; 2] = [Nanos::from_millis(5_100), Nanos::from_millis(11_500)];

fn main(Arguments([role, ..]): Arguments) {
    let done = if role == 0 { drive() } else { witness() };
    if let Err(errno) = done {
        log!("failed: {errno:?}");
    }
}

fn drive() -> Result<(), Errno> {
    let _running = XhciParts::start(SAY_WRAPS)?;
    time::sleep_until(END);
    panic!("the driver gives up");
}

fn witness() -> Result<(), Errno> {
    let rings = DmaSegment::attach(RINGS)?;
    for look in LOOKS {
        time::sleep_until(look);
        let written = |event: &usize| rings.read32(EVENTS + event * ENTRY + 12) != 0;
        log!("{} events", (0..ENTRIES).filter(written).count());
    }
    Ok(())
}
