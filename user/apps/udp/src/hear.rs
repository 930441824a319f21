//! Takes the datagrams of a program on another host, as the end of a flow: it reports how many
//! came, how many are missing, and how much longer the slowest took than the fastest. The sender
//! stamps by a clock of its own, so no other time can be told.
//!
//! Its argument says which socket it has (0: `drive`, 1: `recorder`).

#![no_std]
#![no_main]
#![forbid(unsafe_code)]

use diapason_netlib::UdpSocket;
use diapason_pipe::clock::DeviceClock;
use diapason_pipe::measured::{ChainReport, Measurement, Reported};
use diapason_rt::{Arguments, Errno, Nanos, entry, log, time};
use diapason_udp::{MOST, read};

entry!(main);

/// Time between two reports.
const REPORT: Nanos = Nanos::from_secs(1);
/// The most by which the clocks of two hosts run apart, in millionths.
const APART: u32 = 200;
/// The work for one datagram, as descriptions name it.
const READ: &str = "udp.read";

fn main(Arguments([socket, ..]): Arguments) {
    let name = if socket == 0 { "drive" } else { "recorder" };
    if let Err(errno) = hear(name) {
        log!("no datagrams: {errno:?}");
    }
}

fn hear(name: &str) -> Result<(), Errno> {
    let mut socket = UdpSocket::bind(name)?;
    let mut memory = [0; MOST];
    let mut report = ChainReport::default();
    let mut sender = DeviceClock::new(APART);
    let mut expected = 0;
    let mut report_at = time::now() + REPORT;
    loop {
        match socket.recv(&mut memory, report_at) {
            Ok(received) => {
                let bytes = memory.get(..received.length).unwrap_or(&[]);
                // A damaged datagram leaves a number that is missing.
                if let Some((number, stamp)) = time::work(READ, || read(bytes)) {
                    let missing = number.saturating_sub(expected);
                    let missing = u32::try_from(missing).unwrap_or(u32::MAX);
                    report.lost = report.lost.saturating_add(missing);
                    if report.messages == 0 {
                        report.before = missing;
                    }
                    report.messages += 1;
                    expected = expected.max(number + 1);
                    let delay = sender.measure(time::now(), Nanos(stamp));
                    report.whole = report.whole.max(delay.beyond);
                }
            }
            Err(Errno::TimedOut) => {}
            Err(errno) => return Err(errno),
        }
        let now = time::now();
        if now >= report_at {
            report_at += REPORT;
            if report.messages > 0 {
                let said = Measurement::Chain(report);
                log::measured(&Reported { at: now, said }.words());
                report.whole = Nanos::ZERO;
            }
        }
    }
}
