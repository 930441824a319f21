//! The trials: every service of the kernel, asked from inside for what it promises.
//!
//! One small function per promise. Each is logged as `trial NAME ok` or `trial NAME FAILED: why`,
//! the end as `trials: N passed, N failed`. After each, the process must be able to create as many
//! objects as before it.

#![no_std]
#![no_main]

mod census;
mod conditions;
mod devices;
mod locks;
mod mailboxes;
mod memory;
mod peer;
mod registers;
mod states;
mod threads;
mod timers;
mod why;
mod xhci;

use census::Census;
use diapason_rt::{Arguments, entry, log};
use why::Trial;

entry!(main);

/// By topic, in the order they are made.
const TOPICS: [&[(&str, Trial)]; 11] = [
    threads::TRIALS,
    registers::TRIALS,
    locks::TRIALS,
    conditions::TRIALS,
    mailboxes::TRIALS,
    timers::TRIALS,
    memory::TRIALS,
    states::TRIALS,
    devices::TRIALS,
    xhci::TRIALS,
    peer::TRIALS,
];

fn main(_: Arguments) {
    let (mut passed, mut failed) = (0, 0);
    for (name, trial) in TOPICS.into_iter().flatten() {
        let before = Census::take();
        let result = trial();
        let after = Census::take();
        match result {
            Ok(()) if before == after => {
                log!("trial {name} ok");
                passed += 1;
                continue;
            }
            Ok(()) => log!("trial {name} FAILED: {before:?} became {after:?}"),
            Err(why) => log!("trial {name} FAILED: {why}"),
        }
        failed += 1;
    }
    // Bytes that a terminal could take for commands.
    log!("shown \u{7f}\u{9b}\u{1b}[m");
    log!("trials: {passed} passed, {failed} failed");
}
