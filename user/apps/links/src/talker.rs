//! Sends a message to a mailbox of every other host, in an interval.
//!
//! Once a second it says `TOLD sent full`: messages sent, and those that found a mailbox full.
//! Arguments: µs from one message to the next of the same mailbox, the number of its own host, and
//! how many hosts there are. The mailbox of host 3 is `to-3`.

#![no_std]
#![no_main]
#![forbid(unsafe_code)]

use diapason_links::mail::{Letter, PEERS, peer};
use diapason_links::{REPORT, START};
use diapason_rt::mailbox::Mailbox;
use diapason_rt::{Arguments, Errno, Nanos, entry, log, time};

entry!(main);

fn main(Arguments([period, own, hosts, ..]): Arguments) {
    if let Err(errno) = run(Nanos::from_micros(period.max(1)), own, hosts) {
        log!("talker: {errno:?}");
    }
}

fn run(period: Nanos, own: u64, hosts: u64) -> Result<(), Errno> {
    let mut boxes = [const { None }; PEERS];
    for (number, place) in (0..hosts).zip(&mut boxes) {
        if number != own {
            *place = Some(Mailbox::open(peer(number))?);
        }
    }
    let (mut number, mut full) = (0, 0_u64);
    let (mut next_at, mut report_at) = (time::now() + START, time::now() + REPORT);
    loop {
        time::sleep_until(next_at.min(report_at));
        let now = time::now();
        if now >= next_at {
            next_at += period;
            number += 1;
            for mailbox in boxes.iter().flatten() {
                let letter = Letter { number, stamp: now.0, asked: now.0, client: own };
                full += u64::from(mailbox.send(&letter.bytes(), 0, Nanos::ZERO).is_err());
            }
        }
        if now >= report_at {
            report_at += REPORT;
            log!("TOLD {} {full}", number * (hosts - 1) - full);
        }
    }
}
