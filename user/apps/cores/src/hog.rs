//! A task that never stops, and says so now and then. With an argument it rings the logger's
//! doorbell in every turn, far more often than the doorbell may ring.

#![no_std]
#![no_main]

use diapason_cores::READY;
use diapason_rt::event::Doorbell;
use diapason_rt::{Arguments, Nanos, entry, log, time};

entry!(main);

/// One turn, and turns between two lines.
const TURN: Nanos = Nanos::from_micros(100);
const TURNS: u64 = 5_000;

fn main(Arguments([rings, ..]): Arguments) {
    let ready = Doorbell::new(READY);
    for turn in 1u64.. {
        time::burn(TURN);
        if rings > 0 {
            let _ = ready.ring();
        }
        if turn.is_multiple_of(TURNS) {
            log!("turn {turn}, and no end");
        }
    }
}
