//! Reads a CAN channel and says once a second what came.

#![no_std]
#![no_main]
#![forbid(unsafe_code)]

use diapason_canlib::{Channel, Error};
use diapason_rt::{Arguments, Nanos, entry, heap, log, time};
use logic::{Numbers, signal};

entry!(main);
// `diapason-canlib` wants an allocator. No page of it is taken.
heap!(4 * 1024);

/// The channel that it reads: `can0`.
const CHANNEL: usize = 0;
const SECOND: Nanos = Nanos::from_secs(1);

fn main(_: Arguments) {
    if let Err(error) = read() {
        log!("can{CHANNEL}: not read: {error}");
    }
}

fn read() -> Result<(), Error> {
    let mut channel = Channel::listen(CHANNEL)?;
    let mut numbers = Numbers::default();
    let mut say_at = time::now() + SECOND;
    loop {
        match channel.read_wait(say_at) {
            Ok(message) => {
                // The simulator takes the time of this from `[[work]]`.
                time::work("reader.frame", || {
                    let number = signal(message.frame.bytes());
                    channel.missed(number.map_or(0, |number| numbers.count(number)));
                });
            }
            Err(Error::TimedOut) => {
                log!("{} frames, {} missing", numbers.frames, numbers.missing);
                say_at += SECOND;
            }
            Err(error) => return Err(error),
        }
    }
}
