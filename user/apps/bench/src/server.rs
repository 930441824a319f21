//! The server that the driver asks: it has no VCPU, and runs in the place of the driver.

#![no_std]
#![no_main]

use diapason_abi::MESSAGE_BYTES;
use diapason_rt::server::ServedMailbox;
use diapason_rt::{Arguments, Errno, Nanos, entry, log};

entry!(main);

fn main(_: Arguments) {
    if let Err(errno) = serve() {
        log!("the benchmark's server failed: {errno:?}");
    }
}

/// Answers every request with itself.
fn serve() -> Result<(), Errno> {
    let server = ServedMailbox::open("served")?;
    let mut buffer = [0; MESSAGE_BYTES];
    let (mut length, mut priority) = server.request_into(&mut buffer, Nanos::FOREVER)?;
    loop {
        (length, priority) = server.answer_into(&mut buffer, length, priority, Nanos::FOREVER)?;
    }
}
