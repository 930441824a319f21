//! A host of a ring of Ethernet wires: passes each datagram that comes by the socket `before` on,
//! by the socket `behind`. It says what `bridge-ring` says.
//!
//! Arguments: those of `bridge-ring`.

#![no_std]
#![no_main]
#![forbid(unsafe_code)]

use diapason_bridging::{Laps, MOST, PATIENCE, REPORT, START};
use diapason_netlib::UdpSocket;
use diapason_rt::{Arguments, Errno, Nanos, entry, log, time};

entry!(main);

/// Bytes of the time at which a lap began, and of the longest datagram.
const TIME: usize = 8;
const DATAGRAM: usize = 1_472;
/// The work of a message that is passed on or begun, as descriptions name it.
const PASS: &str = "ring.pass";

/// The sending side of a host, with the messages of the origin.
struct Host {
    behind: UdpSocket,
    bytes: usize,
    own: u32,
    under_way: u32,
    laps: Laps,
}

fn main(Arguments([bytes, pause, own, _]): Arguments) {
    let bytes = bytes.clamp(TIME as u64, DATAGRAM as u64) as usize;
    if let Err(errno) = run(bytes, Nanos::from_micros(pause), (own as u32).min(MOST)) {
        log!("ring: {errno:?}");
    }
}

fn run(bytes: usize, pause: Nanos, own: u32) -> Result<(), Errno> {
    let (mut before, behind) = (UdpSocket::bind("before")?, UdpSocket::bind("behind")?);
    let mut host = Host { behind, bytes, own, under_way: 0, laps: Laps::default() };
    let mut memory = [0; DATAGRAM];
    let never = if own == 0 { Nanos::FOREVER } else { time::now() + START };
    let (mut begin_at, mut report_at) = (never, time::now() + REPORT);
    loop {
        match before.recv(&mut memory, begin_at.min(report_at)) {
            Ok(received) => {
                let message = memory.get(..received.length).unwrap_or(&[]);
                time::work(PASS, || host.pass(message, pause.0 > 0))?;
                if own > 0 {
                    // Without a pause the next message is on its way already.
                    begin_at = time::now() + if pause.0 == 0 { PATIENCE } else { pause };
                }
            }
            Err(Errno::TimedOut) => {}
            Err(errno) => return Err(errno),
        }
        let now = time::now();
        if now >= begin_at {
            // A message that is still under way after so long never comes.
            host.under_way = 0;
            while host.under_way < own {
                time::work(PASS, || host.begin())?;
            }
            begin_at = now + PATIENCE;
        }
        if now >= report_at {
            report_at += REPORT;
            if own > 0 {
                host.laps.tell();
            }
        }
    }
}

impl Host {
    /// Passes a message on. The origin takes it from the ring, and begins the next one if they do
    /// not go one by one.
    fn pass(&mut self, message: &[u8], one_by_one: bool) -> Result<(), Errno> {
        if self.own == 0 {
            return self.behind.send(message);
        }
        let Some((begun, _)) = message.split_first_chunk() else { return Ok(()) };
        self.under_way = self.under_way.saturating_sub(1);
        self.laps.count(u64::from_le_bytes(*begun), time::now(), one_by_one);
        if one_by_one { Ok(()) } else { self.begin() }
    }

    /// Sends a message of the origin, which begins with the time.
    fn begin(&mut self) -> Result<(), Errno> {
        self.under_way += 1;
        let mut memory = [0; DATAGRAM];
        if let Some(time) = memory.first_chunk_mut::<TIME>() {
            *time = time::now().0.to_le_bytes();
        }
        self.behind.send(memory.get(..self.bytes).unwrap_or(&[]))
    }
}
