//! Reads the `[[pipe]]` from a disk and checks the number at the beginning of each block.
//!
//! The library measures and reports how the pipe does. Arguments: after how many seconds it ends
//! with a verdict (0: never), the time in us that it takes for each message besides the check, and
//! the bytes and the period in us of a message, as the description has them.

#![no_std]
#![no_main]
#![forbid(unsafe_code)]

mod reading;

use diapason_rt::{Arguments, Errno, Nanos, entry, log};
use diapason_usblib::{BlockRun, Blocks};

entry!(main);

/// The messages so far.
#[derive(Default)]
struct Tally {
    runs: u64,
    wrong: u64,
    /// The block that comes next.
    next: u32,
}

fn main(Arguments([seconds, busy, bytes, period]): Arguments) {
    if let Err(errno) = read(seconds, Nanos::from_micros(busy), (bytes, period)) {
        log!("disk: not read: {errno:?}");
    }
}

fn read(seconds: u64, busy: Nanos, (bytes, period): (u64, u64)) -> Result<(), Errno> {
    let mut pipe = Blocks::open(bytes as u32, Nanos::from_micros(period))?;
    let mut tally = Tally::default();
    reading::read_for(&mut pipe, seconds, busy, |pipe, run| {
        check(pipe, run, &mut tally);
        0
    })?;
    let Tally { runs, wrong, .. } = tally;
    let verdict = if runs > 0 && wrong == 0 { "WHOLE" } else { "NOT WHOLE" };
    log!("BLOCKS {verdict} {runs} messages, {wrong} wrong");
    Ok(())
}

/// Each block begins with its number, and a message follows the one before or begins the disk anew.
fn check(pipe: &Blocks, run: &BlockRun, tally: &mut Tally) {
    let bytes = pipe.block_bytes();
    let offsets = (0..run.bytes).step_by(bytes as usize);
    let right = offsets.zip(run.block..).all(|(offset, block)| pipe.word(run, offset) == block);
    let follows = run.block == tally.next || run.block == 0;
    tally.runs += 1;
    tally.wrong += u64::from(!(right && follows));
    tally.next = run.block + run.bytes / bytes;
}
