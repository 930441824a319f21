//! Reads one CAN channel of the USB server: counts its frames and looks for gaps.
//!
//! The library measures and reports how the pipe does. Arguments: channel; after how many seconds
//! it ends with a verdict (0: never); and after how many seconds silence counts (0: it does not
//! insist): it gives up at the first frame that is not the next one, and after a second without
//! any.

#![no_std]
#![no_main]
#![forbid(unsafe_code)]

use diapason_canlib::Channel;
use diapason_concentrator::reading::read;
use diapason_rt::{Arguments, entry, heap, log};

entry!(main);
// Parts of `diapason-can` that nothing here calls would allocate: no page of it is ever taken.
heap!(4 * 1024);

fn main(Arguments([number, seconds, insists, ..]): Arguments) {
    let read = Channel::listen(number as usize)
        .and_then(|channel| read(channel, number, (seconds, insists), |_| true));
    if let Err(error) = read {
        log!("can{number}: not read: {error}");
    }
}
