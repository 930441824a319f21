//! A task that never stops. Argument: its place among those that count.

#![no_std]
#![no_main]

use diapason_rt::{Arguments, entry, log};
use diapason_spin::Progress;

entry!(main);

fn main(Arguments([task, idle, ..]): Arguments) {
    if idle != 0 {
        return;
    }
    match Progress::attach() {
        Ok(progress) => progress.spin(task as usize),
        Err(errno) => log!("no progress to make: {errno:?}"),
    }
}
