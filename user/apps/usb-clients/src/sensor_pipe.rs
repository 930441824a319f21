//! Reads the `[[pipe]]` from a sensor and checks that its packets follow each other, every byte.
//!
//! The library measures and reports how the pipe does. Arguments: after how many seconds it ends
//! with a verdict (0: never), and the time in us that it takes for each packet besides the check.

#![no_std]
#![no_main]
#![forbid(unsafe_code)]

mod packets;
mod reading;

use diapason_rt::{Arguments, Errno, Nanos, entry, log};
use diapason_usblib::Packets;
use packets::PacketTally;

entry!(main);

fn main(Arguments([seconds, busy, ..]): Arguments) {
    if let Err(errno) = read(seconds, Nanos::from_micros(busy)) {
        log!("sensor: not read: {errno:?}");
    }
}

fn read(seconds: u64, busy: Nanos) -> Result<(), Errno> {
    let mut pipe = Packets::of_sensor()?;
    let attributes = pipe.source().attributes;
    let (bytes, queued) = attributes.transfer;
    log!("sensor: {} bytes at most, {queued} transfers of {bytes} queued", attributes.packet.1);
    let mut tally = PacketTally::default();
    reading::read_for(&mut pipe, seconds, busy, |_, packet| tally.count(packet))?;
    let wrong = tally.missing + tally.damaged + pipe.lost();
    let verdict = if wrong == 0 && tally.packets > 0 { "WHOLE" } else { "NOT WHOLE" };
    log!("SENSOR {verdict} {} packets", tally.packets);
    Ok(())
}
