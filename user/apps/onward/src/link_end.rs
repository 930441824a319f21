//! Takes the messages of link 0, checks every byte, and reports as the end of a flow: how many
//! came, how many are missing, and how much longer the slowest took than the fastest.
//!
//! Once a second it says `ONWARD came lost damaged`.

#![no_std]
#![no_main]
#![forbid(unsafe_code)]

use diapason_onward::{OnwardEnd, OnwardLink};
use diapason_rt::{Arguments, Errno, entry, log};

entry!(main);

fn main(_: Arguments) {
    if let Err(errno) = run() {
        log!("end: {errno:?}");
    }
}

fn run() -> Result<(), Errno> {
    let (mut link, mut end) = (OnwardLink::open()?, OnwardEnd::default());
    loop {
        link.wait(&mut end, |_| {})?;
        end.look();
    }
}
