//! Takes the messages of link 0, checks every byte, and writes a packet into the `[[pipe]]` to an
//! endpoint for each: the first bytes of what the sensor made. It reports as the last program of a
//! flow.
//!
//! Once a second it says `ONWARD came lost damaged`.

#![no_std]
#![no_main]
#![forbid(unsafe_code)]

use diapason_onward::{OnwardEnd, OnwardLink};
use diapason_rt::{Arguments, Errno, entry, log, time};
use diapason_usblib::{NotWritten, usb_open_to};

entry!(main);

/// Bytes of a packet.
const PACKET: usize = 64;

fn main(_: Arguments) {
    if let Err(errno) = run() {
        log!("act: {errno:?}");
    }
}

fn run() -> Result<(), Errno> {
    let mut pipe = usb_open_to()?;
    let work = pipe.source().message;
    let (mut link, mut end) = (OnwardLink::open()?, OnwardEnd::default());
    let mut refused = 0u64;
    loop {
        link.wait(&mut end, |message| {
            let packet: [u8; PACKET] = time::work(work, || {
                core::array::from_fn(|at| message.get(at).copied().unwrap_or_default())
            });
            // A packet that is not written is missing at the device, and the pipe says so.
            refused += u64::from(matches!(
                pipe.write(&packet),
                Err(NotWritten::Full | NotWritten::Length)
            ));
        })?;
        if end.look() {
            log!("ACTED {refused} refused");
        }
    }
}
