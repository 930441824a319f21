//! Answers questions that come to a mailbox, by another one. Whether the program that asks runs on
//! this host or on another is not its business. Two programs may ask by one mailbox: each has
//! an answer by a mailbox of its own.
//!
//! Once a second it says `ANSWERED came lost full`: questions that came, numbers that were missing,
//! and answers that found the mailbox full. It reports the questions of each program that asks as
//! the end of a flow.
//!
//! Arguments: the number of its pair of mailboxes, `questions` and `answers` (0) or `orders` and
//! `receipts` (1); and whether a second program asks (1), which has its answers by `receipts`.

#![no_std]
#![no_main]
#![forbid(unsafe_code)]

use diapason_abi::MESSAGE_BYTES;
use diapason_links::REPORT;
use diapason_links::mail::{Arrivals, CLIENTS, Letter, SECOND, pair};
use diapason_rt::mailbox::Mailbox;
use diapason_rt::{Arguments, Errno, Nanos, entry, log, time};

entry!(main);

/// A program that asks.
struct Client {
    answers: Mailbox,
    arrivals: Arrivals,
    /// Answers that were made.
    made: u64,
    /// Answers that found its mailbox full.
    full: u64,
}

fn main(Arguments([names, second, ..]): Arguments) {
    if let Err(errno) = run(names, second > 0) {
        log!("answerer: {errno:?}");
    }
}

fn run(names: u64, second: bool) -> Result<(), Errno> {
    let [questions, answers] = pair(names);
    let questions = Mailbox::open(questions)?;
    let mut clients: [Option<Client>; CLIENTS] = [const { None }; CLIENTS];
    let boxes = [Some(answers), second.then_some(pair(SECOND)[1])];
    for (source, (client, answers)) in (0..).zip(clients.iter_mut().zip(boxes)) {
        if let Some(answers) = answers {
            *client = Some(Client::new(Mailbox::open(answers)?, source));
        }
    }
    let mut report_at = time::now() + REPORT;
    let mut bytes = [0; MESSAGE_BYTES];
    loop {
        match questions.receive_into(&mut bytes, report_at) {
            Ok(_) => {
                let question = Letter::of(&bytes);
                if let Some(Some(client)) = clients.get_mut(question.client as usize) {
                    client.answer(&question, time::now());
                }
            }
            Err(Errno::TimedOut) => {}
            Err(errno) => return Err(errno),
        }
        let now = time::now();
        if now >= report_at {
            report_at += REPORT;
            let each = || clients.iter().flatten().map(|it| (it.arrivals.counts(), it.full));
            let (came, lost, full) = each().fold((0, 0, 0), |sum, ((came, lost), full)| {
                (sum.0 + came, sum.1 + lost, sum.2 + full)
            });
            log!("ANSWERED {came} {lost} {full}");
            clients.iter_mut().flatten().for_each(|client| client.arrivals.report(now));
        }
    }
}

impl Client {
    fn new(answers: Mailbox, source: u8) -> Client {
        Client { answers, arrivals: Arrivals::new(source), made: 0, full: 0 }
    }

    fn answer(&mut self, question: &Letter, now: Nanos) {
        self.arrivals.took(question, now);
        self.made += 1;
        let answer = Letter { number: self.made, stamp: now.0, ..*question };
        if self.answers.send(&answer.bytes(), 0, Nanos::ZERO).is_err() {
            self.full += 1;
        }
    }
}
