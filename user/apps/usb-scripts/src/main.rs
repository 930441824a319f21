//! Random scripts of USB traffic. Each one starts the host controller anew, waits for its devices,
//! and then does what it drew: requests, commands to disks, transfers of odd lengths at odd places,
//! wrong ones, and such as nobody answers.
//!
//! It has the controller to itself, with the driver of the USB server. A line says how each
//! transfer ended, how many bytes it had, and what is in the memory around it then. No line depends
//! on times, so a script says the same at every controller that keeps to its specification.
//! Arguments: the seed, the number of the first script, how many there are, and how many devices
//! are plugged in.

#![no_std]
#![no_main]
#![forbid(unsafe_code)]

extern crate alloc;

mod draw;
mod host;
mod memory;
mod script;

use diapason_random::Random;
use diapason_rt::{Arguments, Errno, entry, heap, log};
use host::Host;
use script::Script;

entry!(main);
heap!(256 * 1024);

fn main(Arguments([seed, first, count, devices]): Arguments) {
    match all(seed, first..first + count, devices as usize) {
        Ok(()) => log!("SCRIPTS {count}"),
        Err(errno) => log!("no scripts: {errno:?}"),
    }
}

fn all(seed: u64, numbers: core::ops::Range<u64>, devices: usize) -> Result<(), Errno> {
    let mut host = Host::open()?;
    for number in numbers {
        let seats = host.start(number, devices)?;
        let random = Random::stream(seed, number);
        Script { number, step: 0, random, host: &mut host, seats }.run()?;
    }
    Ok(())
}
