//! Takes the messages of link 0, checks every byte, and reports as the end of a flow: how many
//! came, how many are missing, and how much longer the slowest took than the fastest.
//!
//! Once a second it says `ONWARD came lost damaged`.

#![no_std]
#![no_main]
#![forbid(unsafe_code)]

use diapason_frame::HEAD as SEAL;
use diapason_onward::{MOST, OnwardEnd, read};
use diapason_rt::{Arguments, Errno, Nanos, entry, log, time};
use diapason_usblib::link::{DONE, Done, FILL, Link, UNIT};

entry!(main);

/// Pieces of memory for messages: those that the flow says.
const SLOTS: u32 = 4;
/// Bytes of a piece: whole packets, so that a message with a full last one ends with the memory.
const PIECE: usize = 1_024;

fn main(_: Arguments) {
    if let Err(errno) = run() {
        log!("end: {errno:?}");
    }
}

fn run() -> Result<(), Errno> {
    let mut link = Link::open(0)?;
    for number in 0..SLOTS {
        link.fill(link.place_of(number, PIECE), PIECE as u32)?;
    }
    link.ring();
    let mut end = OnwardEnd::default();
    loop {
        match link.wait(end.report_at()) {
            Ok(()) => {
                while let Some(done) = link.pop() {
                    if done.what == FILL && done.status == DONE {
                        end.took(take(&link, &done));
                    }
                    link.fill(done.place, PIECE as u32)?;
                    link.ring();
                }
            }
            Err(Errno::TimedOut) => {}
            Err(errno) => return Err(errno),
        }
        end.look();
    }
}

/// Returns the number and the time of a message that came, if nothing of it is damaged.
fn take(link: &Link, done: &Done) -> Option<(u64, Nanos)> {
    time::work("link.check", || link.check(done.place, done.bytes))?;
    let (mut memory, at) = ([0; MOST], done.place as usize * UNIT + SEAL);
    let bytes = (done.bytes as usize).saturating_sub(SEAL).min(MOST);
    for (offset, word) in (at..).step_by(4).zip(memory[..bytes].chunks_mut(4)) {
        let read = link.data.read32(offset).to_le_bytes();
        word.iter_mut().zip(read).for_each(|(place, byte)| *place = byte);
    }
    read(&memory[..bytes])
}
