//! The victim: does one forbidden thing per life, says which beforehand, and is restarted.
//!
//! The number of the next deed is in the segment `tally`, which the neighbour keeps alive. A deed
//! that does no harm is followed by `survived`; what must happen to each is in the test that boots
//! this, not here.

#![no_std]
#![no_main]

mod calls;
mod instructions;
mod regions;
mod threads;

use core::sync::atomic::{AtomicU64, Ordering::Relaxed};
use diapason_rt::memory::Segment;
use diapason_rt::{Arguments, entry, log};

entry!(main);

/// One forbidden thing: its name, and the doing of it.
pub type Deed = (&'static str, fn());

/// A list of deeds: does number `n` if there is one.
type Group = (fn() -> usize, fn(usize));

const GROUPS: [Group; 4] = [
    (regions::count, regions::perform),
    (|| instructions::DEEDS.len(), |n| perform(&instructions::DEEDS[n])),
    (calls::count, calls::perform),
    (|| threads::DEEDS.len(), |n| perform(&threads::DEEDS[n])),
];

fn main(_: Arguments) {
    let Ok(tally) = Segment::attach("tally") else { panic!("no tally") };
    // SAFETY: the segment is attached for as long as the process lives; zero is a valid count.
    let next = unsafe { &*tally.address().cast::<AtomicU64>() };
    loop {
        let mut n = next.fetch_add(1, Relaxed) as usize;
        let found = GROUPS.iter().find(|(count, _)| {
            let here = n < count();
            n -= if here { 0 } else { count() };
            here
        });
        match found {
            Some((_, perform)) => perform(n),
            None => break,
        }
    }
    log!("all deeds done");
}

fn perform((name, act): &Deed) {
    log!("deed {name}");
    act();
    log!("survived {name}");
}
