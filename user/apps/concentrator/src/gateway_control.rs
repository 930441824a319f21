//! The second thread of a chain: makes a command of each reading and hands it over at once.

#![no_std]
#![no_main]
#![forbid(unsafe_code)]

use diapason_abi::MESSAGE_BYTES;
use diapason_concentrator::chain::{COMMANDS, READINGS};
use diapason_rt::mailbox::Mailbox;
use diapason_rt::{Arguments, ChainMessage, Errno, Nanos, entry, heap, log, time};

entry!(main);
// Parts of `diapason-can` that nothing here calls would allocate: no page of it is ever taken.
heap!(4 * 1024);

/// The cost of computing a command.
const WORK: Nanos = Nanos::from_micros(20);

fn main(_: Arguments) {
    if let Err(errno) = run() {
        log!("the controller failed: {errno:?}");
    }
}

fn run() -> Result<(), Errno> {
    let (readings, commands) = (Mailbox::open(READINGS)?, Mailbox::open(COMMANDS)?);
    let mut bytes = [0; MESSAGE_BYTES];
    loop {
        readings.receive_into(&mut bytes, Nanos::FOREVER)?;
        let mut message = ChainMessage::from_bytes(&bytes);
        time::work("gateway.control", || time::burn(WORK));
        // A command for each reading; a gap in the ones is a gap in the others.
        message.output = message.number;
        message.at[1] = time::now();
        // A thread that waited for room would hold up the next message.
        let _ = commands.send(&message.bytes(), 0, Nanos::ZERO);
    }
}
