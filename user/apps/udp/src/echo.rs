//! Checks each datagram that comes and sends it back. Its argument says which socket it has (0:
//! `drive`, 1: `recorder`).
//!
//! Once a second, if something came, it says `ECHO came wrong bypassed`.

#![no_std]
#![no_main]
#![forbid(unsafe_code)]

use diapason_netlib::UdpSocket;
use diapason_rt::{Arguments, Errno, Nanos, entry, log, time};
use diapason_udp::{MOST, read};

entry!(main);

/// Time between two reports.
const REPORT: Nanos = Nanos::from_secs(1);

fn main(Arguments([socket, ..]): Arguments) {
    let name = if socket == 0 { "drive" } else { "recorder" };
    if let Err(errno) = echo(name) {
        log!("no echo: {errno:?}");
    }
}

fn echo(name: &str) -> Result<(), Errno> {
    let mut socket = UdpSocket::bind(name)?;
    let mut memory = [0; MOST];
    let (mut came, mut wrong, mut bypassed, mut told) = (0_u64, 0_u64, 0_u64, 0);
    let mut report_at = time::now() + REPORT;
    loop {
        match socket.recv(&mut memory, report_at) {
            Ok(received) => {
                let bytes = memory.get(..received.length).unwrap_or(&[]);
                came += 1;
                wrong += u64::from(read(bytes).is_none());
                bypassed += u64::from(received.bypassed);
                // A peer that asks without end loses answers.
                let _ = socket.send(bytes);
            }
            Err(Errno::TimedOut) => {}
            Err(errno) => return Err(errno),
        }
        if time::now() >= report_at {
            report_at = time::now() + REPORT;
            if came != core::mem::replace(&mut told, came) {
                log!("ECHO {came} {wrong} {bypassed}");
            }
        }
    }
}
