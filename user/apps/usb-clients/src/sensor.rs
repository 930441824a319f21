//! Reads the sensor of the USB server and checks that its packets follow each other, every byte.
//!
//! Once a second it says `SENSOR packets missing damaged us`: since the start, and the longest way
//! of this second from the server's hand to here. Arguments: after how many seconds it ends with a
//! verdict (0: never).

#![no_std]
#![no_main]
#![forbid(unsafe_code)]

mod packets;

use diapason_rt::{Arguments, Errno, Nanos, entry, log, time};
use diapason_usblib::inlet;
use diapason_usblib::sensor::{NAMES, Packet, RECORDS};
use packets::PacketTally;

entry!(main);

/// Time between two reports.
const REPORT: Nanos = Nanos::from_secs(1);
fn main(Arguments([seconds, ..]): Arguments) {
    if let Err(errno) = read(seconds) {
        log!("sensor: not read: {errno:?}");
    }
}

fn read(seconds: u64) -> Result<(), Errno> {
    let (mut inlet, ready) = inlet::<Packet, RECORDS>(NAMES[0].packets, NAMES[0].ready)?;
    let (mut tally, mut slowest) = (PacketTally::default(), Nanos::ZERO);
    let (mut report_at, mut reports) = (time::now() + REPORT, 0);
    while seconds == 0 || reports < seconds {
        match ready.take(report_at) {
            // At most what fits: a writer that never stops must not keep it here.
            Ok(()) => {
                for _ in 0..RECORDS {
                    let Some(packet) = inlet.pop() else { break };
                    slowest = slowest.max(time::now() - Nanos(packet.taken));
                    tally.count(&packet);
                }
            }
            Err(Errno::TimedOut) => {
                let PacketTally { packets, missing, damaged, .. } = tally;
                let missing = missing + inlet.lost();
                log!("SENSOR {packets} {missing} {damaged} {}", slowest.0 / 1_000);
                (slowest, report_at) = (Nanos::ZERO, report_at + REPORT);
                reports += 1;
            }
            Err(errno) => return Err(errno),
        }
    }
    let wrong = tally.missing + tally.damaged + inlet.lost();
    let verdict = if wrong == 0 && tally.packets > 0 { "WHOLE" } else { "NOT WHOLE" };
    log!("SENSOR {verdict} {} packets", tally.packets);
    Ok(())
}
