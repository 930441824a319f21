//! Reads one CAN channel of the USB server: counts its frames, looks for gaps, measures delays.
//!
//! Once a second it says how its pipe does (`PipeReport`), which the tools read. Arguments:
//! channel; after how many seconds it ends with a verdict (0: never); and after how many seconds
//! silence counts (0: it does not insist): it gives up at the first frame that is not the next
//! one, and after a second without any.

#![no_std]
#![no_main]
#![forbid(unsafe_code)]

use diapason_canlib::agreement::{Arrival, RECORDS};
use diapason_canlib::{Channel, Error};
use diapason_concentrator::reports;
use diapason_concentrator::tally::Tally;
use diapason_rt::{Arguments, Nanos, entry, heap, log, time};

entry!(main);
// Parts of `diapason-can` that nothing here calls would allocate: no page of it is ever taken.
heap!(4 * 1024);

/// How often it says how it goes.
const REPORT: Nanos = Nanos::from_secs(1);

fn main(Arguments([number, seconds, insists, ..]): Arguments) {
    if let Err(error) = read(number as usize, seconds, insists) {
        log!("can{number}: not read: {error}");
    }
}

fn read(number: usize, seconds: u64, insists: u64) -> Result<(), Error> {
    let mut channel = Channel::listen(number)?;
    let mut tally = Tally::default();
    let (mut report_at, mut reports) = (time::now() + REPORT, 0);
    let mut before = 0;
    while seconds == 0 || reports < seconds {
        match channel.read_wait(report_at) {
            Ok(first) => {
                let now = time::now();
                count(&mut tally, &first.arrival, now);
                drain(&mut channel, &mut tally, now);
                assert!(insists == 0 || tally.is_whole(), "a frame that is not the next one");
            }
            Err(Error::TimedOut) => {
                reports::report(number, &mut tally, &channel);
                report_at += REPORT;
                reports += 1;
                let silent = insists > 0 && reports > insists && tally.frames == before;
                assert!(!silent, "a second without a frame");
                before = tally.frames;
            }
            Err(error) => return Err(error),
        }
    }
    let lost = channel.lost();
    let fine = tally.is_whole() && lost == 0;
    let verdict = if fine { "WHOLE" } else { "NOT WHOLE" };
    log!("CAN {number} {verdict} {} frames, dropped {lost}, {}", tally.frames, tally.faults);
    Ok(())
}

fn drain(channel: &mut Channel, tally: &mut Tally, now: Nanos) {
    // At most what fits: a writer that never stops must not keep it here.
    for _ in 1..RECORDS {
        let Ok(message) = channel.read() else { return };
        count(tally, &message.arrival, now);
    }
}

/// Handles a message.
fn count(tally: &mut Tally, arrival: &Arrival, now: Nanos) {
    time::work("can.message", || tally.count(arrival, now));
}
