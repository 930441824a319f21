//! A server that works for a while on each request, and answers with its complement. Its argument
//! is the work in microseconds.

#![no_std]
#![no_main]

use diapason_abi::MESSAGE_BYTES;
use diapason_rt::server::ServedMailbox;
use diapason_rt::time::burn;
use diapason_rt::{Arguments, Errno, Nanos, entry, log};

entry!(main);

fn main(Arguments([work, ..]): Arguments) {
    if let Err(errno) = serve(Nanos::from_micros(work)) {
        log!("the server failed: {errno:?}");
    }
}

fn serve(work: Nanos) -> Result<(), Errno> {
    let server = ServedMailbox::open("samples")?;
    let mut buffer = [0; MESSAGE_BYTES];
    let (mut length, mut priority) = server.request_into(&mut buffer, Nanos::FOREVER)?;
    loop {
        burn(work);
        buffer.iter_mut().take(length).for_each(|byte| *byte = !*byte);
        (length, priority) = server.answer_into(&mut buffer, length, priority, Nanos::FOREVER)?;
    }
}
