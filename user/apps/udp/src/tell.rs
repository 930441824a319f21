//! Sends a numbered, stamped datagram in every period to a program on another host. If its flow has
//! an `offset`, it sends each in step with the gates of the adapter.
//!
//! Arguments: the period in us, the bytes of a datagram, how many it sends at once (0: one), and
//! which socket it has (0: `command`, 1: `camera`).

#![no_std]
#![no_main]
#![forbid(unsafe_code)]

use diapason_netlib::UdpSocket;
use diapason_rt::{Arguments, Errno, Nanos, entry, log, time};
use diapason_udp::{HEAD, MOST, write};

entry!(main);

/// The time from the start to the first datagram: the servers of both hosts reset their adapters
/// meanwhile.
const REST: Nanos = Nanos::from_millis(100);
/// The work for one datagram, as descriptions name it.
const WRITE: &str = "udp.write";

fn main(Arguments([period, bytes, burst, socket]): Arguments) {
    let name = if socket == 0 { "command" } else { "camera" };
    let bytes = (bytes as usize).clamp(HEAD, MOST);
    if let Err(errno) = tell(name, Nanos::from_micros(period.max(1)), bytes, burst.max(1)) {
        log!("no datagrams: {errno:?}");
    }
}

fn tell(name: &str, period: Nanos, bytes: usize, burst: u64) -> Result<(), Errno> {
    let mut socket = UdpSocket::bind(name)?;
    let mut memory = [0; MOST];
    let start = time::now() + REST;
    let mut next = socket.release_after(start).unwrap_or(start);
    let mut number = 0;
    loop {
        time::sleep_until(next);
        for _ in 0..burst {
            let payload = &mut memory[..bytes];
            let now = time::now();
            time::work(WRITE, || write(payload, number, now.0));
            // A datagram that finds the pipe full is lost, and its number is missing at the end.
            match socket.send(payload) {
                Ok(()) | Err(Errno::Full) => number += 1,
                Err(errno) => return Err(errno),
            }
        }
        next = socket.release_after(next).unwrap_or(next + period);
    }
}
