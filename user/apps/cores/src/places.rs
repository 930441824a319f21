//! One end of memory that devices use and two cores have in common. Each end writes the address at
//! which devices find it, and says that address and the other end's. Argument: which end it is.

#![no_std]
#![no_main]
#![forbid(unsafe_code)]

use diapason_rt::memory::DmaSegment;
use diapason_rt::{Arguments, Errno, Nanos, entry, log, time};

entry!(main);

/// The ends look again after so long.
const LOOK: Nanos = Nanos::from_millis(1);

fn main(Arguments([end, ..]): Arguments) {
    if let Err(errno) = meet(end as usize & 1) {
        log!("no places: {errno:?}");
    }
}

fn meet(end: usize) -> Result<(), Errno> {
    let places = DmaSegment::attach("places")?;
    let own = places.bus_address(0) as u32;
    places.write32(4 * end, own);
    let other = loop {
        match places.read32(4 * (1 - end)) {
            0 => time::sleep(LOOK),
            other => break other,
        }
    };
    log!("PLACES {own} {other}");
    Ok(())
}
