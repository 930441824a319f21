//! A periodic task that asks servers in each job. Arguments: phase, period and work besides the
//! services, in microseconds, and the [asks](diapason_tasks::Asks) of a job.

#![no_std]
#![no_main]

use diapason_abi::MESSAGE_BYTES;
use diapason_rt::thread::periodic;
use diapason_rt::time::burn;
use diapason_rt::{Arguments, Nanos, entry};
use diapason_tasks::Asks;

entry!(main);

/// When everything has started, on every machine.
const START: Nanos = Nanos::from_millis(100);

fn main(Arguments([phase, period, work, asks]): Arguments) {
    let [phase, period, work] = [phase, period, work].map(Nanos::from_micros);
    let Ok(asks) = Asks::open(asks) else { return };
    // A part of the work is done before each ask, and the last part behind them.
    let part = Nanos(work.0 / (asks.count() + 1));
    let mut buffer = [0; MESSAGE_BYTES];
    let mut jobs = periodic(START + phase, period, period);
    loop {
        asks.each(&mut buffer, || burn(part));
        burn(part);
        jobs.wait();
    }
}
