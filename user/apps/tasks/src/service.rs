//! A server that works on each request, in part under the mutex `shared`, and asks other servers.
//! Arguments: its number, its work and the part of it under the mutex in microseconds, and its
//! [asks](diapason_tasks::Asks) for each request.

#![no_std]
#![no_main]

use diapason_abi::MESSAGE_BYTES;
use diapason_rt::server::ServedMailbox;
use diapason_rt::sync::Mutex;
use diapason_rt::time::burn;
use diapason_rt::{Arguments, Errno, Nanos, entry, log};
use diapason_tasks::{Asks, SERVICES};

entry!(main);

fn main(Arguments(arguments): Arguments) {
    if let Err(errno) = serve(arguments) {
        log!("the server failed: {errno:?}");
    }
}

fn serve([number, work, section, asks]: [u64; 4]) -> Result<(), Errno> {
    let (work, section) = (Nanos::from_micros(work), Nanos::from_micros(section));
    let shared = if section > Nanos::ZERO { Some(Mutex::open("shared")?) } else { None };
    let asks = Asks::open(asks)?;
    let server = ServedMailbox::open(SERVICES[number as usize % SERVICES.len()])?;
    let (mut buffer, mut inner) = ([0; MESSAGE_BYTES], [0; MESSAGE_BYTES]);
    let (mut length, mut priority) = server.request_into(&mut buffer, Nanos::FOREVER)?;
    loop {
        burn(work - section);
        if let Some(shared) = &shared {
            let guard = shared.lock()?;
            burn(section);
            drop(guard);
        }
        asks.each(&mut inner, || ());
        (length, priority) = server.answer_into(&mut buffer, length, priority, Nanos::FOREVER)?;
    }
}
