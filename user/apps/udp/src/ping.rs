//! Sends a numbered datagram in every period, and measures how long each takes there and back.
//!
//! Arguments: the period in us, the bytes of a datagram, how many it sends before its verdict (0:
//! it never ends), and which socket it has (0: `control`, 1: `stranger`, 2: `monitor`). Once a
//! second it says `UDP sent came lost wrong longest`, in ns.

#![no_std]
#![no_main]
#![forbid(unsafe_code)]

use diapason_netlib::UdpSocket;
use diapason_rt::{Arguments, Errno, Nanos, entry, log, time};
use diapason_udp::{HEAD, MOST, read, write};

entry!(main);

/// Time between two reports.
const REPORT: Nanos = Nanos::from_secs(1);
/// The time from the start to the first datagram: the servers reset their adapters meanwhile.
const REST: Nanos = Nanos::from_millis(50);

fn main(Arguments([period, bytes, count, socket]): Arguments) {
    let bytes = (bytes as usize).clamp(HEAD, MOST);
    let name = match socket {
        0 => "control",
        1 => "stranger",
        _ => "monitor",
    };
    if let Err(errno) = ping(name, Nanos::from_micros(period.max(1)), bytes, count) {
        log!("no datagrams: {errno:?}");
    }
}

/// Counts of what was sent and what came back.
#[derive(Default)]
struct Tally {
    sent: u64,
    came: u64,
    wrong: u64,
    longest: Nanos,
    /// The number of the datagram that should come next.
    next: u64,
    lost: u64,
}

impl Tally {
    fn count(&mut self, bytes: &[u8], now: Nanos) {
        let Some((number, sent)) = read(bytes).filter(|(number, _)| *number >= self.next) else {
            self.wrong += 1;
            return;
        };
        self.came += 1;
        self.lost += number - self.next;
        self.next = number + 1;
        self.longest = self.longest.max(now - Nanos(sent));
    }

    fn say(&self) {
        let Tally { sent, came, lost, wrong, longest, .. } = self;
        log!("UDP {sent} {came} {lost} {wrong} {}", longest.0);
    }
}

fn ping(name: &str, period: Nanos, bytes: usize, count: u64) -> Result<(), Errno> {
    let mut socket = UdpSocket::bind(name)?;
    let mut tally = Tally::default();
    let mut memory = [0; MOST];
    let mut next = time::now() + REST;
    let mut report_at = next + REPORT;
    while count == 0 || tally.sent < count {
        let now = time::now();
        if now >= report_at {
            report_at += REPORT;
            tally.say();
        }
        if now >= next {
            next += period;
            let payload = &mut memory[..bytes];
            write(payload, tally.sent, now.0);
            // A datagram that finds the pipe full is lost, as on a wire.
            match socket.send(payload) {
                Ok(()) | Err(Errno::Full) => tally.sent += 1,
                Err(errno) => return Err(errno),
            }
        }
        match socket.recv(&mut memory, next) {
            Ok(came) => tally.count(memory.get(..came.length).unwrap_or(&[]), time::now()),
            Err(Errno::TimedOut) => {}
            Err(errno) => return Err(errno),
        }
    }
    // The last ones are on their way.
    while let Ok(came) = socket.recv(&mut memory, time::now() + Nanos::from_millis(20)) {
        tally.count(memory.get(..came.length).unwrap_or(&[]), time::now());
    }
    tally.say();
    let whole = tally.came == tally.sent && tally.wrong == 0;
    log!("UDP {}", if whole { "WHOLE" } else { "NOT WHOLE" });
    Ok(())
}
