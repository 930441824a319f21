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

use diapason_canlib::Error;
use diapason_concentrator::stream::{REPORT, SentStream};
use diapason_rt::{Arguments, Nanos, entry, heap, log, time};

entry!(main);
// Parts of `diapason-can` that nothing here calls would allocate: no page of it is ever taken.
heap!(4 * 1024);

fn main(Arguments([number, seconds, period, most]): Arguments) {
    let most = if most == 0 { u64::MAX } else { most };
    if let Err(error) = write(number, seconds, Nanos(period * 1_000), most) {
        log!("can{number}: not written: {error}");
    }
}

fn write(number: u64, seconds: u64, period: Nanos, most: u64) -> Result<(), Error> {
    let mut stream = SentStream::open(number)?;
    let (mut fill_at, mut report_at, mut reports) = (time::now(), time::now() + REPORT, 0);
    while seconds == 0 || reports < seconds {
        time::sleep_until(fill_at.min(report_at));
        let now = time::now();
        if now >= fill_at {
            fill(&mut stream, most)?;
            // A late writer that caught up would write more at once than its contract says.
            fill_at = period + if most == u64::MAX { fill_at } else { now };
        }
        stream.read();
        if now >= report_at {
            look(&mut stream)?;
            stream.say()?;
            report_at += REPORT;
            reports += 1;
        }
    }
    stream.end()
}

/// Writes as many frames as the pipe takes, but no more than `most`.
fn fill(stream: &mut SentStream, most: u64) -> Result<(), Error> {
    for _ in 0..most {
        match stream.write() {
            Ok(()) => look(stream)?,
            Err(Error::Full) => return look(stream),
            Err(error) => return Err(error),
        }
    }
    look(stream)
}

fn look(stream: &mut SentStream) -> Result<(), Error> {
    stream.look(|_, _| {})
}
