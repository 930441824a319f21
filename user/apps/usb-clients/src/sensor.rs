//! Reads the sensor of the USB server and checks that its packets follow each other, every byte.
//!
//! Once a second it says `SENSOR packets missing damaged us`: since the start, and the longest way
//! of this second from the server's hand to here. Arguments: after how many seconds it ends with a
//! verdict (0: never).

#![no_std]
#![no_main]
#![forbid(unsafe_code)]

use diapason_rt::{Arguments, Errno, Nanos, entry, log, time};
use diapason_usblib::sensor::{PACKET, PACKETS, Packet, READY, RECORDS};
use diapason_usblib::{Reader, inlet};

entry!(main);

/// Time between two reports.
const REPORT: Nanos = Nanos::from_secs(1);
/// Begins a packet; its number and its time follow.
const SIGNATURE: [u8; 8] = *b"DIAPASON";
/// Bytes of the three; the rest counts up.
const HEAD: usize = 24;

/// The packets so far.
#[derive(Default)]
struct Tally {
    packets: u64,
    missing: u64,
    damaged: u64,
    /// The session, and the number that comes next in it.
    next: Option<(u32, u64)>,
    slowest: Nanos,
}

fn main(Arguments([seconds, ..]): Arguments) {
    if let Err(errno) = read(seconds) {
        log!("sensor: not read: {errno:?}");
    }
}

fn read(seconds: u64) -> Result<(), Errno> {
    let (mut inlet, ready) = inlet::<Packet, RECORDS>(PACKETS, READY)?;
    let mut tally = Tally::default();
    let (mut report_at, mut reports) = (time::now() + REPORT, 0);
    while seconds == 0 || reports < seconds {
        match ready.take(report_at) {
            Ok(()) => drain(&mut inlet, &mut tally),
            Err(Errno::TimedOut) => {
                let Tally { packets, missing, damaged, slowest, .. } = tally;
                let missing = missing + inlet.lost();
                log!("SENSOR {packets} {missing} {damaged} {}", slowest.0 / 1_000);
                (tally.slowest, report_at) = (Nanos::ZERO, report_at + REPORT);
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

fn drain(inlet: &mut Reader<Packet, RECORDS>, tally: &mut Tally) {
    // At most what fits: a writer that never stops must not keep it here.
    for _ in 0..RECORDS {
        let Some(packet) = inlet.pop() else { return };
        tally.slowest = tally.slowest.max(time::now() - Nanos(packet.taken));
        count(&packet, tally);
    }
}

fn count(packet: &Packet, tally: &mut Tally) {
    let number = packet.data.get(8..16).and_then(|bytes| bytes.try_into().ok());
    let number = number.map_or(0, u64::from_le_bytes);
    let rest = packet.data.iter().enumerate().skip(HEAD);
    let counts_up = rest.into_iter().all(|(at, byte)| *byte == (at as u64 + number) as u8);
    let whole = packet.length as usize == PACKET;
    if !whole || !packet.data.starts_with(&SIGNATURE) || !counts_up {
        tally.damaged += 1;
        return;
    }
    tally.packets += 1;
    // A sensor that is plugged in again goes on with any number.
    match tally.next.filter(|(session, _)| *session == packet.session) {
        Some((_, next)) if number >= next => tally.missing += number - next,
        Some(_) => tally.damaged += 1,
        None => {}
    }
    tally.next = Some((packet.session, number + 1));
}
