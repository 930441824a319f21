//! Sends questions to a mailbox and takes answers out of another. Whether the program that answers
//! runs on this host or on another is not its business.
//!
//! Once a second it says `ASKED sent full came lost longest`: questions sent, questions that found
//! the mailbox full, answers that came, numbers that were missing, and the longest time in ns from
//! a question to its answer. It reports the answers as the end of a flow.
//!
//! Arguments: µs from one question to the next, after how many it asks no more (0: never), and
//! the number of its pair of mailboxes: `questions` and `answers` (0), `orders` and `receipts` (1),
//! or `questions` and `receipts` (2).

#![no_std]
#![no_main]
#![forbid(unsafe_code)]

use diapason_abi::MESSAGE_BYTES;
use diapason_links::mail::{Arrivals, Letter, client, pair};
use diapason_links::{REPORT, START};
use diapason_rt::mailbox::Mailbox;
use diapason_rt::{Arguments, Errno, Nanos, entry, log, time};

entry!(main);

fn main(Arguments([period, most, names, ..]): Arguments) {
    let most = if most == 0 { u64::MAX } else { most };
    if let Err(errno) = run(Nanos::from_micros(period.max(1)), most, names) {
        log!("asker: {errno:?}");
    }
}

fn run(period: Nanos, most: u64, names: u64) -> Result<(), Errno> {
    let [questions, answers] = pair(names);
    let (questions, answers) = (Mailbox::open(questions)?, Mailbox::open(answers)?);
    let mut arrivals = Arrivals::new(0);
    let (mut sent, mut full, mut longest) = (0_u64, 0_u64, Nanos::ZERO);
    let (mut next_at, mut report_at) = (time::now() + START, time::now() + REPORT);
    let mut bytes = [0; MESSAGE_BYTES];
    loop {
        match answers.receive_into(&mut bytes, next_at.min(report_at)) {
            Ok(_) => {
                let (answer, now) = (Letter::of(&bytes), time::now());
                arrivals.took(&answer, now);
                longest = longest.max(Nanos(now.0.saturating_sub(answer.asked)));
            }
            Err(Errno::TimedOut) => {}
            Err(errno) => return Err(errno),
        }
        let now = time::now();
        if now >= next_at {
            next_at = if sent + full + 1 < most { next_at + period } else { Nanos::FOREVER };
            let (number, client) = (sent + full + 1, client(names));
            let question = Letter { number, stamp: now.0, asked: now.0, client };
            match questions.send(&question.bytes(), 0, Nanos::ZERO) {
                Ok(()) => sent += 1,
                Err(_) => full += 1,
            }
        }
        if now >= report_at {
            report_at += REPORT;
            let (came, lost) = arrivals.counts();
            log!("ASKED {sent} {full} {came} {lost} {}", longest.0);
            arrivals.report(now);
        }
    }
}
