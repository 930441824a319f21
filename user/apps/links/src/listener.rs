//! Takes the messages of all other hosts out of one mailbox, and reports each as the end of a flow.
//!
//! Once a second it says `HEARD came lost`: messages that came, and numbers that were missing.
//! Arguments: the number of its own host, and how many hosts there are. The flows that end here
//! have the order of their hosts. The mailbox of host 3 is `to-3`.

#![no_std]
#![no_main]
#![forbid(unsafe_code)]

use diapason_abi::MESSAGE_BYTES;
use diapason_links::REPORT;
use diapason_links::mail::{Arrivals, Letter, PEERS, peer};
use diapason_rt::mailbox::Mailbox;
use diapason_rt::{Arguments, Errno, entry, log, time};

entry!(main);

fn main(Arguments([own, hosts, ..]): Arguments) {
    if let Err(errno) = run(own, hosts) {
        log!("listener: {errno:?}");
    }
}

fn run(own: u64, hosts: u64) -> Result<(), Errno> {
    let mailbox = Mailbox::open(peer(own))?;
    let mut arrivals = [const { None }; PEERS];
    let others = (0..hosts).filter(|host| *host != own);
    for (source, host) in (0..).zip(others) {
        if let Some(place) = arrivals.get_mut(host as usize) {
            *place = Some(Arrivals::new(source));
        }
    }
    let mut report_at = time::now() + REPORT;
    let mut bytes = [0; MESSAGE_BYTES];
    loop {
        match mailbox.receive_into(&mut bytes, report_at) {
            Ok(_) => {
                let letter = Letter::of(&bytes);
                if let Some(Some(it)) = arrivals.get_mut(letter.client as usize) {
                    it.took(&letter, time::now());
                }
            }
            Err(Errno::TimedOut) => {}
            Err(errno) => return Err(errno),
        }
        let now = time::now();
        if now >= report_at {
            report_at += REPORT;
            let counts = arrivals.iter().flatten().map(Arrivals::counts);
            let (came, lost) = counts.fold((0, 0), |sum, it| (sum.0 + it.0, sum.1 + it.1));
            log!("HEARD {came} {lost}");
            arrivals.iter_mut().flatten().for_each(|it| it.report(now));
        }
    }
}
