//! Reads one CAN channel with CAN FD of the USB server, as `can-reader` reads a classic one. A
//! frame with more than eight bytes has its number in them again and again, and that is checked.

#![no_std]
#![no_main]
#![forbid(unsafe_code)]

use diapason_canlib::{AnyFrame, FdChannel};
use diapason_concentrator::reading::read;
use diapason_rt::{Arguments, entry, heap, log};

entry!(main);
// Parts of `diapason-can` that nothing here calls would allocate: no page of it is ever taken.
heap!(4 * 1024);

fn main(Arguments([number, seconds, insists, ..]): Arguments) {
    let read = FdChannel::listen_fd(number as usize)
        .and_then(|channel| read(channel, number, (seconds, insists), is_whole));
    if let Err(error) = read {
        log!("can{number}: not read: {error}");
    }
}

/// Returns whether all data of a frame repeats its first eight bytes.
fn is_whole(frame: &AnyFrame) -> bool {
    let (first, rest) = frame.bytes().split_at(frame.bytes().len().min(8));
    rest.chunks(8).all(|part| first.starts_with(part))
}
