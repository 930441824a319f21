//! The last thread of a chain: takes the newest message once in a period.
//!
//! Arguments: the period in us; after how many seconds it ends (0: never).

#![no_std]
#![no_main]
#![forbid(unsafe_code)]

use diapason_concentrator::chain::{ChainEnd, NEWEST, SLOTS, Value, end_after};
use diapason_concentrator::passed::Passed;
use diapason_rt::thread::periodic;
use diapason_rt::{Arguments, Errno, Nanos, entry, heap, log, state, time};

entry!(main);
// Parts of `diapason-can` that nothing here calls would allocate: no page of it is ever taken.
heap!(4 * 1024);

/// The threads of the chain, this one included.
const THREADS: usize = 2;
/// The cost of showing a value.
const WORK: Nanos = Nanos::from_micros(20);

fn main(Arguments([period, seconds, ..]): Arguments) {
    if let Err(errno) = run(Nanos::from_micros(period), seconds) {
        log!("the display failed: {errno:?}");
    }
}

fn run(period: Nanos, seconds: u64) -> Result<(), Errno> {
    let newest = state::reader::<Value, SLOTS>(NEWEST)?;
    let (mut end, mut shown) = (ChainEnd::default(), 0);
    let until = end_after(seconds);
    let mut jobs = periodic(time::now(), period, period);
    while time::now() < until {
        let mut message = Passed::of(newest.read());
        if message.number > shown {
            shown = message.number;
            time::work("gateway.display", || time::burn(WORK));
            message.command = end.next();
            message.at[1] = time::now();
            end.passed(&message, THREADS);
            end.through(&message, message.at[1]);
        }
        end.look(time::now());
        jobs.wait();
    }
    Ok(())
}
