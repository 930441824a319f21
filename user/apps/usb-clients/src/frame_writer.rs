//! Writes the `[[pipe]]` to a network device: numbered frames for all, one in each period.
//!
//! The library measures and reports how the pipe does. Arguments: after how many seconds it ends
//! with a verdict (0: never), the period in us, and the bytes of a frame.

#![no_std]
#![no_main]
#![forbid(unsafe_code)]

mod local;

use diapason_rt::{Arguments, Errno, Nanos, entry, log, thread, time};
use diapason_usblib::network::{FramePlace, FrameWriter, NotSent};
use local::{HEAD, head};

entry!(main);

/// Bytes of the shortest frame.
const BYTES: usize = 60;

fn main(Arguments([seconds, period, bytes, ..]): Arguments) {
    if let Err(errno) = write(seconds, Nanos::from_micros(period), bytes as usize) {
        log!("network: not written: {errno:?}");
    }
}

fn fill(place: &FramePlace<'_>, number: u64) {
    let mut frame = [0; BYTES];
    frame[..HEAD].copy_from_slice(&head(place.address));
    frame[HEAD..HEAD + 8].copy_from_slice(&number.to_le_bytes());
    place.put(0, &frame);
}

fn write(seconds: u64, period: Nanos, bytes: usize) -> Result<(), Errno> {
    let mut pipe = FrameWriter::open()?;
    let work = pipe.source().message;
    let (begun, mut frames, mut full) = (time::now(), 0u64, 0u64);
    let mut jobs = thread::periodic(begun, period, period);
    while seconds == 0 || time::now() < begun + Nanos::from_secs(seconds) {
        match pipe.write(bytes.max(BYTES), |place| time::work(work, || fill(place, frames))) {
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
