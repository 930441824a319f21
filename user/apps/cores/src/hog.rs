//! A task that never stops, and says so now and then.

#![no_std]
#![no_main]

use diapason_rt::{Arguments, Nanos, entry, log, time};

entry!(main);

/// One turn, and turns between two lines.
const TURN: Nanos = Nanos::from_micros(100);
const TURNS: u64 = 5_000;

fn main(_: Arguments) {
    for turn in 1u64.. {
        time::burn(TURN);
        if turn.is_multiple_of(TURNS) {
            log!("turn {turn}, and no end");
        }
    }
}
