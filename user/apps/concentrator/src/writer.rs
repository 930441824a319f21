//! Writes numbered frames to one CAN channel of the USB server, as many as its pipe takes.
//!
//! Once a second it says `OUT channel rate through pending given-up received wrong`: frames a
//! second by the interface's clock, frames acknowledged on the bus, frames under way, frames that
//! will not be sent, and what the receiver on the bus says of them in its receipts: how many it
//! read, and how many were missing or out of order. The library reports how the pipe does.
//! Arguments: channel, after how many seconds it ends with a verdict (0: never), how often it fills
//! the pipe, in us, and most frames of one filling (0: as many as the pipe takes).

#![no_std]
#![no_main]
#![forbid(unsafe_code)]

use diapason_canlib::Channel;
use diapason_concentrator::writing::{WritingPace, write};
use diapason_rt::{Arguments, entry, heap, log};

entry!(main);
// Parts of `diapason-can` that nothing here calls would allocate: no page of it is ever taken.
heap!(4 * 1024);

fn main(Arguments([number, seconds, period, most]): Arguments) {
    let written = Channel::open(number as usize, WritingPace::answer())
        .and_then(|channel| write(channel, number, WritingPace::of(seconds, period, most)));
    if let Err(error) = written {
        log!("can{number}: not written: {error}");
    }
}
