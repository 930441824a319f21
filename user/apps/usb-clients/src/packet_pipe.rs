//! Reads the `[[pipe]]` from the endpoint of any device and checks that its packets follow each
//! other: those of an instrument by their numbers, those of a keyboard by keys that go down and up.
//!
//! The library measures and reports how the pipe does. Arguments: after how many seconds it ends
//! with a verdict (0: never), the time in us that it takes for each packet besides the check, and
//! the bytes of a packet.

#![no_std]
#![no_main]
#![forbid(unsafe_code)]

mod packets;
mod reading;

use diapason_rt::{Arguments, Errno, Nanos, entry, log};
use diapason_usblib::sensor::Packet;
use diapason_usblib::usb_open;
use packets::PacketTally;

entry!(main);

/// Bytes of a keyboard's report, and the place of the first key in it.
const REPORT: u64 = 8;
const KEY: usize = 2;

/// The way in which packets must follow each other.
enum Check {
    Numbers(PacketTally),
    /// The first key of the report before.
    Keys(Option<u8>),
}

impl Check {
    fn of(bytes: u64) -> Check {
        match bytes {
            REPORT => Check::Keys(None),
            bytes => Check::Numbers(PacketTally::of(bytes as usize)),
        }
    }

    /// Returns how many packets were not as they were sent, as far as their bytes say so.
    fn damaged(&self) -> u64 {
        match self {
            Check::Numbers(tally) => tally.damaged,
            Check::Keys(_) => 0,
        }
    }

    /// Takes a packet, and returns how many are missing before it.
    fn take(&mut self, packet: &Packet) -> u64 {
        match self {
            Check::Numbers(tally) => tally.count(packet),
            Check::Keys(before) => {
                let key = packet.data[KEY];
                let last = before.replace(key);
                // A key is down in every other report.
                u64::from(last.is_some_and(|last| (last == 0) == (key == 0)))
            }
        }
    }
}

fn main(Arguments([seconds, busy, bytes, ..]): Arguments) {
    if let Err(errno) = read(seconds, Nanos::from_micros(busy), bytes) {
        log!("endpoint: not read: {errno:?}");
    }
}

fn read(seconds: u64, busy: Nanos, bytes: u64) -> Result<(), Errno> {
    let mut pipe = usb_open()?;
    let mut check = Check::of(bytes);
    let (mut packets, mut wrong) = (0u64, 0u64);
    reading::read_for(&mut pipe, seconds, busy, |_, packet| {
        let missing = check.take(packet);
        packets += 1;
        wrong += missing + u64::from(u64::from(packet.length) != bytes);
        missing
    })?;
    let is_whole = wrong + check.damaged() + pipe.lost() == 0 && packets > 0;
    let verdict = if is_whole { "WHOLE" } else { "NOT WHOLE" };
    log!("ENDPOINT {verdict} {packets} packets");
    Ok(())
}
