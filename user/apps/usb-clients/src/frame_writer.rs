//! Writes the `[[pipe]]` to a network device: a frame in each period, which asks the computer on
//! the network of the model for its address (ARP).
//!
//! The library measures and reports how the pipe does. Arguments: after how many seconds it ends
//! with a verdict (0: never), the period in us, and the bytes of a frame.

#![no_std]
#![no_main]
#![forbid(unsafe_code)]

use diapason_rt::{Arguments, Errno, Nanos, entry, log, thread, time};
use diapason_usblib::network::{FramePlace, FrameWriter, NotSent};

entry!(main);

/// Behind both addresses: ARP, for IPv4 over Ethernet, a question.
const QUESTION: [u8; 10] = [8, 6, 0, 1, 8, 0, 6, 4, 0, 1];
/// The address that asks, and the one that is asked for.
const OWN: [u8; 4] = [10, 0, 2, 15];
const PEER: [u8; 4] = [10, 0, 2, 2];
/// Bytes of the question.
const BYTES: usize = 42;

fn main(Arguments([seconds, period, bytes, ..]): Arguments) {
    if let Err(errno) = write(seconds, Nanos::from_micros(period), bytes as usize) {
        log!("network: not written: {errno:?}");
    }
}

fn fill(place: &FramePlace<'_>) {
    let mut frame = [0; BYTES];
    frame[..6].fill(0xff);
    frame[6..12].copy_from_slice(&place.address);
    frame[12..22].copy_from_slice(&QUESTION);
    frame[22..28].copy_from_slice(&place.address);
    frame[28..32].copy_from_slice(&OWN);
    frame[38..].copy_from_slice(&PEER);
    place.put(0, &frame);
}

fn write(seconds: u64, period: Nanos, bytes: usize) -> Result<(), Errno> {
    let mut pipe = FrameWriter::open()?;
    let work = pipe.source().message;
    let (begun, mut frames, mut full) = (time::now(), 0u64, 0u64);
    let mut jobs = thread::periodic(begun, period, period);
    while seconds == 0 || time::now() < begun + Nanos::from_secs(seconds) {
        match pipe.write(bytes.max(BYTES), |place| time::work(work, || fill(place))) {
            Ok(()) => frames += 1,
            Err(NotSent::NoDevice) => {}
            Err(NotSent::Full) => full += 1,
            Err(NotSent::Length) => {
                log!("no frame has {bytes} bytes");
                return Ok(());
            }
        }
        jobs.wait();
    }
    let verdict = if frames > 0 && full == 0 { "WHOLE" } else { "NOT WHOLE" };
    log!("SENT {verdict} {frames} frames, {full} had no room");
    Ok(())
}
