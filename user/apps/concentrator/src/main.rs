//! Reads one CAN channel of the USB server: counts its frames, looks for gaps, measures delays.
//!
//! Once a second it says how its pipe does (`PipeReport`), which the tools read. Arguments:
//! channel; after how many seconds it ends with a verdict (0: never); and after how many seconds
//! silence counts (0: it does not insist): it gives up at the first frame that is not the next
//! one, and after a second without any.

#![no_std]
#![no_main]
#![forbid(unsafe_code)]

mod tally;

use diapason_abi::pipe::{PipeDelays, PipeReport};
use diapason_rt::{Arguments, Errno, Nanos, entry, log, time};
use diapason_usbd::{Inlet, RECORDS, inlet};
use tally::{Delays, Tally};

entry!(main);

/// How often it says how it goes.
const REPORT: Nanos = Nanos::from_secs(1);

fn main(Arguments([channel, seconds, insists, ..]): Arguments) {
    if let Err(errno) = read(channel as usize, seconds, insists) {
        log!("can{channel}: not read: {errno:?}");
    }
}

fn read(channel: usize, seconds: u64, insists: u64) -> Result<(), Errno> {
    let (mut inlet, ready) = inlet(channel)?;
    let mut tally = Tally::default();
    let (mut report_at, mut reports) = (time::now() + REPORT, 0);
    let mut before = 0;
    while seconds == 0 || reports < seconds {
        match ready.take(report_at) {
            Ok(()) => {
                drain(&mut inlet, &mut tally);
                let fine = insists == 0 || tally.is_whole() || tally.frames == 0;
                assert!(fine && inlet.len().is_ok(), "a frame that is not the next one");
            }
            Err(Errno::TimedOut) => {
                report(channel, &mut tally, &inlet);
                report_at += REPORT;
                reports += 1;
                let silent = insists > 0 && reports > insists && tally.frames == before;
                assert!(!silent, "a second without a frame");
                before = tally.frames;
            }
            Err(errno) => return Err(errno),
        }
    }
    let lost = inlet.lost();
    let fine = tally.is_whole() && lost == 0;
    let verdict = if fine { "WHOLE" } else { "NOT WHOLE" };
    log!("CAN {channel} {verdict} {} frames, dropped {lost}, {}", tally.frames, tally.faults);
    Ok(())
}

fn drain(inlet: &mut Inlet, tally: &mut Tally) {
    let now = time::now();
    // At most what fits: a writer that never stops must not keep it here.
    for _ in 0..RECORDS {
        let Some(arrival) = inlet.pop() else { return };
        tally.count(&arrival, now);
    }
}

fn report(channel: usize, tally: &mut Tally, inlet: &Inlet) {
    let Delays { reading, moving, whole } = tally.take_delays();
    let report = PipeReport {
        channel: channel as u8,
        messages: tally.frames,
        lost: tally.faults.missing + inlet.lost(),
        peak: inlet.peak(),
        reading,
        moving,
        whole,
    };
    log!("{report}");
    PipeDelays::lines(channel as u8, tally.spread()).for_each(|line| log!("{line}"));
}
