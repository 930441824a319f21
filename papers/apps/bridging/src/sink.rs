//! Receives the packets that the relay of another computer sends, checks them, and says for each
//! when it passed its stages: `WAY number made taken read sent came here`.
//!
//! Once a second it says `SUNK packets lost damaged`.

#![no_std]
#![no_main]
#![forbid(unsafe_code)]

use diapason_bridging::{PacketTally, REPORT, TIMES};
use diapason_frame::{Continuity, HEAD, SequenceTracker};
use diapason_rt::{Arguments, Errno, entry, log, time};
use diapason_usblib::link::{DONE, Done, FILL, Link, UNIT};

entry!(main);

/// Pieces of memory for packets.
const PLACES: u32 = 4;
/// Bytes of a packet, and where the sensor's own data begins in it.
const BYTES: u32 = 512;
const DATA: usize = HEAD + 8 * TIMES;

fn main(_: Arguments) {
    if let Err(errno) = run() {
        log!("sink: {errno:?}");
    }
}

fn run() -> Result<(), Errno> {
    let mut link = Link::open(0)?;
    for number in 0..PLACES {
        link.fill(link.place(number), UNIT as u32)?;
    }
    link.ring();
    let (mut order, mut tally) = (SequenceTracker::default(), PacketTally::default());
    let mut report_at = time::now() + REPORT;
    loop {
        match link.wait(report_at) {
            Ok(()) => drain(&mut link, &mut order, &mut tally)?,
            Err(Errno::TimedOut) => {}
            Err(errno) => return Err(errno),
        }
        if time::now() >= report_at {
            report_at += REPORT;
            tally.tell();
        }
    }
}

/// Takes every packet that came.
fn drain(
    link: &mut Link,
    order: &mut SequenceTracker,
    tally: &mut PacketTally,
) -> Result<(), Errno> {
    while let Some(done) = link.pop() {
        if done.what == FILL && done.status == DONE {
            take(link, &done, order, tally);
        }
        link.fill(done.place, UNIT as u32)?;
        link.ring();
    }
    Ok(())
}

fn take(link: &Link, done: &Done, order: &mut SequenceTracker, tally: &mut PacketTally) {
    let head = time::work("link.check", || link.check(done.place, done.bytes));
    let Some(head) = head.filter(|_| done.bytes == BYTES) else {
        tally.damaged += 1;
        return;
    };
    let at = done.place as usize * UNIT;
    // The packet is checked, so that its time counts as in the sensor's own reader.
    let here = time::now();
    if let Continuity::Lost(count) = order.arrived(head) {
        tally.lost += u64::from(count);
    }
    let first = link.data.read8(at + DATA);
    let counts_up =
        |offset: usize| link.data.read8(at + offset) == first.wrapping_add((offset - DATA) as u8);
    if !(DATA..BYTES as usize).all(counts_up) {
        tally.damaged += 1;
        return;
    }
    let word = |number: usize| {
        let at = at + HEAD + 8 * number;
        u64::from(link.data.read32(at)) | u64::from(link.data.read32(at + 4)) << 32
    };
    tally.counts(core::array::from_fn(word), done.taken, here);
}
