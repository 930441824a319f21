//! The first thread of a chain: reads packets of an instrument and hands each over at once, through
//! the mailbox `readings`.
//!
//! The library measures and reports how the pipe does. Arguments: none.

#![no_std]
#![no_main]
#![forbid(unsafe_code)]

mod packets;

use diapason_rt::mailbox::Mailbox;
use diapason_rt::{Arguments, ChainMessage, Errno, Nanos, entry, log, time};
use diapason_usblib::usb_open;
use packets::PacketTally;

entry!(main);

/// The bytes of a packet.
const BYTES: usize = 64;

fn main(_: Arguments) {
    if let Err(errno) = read() {
        log!("endpoint: not read: {errno:?}");
    }
}

fn read() -> Result<(), Errno> {
    let (mut pipe, readings) = (usb_open()?, Mailbox::open("readings")?);
    let (work, mut tally) = (pipe.source().message, PacketTally::of(BYTES));
    loop {
        let packet = pipe.read_wait(Nanos::FOREVER)?;
        let now = time::now();
        let missing = time::work(work, || tally.count(&packet));
        pipe.missed(missing);
        let arrived = Nanos(packet.taken) - Nanos(packet.moved.into());
        let number = tally.packets + tally.missing;
        let mut message = ChainMessage { number, arrived, ..ChainMessage::default() };
        message.at[0] = now;
        // A thread that waited for room would hold up the next message. A message that does not
        // fit shows as a gap.
        let _ = readings.send(&message.bytes(), 0, Nanos::ZERO);
    }
}
