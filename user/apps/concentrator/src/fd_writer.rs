//! Writes numbered frames to one CAN channel with CAN FD of the USB server, as `can-writer` writes
//! classic ones: in turn a frame of CAN FD with 64 bytes, which has its number in them again and
//! again, and a classic one.

#![no_std]
#![no_main]
#![forbid(unsafe_code)]

use diapason_canlib::FdChannel;
use diapason_concentrator::writing::{WritingPace, write};
use diapason_rt::{Arguments, entry, heap, log};

entry!(main);
// Parts of `diapason-can` that nothing here calls would allocate: no page of it is ever taken.
heap!(4 * 1024);

fn main(Arguments([number, seconds, period, most]): Arguments) {
    let written = FdChannel::open_fd(number as usize, WritingPace::answer())
        .and_then(|channel| write(channel, number, WritingPace::of(seconds, period, most)));
    if let Err(error) = written {
        log!("can{number}: not written: {error}");
    }
}
