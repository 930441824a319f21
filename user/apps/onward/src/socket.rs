//! Sends each packet of the `[[pipe]]` from a sensor on, by the socket `onward`.

#![no_std]
#![no_main]
#![forbid(unsafe_code)]

use diapason_netlib::UdpSocket;
use diapason_onward::{HEAD, MOST, PacketOrder, START, head};
use diapason_rt::{Arguments, Errno, Nanos, entry, log, time};
use diapason_usblib::Packets;

entry!(main);

fn main(_: Arguments) {
    if let Err(errno) = run() {
        log!("onward: {errno:?}");
    }
}

fn run() -> Result<(), Errno> {
    let (mut pipe, mut socket) = (Packets::of_sensor()?, UdpSocket::bind("onward")?);
    let work = pipe.source().message;
    let (mut order, mut number) = (PacketOrder::default(), 0);
    let mut message = [0; MOST];
    let begin = time::now() + START;
    loop {
        let packet = pipe.read_wait(Nanos::FOREVER)?;
        let (copied, missing) = time::work(work, || {
            let bytes = packet.data.iter().take(packet.length as usize);
            let places = message.iter_mut().skip(HEAD);
            let copied = places.zip(bytes).map(|(place, byte)| *place = *byte).count();
            (copied, order.missing(&packet))
        });
        pipe.missed(missing);
        let now = time::now();
        if now < begin {
            continue;
        }
        number += 1;
        let words = message.chunks_exact_mut(4).zip(head(number, now));
        words.for_each(|(place, word)| place.copy_from_slice(&word.to_le_bytes()));
        // A message that finds the pipe full is lost, and its number is missing at the end.
        match socket.send(message.get(..HEAD + copied).unwrap_or(&[])) {
            Ok(()) | Err(Errno::Full) => {}
            Err(errno) => return Err(errno),
        }
    }
}
