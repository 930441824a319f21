//! Reads every CAN message of other nodes that the description has for this process, and works for
//! each.
//!
//! Argument: the number of the controller.

#![no_std]
#![no_main]
#![forbid(unsafe_code)]

use diapason_canlib::Incoming;
use diapason_rt::{Arguments, Errno, Nanos, entry, heap, log, time};

entry!(main);
// Parts of `diapason-can` that nothing here calls would allocate: no page of it is ever taken.
heap!(4 * 1024);

/// The work for one message, as descriptions name it.
const USE: &str = "message.use";

fn main(Arguments([controller, ..]): Arguments) {
    if let Err(errno) = read(controller as u8) {
        log!("no messages: {errno:?}");
    }
}

fn read(controller: u8) -> Result<(), Errno> {
    let mut incoming = Incoming::open_controller(controller)?;
    let mut sum = 0_u64;
    loop {
        let message = incoming.receive(Nanos::FOREVER)?;
        time::work(USE, || {
            sum = message.bytes().iter().fold(sum, |sum, byte| sum.wrapping_add(u64::from(*byte)));
        });
    }
}
