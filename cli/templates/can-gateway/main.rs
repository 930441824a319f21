//! Passes frames on from one CAN channel to another, and says once a second how many.

#![no_std]
#![no_main]
#![forbid(unsafe_code)]

use diapason_can::frame::standard;
use diapason_canlib::{CanFrame, Channel, Error};
use diapason_rt::{Arguments, Nanos, entry, heap, log, time};
use logic::route;

entry!(main);
// `diapason-canlib` wants an allocator. No page of it is taken.
heap!(4 * 1024);

/// The channel that it reads, and the one that it writes: `can0` and `can1`.
const FROM: usize = 0;
const TO: usize = 1;
/// The USB server answers within this time.
const ANSWER: Nanos = Nanos::from_secs(5);
const SECOND: Nanos = Nanos::from_secs(1);

fn main(_: Arguments) {
    if let Err(error) = run() {
        log!("the gateway ends: {error}");
    }
}

fn run() -> Result<(), Error> {
    let mut from = Channel::listen(FROM)?;
    let mut to = Channel::open(TO, time::now() + ANSWER)?;
    // The interface may be plugged in later.
    to.bus_on(Nanos::FOREVER)?;
    let (mut passed, mut dropped) = (0u64, 0u64);
    let mut say_at = time::now() + SECOND;
    loop {
        match from.read_wait(say_at) {
            Ok(message) => {
                // The simulator takes the time of this from `[[work]]`.
                let frame = time::work("gateway.frame", || routed(&message.frame));
                match frame.map(|frame| to.write(&frame)) {
                    Some(Ok(())) => passed += 1,
                    // A gateway that waited for room would hold up what comes next.
                    Some(Err(Error::Full)) => dropped += 1,
                    Some(Err(error)) => return Err(error),
                    None => {}
                }
            }
            Err(Error::TimedOut) => {
                let status = to.read_status()?;
                log!("{passed} passed, {} through, {dropped} dropped", status.through);
                say_at += SECOND;
            }
            Err(error) => return Err(error),
        }
    }
}

/// Returns the frame that leaves for one that came.
fn routed(frame: &CanFrame) -> Option<CanFrame> {
    if frame.is_extended() {
        return None;
    }
    let id = standard(route(frame.raw_id())?).ok()?;
    Some(frame.with_id(id))
}
