//! Writes the `[[pipe]]` to the endpoint of any device: numbered packets, one in each period.
//!
//! The library measures and reports how the pipe does. Arguments: after how many seconds it ends
//! with a verdict (0: never), the period in us, the bytes of a packet, and how many packets it
//! writes in each period (0: one).

#![no_std]
#![no_main]
#![forbid(unsafe_code)]

use diapason_rt::{Arguments, Errno, Nanos, entry, log, thread, time};
use diapason_usblib::{NotWritten, usb_open_to};

entry!(main);

/// Begins a packet; its number follows, and the rest counts up from that.
const SIGNATURE: [u8; 8] = *b"DIAPASON";

fn main(Arguments([seconds, period, bytes, each]): Arguments) {
    if let Err(errno) = write(seconds, Nanos::from_micros(period), bytes as usize, each.max(1)) {
        log!("endpoint: not written: {errno:?}");
    }
}

fn packet(number: u64) -> [u8; 512] {
    let mut packet = core::array::from_fn(|at| (at as u64 + number) as u8);
    packet[..8].copy_from_slice(&SIGNATURE);
    packet[8..16].copy_from_slice(&number.to_le_bytes());
    packet
}

fn write(seconds: u64, period: Nanos, bytes: usize, each: u64) -> Result<(), Errno> {
    let mut pipe = usb_open_to()?;
    let work = pipe.source().message;
    let (begun, mut written, mut full) = (time::now(), 0u64, 0u64);
    let mut jobs = thread::periodic(begun, period, period);
    while seconds == 0 || time::now() < begun + Nanos::from_secs(seconds) {
        for _ in 0..each {
            let packet = time::work(work, || packet(written));
            match pipe.write(packet.get(..bytes).unwrap_or_default()) {
                Ok(()) => written += 1,
                Err(NotWritten::Full) => full += 1,
                Err(NotWritten::Length) => {
                    log!("no packet has {bytes} bytes");
                    return Ok(());
                }
            }
        }
        jobs.wait();
    }
    let verdict = if written > 0 && full == 0 { "WHOLE" } else { "NOT WHOLE" };
    log!("WRITTEN {verdict} {written} packets, {full} had no room");
    Ok(())
}
