//! Receives the packets that `wire-relay` of another computer sends, by the socket `sensor`, checks
//! them, and says what `bridge-sink` says. A packet came when its program has it: no program knows
//! when it was at the server.

#![no_std]
#![no_main]
#![forbid(unsafe_code)]

use diapason_bridging::{DATA, NUMBER, PacketTally, REPORT};
use diapason_netlib::UdpSocket;
use diapason_rt::{Arguments, Errno, entry, log, time};

entry!(main);

/// Bytes of the longest datagram.
const DATAGRAM: usize = 1_472;
/// The work for a packet, as descriptions name it.
const CHECK: &str = "wire.check";

fn main(_: Arguments) {
    if let Err(errno) = run() {
        log!("sink: {errno:?}");
    }
}

fn run() -> Result<(), Errno> {
    let mut socket = UdpSocket::bind("sensor")?;
    let mut memory = [0; DATAGRAM];
    let (mut tally, mut next) = (PacketTally::default(), 0);
    let mut report_at = time::now() + REPORT;
    loop {
        match socket.recv(&mut memory, report_at) {
            Ok(received) => {
                let came = time::now();
                let packet = memory.get(..received.length).unwrap_or(&[]);
                match time::work(CHECK, || words(packet)) {
                    Some([number, times @ ..]) => {
                        tally.lost += number.saturating_sub(next);
                        next = number + 1;
                        tally.counts(times, came.0, time::now());
                    }
                    None => tally.damaged += 1,
                }
            }
            Err(Errno::TimedOut) => {}
            Err(errno) => return Err(errno),
        }
        if time::now() >= report_at {
            report_at += REPORT;
            tally.tell();
        }
    }
}

/// Returns the number and the times of a packet whose data counts up.
fn words(packet: &[u8]) -> Option<[u64; DATA / NUMBER]> {
    let (head, data) = packet.split_first_chunk::<DATA>()?;
    let first = *data.first()?;
    let mut bytes = data.iter().zip(0_usize..);
    let counts_up = bytes.all(|(byte, at)| *byte == first.wrapping_add(at as u8));
    let word = |number: usize| {
        let bytes = head[NUMBER * number..].first_chunk();
        bytes.map_or(0, |bytes| u64::from_le_bytes(*bytes))
    };
    counts_up.then(|| core::array::from_fn(word))
}
