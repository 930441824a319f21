//! The neighbour: a periodic process that must never be late and whose memory must never change,
//! whatever the others do.
//!
//! Arguments: period in microseconds, work per job in microseconds. It also keeps the segment
//! `tally` attached, so that its contents outlive those who count in it.

#![no_std]
#![no_main]

use core::sync::atomic::{AtomicU64, Ordering::Relaxed};
use diapason_rt::memory::{Segment, allocate};
use diapason_rt::{Arguments, Nanos, entry, thread, time};

entry!(main);

/// The content of its memory.
const PATTERN: u64 = 0x6e65_6967_6862_6f72;
const WORDS: usize = 64;

static DATA: [AtomicU64; WORDS] = [const { AtomicU64::new(PATTERN) }; WORDS];
static ZEROS: [AtomicU64; WORDS] = [const { AtomicU64::new(0) }; WORDS];

fn main(Arguments([period_us, work_us, ..]): Arguments) {
    let Ok(tally) = Segment::attach("tally") else { panic!("no tally") };
    let Ok(heap) = allocate(1) else { panic!("no heap") };
    heap.fill(PATTERN as u8);
    let stack = [const { AtomicU64::new(PATTERN) }; WORDS];
    let period = Nanos::from_micros(period_us);
    let mut jobs = thread::periodic(time::now() + period, period, period);
    loop {
        time::burn(Nanos::from_micros(work_us));
        assert!(all(&DATA, PATTERN) && all(&ZEROS, 0), "somebody wrote to my data");
        assert!(all(&stack, PATTERN), "somebody wrote to my stack");
        assert!(heap.iter().all(|byte| *byte == PATTERN as u8), "somebody wrote to my heap");
        core::hint::black_box(&tally);
        jobs.wait();
    }
}

fn all(words: &[AtomicU64], value: u64) -> bool {
    words.iter().all(|word| word.load(Relaxed) == value)
}
