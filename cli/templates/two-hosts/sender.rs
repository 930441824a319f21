//! Sends a reading to the other host every 10 ms.

#![no_std]
#![no_main]
#![forbid(unsafe_code)]

use diapason_frame::{HEAD, Numbering};
use diapason_rt::{Arguments, Errno, Nanos, entry, log, time};
use diapason_usblib::link::{DONE, Link, UNIT};
use logic::{BYTES, reading};

entry!(main);

const PERIOD: Nanos = Nanos::from_millis(10);
const SECOND: Nanos = Nanos::from_secs(1);

fn main(_: Arguments) {
    if let Err(errno) = send() {
        log!("link: {errno:?}");
    }
}

fn send() -> Result<(), Errno> {
    let mut link = Link::open(0)?;
    let place = link.place(0);
    let (mut numbering, mut sent, mut is_under_way) = (Numbering::default(), 0u64, false);
    let mut next_at = time::now() + PERIOD;
    let mut say_at = time::now() + SECOND;
    loop {
        match link.wait(next_at) {
            Ok(()) => {
                while let Some(done) = link.pop() {
                    is_under_way = false;
                    sent += u64::from(done.status == DONE);
                }
            }
            Err(Errno::TimedOut) => {}
            Err(errno) => return Err(errno),
        }
        let now = time::now();
        if now >= next_at {
            next_at += PERIOD;
            // The other host may not be there yet: the message before waits for it.
            if !is_under_way {
                time::work("message", || {
                    let [seconds, milliseconds] = reading(now.0);
                    link.data.write32(place as usize * UNIT + HEAD, seconds);
                    link.data.write32(place as usize * UNIT + HEAD + 4, milliseconds);
                    link.seal(place, numbering.head(BYTES as u16));
                });
                link.send(place, (HEAD + BYTES) as u32)?;
                link.ring();
                is_under_way = true;
            }
        }
        if now >= say_at {
            say_at += SECOND;
            log!("{sent} sent");
        }
    }
}
