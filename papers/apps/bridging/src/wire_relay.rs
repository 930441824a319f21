//! Sends each packet of the sensor to another computer by the socket `sensor`, with the times of
//! its way. Number and times take the place of the first bytes, and the sensor's own data goes on
//! behind them.

#![no_std]
#![no_main]
#![forbid(unsafe_code)]

use diapason_bridging::{DATA, MADE, NUMBER, TIMES};
use diapason_netlib::UdpSocket;
use diapason_rt::{Arguments, Errno, Nanos, entry, log, time};
use diapason_usblib::inlet;
use diapason_usblib::sensor::{NAMES, Packet, RECORDS};

entry!(main);

/// The work for a packet, as descriptions name it.
const RELAY: &str = "wire.relay";

fn main(_: Arguments) {
    if let Err(errno) = run() {
        log!("relay: {errno:?}");
    }
}

fn run() -> Result<(), Errno> {
    let mut socket = UdpSocket::bind("sensor")?;
    let (mut inlet, ready) = inlet::<Packet, RECORDS>(NAMES[0].packets, NAMES[0].ready)?;
    let mut number = 0_u64;
    loop {
        ready.take(Nanos::FOREVER)?;
        // At most what fits: a sensor that never stops must not keep it here.
        for _ in 0..RECORDS {
            let Some(mut packet) = inlet.pop() else { break };
            time::work(RELAY, || pass(&mut socket, &mut packet, number))?;
            number += 1;
        }
    }
}

/// Sends a packet with its number and times.
fn pass(socket: &mut UdpSocket, packet: &mut Packet, number: u64) -> Result<(), Errno> {
    let read = time::now().0;
    let made = packet.data.get(MADE..).and_then(|data| data.first_chunk());
    let made = made.map_or(0, |bytes| u64::from_le_bytes(*bytes));
    let times: [u64; TIMES] = [made, packet.taken, read, time::now().0];
    let head = packet.data[..DATA].chunks_exact_mut(NUMBER);
    for (place, word) in head.zip([number].into_iter().chain(times)) {
        place.copy_from_slice(&word.to_le_bytes());
    }
    socket.send(&packet.data)
}
