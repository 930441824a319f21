//! Reads one CAN channel of the USB server: counts its frames and looks for gaps.
//!
//! The library measures and reports how the pipe does. Arguments: channel; after how many seconds
//! it ends with a verdict (0: never); and after how many seconds silence counts (0: it does not
//! insist): it gives up at the first frame that is not the next one, and after a second without
//! any.

#![no_std]
#![no_main]
#![forbid(unsafe_code)]

use diapason_canlib::agreement::{MESSAGE, RECORDS, ReceivedFrame};
use diapason_canlib::{Channel, Error};
use diapason_concentrator::tally::Tally;
use diapason_rt::{Arguments, Nanos, entry, heap, log, time};

entry!(main);
// Parts of `diapason-can` that nothing here calls would allocate: no page of it is ever taken.
heap!(4 * 1024);

/// How often it looks whether anything came.
const LOOK: Nanos = Nanos::from_secs(1);

fn main(Arguments([number, seconds, insists, ..]): Arguments) {
    if let Err(error) = read(number as usize, seconds, insists) {
        log!("can{number}: not read: {error}");
    }
}

fn read(number: usize, seconds: u64, insists: u64) -> Result<(), Error> {
    let mut channel = Channel::listen(number)?;
    let mut tally = Tally::default();
    let (mut look_at, mut looks) = (time::now() + LOOK, 0);
    let mut before = 0;
    while seconds == 0 || looks < seconds {
        match channel.read_wait(look_at) {
            Ok(first) => {
                count(&mut channel, &mut tally, &first.arrival);
                drain(&mut channel, &mut tally);
                assert!(insists == 0 || tally.is_whole(), "a frame that is not the next one");
            }
            Err(Error::TimedOut) => {}
            Err(error) => return Err(error),
        }
        if time::now() >= look_at {
            look_at += LOOK;
            looks += 1;
            let silent = insists > 0 && looks > insists && tally.frames == before;
            assert!(!silent, "a second without a frame");
            before = tally.frames;
        }
    }
    let lost = channel.lost();
    let fine = tally.is_whole() && lost == 0;
    let verdict = if fine { "WHOLE" } else { "NOT WHOLE" };
    log!("CAN {number} {verdict} {} frames, dropped {lost}, {}", tally.frames, tally.faults);
    Ok(())
}

fn drain(channel: &mut Channel, tally: &mut Tally) {
    // At most what fits: a writer that never stops must not keep it here.
    for _ in 1..RECORDS {
        let Ok(message) = channel.read() else { return };
        count(channel, tally, &message.arrival);
    }
}

fn count(channel: &mut Channel, tally: &mut Tally, arrival: &ReceivedFrame) {
    time::work(MESSAGE, || channel.missed(tally.count(arrival)));
}
