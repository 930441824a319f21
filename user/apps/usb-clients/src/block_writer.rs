//! Writes the `[[pipe]]` to a disk: runs of numbered blocks, one in each period.
//!
//! The library measures and reports how the pipe does. Arguments: after how many seconds it ends
//! with a verdict (0: never), the period in us, the bytes of a run, and the blocks of the disk that
//! it writes, from the first one on (0: all).

#![no_std]
#![no_main]
#![forbid(unsafe_code)]

use diapason_rt::{Arguments, Errno, Nanos, entry, log, thread, time};
use diapason_usblib::{BlockPlace, BlockWriter, NoRoom};

entry!(main);

fn main(Arguments([seconds, period, bytes, blocks]): Arguments) {
    let end = if blocks == 0 { u32::MAX } else { blocks as u32 };
    if let Err(errno) = write(seconds, Nanos::from_micros(period), (bytes as u32, end)) {
        log!("disk: not written: {errno:?}");
    }
}

/// Each block begins with its number and that of its run.
fn fill(place: &BlockPlace<'_>, run: u64) {
    let offsets = (0..place.bytes as usize).step_by(place.block_bytes as usize);
    for (offset, block) in offsets.zip(place.block..) {
        place.put(offset, &u64::from(block).to_le_bytes());
        place.put(offset + 8, &run.to_le_bytes());
    }
}

fn write(seconds: u64, period: Nanos, (bytes, end): (u32, u32)) -> Result<(), Errno> {
    let mut pipe = BlockWriter::open(bytes, 0..end)?;
    let work = pipe.source().message;
    let (begun, mut runs, mut full) = (time::now(), 0u64, 0u64);
    let mut jobs = thread::periodic(begun, period, period);
    while seconds == 0 || time::now() < begun + Nanos::from_secs(seconds) {
        match pipe.write(|place| time::work(work, || fill(place, runs))) {
            Ok(_) => runs += 1,
            Err(NoRoom::NoDisk) => {}
            Err(NoRoom::Full) => full += 1,
            Err(NoRoom::Small) => {
                log!("the disk has no room for {bytes} bytes");
                return Ok(());
            }
        }
        jobs.wait();
    }
    let verdict = if runs > 0 && full == 0 { "WHOLE" } else { "NOT WHOLE" };
    log!("STORED {verdict} {runs} runs, {full} had no room");
    Ok(())
}
