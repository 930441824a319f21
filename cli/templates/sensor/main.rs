//! Reads a sensor on USB and says once a second what it measured.

#![no_std]
#![no_main]
#![forbid(unsafe_code)]

use diapason_rt::{Arguments, Errno, Nanos, entry, log, time};
use diapason_usblib::inlet;
use diapason_usblib::sensor::{NAMES, Packet, RECORDS};
use logic::SensorPacket;

entry!(main);

const SECOND: Nanos = Nanos::from_secs(1);

fn main(_: Arguments) {
    if let Err(errno) = read() {
        log!("sensor: not read: {errno:?}");
    }
}

fn read() -> Result<(), Errno> {
    let (mut packets, ready) = inlet::<Packet, RECORDS>(NAMES[0].packets, NAMES[0].ready)?;
    let (mut count, mut last) = (0u64, None);
    let mut say_at = time::now() + SECOND;
    loop {
        match ready.take(say_at) {
            Ok(()) => {
                // At most what fits: a sensor that never stops does not keep it here.
                for _ in 0..RECORDS {
                    let Some(packet) = packets.pop() else { break };
                    let length = packet.data.len().min(packet.length as usize);
                    // The simulator takes the time of this from `[[work]]`.
                    let sample = time::work("sensor.packet", || {
                        packet.data.get(..length).and_then(SensorPacket::of)
                    });
                    if sample.is_some() {
                        (count, last) = (count + 1, sample);
                    }
                }
            }
            Err(Errno::TimedOut) => {
                let lost = packets.lost();
                match last {
                    Some(SensorPacket { number, span: (least, most) }) => {
                        log!("{count} packets, {lost} lost, number {number}: {least} to {most}");
                    }
                    None => log!("no packet yet"),
                }
                say_at += SECOND;
            }
            Err(errno) => return Err(errno),
        }
    }
}
