//! Takes the datagrams of the socket `onward`, checks every byte, and reports as the end of a flow:
//! how many came, how many are missing, and how much longer the slowest took than the fastest.
//!
//! Once a second it says `ONWARD came lost damaged`.

#![no_std]
#![no_main]
#![forbid(unsafe_code)]

use diapason_links::mail::{Arrivals, Letter};
use diapason_netlib::UdpSocket;
use diapason_onward::{MOST, REPORT, read};
use diapason_rt::{Arguments, Errno, entry, log, time};

entry!(main);

/// The work for a message, as descriptions name it.
const CHECK: &str = "onward.check";

fn main(_: Arguments) {
    if let Err(errno) = run() {
        log!("end: {errno:?}");
    }
}

fn run() -> Result<(), Errno> {
    let mut socket = UdpSocket::bind("onward")?;
    let (mut arrivals, mut damaged) = (Arrivals::new(0), 0_u64);
    let mut memory = [0; MOST];
    let mut report_at = time::now() + REPORT;
    loop {
        match socket.recv(&mut memory, report_at) {
            Ok(received) => {
                let message = memory.get(..received.length).unwrap_or(&[]);
                match time::work(CHECK, || read(message)) {
                    Some((number, stamp)) => {
                        let letter = Letter { number, stamp: stamp.0, asked: 0, client: 0 };
                        arrivals.took(&letter, time::now());
                    }
                    None => damaged += 1,
                }
            }
            Err(Errno::TimedOut) => {}
            Err(errno) => return Err(errno),
        }
        let now = time::now();
        if now >= report_at {
            report_at += REPORT;
            let (came, lost) = arrivals.counts();
            log!("ONWARD {came} {lost} {damaged}");
            arrivals.report(now);
        }
    }
}
