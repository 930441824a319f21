//! Answers questions that come to a mailbox, by another one. Whether the program that asks runs on
//! this host or on another is not its business.
//!
//! Once a second it says `ANSWERED came lost full`: questions that came, numbers that were missing,
//! and answers that found the mailbox full. It reports the questions as the end of a flow.
//!
//! Argument: the number of its pair of mailboxes, `questions` and `answers` (0) or `orders` and
//! `receipts` (1).

#![no_std]
#![no_main]
#![forbid(unsafe_code)]

use diapason_abi::MESSAGE_BYTES;
use diapason_links::REPORT;
use diapason_links::mail::{Arrivals, Letter, pair};
use diapason_rt::mailbox::Mailbox;
use diapason_rt::{Arguments, Errno, Nanos, entry, log, time};

entry!(main);

fn main(Arguments([names, ..]): Arguments) {
    if let Err(errno) = run(pair(names)) {
        log!("answerer: {errno:?}");
    }
}

fn run([questions, answers]: [&str; 2]) -> Result<(), Errno> {
    let (questions, answers) = (Mailbox::open(questions)?, Mailbox::open(answers)?);
    let mut arrivals = Arrivals::new();
    let (mut sent, mut full) = (0, 0_u64);
    let mut report_at = time::now() + REPORT;
    let mut bytes = [0; MESSAGE_BYTES];
    loop {
        match questions.receive_into(&mut bytes, report_at) {
            Ok(_) => {
                let (question, now) = (Letter::of(&bytes), time::now());
                arrivals.took(&question, now);
                sent += 1;
                let answer = Letter { number: sent, stamp: now.0, asked: question.asked };
                if answers.send(&answer.bytes(), 0, Nanos::ZERO).is_err() {
                    full += 1;
                }
            }
            Err(Errno::TimedOut) => {}
            Err(errno) => return Err(errno),
        }
        let now = time::now();
        if now >= report_at {
            report_at += REPORT;
            let (came, lost) = arrivals.counts();
            log!("ANSWERED {came} {lost} {full}");
            arrivals.report(now);
        }
    }
}
