//! Receives the readings of the other host, and says once a second what came.

#![no_std]
#![no_main]
#![forbid(unsafe_code)]

use diapason_frame::{Continuity, HEAD, SequenceTracker};
use diapason_rt::{Arguments, Errno, Nanos, entry, log, time};
use diapason_usblib::link::{DONE, Done, FILL, Link, UNIT};
use logic::Readings;

entry!(main);

const SECOND: Nanos = Nanos::from_secs(1);
/// Pieces of memory for messages.
const PIECES: u32 = 4;

#[derive(Default)]
struct Receiver {
    order: SequenceTracker,
    readings: Readings,
    lost: u64,
    damaged: u64,
}

fn main(_: Arguments) {
    if let Err(errno) = receive() {
        log!("link: {errno:?}");
    }
}

fn receive() -> Result<(), Errno> {
    let mut link = Link::open(0)?;
    for piece in 0..PIECES {
        link.fill(link.place(piece), UNIT as u32)?;
    }
    link.ring();
    let mut receiver = Receiver::default();
    let mut say_at = time::now() + SECOND;
    loop {
        match link.wait(say_at) {
            Ok(()) => {
                while let Some(done) = link.pop() {
                    // The simulator takes the time of this from `[[work]]`.
                    time::work("message", || receiver.take(&link, &done));
                    link.fill(done.place, UNIT as u32)?;
                    link.ring();
                }
            }
            Err(Errno::TimedOut) => {}
            Err(errno) => return Err(errno),
        }
        if time::now() >= say_at {
            say_at += SECOND;
            let Receiver { readings, lost, damaged, .. } = &receiver;
            let Readings { count, last, odd } = readings;
            log!("{count} readings, last {last} ms, {lost} lost, {damaged} damaged, {odd} odd");
        }
    }
}

impl Receiver {
    /// Takes a message, if that is what has come.
    fn take(&mut self, link: &Link, done: &Done) {
        if (done.what, done.status) != (FILL, DONE) {
            return;
        }
        let Some(head) = link.check(done.place, done.bytes) else {
            self.damaged += 1;
            return;
        };
        match self.order.arrived(head) {
            Continuity::Lost(count) => self.lost += u64::from(count),
            Continuity::Again => self.lost += 1,
            Continuity::Next | Continuity::Begun => {}
        }
        let at = done.place as usize * UNIT + HEAD;
        self.readings.add([link.data.read32(at), link.data.read32(at + 4)]);
    }
}
