//! Answers the doorbell of the core that measures, on a core that works on memory otherwise.

#![no_std]
#![no_main]
#![forbid(unsafe_code)]

use diapason_machine::{RUNG, StressBoard};
use diapason_rt::event::Event;
use diapason_rt::{Arguments, Errno, Nanos, entry, log};

entry!(main);

fn main(_: Arguments) {
    if let Err(errno) = answer() {
        log!("nobody answers the doorbell: {errno:?}");
    }
}

fn answer() -> Result<(), Errno> {
    let board = StressBoard::attach()?;
    let rung = Event::interrupt(RUNG)?;
    while !board.is_over() {
        rung.wait(Nanos::FOREVER)?;
        board.answer();
    }
    Ok(())
}
