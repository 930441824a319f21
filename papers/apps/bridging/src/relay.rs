//! Sends each packet of the sensor to another computer, with the times of its way.

#![no_std]
#![no_main]
#![forbid(unsafe_code)]

use diapason_bridging::{MADE, TIMES};
use diapason_frame::{HEAD, Numbering};
use diapason_rt::{Arguments, Errno, Nanos, entry, log, time};
use diapason_usblib::inlet;
use diapason_usblib::link::{Link, UNIT};
use diapason_usblib::sensor::{NAMES, PACKET, Packet, RECORDS};

entry!(main);

/// Packets that may be under way at once.
const PLACES: u32 = 4;
/// The times follow the head of a message, and the sensor's own data goes on behind them.
const DATA: usize = HEAD + 8 * TIMES;

fn main(_: Arguments) {
    if let Err(errno) = run() {
        log!("relay: {errno:?}");
    }
}

fn run() -> Result<(), Errno> {
    let mut link = Link::open(0)?;
    let (mut inlet, ready) = inlet::<Packet, RECORDS>(NAMES[0].packets, NAMES[0].ready)?;
    let (mut numbering, mut next) = (Numbering::default(), 0);
    loop {
        ready.take(Nanos::FOREVER)?;
        // At most what fits: a sensor that never stops must not keep it here.
        for _ in 0..RECORDS {
            let Some(packet) = inlet.pop() else { break };
            let read = time::now();
            let place = link.place(next % PLACES);
            next += 1;
            copy(&link, place, &packet);
            let made = packet.data.get(MADE..MADE + 8).and_then(|bytes| bytes.try_into().ok());
            let made = made.map_or(0, u64::from_le_bytes);
            // The message is sealed after the last stamp, so that sealing belongs to sending.
            let times = [made, packet.taken, read.0, time::now().0];
            write(&link, place, times);
            let head = numbering.head((PACKET - HEAD) as u16);
            time::work("link.seal", || link.seal(place, head));
            link.send_quietly(place, PACKET as u32)?;
            link.ring();
            // Messages that moved are told with others: nobody waits for them.
            while link.pop().is_some() {}
        }
    }
}

/// Copies the packet's data behind the times.
fn copy(link: &Link, place: u32, packet: &Packet) {
    let at = place as usize * UNIT;
    let words = packet.data.chunks_exact(4).enumerate().skip(DATA / 4);
    for (word, bytes) in words {
        let bytes = bytes.try_into().map_or(0, u32::from_le_bytes);
        link.data.write32(at + 4 * word, bytes);
    }
}

/// Writes the times behind the head.
fn write(link: &Link, place: u32, times: [u64; TIMES]) {
    let at = place as usize * UNIT + HEAD;
    for (offset, time) in (at..).step_by(8).zip(times) {
        link.data.write32(offset, time as u32);
        link.data.write32(offset + 4, (time >> 32) as u32);
    }
}
