//! The operator: changes the speed limit now and then; an emergency overtakes what waits.

#![no_std]
#![no_main]

use diapason_rt::mailbox::Mailbox;
use diapason_rt::thread::periodic;
use diapason_rt::{Arguments, Errno, Nanos, entry, log, time};

entry!(main);

const PERIOD: Nanos = Nanos::from_millis(500);
const ROUTINE: u32 = 1;
const EMERGENCY: u32 = 10;

fn main(_: Arguments) {
    if let Err(errno) = run() {
        log!("the operator failed: {errno:?}");
    }
}

fn run() -> Result<(), Errno> {
    let controller = Mailbox::open("orders")?;
    let mut jobs = periodic(time::now() + PERIOD, PERIOD, PERIOD);
    for turn in 0u64.. {
        let (limit, priority) =
            if turn % 4 == 3 { (2_000, EMERGENCY) } else { (6_000 - 500 * (turn % 4), ROUTINE) };
        match controller.send(&u64::to_le_bytes(limit), priority, time::now() + PERIOD) {
            Ok(()) | Err(Errno::TimedOut) => {}
            Err(other) => return Err(other),
        }
        jobs.wait();
    }
    Ok(())
}
